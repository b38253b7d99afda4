"""Compiled training, and the contract that every engine keeps: ``fit(problem, rule, loss, schedule) -> Fit``."""

from tamiz.engines.contract import Engine, Fit, Problem
from tamiz.engines.schedule import (
    Schedule,
    additive_schedule,
    linear_schedule,
    network_schedule,
    pair_schedule,
    paper_linear_schedule,
    paper_network_schedule,
)

__all__ = [
    "Engine",
    "Fit",
    "Problem",
    "Schedule",
    "additive_schedule",
    "linear_schedule",
    "network_schedule",
    "pair_schedule",
    "paper_linear_schedule",
    "paper_network_schedule",
]
