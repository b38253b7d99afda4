"""What mkdocs runs while it builds the site: docstrings' roles become plain code, and no page may ask a server for anything."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_ROLE = re.compile(r":(math|class|func|meth|mod|attr|doc):<code>(.*?)</code>", re.DOTALL)
_SYMBOLS = {
    r"\alpha": "α",
    r"\beta": "β",
    r"\gamma": "γ",
    r"\mu": "μ",
    r"\rho": "ρ",
    r"\sum": "Σ",
    r"\min": "min",
    r"\max": "max",
    r"\partial": "∂",
    r"\qquad": " ",
    r"\left": "",
    r"\right": "",
    r"\,": " ",
    r"\|": "‖",
}
# What a browser fetches by itself; a link to click on is no request.
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon)[^>]*\bhref=["']?(?:https?:)?//[^>]*>"""
)


def _plain(match: re.Match[str]) -> str:
    kind, text = match.groups()
    if kind == "math":
        for name, symbol in _SYMBOLS.items():
            text = text.replace(name, symbol)
    else:
        text = html.unescape(text).lstrip("~").rsplit(".", 1)[-1]
        text = html.escape(text)
    return f"<code>{text}</code>"


def on_page_content(page_html: str, **_: Any) -> str:
    """reStructuredText roles in docstrings, which Markdown does not know."""
    return _ROLE.sub(_plain, page_html)


def on_post_build(config: Any, **_: Any) -> None:
    """Stop where a page would load something from another server."""
    for path in Path(config["site_dir"]).rglob("*.html"):
        found = _FETCHED.search(path.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{path} asks another server: {found.group()[:200]}")
