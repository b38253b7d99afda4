"""Evaluation of selections: folds, metrics, intervals, tests, nulls, and comparisons of methods on the same folds."""
