"""The search on a device of PyTorch gives what NumPy gives."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz import find_pairs
from tamiz.errors import MissingExtraError


@pytest.mark.parametrize("kind", ["plain", "mixed", "sparse"])
def test_the_same_as_without_a_device(kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 300))
    if kind == "mixed":
        X[:, 50:90] = random.poisson(0.3, size=(200, 40))
        X[:, 100:] = np.round(X[:, 100:])
    if kind == "sparse":
        X = sp.random(200, 300, density=0.2, format="csr", random_state=0)
    y = random.integers(0, 3 if kind == "mixed" else 2, 200)
    a, b = (find_pairs(X, y, device=device, n_permutations=2, random_state=0, n_jobs=1) for device in (None, "cpu"))
    np.testing.assert_allclose(a.scores, b.scores, atol=1e-3)
    assert (a.partners == b.partners).mean() > 0.98


def test_a_device_that_is_not_there_is_reported():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    with pytest.raises(ValueError, match="device='warp' is no device of PyTorch"):
        find_pairs(X, y, device="warp")
    import torch

    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"device='cuda' is not available here .*Leave device out"):
            find_pairs(X, y, device="cuda")


def test_without_torch_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    with pytest.raises(MissingExtraError, match=r"device='cuda' needs torch.*tamiz\[torch\]"):
        find_pairs(X, y, device="cuda")
