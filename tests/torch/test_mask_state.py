"""A mask's state can be kept, copied, moved and taken up again, with its schedule."""

import copy
import io
import json
import pickle

import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask

SCHEDULE = {"warmup_steps": 5, "ramp_steps": 60}


def halfway(build, run_steps, table, n_steps=12, **options):
    mask, model = build(**options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    run_steps(mask, model, optimizer, table, n_steps=n_steps)
    assert not mask.closed
    return mask, model, optimizer


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_torch_save(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def through_state_dict(model):
    other = nn.Sequential(FeatureMask(16, 3, mask_learning_rate=0.05), nn.Linear(16, 1))
    other.load_state_dict(model.state_dict())
    return other


def through_assignment(model):
    other = nn.Sequential(FeatureMask(16, 3, mask_learning_rate=0.05, device="meta"), nn.Linear(16, 1, device="meta"))
    other.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    return other


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, through_pickle, through_torch_save, through_state_dict, through_assignment]
)
def test_a_copy_goes_on_as_the_original_does(build, run_steps, table, copied):
    mask, model, optimizer = halfway(build, run_steps, table)
    twin = copied(model)
    assert all(torch.equal(value, twin.state_dict()[name]) for name, value in model.state_dict().items())
    expected = run_steps(mask, model, optimizer, table)
    other = torch.optim.SGD(twin.parameters(), lr=0.05)
    assert not other._optimizer_step_pre_hooks
    twin[0].attach(other, **SCHEDULE)  # a copy is not attached
    assert torch.equal(run_steps(twin[0], twin, other, table), expected)


def test_a_copied_optimizer_does_not_move_the_mask(build, run_steps, table):
    mask, _, optimizer = halfway(build, run_steps, table)
    twin = copy.deepcopy(optimizer)
    before = mask.step
    twin.step()
    assert mask.step == before


