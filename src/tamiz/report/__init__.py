"""Reports: a selection, a comparison or a search for pairs as one HTML file, and the same pictures with matplotlib."""

from __future__ import annotations

from tamiz.report.data import CompareReport, SelectReport
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
]
