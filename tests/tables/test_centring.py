"""Numbers that float32 cannot tell apart."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from tamiz.tables import TableEncoder, as_table, read_table
from tamiz.tables.centring import CentredBlock, choose_centres

SECONDS = 1_700_000_000 + np.arange(40) * 3


def test_ordinary_columns_have_no_centre():
    generator = np.random.default_rng(0)
    block = np.column_stack(
        [generator.normal(size=30), generator.normal(2000, 10, 30), np.arange(30), np.full(30, 0.1)]
    )
    assert not choose_centres(block).any()


@pytest.mark.parametrize("first", [1, 5, 40])
def test_a_column_keeps_its_differences_whatever_the_blocks(first):
    block = CentredBlock(40, 2)
    values = np.column_stack([SECONDS, np.linspace(0, 1, 40)]).astype(float)
    values[3, 0] = np.nan
    for start in range(0, 40, first):
        block.write(start, values[start : start + first])
    np.testing.assert_array_equal(block.numbers[:, 0] + block.centres[0], values[:, 0])
    assert block.centres[1] == 0


def test_zeros_before_the_first_large_number():
    block = CentredBlock(4, 1)
    block.write(0, np.array([[np.nan], [1e9 + 1]]))
    block.write(2, np.array([[1e9 + 1], [1e9 + 2]]))
    np.testing.assert_array_equal(block.numbers[:, 0] + block.centres, [np.nan, 1e9 + 1, 1e9 + 1, 1e9 + 2])


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "svm"])
def test_seconds_since_1970_survive_every_format(tmp_path, ending):
    path = tmp_path / f"times.{ending}"
    frame = pandas.DataFrame({"when": SECONDS, "noise": np.linspace(-1, 1, 40), "y": SECONDS % 2})
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    elif ending == "npz":
        np.savez(path, X=frame[["when", "noise"]].to_numpy(), y=frame["y"].to_numpy())
    else:
        path.write_text("".join(f"{y} 1:{when} 2:{noise}\n" for when, noise, y in frame.itertuples(index=False)))
    table = read_table(path, target="y" if ending in ("csv", "parquet") else None)
    matrix = TableEncoder().fit_transform(table)
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    assert np.unique(dense[:, 0]).size == 40


def test_an_encoder_keeps_its_own_centres():
    frame = pandas.DataFrame({"when": SECONDS.astype(float), "other": np.linspace(0, 1, 40)})
    frame.loc[5, "when"] = np.nan
    encoder = TableEncoder().fit(frame)
    assert as_table(frame[30:]).centres[0] != encoder.centres_[0]
    np.testing.assert_array_equal(encoder.transform(frame[30:]), encoder.transform(frame)[30:])
    median = np.nanmedian(frame["when"])
    assert encoder.transform(frame)[5, 0] + encoder.centres_[0] == pytest.approx(median, abs=1)
