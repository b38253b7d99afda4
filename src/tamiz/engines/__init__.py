"""Compiled training, and the contract that every engine keeps: ``fit(problem, rule, loss, schedule) -> Fit``."""
