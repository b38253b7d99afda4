"""Reports: a selection, a comparison or a search for pairs as one HTML file, and the same pictures with matplotlib."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamiz.report.data import CompareReport, SelectReport
    from tamiz.report.notebook import summary
    from tamiz.report.pages import render
    from tamiz.report.pairs_data import PairsReport, pairs_report
    from tamiz.report.write import compare_report, report, select_report

__all__ = [
    "CompareReport",
    "PairsReport",
    "SelectReport",
    "compare_report",
    "pairs_report",
    "render",
    "report",
    "select_report",
    "summary",
]

# Loaded when they are asked for: the commands use the text module alone until there is something to show.
_HOMES = {
    "CompareReport": "tamiz.report.data",
    "PairsReport": "tamiz.report.pairs_data",
    "SelectReport": "tamiz.report.data",
    "compare_report": "tamiz.report.write",
    "pairs_report": "tamiz.report.pairs_data",
    "render": "tamiz.report.pages",
    "report": "tamiz.report.write",
    "select_report": "tamiz.report.write",
    "summary": "tamiz.report.notebook",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
