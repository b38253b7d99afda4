"""A selection or a comparison as one HTML file that opens from disk; the same pictures with matplotlib."""

from __future__ import annotations

from tamiz.report.data import CompareReport, SelectReport

__all__ = ["CompareReport", "SelectReport"]
