"""Evaluation of selections: folds, metrics, intervals, tests, and comparisons of methods on the same folds."""
