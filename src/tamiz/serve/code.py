"""Write the Python code that repeats what the page shows."""

from __future__ import annotations

from typing import Any

from tamiz.serve.fits import SEED, Wish
from tamiz.serve.session import LiveTable, TargetData


def python_code(table: LiveTable, data: TargetData, wish: Wish, fitted: Any) -> str:
    """Return a script that reads the file, selects the same columns and writes the report.

    Parameters
    ----------
    table : LiveTable
        The file.
    data : TargetData
        The file with its target.
    wish : Wish
        What the page asks for.
    fitted : estimator
        The fit for it, whose weight decay the script takes over.
    """
    kind = type(fitted).__name__
    reading = repr(table.name) + ("" if table.has_target else f", target={data.target!r}")
    reading += "".join(f", {name}={value!r}" for name, value in table.reading.items() if value is not None)
    imports = [
        f"from tamiz import {kind}",
        "from tamiz.report import report",
        "from tamiz.tables import TableEncoder, read_table",
    ]
    arguments = [str(wish.n_features_to_select), f"network={wish.network!r}", f"random_state={SEED}"]
    if type(fitted.l2).__name__ == "SelectionL2":
        imports.append("from tamiz.engines.schedule import SelectionL2")
        arguments.append(f"l2=SelectionL2({float(fitted.l2)!r})")
    if data.is_grouped:
        arguments.append("groups=columns")
    for option in ("keep", "drop"):
        names = getattr(wish, option)
        if names:
            arguments.append(f"{option}=[i for i, name in enumerate(columns) if name in {list(names)!r}]")
    lines = "".join(f"    {argument},\n" for argument in arguments)
    cv = f", cv={len(data.folds)}" if data.folds else ""
    return (
        "\n".join(sorted(imports))
        + f"""

# Run it in the folder of the table.
table = read_table({reading})
encoder = TableEncoder().fit(table)
X = encoder.transform(table)
columns = [feature.column_name for feature in encoder.features_]
selector = {kind}(
{lines}).fit(X, table.y)
selector.selection_ = selector.selection_.with_names(encoder.get_feature_names_out())
print(list(dict.fromkeys(columns[i] for i in selector.selection_.ordered)))
report(selector, X, table.y, path="report.html"{cv})
"""
    )
