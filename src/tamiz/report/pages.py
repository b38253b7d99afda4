"""Render the pages: records in, one HTML text out."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping
from datetime import datetime
from importlib import resources
from typing import Any

from tamiz._utils.extras import require
from tamiz.report.compare_view import compare_view
from tamiz.report.data import CompareReport, SelectReport
from tamiz.report.pairs_data import PairsReport
from tamiz.report.pairs_view import pairs_view
from tamiz.report.select_view import select_view
from tamiz.report.text import clean_text, format_value, json_for_script


def render(data: SelectReport | CompareReport | PairsReport, *, spreadsheet_safe: bool = True) -> str:
    """Render a report as a self-contained HTML page.

    Parameters
    ----------
    data : SelectReport, CompareReport or PairsReport
        What to show.
    spreadsheet_safe : bool, default=True
        Whether the switch that makes CSV downloads harmless for spreadsheets starts switched on.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.report.data import KeptFeature
    >>> from tamiz.selection import Selection
    >>> selection = Selection(np.array([True, False]), np.array([1, 2]), feature_names=["<script>", "b"])
    >>> page = render(SelectReport("toy", "selection", 3, 2, selection, (KeptFeature("<script>", 0, 1),)))
    >>> "&lt;script&gt;" in page
    True
    """
    if isinstance(data, SelectReport):
        name, view = "select.html.j2", select_view(data)
    elif isinstance(data, CompareReport):
        name, view = "compare.html.j2", compare_view(data)
    elif isinstance(data, PairsReport):
        name, view = "pairs.html.j2", pairs_view(data)
    else:
        raise TypeError(f"render needs a SelectReport, CompareReport or PairsReport, got {type(data).__name__}")
    style, script = _asset("report.css"), _asset("report.js")
    payload = {**view.pop("payload"), "spreadsheetSafe": spreadsheet_safe}
    return (
        _environment()
        .get_template(name)
        .render(
            **view,
            data=data,
            spreadsheet_safe=spreadsheet_safe,
            created=_moment(data.created),
            settings=_rows(data.settings),
            versions=_rows(data.versions),
            style=_markup(style),
            script=_markup(script),
            payload=_markup(json_for_script(payload)),
            policy=_policy(style, script),
        )
    )


def _rows(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return settings as text: None as a word, numbers as they were given."""
    return [(str(key), "none" if value is None else str(value)) for key, value in table.items()]


def _moment(created: str | None) -> str | None:
    """Format a date and time in ISO format; return anything else as it is."""
    try:
        moment = datetime.fromisoformat(created or "")
    except ValueError:
        return created
    return f"{moment:%Y-%m-%d %H:%M} {moment:%Z}".strip() if "T" in (created or "") else created


def _asset(name: str) -> str:
    return resources.files("tamiz.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy: our style and script by their hash, pictures inside the page, nothing else."""

    def source(content: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii") + "'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _markup(content: str) -> Any:
    from markupsafe import Markup

    return Markup(content)  # only for text that was made or escaped here


@functools.cache
def _environment() -> Any:
    jinja2 = require("jinja2", "cli", "The report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tamiz.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean_text(value) if type(value) is str else value,
    )
    environment.filters["plain"] = format_value
    environment.filters["markup"] = _markup
    return environment
