"""A mask's state can be kept, copied, moved and taken up again, with its schedule."""

import copy
import io
import json
import pickle

import pytest
import safetensors.torch
import torch
from torch import nn

from tamiz.torch import FeatureMask

SCHEDULE = {"warmup_steps": 5, "ramp_steps": 60}


def same_state(a, b):
    theirs = b.state_dict()
    return all(torch.equal(value, theirs[name]) for name, value in a.state_dict().items())


def fresh(device=None):
    return nn.Sequential(FeatureMask(16, 3, mask_learning_rate=0.05, device=device), nn.Linear(16, 1, device=device))


def loaded(state, other=None, **options):
    other = fresh() if other is None else other
    other.load_state_dict(state, **options)
    return other


def through_torch(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "torch.save": lambda model: through_torch(model, weights_only=False),
    "state_dict": lambda model: loaded(model.state_dict()),
    "weights only": lambda model: loaded(through_torch(model.state_dict(), weights_only=True)),
    "safetensors": lambda model: loaded(safetensors.torch.load(safetensors.torch.save(model.state_dict()))),
    "assignment": lambda model: loaded(copy.deepcopy(model.state_dict()), fresh("meta"), assign=True),
    "from nowhere": lambda model: loaded(model.state_dict(), copy.deepcopy(model).to("meta").to_empty(device="cpu")),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_goes_on_as_the_original_does(start, run_steps, table, name):
    mask, model, optimizer = start(12)
    twin = COPIES[name](model)
    assert same_state(model, twin)
    assert (twin[0].step, twin[0].n_alive) == (mask.step, mask.n_alive)
    expected = run_steps(mask, model, optimizer, table)
    other = torch.optim.SGD(twin.parameters(), lr=0.05)
    assert not other._optimizer_step_pre_hooks
    twin[0].attach(other, **SCHEDULE)  # a copy is not attached
    assert torch.equal(run_steps(twin[0], twin, other, table), expected)


def test_a_copied_optimizer_does_not_move_the_mask(start):
    mask, _, optimizer = start(12)
    copy.deepcopy(optimizer).step()
    assert mask.step == 12


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
    before = copy.deepcopy(mask)
    with pytest.raises(ValueError, match=message):
        mask.load_state_dict(FeatureMask(shape, m, variant).state_dict(), strict=strict)
    assert same_state(mask, before)


def test_states_of_a_newer_format_and_without_parts_raise():
    state = FeatureMask(16, 3).state_dict()
    about = json.loads(bytes(state["_extra_state"].tolist()))
    assert about == {
        "format": 3, "shape": [16], "n_features_to_select": 3, "variant": "soft", "gates": None, "strength": None,
        "schedule": None,
    }  # fmt: skip
    newer = json.dumps({**about, "format": 4, "more": "things"}).encode()
    without = {name: {key: value for key, value in state.items() if key != name} for name in ("second", "_extra_state")}
    for bad, error, message in (
        (
            {**state, "_extra_state": torch.tensor(list(newer), dtype=torch.uint8)},
            ValueError,
            "in format 4, .* reads format 3",
        ),
        ({**state, "_extra_state": torch.tensor([1, 2], dtype=torch.uint8)}, ValueError, "description cannot be read"),
        ({**state, "rank": state["rank"] + 5}, RuntimeError, "ranks and counters of this mask do not fit together"),
        (without["second"], RuntimeError, "Missing key"),
        (without["_extra_state"], RuntimeError, r"Missing key.*_extra_state"),
    ):
        with pytest.raises(error, match=message):
            FeatureMask(16, 3).load_state_dict(bad)
    found = FeatureMask(16, 3).load_state_dict(without["_extra_state"], strict=False)
    assert found.missing_keys == ["_extra_state"]


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_another_type_of_the_model_does_not_change_gamma(start, narrow):
    mask, model, _ = start(12)
    before = {name: value.clone() for name, value in mask.state_dict().items()}
    model.to(narrow)
    assert model[1].weight.dtype == narrow
    for name, value in mask.state_dict().items():
        assert value.dtype == before[name].dtype
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_model_of_another_type_is_selected_from(start, run_steps, table, true_features, dtype):
    mask, model, optimizer = start()
    model.to(dtype)
    run_steps(mask, model, optimizer, (table[0].to(dtype), table[1].to(dtype)))
    assert mask.gamma.dtype == torch.float32
    assert mask.support().nonzero().flatten().tolist() == true_features


def test_devices(start, run_steps, table):
    mask, model, optimizer = start(12)
    model.to("cpu")
    run_steps(mask, model, optimizer, table, n_steps=1)
    abroad = copy.deepcopy(model).to("meta")[0]
    assert abroad.rank.is_meta
    assert repr(abroad) == "FeatureMask(16, n_features_to_select=3, variant='soft')"
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


def test_the_schedule_is_part_of_the_state(build, start, run_steps, table):
    state = start(12)[1].state_dict()
    mask, twin = build()
    twin.load_state_dict(state)
    assert mask.summary().startswith("selection, step 12")
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.05)
    with pytest.raises(
        ValueError, match=r"taken 12 steps of the schedule .*'warmup_steps': 5.* attach it with the same"
    ):
        mask.attach(optimizer, warmup_steps=500)
    mask.attach(optimizer)  # goes on with its own
    assert (mask.rule.warmup_steps, mask.rule.ramp_steps, mask.rule.max_steps) == (5, 60, 240)
    run_steps(mask, twin, optimizer, table, n_steps=2)
    assert mask.step == 14
    other, third = build()
    other.attach(torch.optim.SGD(third.parameters(), lr=0.05), warmup_steps=500)
    with pytest.raises(
        ValueError, match=r"saved in mid-selection with .*attach with the same schedule, or load before"
    ):
        third.load_state_dict(state)
    mask.reset()
    mask.detach()
    mask.attach(optimizer, warmup_steps=500)
    assert mask.rule.warmup_steps == 500
