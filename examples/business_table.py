"""A raw table of a business: text, currency, dates, gaps and a leak; five lines from the data frame to the report."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import tamiz

rng = np.random.default_rng(0)
n = 400
income, age, visits = rng.normal(3_000, 800, n), rng.integers(18, 80, n).astype(float), rng.poisson(4, n)
plan = rng.choice(["basic", "plus", "gold"], n)
leaves = 0.002 * (income - 3_000) - 0.06 * (age - 50) + 1.5 * (plan == "basic") + rng.normal(size=n) > 0.5
table = pd.DataFrame(
    {
        "customer": [f"C{10_000 + i}" for i in range(n)],
        "income": [f"{value:,.2f} EUR" for value in income],
        "age": np.where(rng.random(n) < 0.05, np.nan, age),
        "plan": plan,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        "visits": visits,
        "refund": 50.0 * leaves + rng.normal(size=n),  # paid after the customer has left: a leak
        "churn": np.where(leaves, "yes", "no"),
    }
)

first = tamiz.select(table, target="churn", k=3, permutations=0)
for alert in first.alerts:
    print("!", alert.message)
study = tamiz.select(table, target="churn", k=3, drop=["refund"], permutations=0)
with tempfile.TemporaryDirectory() as folder:
    study.report(Path(folder) / "report.html")
print(study.verdict)
print(f"columns {sorted(study.selection.names)}")
assert any(alert.kind == "leak" and "refund" in alert.columns for alert in first.alerts)
