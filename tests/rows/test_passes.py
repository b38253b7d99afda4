"""Tables in blocks: every source gives the same statistics and the same sample, whatever its blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.errors import SourceError
from tamiz.rows import sources
from tamiz.rows.passes import describe_block, hash_rows, read_sample
from tamiz.rows.sources import as_frames, as_source, in_blocks

pl = pytest.importorskip("polars", reason="polars is not installed")
N, F = 3000, 7
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, F)).astype(np.float32)
X[RNG.random((N, F)) < 0.1] = 0
X[::100, 2] = np.nan
Y = RNG.integers(0, 3, N)
FRAME = pl.DataFrame({f"x{j}": X[:, j] for j in range(F)}).with_columns(y=pl.Series(Y))


def parquet_parts(folder):
    """Files of unequal length, one of them without rows."""
    for part, (start, stop) in enumerate(((0, 10), (10, 10), (10, 1900), (1900, N))):
        FRAME[start:stop].write_parquet(folder / f"part{part}.parquet", row_group_size=333)
    return folder, "y"


def csv_file(folder):
    FRAME.with_columns(pl.all().exclude("y").cast(pl.Float64)).write_csv(folder / "t.csv")
    return str(folder / "t.csv"), "y"


def memory_map(folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r"), Y


def dask_array(folder):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return da.from_array(X, chunks=(700, 3)), da.from_array(Y, chunks=700)


def dask_frame(folder):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    return dd.from_pandas(FRAME.to_pandas(), npartitions=5), "y"


class OwnSource:
    """The documented protocol, written by a user."""

    n_columns, n_rows, names = F, N, None

    def map_blocks(self, function, columns=None):
        for start in range(0, N, 41):
            block = X[start : start + 41]
            yield function(block if columns is None else block[:, columns], Y[start : start + 41], start)


SOURCES = {
    "memory map": memory_map,
    "files": parquet_parts,
    "glob": lambda folder: (str(parquet_parts(folder)[0] / "*.parquet"), "y"),
    "csv": csv_file,
    "lazy frame": lambda folder: (FRAME.lazy(), "y"),
    "y beside it": lambda folder: (FRAME.drop("y").lazy(), Y),
    "dask array": dask_array,
    "dask frame": dask_frame,
    "own": lambda folder: (OwnSource(), None),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_statistics_and_sample(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 9000)
    source = as_source(*SOURCES[name](tmp_path))
    assert source.n_columns == F
    sample = read_sample(source, 200, seed=3)
    order = np.sort(np.argsort(hash_rows(np.arange(N), 3))[:200])
    np.testing.assert_array_equal(sample.rows, order)
    np.testing.assert_array_equal(sample.X.astype(np.float32), X[order])
    np.testing.assert_array_equal(sample.y, Y[order])
    found = sample.statistics
    assert found.n_rows == N
    np.testing.assert_array_equal(found.n_missing, np.isnan(X).sum(axis=0))
    np.testing.assert_allclose(found.mean, np.nanmean(X.astype(float), axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.variance, np.nanvar(X.astype(float), axis=0), rtol=1e-10)
    np.testing.assert_array_equal(found.minimum, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(found.maximum, np.nanmax(X, axis=0))
    assert found.classes == dict(enumerate(np.bincount(Y).tolist()))
    some = read_sample(source, N + 5, columns=[1, 4])
    np.testing.assert_array_equal(some.X.astype(np.float32), X[:, [1, 4]])
    assert (some.record.n_columns, some.record.n_sampled) == (2, N)


def test_sparse_rows_are_read_in_blocks(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 9000)
    dense = np.where(np.isnan(X), 0, X)
    sample = read_sample(in_blocks(sp.csr_matrix(dense), Y), 100)
    np.testing.assert_array_equal(sample.X, dense[sample.rows])


def test_tables_in_memory_are_no_sources():
    assert as_source(X, Y) is None
    assert as_source(FRAME, "y") is None
    assert as_source([[1.0]], [0]) is None


def test_statistics_of_parts_merge_to_those_of_the_whole():
    values = np.array([[1e8, np.nan, 5.0], [1e8 + 1, np.nan, np.inf], [1e8 + 2, 3.0, 1.0], [1e8 + 3, 4.0, 2.0]])
    targets = np.array(["a", "b", "a", "c"])
    whole = describe_block(values, targets)
    for cut in (1, 2, 3):
        merged = describe_block(values[:cut], targets[:cut]).merge(describe_block(values[cut:], targets[cut:]))
        np.testing.assert_allclose(merged.mean[:2], whole.mean[:2])
        np.testing.assert_allclose(merged.variance[:2], whole.variance[:2])
        np.testing.assert_array_equal(merged.count, whole.count)
        np.testing.assert_array_equal(merged.maximum, whole.maximum)
        assert merged.classes == {"a": 2, "b": 1, "c": 1}


def test_the_hash_is_uniform_and_depends_on_the_seed():
    first, second = (hash_rows(np.arange(200_000), seed) for seed in (0, 1))
    assert len(np.unique(first)) == 200_000
    for hashes in (first, second):
        counts = np.bincount((hashes >> np.uint64(58)).astype(int), minlength=64)
        expected = 200_000 / 64
        # The chi-square statistic has 63 degrees of freedom: mean 63, standard deviation 11.2.
        assert abs(((counts - expected) ** 2 / expected).sum() - 63) < 5 * 11.2
    assert abs(np.mean((first < 2**62) & (second < 2**62)) - 1 / 16) < 0.003
    # Neighbours are independent: a table sorted by class is sampled like a shuffled one.
    assert abs(np.corrcoef(first[:-1].astype(float), first[1:].astype(float))[0, 1]) < 0.01


def mixed_partitions(folder):
    """A Dask data frame of which one partition holds text in a column of numbers."""
    dask = pytest.importorskip("dask", reason="dask is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    one = FRAME[:5].to_pandas()
    parts = [dask.delayed(part) for part in (one, one.astype({"x2": object}).assign(x2="high"))]
    return dd.from_delayed(parts, meta=one, verify_meta=False), "y"


def mixed_files(folder):
    FRAME.rename({"x1": "other"}).write_parquet(folder / "part9.parquet")
    return parquet_parts(folder)


BAD = [
    (mixed_files, "part9.parquet has other columns"),
    (mixed_partitions, "A block holds object, not numbers"),
    (lambda folder: (folder / "none.parquet", "y"), "There is no file"),
    (lambda folder: (str(folder / "*.parquet"), "y"), "No file matches"),
    (lambda folder: (FRAME.lazy(), "yy"), "There is no column 'yy'.*'y'"),
    (lambda folder: (FRAME.drop("y").lazy(), Y[:-1]), "y has 2,999 values"),
    (lambda folder: (np.memmap(folder / "m", dtype="f4", mode="w+", shape=(5, 2)), "y"), "An array has no column"),
    (lambda folder: (np.memmap(folder / "m", dtype="f4", mode="w+", shape=(5, 2)), [1]), "y has 1 values"),
    (lambda folder: (FRAME.with_columns(t=pl.lit("a")).lazy(), "y"), "Column 't' holds String"),
    (lambda folder: (FRAME.filter(pl.col("y") > 5).lazy(), "y"), "The table has no rows"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_sources(make, message, tmp_path):
    with pytest.raises(SourceError, match=message):
        read_sample(as_source(*make(tmp_path)), 10)


def test_partitions_of_another_type_are_no_study(tmp_path):
    with pytest.raises(SourceError, match="Parts of the table have other columns or types"):
        read_sample(as_frames(*mixed_partitions(tmp_path)), 10)


def test_a_table_that_grows_while_it_is_read_is_noticed(tmp_path):
    folder, _ = parquet_parts(tmp_path)
    source = as_source(folder / "part2.parquet", "y")
    FRAME.write_parquet(folder / "part2.parquet")
    with pytest.raises(SourceError, match="must not change while it is read"):
        read_sample(source, 10)


def test_progress_can_end_a_pass(tmp_path):
    class StopReading(Exception):
        pass

    def stop(*_):
        raise StopReading

    with pytest.raises(StopReading):
        read_sample(as_source(*memory_map(tmp_path)), 10, progress=stop)
