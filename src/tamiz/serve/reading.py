"""How a page asks for its file to be read: separator, decimal mark, lines to skip, header, encoding, missing values."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

from tamiz.serve.session import LiveError

#: Separators that the page offers; None: found.
SEPARATORS = (None, ",", ";", "\t", " ", "|")


def read_reading(record: Any) -> dict[str, Any]:
    """Return the options of :func:`tamiz.tables.read_table` that a page asks for; raise LiveError if they cannot be asked.

    Examples
    --------
    >>> read_reading({"delimiter": ";", "decimal": ",", "missing": "-, ?"})
    {'delimiter': ';', 'decimal': ',', 'na_values': ['-', '?']}
    >>> read_reading({"decimal": "'"})
    Traceback (most recent call last):
    tamiz.serve.session.LiveError: The decimal mark must be . or ,
    """
    if not isinstance(record, Mapping):
        raise LiveError("The request is not understood.")
    found: dict[str, Any] = {}
    delimiter, decimal, skip = record.get("delimiter"), record.get("decimal", "."), record.get("skipRows", 0)
    header, encoding, missing = record.get("header"), record.get("encoding"), record.get("missing")
    if delimiter not in SEPARATORS:
        raise LiveError("The separator must be one that the page offers.")
    if decimal not in (".", ","):
        raise LiveError("The decimal mark must be . or ,")
    if not isinstance(skip, int) or isinstance(skip, bool) or not 0 <= skip <= 1_000_000:
        raise LiveError("The number of lines to skip must be a whole number from 0 on.")
    if header not in (None, True, False) or not all(
        text is None or isinstance(text, str) for text in (encoding, missing)
    ):
        raise LiveError("The request is not understood.")
    if encoding:
        try:
            found["encoding"] = codecs.lookup(encoding.strip()).name
        except LookupError:
            raise LiveError(
                f"There is no encoding {encoding.strip()[:40]!r}; latin1 and utf-8 are common ones."
            ) from None
    if delimiter is not None:
        found["delimiter"] = delimiter
    if decimal != ".":
        found["decimal"] = decimal
    if skip:
        found["skip_rows"] = skip
    if header is not None:
        found["header"] = header
    if missing and missing.strip():
        found["na_values"] = [word.strip() for word in missing.split(",")]
    return found


def describe_reading(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as the page holds them; the opposite of :func:`read_reading`.

    Examples
    --------
    >>> describe_reading({"na_values": ["-", "?"]})["missing"]
    '-, ?'
    """
    words = reading.get("na_values")
    return {
        "delimiter": reading.get("delimiter"),
        "decimal": reading.get("decimal", "."),
        "skipRows": reading.get("skip_rows", 0),
        "header": reading.get("header"),
        "encoding": reading.get("encoding"),
        "missing": None if words is None else ", ".join(words),
    }
