"""Options of reading between the page and the reader."""

from __future__ import annotations

import pytest

from tamiz.serve.reading import describe_reading, read_reading


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delimiter": "\t", "decimal": ",", "skip_rows": 3, "header": False},
        {"encoding": "utf-8", "na_values": ["-", "none"], "header": True},
    ],
)
def test_what_the_page_is_told_it_can_ask_for(options):
    assert read_reading(describe_reading(options)) == options
