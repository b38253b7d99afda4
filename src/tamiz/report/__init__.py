"""Reports: a selection or a comparison as one HTML file, and the same pictures with matplotlib."""

from __future__ import annotations

from tamiz.report.data import CompareReport, SelectReport
from tamiz.report.pages import render
from tamiz.report.write import compare_report, report, select_report

__all__ = ["CompareReport", "SelectReport", "compare_report", "render", "report", "select_report"]
