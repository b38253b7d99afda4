"""Tables beyond memory: a sample of the rows for a study, and the kept columns of all rows for its final model."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import active_client
from tamiz._utils.memory import available_memory
from tamiz._utils.progress import format_size
from tamiz._utils.validation import collect_lazy
from tamiz.errors import SourceError, TableArgumentError
from tamiz.estimators.passes import BYTES_PER_VALUE, FINAL_ROWS, SELECTION_ROWS, next_width, rows_that_fit
from tamiz.rows.passes import PassRecord, Sample, hash_rows, read_sample
from tamiz.rows.rows import read_time
from tamiz.rows.sources import SCANNED, TEXT, as_frames, count_rows, find_files, scan_files
from tamiz.tables.names import ReadOptions, find_column, find_columns
from tamiz.tables.table import load_polars
from tamiz.tables.text import find_layout

#: Share of the rows that are held out for the score of the final model.
HELD_OUT = 0.1
#: Bytes that a study takes for each value: the frame, the table, the encoded matrix, and copies inside of folds.
_STUDY_BYTES = 32
#: Values of the rows of a study at most, if they are more than 20,000: its hundred fits take minutes beyond.
_STUDY_VALUES, _LEAST_STUDY_ROWS = 2e7, 20_000


def open_large(table: Any, max_memory: float | None, reading: Mapping[str, Any]) -> tuple[Any, BigTable | None]:
    """Open a table that may be larger than memory; return the table, and its passes if it has to be read in passes.

    Parameters
    ----------
    table : object
        A path, pattern or folder, a ``polars.LazyFrame``, a Dask data frame, or any other table, which is returned as it is.
    max_memory : float or None
        Bytes that a study may take; None is a quarter of what is free.
    reading : mapping
        Arguments of :func:`~tamiz.tables.read_table`.
    """
    limit = max_memory if max_memory is not None else (available_memory() or 4e9) / 4
    if hasattr(table, "dask") and hasattr(table, "columns"):
        return table, BigTable(table, None, limit)
    files, one, frame = list[str](), False, table
    if isinstance(table, (str, os.PathLike)):
        path = os.fspath(table)
        one = os.path.isfile(path) and path.lower().endswith(SCANNED)
        many = os.path.isdir(path) or (not os.path.exists(path) and any(c in path for c in "*?[:"))
        # A cell of text has two bytes at least, and takes 24 in memory.
        small = one and path.lower().endswith(TEXT) and 12 * os.path.getsize(path) <= limit and active_client() is None
        if small or not (one or many):
            return table, None
        files = find_files(path)
        frame = _scan(files, reading)
    elif type(table).__name__ != "LazyFrame":
        return table, None
    n_rows = count_rows(frame)
    if n_rows * len(frame.collect_schema()) * 24 > limit:
        return table, BigTable(frame, n_rows, limit, files)
    return (table if one else collect_lazy(frame)), None


@contextmanager
def file_within_memory(
    path: Path | None, reading: Mapping[str, Any], report: Callable[[str], None], max_memory: float | None = None
) -> Iterator[Path | None]:
    """Give a file that fits: the file itself, or a temporary Parquet file with a sample of the rows of a larger one."""
    table: Any
    table, big = (path, None) if path is None else open_large(path, max_memory, reading)
    with tempfile.TemporaryDirectory(prefix="tamiz-") as folder:
        if big is not None:
            big.name_columns(table_columns(big.frame)[0], {}, {})
            table = big.sample(0, None)
            report(f"{big.passes[0].n_rows:,} rows do not fit into memory: the page shows a sample of {len(table):,}.")
        if table is not path:  # a folder or pattern that fits has been read, too
            path = Path(folder) / f"{Path(str(path)).stem.strip('*') or 'table'}.parquet"
            table.write_parquet(path)
        yield path


def table_columns(frame: Any) -> list[str]:
    """List the columns of a lazy frame or of a Dask data frame."""
    return [str(name) for name in (frame.columns if hasattr(frame, "dask") else frame.collect_schema())]


def _scan(files: Sequence[str], reading: Mapping[str, Any]) -> Any:
    """Open files; cells of CSV and TSV files are text, as in :func:`~tamiz.tables.read_table`."""
    if not files[0].lower().endswith((".csv", ".tsv")):
        return scan_files(files)
    if reading.get("encoding") not in (None, "utf-8", "utf8"):
        raise SourceError(f"{files[0]} is read in parts, which takes UTF-8: write it in that encoding, or as Parquet.")
    pl = load_polars()
    known = {name: reading[name] for name in ("delimiter", "header", "skip_rows", "decimal") if name in reading}
    options = ReadOptions(**known)
    own = "\t" if files[0].lower().endswith(".tsv") else None
    layout = find_layout(Path(files[0]), options, own)
    for file in files[1:]:
        if find_layout(Path(file), options, own).names != layout.names:
            raise SourceError(f"{file} has other columns than {files[0]}: write all files with one schema.")
    schema, skip = dict.fromkeys(layout.names, pl.String), layout.skip_lines
    frame = pl.scan_csv(list(files), has_header=False, separator=layout.delimiter, skip_lines=skip, schema=schema)
    if layout.comma:
        frame = frame.with_columns(pl.all().str.replace(r"^\s*([+-]?\d*),(\d+)\s*$", "${1}.${2}"))
    return frame


class BigTable:
    """A table in passes: a sample of its rows for a study, and the kept columns of all rows for the final model.

    A tenth of the rows is held out for the score: by a hash of the number of the row, of its group, or the latest in time.

    Parameters
    ----------
    frame : polars.LazyFrame or Dask data frame
        The table.
    n_rows : int or None
        Number of its rows, if it is known.
    limit : float
        Bytes that may be taken.
    files : sequence of str, default=()
        Its files, which must not change.

    Attributes
    ----------
    passes : list of PassRecord
        What was read.
    levels : dict of str to (list of str or None)
        Values of the columns of text in all rows; None for very many.
    roles : dict of str to str
        Names of the columns of target, groups, time and weights.
    """

    def __init__(self, frame: Any, n_rows: int | None, limit: float, files: Sequence[str] = ()) -> None:
        self.frame, self.n_rows, self.limit, self._files = frame, n_rows, limit, files
        self.passes: list[PassRecord] = []
        self.levels: dict[str, list[str] | None] = {}
        self.roles: dict[str, str] = {}
        self._features: list[str] = []
        self._latest: float | None = None

    def name_columns(
        self, target: Any, roles: Mapping[str, Any], reading: Mapping[str, Any]
    ) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Turn target, roles and options of the reader into names of columns; those to ignore are not read."""
        for role, value in {"target": target, **roles}.items():
            if value is not None and not isinstance(value, str):
                raise SourceError(f"{role}: a table beyond memory has one column of that kind; give its name.")
        if target is None:
            raise SourceError("Name the target, a column of the table.")
        names = table_columns(self.frame)
        given = {role: name for role, name in {"target": target, **roles}.items() if name}
        self.roles = {role: names[find_column(name, names, role)] for role, name in given.items()}
        ignored = self.find(reading.get("ignore"), "column to ignore")
        if self.roles["target"] in ignored:
            raise TableArgumentError(f"The target {self.roles['target']!r} cannot be ignored.")
        self._features = [name for name in names if name not in {*ignored, *self.roles.values()}]
        named = {role: name for role, name in self.roles.items() if role != "target"}
        categorical = self.find(reading.get("categorical"), "categorical column")
        return self.roles["target"], named, {**reading, "ignore": (), "categorical": categorical}

    def find(self, specs: Iterable[Any] | None, what: str) -> list[str]:
        """Names of columns that are given by name, number, range or pattern; numbers count all columns of the table."""
        names = table_columns(self.frame)
        return [names[i] for i in sorted(find_columns([str(spec) for spec in specs or ()], names, what))]

    def sample(
        self,
        seed: int,
        progress: Callable[[str, int, int], None] | None,
        m: int | None = None,
        choose: Callable[[Any, int], Sequence[str]] | None = None,
    ) -> Any:
        """Read a sample of the rows that are not held out, as a frame.

        Parameters
        ----------
        seed : int
            Seed of the hash of the rows.
        progress : callable or None
            See :func:`~tamiz.rows.passes.read_sample`.
        m : int or None, default=None
            Number of columns that are to be selected in the end; None reads all columns.
        choose : callable or None, default=None
            ``choose(frame, n_columns)``: names of the best columns of a sample. Where more rows of fewer columns fit, these are
            read; rows that chose columns are not in the frame, so that they cannot judge the choice.
        """
        self._source = as_frames(self.frame, self.roles["target"], self.n_rows, self._files)
        self._seed, self._progress, features = seed, progress, self._features
        n_others, chosen_on = len({*self.roles.values()}), np.empty(0, dtype=int)

        def limit(n_columns: int) -> int:
            most = int(min(SELECTION_ROWS, max(_LEAST_STUDY_ROWS, _STUDY_VALUES / (n_columns + n_others))))
            return self._rows_that_fit(n_columns + n_others, most)

        found = self._read(features, limit(len(features)), "all columns of a sample")
        counts = found.statistics.levels
        self.levels = {name: None if counts[name] is None else sorted(counts[name] or ()) for name in counts}
        while m is not None and choose is not None and (wide := next_width(len(features), m, found, limit)):
            chosen_on, features = found.rows, [*choose(found.X.filter(~self._held_out(found)), wide)]
            found = self._read(features, limit(wide), "more rows of the best columns")
        frame = found.X.filter(~self._held_out(found) & ~np.isin(found.rows, chosen_on))
        self.n_sampled = len(frame)
        return frame

    def read(self, names: Sequence[str]) -> tuple[Any, Any]:
        """Read some columns and the target of as many rows as fit; return those to train on and those held out."""
        n_rows = self._rows_that_fit(len({*names, *self.roles.values()}), FINAL_ROWS)
        found = self._read(names, n_rows, "the kept columns, for the final model and its score")
        held = self._held_out(found)
        return found.X.filter(~held), found.X.filter(held)

    @property
    def held_out_name(self) -> str:
        """What the rows are that are held out."""
        return f"the table, held out {'as the latest' if 'time' in self.roles else 'by hash'}"

    def describe(self) -> str:
        """Say what was computed on which rows."""
        first, last, n_others = self.passes[0], self.passes[-1], len({*self.roles.values()})
        found = (
            f"The table ({first.n_rows:,} rows, {format_size(first.n_bytes)}) is read in passes within "
            f"{format_size(self.limit)}: columns are selected on {self.n_sampled:,} rows, drawn by a hash of their number; "
            "scores, curve, shuffled targets and alerts are those of this sample."
        )
        if last is first:
            return found
        steps = [f"{b.n_columns - n_others:,} on {a.n_sampled:,} rows" for a, b in pairwise(self.passes)]
        same = "" if {*self.roles} <= {"target", "sample_weight"} else ", though of the same groups or times"
        return (
            f"{found} Of {first.n_columns - n_others:,} columns it has those that earlier passes chose: {', then '.join(steps)}. "
            f"Scores are about these columns, on rows that did not choose them{same}; rows held out chose nothing."
        )

    def list_passes(self) -> str:
        """List what each pass read."""
        return "; ".join(
            f"{one.what}: {one.n_columns:,} columns of {one.n_rows:,} rows ({format_size(one.n_bytes)}), "
            f"{one.n_sampled:,} rows kept"
            for one in self.passes
        )

    def _rows_that_fit(self, n_columns: int, most: int) -> int:
        return rows_that_fit(self.limit * BYTES_PER_VALUE / _STUDY_BYTES, n_columns, most)

    def _read(self, names: Sequence[str], n_rows: int, what: str) -> Sample:
        wanted = {*names, *self.roles.values()}
        columns = [place for place, name in enumerate(self._source.names or ()) if name in wanted]
        found = read_sample(self._source, n_rows, columns, seed=self._seed, what=what, progress=self._progress)
        self.passes.append(found.record)
        return found

    def _held_out(self, sample: Sample) -> np.ndarray:
        """Mark the rows of a sample that are held out."""
        numbers = sample.rows
        if "time" in self.roles:
            moments = read_time(sample.X[self.roles["time"]].to_numpy())
            if self._latest is None:
                self._latest = float(np.quantile(moments, 1 - HELD_OUT))
            return moments > self._latest
        if "groups" in self.roles:
            groups = sample.X[self.roles["groups"]].cast(str).fill_null("").to_numpy()
            labels, codes = np.unique(groups, return_inverse=True)
            numbers = np.array([zlib.crc32(str(label).encode()) for label in labels], dtype=np.uint64)[codes]
        return hash_rows(numbers, self._seed + 1) < np.uint64(HELD_OUT * 2**64)
