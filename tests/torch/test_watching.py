"""A mask watched while it is trained."""

import matplotlib
import pytest
import torch

from tamiz.torch import FeatureMask

matplotlib.use("Agg")


def test_a_summary_in_every_phase(build, run_steps, table, true_features):
    mask, model = build()
    assert mask.summary().splitlines() == [
        "warm-up, step 0: 16 of 16 features alive, 3 to select", "sum of gamma 16, penalty 26",
    ]  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    run_steps(mask, model, optimizer, table, n_steps=10)
    early = mask.summary(n_best=2).splitlines()
    assert early[0].startswith("selection, step 10")
    assert len(early) == 4
    run_steps(mask, model, optimizer, table)
    names = [f"gene {i}" for i in range(mask.n_features)]
    first, second, *best = mask.summary(names, n_best=3).splitlines()
    assert first == f"closed, step {mask.step}: 3 of 16 features alive, 3 to select"
    assert second == "sum of gamma 3, penalty 0"
    assert sorted(line[7:].split("  ")[0].strip() for line in best) == sorted(f"gene {i}" for i in true_features)
    assert all(line.endswith("1.000") for line in best)
    with pytest.raises(ValueError, match="names must name all"):
        mask.summary(["a"])


def test_pictures_of_vectors_and_images():
    from matplotlib import pyplot

    axes = FeatureMask(80, 3).plot(n_shown=20)
    assert len(axes.patches) == 20
    axes = FeatureMask((3, 8, 6), 3).plot()
    assert axes.images[0].get_array().shape == (8, 6)
    _, mine = pyplot.subplots()
    assert FeatureMask((5, 1), 3).plot(["a", "b", "c", "d", "e"], ax=mine) is mine
    assert [label.get_text() for label in mine.get_yticklabels()] == ["a", "b", "c", "d", "e"]
    pyplot.close("all")
