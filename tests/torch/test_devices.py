"""Devices by name, and random numbers from a seed."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from tamiz.torch.run import checked_device, seeded


@pytest.mark.parametrize("name", ["gpu", None, 1.5, "cpu:x"])
def test_unknown_devices(name):
    with pytest.raises(ValueError, match="such as 'cpu', 'cuda' or 'cuda:1', got"):
        checked_device(name)


def test_known_devices():
    assert checked_device("cpu") == checked_device(torch.device("cpu")) == torch.device("cpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch finds no GPU here; use 'cpu'"):
            checked_device("cuda")


def test_the_random_state_comes_back_after_an_error():
    before = torch.random.get_rng_state()
    with pytest.raises(TypeError), seeded(3):
        torch.rand(2) + "x"
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_missing_torch_names_the_command_that_installs_it():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import tamiz.torch\nexcept ImportError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == 'tamiz.torch needs torch. Install it with: pip install "tamiz[torch]"'
