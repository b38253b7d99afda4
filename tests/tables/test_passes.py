"""Studies of tables beyond memory: columns that leave from pass to pass, and rows that choose and judge."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tamiz import select
from tamiz.tables import TableArgumentError
from tamiz.tables.passes import open_large

N, F = 6000, 90


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A table of which 2 MB hold 650 rows of all columns, or 2,000 rows of a third of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, F)).astype("f4")
    ill = X[:, 3] - X[:, 77] + rng.logistic(size=N) / 2 > 0
    colour = np.where((rng.random(N) < 0.8) == ill, "red", rng.choice(["blue", "green"], N))
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(F)})
    frame = frame.with_columns(colour=pl.Series(colour), row=pl.Series(np.arange(N)), ill=pl.Series(ill))
    frame.write_parquet(tmp_path_factory.mktemp("wide") / "t.parquet", row_group_size=1000)
    return tmp_path_factory.getbasetemp() / "wide0" / "t.parquet"


def test_a_study_reads_more_rows_of_fewer_columns_and_says_so(wide):
    study = select(wide, "-1", 3, max_memory=2e6, ignore=["row"], permutations=0, cv=3)
    assert sorted(study.selection.names) == ["c3", "c77", "colour"]
    assert [(one.n_columns, one.n_sampled) for one in study.passes] == [(F + 2, 679), (31, 2016), (4, N)]
    assert len(study.evaluation.names) == 30
    assert "chose: 30 on 679 rows" in study.notes[0]
    assert study.notes[-1].startswith(f"Passes: all columns of a sample: {F + 2} columns of 6,000 rows (")
    assert "31 columns of 6,000 rows" in study.notes[-1]
    assert study.test["file"] == "the table, held out by hash"
    # Columns that are named are not lost, and their numbers are those of the whole table.
    everything = select(
        wide, "ill", 3, max_memory=2e6, ignore=["1", "row"], keep=["6"], drop=["c3"], permutations=0, cv=3
    )
    assert [one.n_columns for one in everything.passes] == [F + 1, 4]
    assert "c5" in everything.selection.names
    assert "c3" not in everything.selection.names


@pytest.mark.parametrize("roles", [{}, {"groups": "c1"}, {"time": "c1"}])
def test_rows_that_chose_columns_do_not_judge_them(wide, roles):
    big = open_large(wide, 2e6, {})[1]
    target, named, reading = big.name_columns("ill", roles, {"categorical": ["colo*"], "ignore": ["3"]})
    assert (target, named, reading["ignore"], reading["categorical"]) == ("ill", roles, (), ["colour"])
    choosing = []

    def choose(frame, n_columns):
        assert "c2" not in frame.columns
        choosing.append({*frame["row"]})
        return ["row", "c5", *frame.columns[8 : n_columns + 6]]

    sample = big.sample(0, None, 2, choose)
    assert {"row", "c5", "ill", *roles.values()} <= {*sample.columns}
    assert len(choosing) == 1
    _, held_out = big.read(["row"])
    rows = {*sample["row"]}
    assert len(rows) > len(choosing[0]) > 500
    assert not rows & choosing[0]
    assert not (rows | choosing[0]) & {*held_out["row"]}
    assert ("of the same groups or times" in big.describe()) == bool(roles)


def test_the_target_cannot_be_ignored(wide):
    with pytest.raises(TableArgumentError, match="The target 'ill' cannot be ignored"):
        select(wide, "ill", 2, max_memory=2e6, ignore=["ill"])
