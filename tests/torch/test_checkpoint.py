"""Checkpoints of the trainer."""

import pytest
import torch

from tamiz.torch.run import check_same_run, read_checkpoint, write_checkpoint


def test_a_checkpoint_is_read_back_and_replaced(tmp_path):
    path = tmp_path / "deep" / "run.pt"
    assert read_checkpoint(path) is None
    for step in (1, 2):
        write_checkpoint(path, {"step": step, "state": torch.arange(3)})
    found = read_checkpoint(path)
    assert found["step"] == 2
    assert torch.equal(found["state"], torch.arange(3))
    assert [entry.name for entry in path.parent.iterdir()] == ["run.pt"]


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04"])
def test_other_files_are_named(tmp_path, content):
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint of tamiz"):
        read_checkpoint(path)
    torch.save([1, 2], path)
    with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint of tamiz"):
        read_checkpoint(path)


def test_no_code_of_the_file_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    torch.save({"x": Evil()}, tmp_path / "run.pt")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        read_checkpoint(tmp_path / "run.pt")
    assert not (tmp_path / "ran").exists()


def test_a_run_with_other_settings_is_not_continued():
    check_same_run("run.pt", {"seed": 1, "more": 2}, {"seed": 1})
    with pytest.raises(ValueError, match="seed=None, now seed=1"):
        check_same_run("run.pt", {}, {"seed": 1})
