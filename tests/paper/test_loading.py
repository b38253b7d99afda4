"""From a name to a dataset: through the data home, a server on loopback, and everything that can go wrong."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.errors import DatasetError, DownloadError
from tamiz.paper import describe, find_data_home, load_dataset
from tamiz.paper.datasets import REGISTRY, Dataset, DatasetEntry, fetch, read_cached, verify, write_cached
from tamiz.paper.parsers import PARSERS

X = np.arange(54).reshape(6, 9)
Y = np.array([0, 1, 0, 1, 1, 0])
TOY = DatasetEntry("toy", "TOY", (6, 9), (3, 3), "nobody", n_train=4, totals=(float(X[:4].sum()), float(X[4:].sum())))
TABLE = Dataset(TOY, X.astype(np.float32), Y, 4)


def archive(data=X, target=Y):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as zipped:
        for part, rows in (("train", slice(0, 4)), ("valid", slice(4, 6))):
            zipped.writestr(f"TOY/toy_{part}.data", "\n".join(" ".join(map(str, row)) for row in data[rows]))
            zipped.writestr(f"toy_{part}.labels", "\n".join(str(2 * label - 1) for label in target[rows]))
    return stream.getvalue()


def toy_from(*urls, checksum=None):
    files = [{"name": "toy.zip", "urls": [url], "checksum": checksum} for url in urls]
    return replace(TOY, sources=[{"title": "loopback", "parser": "challenge", "files": [file]} for file in files])


@pytest.fixture
def register(monkeypatch):
    """Put an entry into the registry for one test."""
    return lambda entry: monkeypatch.setitem(REGISTRY, entry.name, entry)


def test_download_then_from_the_data_home(server, tmp_path, register):
    # The first source is gone, the second holds something else.
    register(toy_from(server.url("gone.zip"), server.put("bad.zip", b"?"), server.put("toy.zip", archive())))
    home = tmp_path / "new" / "home"
    first = load_dataset("toy", home)
    second = load_dataset("toy", home, download=False)
    for dataset in (first, second):
        np.testing.assert_array_equal(dataset.data, X)
        assert (dataset.data.dtype, dataset.target.tolist()) == (np.float32, Y.tolist())
        assert (dataset.train.tolist(), dataset.test.tolist()) == ([0, 1, 2, 3], [4, 5])
        assert repr(dataset) == "Dataset('TOY', 6 x 9, 2 classes)"
    assert server.requests == ["gone.zip", "bad.zip", "toy.zip"]
    assert sorted(path.name for path in home.iterdir()) == [".toy.lock", "toy.npz"]
    assert os.stat(home / "toy.npz").st_mode & 0o444 == 0o444


def test_wrong_content_is_not_kept(server, tmp_path, register):
    """A file of the right layout whose numbers differ: found by the check-sum of the values."""
    other = X.copy()
    other[5, 5] += 1
    cases = {
        "sum to": archive(other),
        r"classes have \[2, 4\] rows": archive(X, np.array([0, 1, 1, 1, 1, 0])),
        "not a zip file": b"<html>We have moved</html>",
        r"it is 6 x 8": archive(X[:, :8]),
    }
    for words, body in cases.items():
        register(toy_from(server.put("toy.zip", body)))
        with pytest.raises(DownloadError, match=rf"(?s)Could not get TOY.*{words}.*not kept"):
            load_dataset("toy", tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [".toy.lock"]


HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_waiting_for_a_lock_ends_with_an_error_and_a_killed_owner_frees_it(server, tmp_path, register, monkeypatch):
    monkeypatch.setattr("tamiz.paper.datasets.LOCK_TIMEOUT", 0.1)
    register(toy_from(server.put("toy.zip", archive())))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / ".toy.lock")], **pipes) as owner:
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(DatasetError, match=r"Another process has held the lock .*toy\.lock for more than 0\.1 s"):
            load_dataset("toy", tmp_path)
        assert server.requests == []
        owner.kill()
        owner.wait(300)
    np.testing.assert_array_equal(load_dataset("toy", tmp_path).data, X)


def test_a_home_that_cannot_be_written(server, read_only_disk, register, tmp_path):
    register(toy_from(server.put("toy.zip", archive())))
    with pytest.raises(DatasetError, match=r"Cannot write the dataset into .*Read-only.*TAMIZ_DATA_HOME"):
        load_dataset("toy", read_only_disk)
    (tmp_path / "home").write_text("")
    with pytest.raises(DatasetError, match=r"Cannot write the dataset into .*home.*TAMIZ_DATA_HOME"):
        load_dataset("toy", tmp_path / "home")
    assert server.requests == []


@pytest.mark.parametrize(("largest", "what"), [(999, "toy.zip"), (9, "the dataset")])
def test_full_disk_leaves_no_file(server, small_disk, register, largest, what):
    """The download does not fit, or it does and the table does not."""
    body = archive(np.random.default_rng(0).integers(0, largest + 1, size=(6, 70_000)))
    register(replace(toy_from(server.put("toy.zip", body)), shape=(6, 70_000), totals=()))
    with pytest.raises(DatasetError, match=rf"(?s)The disk is full: {what} does not fit.*TAMIZ_DATA_HOME"):
        load_dataset("toy", small_disk)
    assert [path.name for path in small_disk.iterdir()] == [".toy.lock"]


def test_damaged_file_in_the_data_home_is_named(tmp_path, register):
    register(TOY)
    path = write_cached(TABLE, tmp_path)
    good = path.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 3] ^= 0xFF
    for bad in (good[: len(good) // 2], b"", b"not an archive", bytes(flipped)):
        path.write_bytes(bad)
        with pytest.raises(DatasetError, match=r"toy\.npz is (damaged|not TOY).*Remove it"):
            load_dataset("toy", tmp_path)
    np.savez(path, X=X.astype(np.float32), y=Y, n_train=np.array([{}], dtype=object))
    with pytest.raises(DatasetError, match="damaged"):  # a pickle inside is never opened
        load_dataset("toy", tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(DatasetError, match="cannot be read"):
        load_dataset("toy", tmp_path)


def test_stand_in_is_named_and_never_used_silently(tmp_path, register):
    register(replace(TOY, sources=toy_from("http://127.0.0.1:9/toy.zip").sources))
    register(replace(TOY, name="toy_rebuilt", label="REBUILT", stands_in_for="toy"))
    with pytest.raises(DatasetError, match=r"^((?!In its place).)*$"):
        load_dataset("toy", tmp_path, download=False)
    write_cached(Dataset(REGISTRY["toy_rebuilt"], X.astype(np.float32), Y, 4), tmp_path)
    with pytest.raises(DatasetError, match=r"download=True.*you can load 'toy_rebuilt'"):
        load_dataset("toy", tmp_path, download=False)
    assert load_dataset("toy_rebuilt", tmp_path).display_name == "TOY (REBUILT)"
    with pytest.raises(DownloadError, match=r"(?s)no connection.*Check the network.*'toy_rebuilt'"):
        load_dataset("toy", tmp_path)
    with pytest.raises(DatasetError, match=r"GINA \(REBUILT\) has no public source: put gina_rebuilt\.npz into"):
        load_dataset("gina_rebuilt", tmp_path)


def test_describe(tmp_path, register):
    register(toy_from("https://example.org/toy.zip"))
    before = {row["name"]: row for row in describe(tmp_path)}
    assert (before["toy"]["in_data_home"], before["toy"]["size"]) == (False, None)
    assert before["toy"]["origin"] == "loopback (example.org)"
    assert before["cifar100"]["size"] > 10**8
    assert before["gisette_rebuilt"]["label"] == "REBUILT"
    assert "file in the data home only" in before["gisette_rebuilt"]["origin"]
    path = write_cached(TABLE, tmp_path)
    after = {row["name"]: row for row in describe(tmp_path)}
    assert (after["toy"]["in_data_home"], after["toy"]["size"]) == (True, path.stat().st_size)
    # What another process has put there meanwhile is read, not downloaded again.
    np.testing.assert_array_equal(fetch(REGISTRY["toy"], tmp_path).data, X)


def test_tables_of_all_kinds_survive_the_data_home(tmp_path):
    names = np.array([f"gene {j}" for j in range(9)])
    sparse = Dataset(replace(TOY, sparse=True), sp.csr_matrix(X, dtype=np.float32), Y, 4, names)
    write_cached(sparse, tmp_path)
    back = read_cached(replace(TOY, sparse=True), tmp_path)
    assert (back.data != sparse.data).nnz == 0
    assert back.feature_names.tolist() == names.tolist()
    image = replace(TOY, image_shape=(3, 3, 1))
    write_cached(Dataset(image, X.astype(np.uint8), Y, 4), tmp_path)
    assert (read_cached(image, tmp_path).data.dtype, read_cached(image, tmp_path).n_train) == (np.uint8, 4)


def test_data_home_order(monkeypatch, tmp_path):
    for variable in ("TAMIZ_DATA_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_data_home() == tmp_path / ".cache" / "tamiz"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find_data_home() == tmp_path / "xdg" / "tamiz"
    monkeypatch.setenv("TAMIZ_DATA_HOME", str(tmp_path / "data"))
    assert find_data_home() == tmp_path / "data"
    assert find_data_home("~/here") == tmp_path / "here"


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Dataset(TOY, X, Y, 3), "3 training rows, expected 4"),
        (Dataset(TOY, X, Y[:5], 4), "5 target values for 6 rows"),
        (Dataset(TOY, np.where(X == 20, np.nan, X), Y, 4), "NaN or infinity"),
        (Dataset(TOY, X, 1 - Y * 2, 4), r"classes have \[3, 3\] rows"),
        (Dataset(TOY, X, Y, 4, np.array(["a"])), "1 names for 9 columns"),
    ],
)
def test_arrays_that_are_not_the_registered_ones(dataset, message):
    with pytest.raises(DatasetError, match=message):
        verify(dataset)


def test_entries_are_consistent():
    genuine = (
        "lymphoma colon leukemia leukemia_3571 lung dexter madelon gina gisette mnist fashion_mnist cifar10 cifar100"
    )
    assert [name for name in REGISTRY if not REGISTRY[name].label] == genuine.split()
    for name, entry in REGISTRY.items():
        assert sum(entry.class_counts) == entry.shape[0], name
        assert entry.n_train is None or 0 < entry.n_train < entry.shape[0], name
        assert len(entry.totals) in (0, 1 if entry.n_train is None else 2), name
        assert entry.target_names is None or len(entry.target_names) == entry.n_classes, name
        assert entry.image_shape is None or np.prod(entry.image_shape) == entry.shape[1], name
        assert bool(entry.label) == bool(entry.stands_in_for) == (not entry.sources), name
        for file in (file for source in entry.sources for file in source["files"]):
            checksum = file.get("checksum")
            assert checksum is None or re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", checksum)
            # An address without encryption only where a checksum guards the file.
            assert all(url.startswith("https:") or checksum for url in file["urls"]), name
            assert checksum or entry.totals or name == "gisette"
        assert {source["parser"] for source in entry.sources} <= set(PARSERS)


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in REGISTRY if name not in ("gina", "gisette", "cifar10", "cifar100")])
def test_real_file(data_home, name):
    if not (Path(data_home) / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not in TAMIZ_DATA_HOME")
    entry, dataset = REGISTRY[name], load_dataset(name, data_home, download=False)
    assert sp.issparse(dataset.data) == entry.sparse == (name == "dexter")
    assert dataset.data.dtype == (np.uint8 if entry.image_shape else np.float32)
    assert np.bincount(dataset.target).tolist() == list(entry.class_counts)
    assert entry.label in dataset.display_name
    if entry.n_train is not None:
        assert np.concatenate([dataset.train, dataset.test]).tolist() == list(range(entry.shape[0]))


def test_importing_the_datasets_loads_nothing_heavy():
    """Listing the datasets is part of the command line, which has to start at once."""
    code = "import sys, tamiz.paper; print([m for m in ('filelock', 'sklearn', 'numba', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
