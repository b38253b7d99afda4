"""A selection or a comparison as one HTML file that opens from disk; the same pictures with matplotlib."""

from __future__ import annotations

from tamiz.report.data import CompareReport, SelectReport
from tamiz.report.pages import render
from tamiz.report.write import report, select_report

__all__ = ["CompareReport", "SelectReport", "render", "report", "select_report"]
