"""Reports: a study, a comparison or a search for pairs as one HTML file, and the same pictures with matplotlib."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamiz.report.page import render, report
    from tamiz.report.plots import plot_selection

__all__ = ["plot_selection", "render", "report"]

# Loaded when they are asked for: the commands use the text module alone until there is something to show.
_HOMES = {"plot_selection": "plots", "render": "page", "report": "page"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tamiz.report.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
