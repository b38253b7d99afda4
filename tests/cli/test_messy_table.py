"""A table of a business with 13 kinds of trouble goes from file to answer without an option, every trouble named."""

import csv
import json

import numpy as np
import pytest

N_ROWS = 300
#: Column of the trouble, and words of the message about it.
TROUBLES = (
    ("income", "holds numbers with '€'"),
    ("share", "holds numbers with '%'"),
    ("weight", "holds numbers with 'kg'"),
    ("since", "holds dates"),
    ("sex", "another spelling of the same category"),
    ("customer", "a different text in nearly every row"),
    ("country", "the same value in every row"),
    ("postcode", "codes rather than amounts"),
    ("coupon", "has no value in 97% of the rows"),
    ("age_months", "are copies, up to their unit"),
    ("refund", "alone predicts the target"),
    ("number", "looks like a running number"),
    ("", "rows are copies of other rows"),
)


def _comma(value, form=".2f"):
    return format(value, form).replace(".", ",")


@pytest.fixture
def messy(tmp_path):
    """Write it as a spreadsheet in Spain would: semicolons, decimal commas, a byte-order mark, gaps."""
    rng = np.random.default_rng(0)
    income, age, share = rng.normal(3000, 800, N_ROWS), rng.integers(18, 80, N_ROWS), rng.uniform(size=N_ROWS)
    days = np.datetime64("2024-01-01") + rng.integers(0, 365, N_ROWS).astype("timedelta64[D]")
    leaves = 0.002 * (income - 3000) - 0.08 * (age - 50) + 3 * (share - 0.5) + rng.normal(size=N_ROWS) > 0.6
    rows = []
    for i in range(N_ROWS):
        euros = f"{income[i]:,.2f}".translate(str.maketrans(",.", ".,"))
        gap = i % 17 == 0
        rows.append(
            {
                "number": i + 1,
                "customer": f"C{rng.integers(10**9)}",
                "income": f"€ {euros}",
                "share": _comma(100 * share[i], ".1f") + " %",
                "age": "n/a" if gap else age[i],
                "age_months": "n/a" if gap else 12 * age[i],
                "since": days[i],
                "sex": rng.choice(["F", "M", " f", "m "]),
                "country": "ES",
                "refund": _comma(50 * leaves[i] + rng.normal()),
                "postcode": rng.choice([8001, 28001, 41001, 46001, 50001]),
                "weight": _comma(rng.normal(70, 10), ".1f") + " kg",
                "coupon": "" if i % 40 else 1,
                "churn": "yes" if leaves[i] else "no",
            }
        )
    path = tmp_path / "customers (1).csv"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows([*rows, *({**row, "number": N_ROWS + i + 1} for i, row in enumerate(rows[:12]))])
    return path


def test_every_trouble_is_named_once(tamiz, messy, tmp_path):
    result = tamiz("select", messy, "--target", "churn", "--permutations", 0, "--no-report", "-o", "out")
    said = " ".join((result.stderr + result.stdout).split())
    unnamed = [(column, words) for column, words in TROUBLES if said.count(words) != 1]
    assert unnamed == []
    record = json.loads((tmp_path / "out" / "selected.json").read_text())
    alerts = [(alert["columns"], alert["message"]) for alert in record["alerts"]]
    for column, words in TROUBLES:
        assert any(words in text and (not column or column in [*names, *text.split("'")]) for names, text in alerts), (
            column
        )
    kept = [column["column"] for column in record["selected"]]
    assert "refund" in kept  # the leak is kept and named: whether it may be used, only the user knows
