"""Altered model files: loaded or refused with a message; nothing in them is run."""

from __future__ import annotations

import os
import pickle
from functools import cache

import numpy as np
import pandas
import pytest
from sklearn.pipeline import make_pipeline

from tamiz import E2EFSClassifier, E2EFSRegressor, Training
from tamiz.persistence.model import ModelFileError, SavedModel, pack_model_file, unpack_model_file
from tamiz.tables import TableEncoder, TableError

pytestmark = pytest.mark.timeout(1800)
STRANGE = [None, -1, 0, 1e308, "", "x" * 1000, [], {}, [[]], True, "none", "\u0000", "=1+1", {"a": {"b": []}}, 2**70]


def frame(n=40):
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    table["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    return table


@cache
def contents():
    """Files of a model with two classes, with three, and of numbers."""
    table = frame()
    targets = [table["a"] > 0, np.digitize(table["a"], [-0.5, 0.5]), table["a"] * 2]
    files = []
    for target in targets:
        make = E2EFSRegressor if target is targets[2] else E2EFSClassifier
        model = make_pipeline(TableEncoder(), make(3, training=Training(ramp_steps=50), random_state=0)).fit(
            table, np.asarray(target)
        )
        files.append(SavedModel.from_estimator(model[1], model[0]).to_bytes())
    return files


class Payload:
    """Makes a file if it is ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def alter_bytes(rng, content, payload):
    content = bytearray(content)
    kind = rng.integers(6)
    place = int(rng.integers(len(content)))
    if kind == 0:
        del content[place:]
    elif kind == 1:
        content[place:place] = payload
    elif kind == 2:
        content[:8] = int(rng.integers(2**62)).to_bytes(8, "little")
    elif kind == 3:
        return payload + bytes(content)
    else:
        for _ in range(int(rng.integers(1, 9))):
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
    return bytes(content)


def alter_value(rng, value, depth=0):
    """Replaces something inside a JSON value."""
    if isinstance(value, dict) and value and depth < 3 and rng.random() < 0.8:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: alter_value(rng, value[key], depth + 1)}
    if isinstance(value, list) and value and depth < 3 and rng.random() < 0.8:
        place = int(rng.integers(len(value)))
        return [*value[:place], alter_value(rng, value[place], depth + 1), *value[place + 1 :]]
    return STRANGE[rng.integers(len(STRANGE))]


def alter_honestly(rng, content):
    """Alters what a file says and gives it a checksum that fits."""
    header, arrays = unpack_model_file(content)
    if rng.random() < 0.6:
        header = alter_value(rng, header)
    name = list(arrays)[rng.integers(len(arrays))]
    if rng.random() < 0.5:
        kind = rng.integers(4)
        if kind == 0:
            del arrays[name]
        elif kind == 1:
            arrays[name] = arrays[name].ravel()[:1].reshape([(), (1,), (1, 1)][rng.integers(3)])
        elif kind == 2:
            arrays[name] = np.full_like(arrays[name], [np.nan, np.inf, 1e300, 0][rng.integers(4)])
        else:
            arrays[name] = arrays[name].astype([np.float32, np.int64][rng.integers(2)])
    return pack_model_file(header, arrays)


def test_altered_files_are_refused_or_predict(cases, check_all, tmp_path):
    trap, table, refused = tmp_path / "trap", frame(5), []
    payload = pickle.dumps(Payload(str(trap)))

    def check(number):
        rng = np.random.default_rng(number)
        content = contents()[rng.integers(3)]
        with np.errstate(all="ignore"):
            altered = alter_honestly(rng, content) if rng.random() < 0.5 else alter_bytes(rng, content, payload)
            try:
                assert len(SavedModel.from_bytes(altered).predict(table)) == 5
            except ModelFileError:
                refused.append(number)
            except TableError:
                pass  # columns that the table lacks

    check_all(check, cases(150, 1000))
    assert not trap.exists()
    assert len(refused) > 50
