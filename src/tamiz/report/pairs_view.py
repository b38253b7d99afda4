"""Content of the page of a search for pairs, made from a `PairSearch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamiz.report.charts import share_bar, square_chart
from tamiz.report.text import counted, format_number, shorten

if TYPE_CHECKING:  # a report of something else need not load the search
    from tamiz.pairs.result import PairSearch
    from tamiz.report.page import About

#: Rows of the table of columns, and of that of pairs if fewer are significant.
N_COLUMNS, N_PAIRS = 200, 30
#: Pairs that are drawn; significant ones, and at least a few.
MOST_PICTURES, FEWEST_PICTURES = 12, 4


def pairs_view(search: PairSearch, about: About) -> dict[str, Any]:
    """Collect what the template ``pairs.html.j2`` uses."""
    n_pairs, n_columns = len(search.significant_pairs()), len(search.significant_columns())
    drawn = search.pairs[: min(max(n_pairs, FEWEST_PICTURES), MOST_PICTURES)]
    cells = [search.cells(*pair.indices, digits=format_number) for pair in drawn]
    n_listed, table = max(N_PAIRS, n_pairs), search.pairs_to_dict()
    said = []
    if n_pairs:
        first, second = shorten(search.pairs[0].first, 40), shorten(search.pairs[0].second, 40)
        at_least = "At least " if n_pairs == len(search.pairs) < search.n_tests else ""
        tell, their = ("tells", "its") if n_pairs == 1 else ("tell", "their")
        said.append(
            f"{at_least}{counted(n_pairs, 'pair')} {tell} more about the target than {their} two columns alone; the strongest "
            f"is {first} with {second}."
        )
    elif search.n_tests:
        said.append("No pair is significant: none tells more about the target than its two columns alone.")
    said.append(f"In all, {n_columns:,} of {counted(len(search.names), 'column')} matter, on their own or in a pair.")
    colours = ""
    if cells:
        of = f"mean of {about.target or 'the target'}" if cells[0].label == "mean of y" else cells[0].label
        colours = f"The stronger the colour of a cell, the larger the {of}"
        if cells[0].codes is not None:
            colours = "Colour: the commonest class of each cell; the stronger, the larger its share"
    return {
        "headline": f"{counted(n_pairs, 'significant pair')} of {search.n_tests:,}",
        "verdict": " ".join([*said, search.note] if search.note else said),
        "search": search,
        "colours": colours,
        "pictures": [(pair, square_chart(grid)) for pair, grid in zip(drawn, cells, strict=True)],
        "pair_rows": search.pairs[:n_listed],
        "share_bar": share_bar,
        "n_more_pairs": max(0, len(search.pairs) - n_listed),
        "column_rows": list(zip(*search.columns_to_dict().values(), strict=True))[:N_COLUMNS],
        "n_more_columns": max(0, len(search.names) - N_COLUMNS),
        "payload": {
            "kind": "pairs",
            "file": "pairs.csv",
            "header": list(table),
            "rows": [list(row) for row in zip(*table.values(), strict=True)],
        },
    }