@pytest.mark.parametrize(
    ("shape", "m", "variant", "message"),
    [
        (16, 4, "soft", "belongs to a mask with n_features_to_select=4, this mask has n_features_to_select=3"),
        (16, 3, "hard", "belongs to a mask with variant='hard', this mask has variant='soft'"),
        (17, 3, "soft", r"belongs to a mask with shape=\[17\], this mask has shape=\[16\]"),
        ((4, 4), 3, "soft", r"belongs to a mask with shape=\[4, 4\], this mask has shape=\[16\]"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_the_state_of_another_mask_raises(shape, m, variant, message, strict):
    mask = FeatureMask(16, 3)
    before = copy.deepcopy(mask.state_dict())
    with pytest.raises(ValueError, match=message):
        mask.load_state_dict(FeatureMask(shape, m, variant).state_dict(), strict=strict)
    assert all(torch.equal(value, before[name]) for name, value in mask.state_dict().items())


def test_a_state_of_a_newer_format_raises():
    state = FeatureMask(16, 3).state_dict()
    about = json.loads(bytes(state["_extra_state"].tolist()))
    assert about == {
        "format": 3,
        "shape": [16],
        "n_features_to_select": 3,
        "variant": "soft",
        "gates": None,
        "strength": None,
        "schedule": None,
    }
    newer = json.dumps({**about, "format": 4, "more": "things"}).encode()
    state["_extra_state"] = torch.tensor(list(newer), dtype=torch.uint8)
    with pytest.raises(ValueError, match="saved in format 4, this version of tamiz reads format 3"):
        FeatureMask(16, 3).load_state_dict(state)
    state["_extra_state"] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    with pytest.raises(ValueError, match="its description cannot be read"):
        FeatureMask(16, 3).load_state_dict(state)


def test_a_state_without_description_loads_only_if_not_strict():
    state = FeatureMask(16, 3).state_dict()
    del state["_extra_state"]
    with pytest.raises(RuntimeError, match=r"Missing key.*_extra_state"):
        FeatureMask(16, 3).load_state_dict(state)
    assert FeatureMask(16, 3).load_state_dict(state, strict=False).missing_keys == ["_extra_state"]


def test_the_state_passes_safetensors_and_weights_only_loading(build, run_steps, table, tmp_path):
    import safetensors.torch

    mask, model, _ = halfway(build, run_steps, table)
    safetensors.torch.save_file(model.state_dict(), tmp_path / "model.safetensors")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    loaded = (
        safetensors.torch.load_file(tmp_path / "model.safetensors"),
        torch.load(tmp_path / "model.pt", weights_only=True),
    )
    for state in loaded:
        twin = build()[1]
        twin.load_state_dict(state)
        assert torch.equal(twin[0].rank, mask.rank)
        assert torch.equal(twin[0].gamma, mask.gamma)
        assert twin[0].step == mask.step


def test_a_state_with_a_missing_part_is_refused():
    state = FeatureMask(16, 3).state_dict()
    del state["second"]
    with pytest.raises(RuntimeError, match="Missing key"):
        FeatureMask(16, 3).load_state_dict(state)


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_another_type_of_the_model_does_not_change_gamma(build, run_steps, table, narrow):
    mask, model, _ = halfway(build, run_steps, table)
    before = {name: value.clone() for name, value in mask.state_dict().items()}
    if narrow.is_complex:
        with pytest.warns(UserWarning, match="Complex modules are a new feature"):
            model.to(narrow)
    else:
        model.to(narrow)
    assert model[1].weight.dtype == narrow
    for name, value in mask.state_dict().items():
        assert value.dtype == before[name].dtype
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_model_of_another_type_is_selected_from(build, run_steps, table, true_features, dtype):
    mask, model = build()
    model.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    run_steps(mask, model, optimizer, (table[0].to(dtype), table[1].to(dtype)))
    assert mask.gamma.dtype == torch.float32
    assert mask.support().nonzero().flatten().tolist() == true_features


def test_moving_between_devices(build, run_steps, table):
    mask, model, optimizer = halfway(build, run_steps, table)
    model.to("cpu")
    run_steps(mask, model, optimizer, table, n_steps=1)
    abroad = copy.deepcopy(model).to("meta")
    assert abroad[0].rank.is_meta
    assert repr(abroad[0]) == "FeatureMask(16, n_features_to_select=3, variant='soft')"
    home = abroad.to_empty(device="cpu")
    home.load_state_dict(model.state_dict())
    assert torch.equal(home[0].gamma, mask.gamma)
    assert home[0].n_alive == mask.n_alive


def test_a_mask_made_without_numbers():
    with torch.device("meta"):
        mask = FeatureMask((2, 5), 3)
    assert mask.gamma.is_meta
    mask.to_empty(device="cpu").reset()
    assert (mask.n_alive, mask.closed) == (10, False)


def test_another_layout_in_memory_does_not_part_gamma_from_its_update():
    torch.manual_seed(0)
    mask = FeatureMask((1, 3, 2, 2), 4, mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Flatten(), nn.Linear(12, 1)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, ramp_steps=60)
    x = torch.randn(40, 3, 2, 2).to(memory_format=torch.channels_last)
    while not mask.closed:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x).squeeze(1), x[:, 1, 0, 1]).backward()
        optimizer.step()
        assert mask.step < 400
    assert int(mask.gamma.sum()) == 4
    assert mask.support()[0, 1, 0, 1]


def test_the_schedule_is_part_of_the_state(build, run_steps, table):
    _, model, _ = halfway(build, run_steps, table)
    expected = {**SCHEDULE, "max_steps": 240}
    fresh, twin = build()
    twin.load_state_dict(model.state_dict())
    assert fresh.summary().startswith("selection, step 12")
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.05)
    with pytest.raises(
        ValueError, match=r"has taken 12 steps of the schedule .*'warmup_steps': 5.* attach it with the same"
    ):
        fresh.attach(optimizer, warmup_steps=500)
    fresh.attach(optimizer)  # goes on with its own
    assert {name: getattr(fresh.rule, name) for name in expected} == expected
    run_steps(fresh, twin, optimizer, table, n_steps=2)
    assert fresh.step == 14
    other, third = build()
    other.attach(torch.optim.SGD(third.parameters(), lr=0.05), warmup_steps=500)
    with pytest.raises(
        ValueError, match=r"saved in mid-selection with .*attach with the same schedule, or load before"
    ):
        third.load_state_dict(model.state_dict())
    fresh.reset()
    fresh.detach()
    fresh.attach(optimizer, warmup_steps=500)
    assert fresh.rule.warmup_steps == 500
