"""Compiled training, and the contract that every engine keeps: ``fit(problem, rule, loss, schedule) -> Fit``."""

from tamiz.engines.contract import Engine, Fit, Problem
from tamiz.engines.schedule import Schedule, linear_schedule, network_schedule

__all__ = ["Engine", "Fit", "Problem", "Schedule", "linear_schedule", "network_schedule"]
