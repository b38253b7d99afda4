"""Every example runs as it stands; each of them ends by checking that it found what was planted."""

import runpy
import warnings
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
FOUND = {
    "business_table": "columns ['age', 'income', 'plan']",
    "plain_loop": "features [5, 17]",
    "regression": "columns [8, 33, 60, 91]",
    "multilabel": "columns [3, 11, 20, 27, 41, 55]",
    "autoencoder": "columns [4, 12, 21, 30, 38] rebuild all 40",
    "cox_survival": "genes [13, 77, 140]",
    "gru_channels": "channels [4, 9]",
    "cnn_pixels": "accuracy with 12 of 64 pixels",
    "transformer_columns": "columns [2, 6, 13]",
    "lightning_callback": "columns [4, 19, 36]",
    "skorch_callback": "columns [4, 19, 36]",
}


@pytest.fixture(autouse=True)
def as_it_was():
    """An example may seed and set what it likes."""
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.random.set_rng_state(state)


@pytest.mark.parametrize("name", FOUND)
def test_an_example_finds_what_was_planted(name, capsys, tmp_path, monkeypatch):
    source = EXAMPLES / f"{name}.py"
    assert len(source.read_text().splitlines()) <= 60
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        if name == "lightning_callback":  # Lightning speaks of the number of workers, and of versions, as it likes
            warnings.filterwarnings("ignore", module="lightning")
        runpy.run_path(str(source), run_name="__main__")
    assert FOUND[name] in capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "an example leaves no files behind"
