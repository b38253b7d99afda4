"""Bad input is refused with words that say what to do, and a refusal leaves nothing behind."""

import math

import pytest
import torch

from tamiz.torch import FeatureMask

BAD = [  # n_features_to_select, options, message
    *((m, {}, f"must be at least 1, got {m}") for m in (0, -3)),
    (13, {}, r"n_features_to_select=13 is more than the 12 features"),
    *((m, {}, "fraction out of range") for m in (1.5, -0.1, 0.0, 1.0, math.nan)),
    *((m, {}, "must be an integer, a fraction") for m in ("five", True)),
    *((1, {"shape": s}, "positive integer or a tuple of them") for s in (0, -1, (), (3, 0), (2.5,), 3.0, "ab", None, (3, "a"))),
    (3, {"variant": "medium"}, "Unknown variant 'medium'.* There are: hard, soft, ranking"),
    (3, {"variant": None}, "Unknown variant None"),
    *((3, {name: value}, f"{name} is out of range") for name, value in (
        ("mu", 0.0), ("mu", math.nan), ("rho", 1.5), ("mask_learning_rate", 0.0), ("beta1", 1.0), ("epsilon", 0.0))),
    (2, {"groups": [[0, 1], [1, 2]]}, "in two groups"),
    (2, {"groups": [0, 1]}, "2 labels for 12 columns"),
    (2, {"keep": [0, 1, 2]}, "keep holds 3 features"),
    (2, {"keep": [99]}, "there is no column 99"),
    (2, {"keep": [1], "drop": [1]}, "at odds"),
    (2, {"budget": 3}, "takes the place of"),
    (None, {"budget": 0.5, "costs": [1] * 12}, "below the cheapest"),
    (2, {"costs": [1] * 12}, "costs need a budget"),
    *((None, {"strength": s}, "must be a finite number above 0") for s in (0, -0.1, math.inf, -math.inf, math.nan, True, "1")),
    (3, {"strength": 0.1}, "to the loss: leave out n_features_to_select"),
    (None, {"strength": 0.1, "costs": [1] * 12, "budget": 3}, "leave out costs, budget"),
    (None, {"strength": 0.1, "keep": [1]}, "leave out keep"),
]  # fmt: skip


@pytest.mark.parametrize(("m", "options", "message"), BAD)
def test_bad_options(m, options, message):
    with pytest.raises(ValueError, match=message):
        FeatureMask(**{"shape": 12, "n_features_to_select": m, **options})


def test_an_option_that_does_not_exist():
    with pytest.raises(TypeError, match="unexpected keyword"):
        FeatureMask(10, 3, gamma_rate=1.0)


@pytest.mark.parametrize(("value", "m"), [(None, 5), (0.3, 3), (0.01, 1), (7, 7)])
def test_the_number_of_features_as_number_fraction_or_half(value, m):
    assert FeatureMask(10, value).n_features_to_select == m


def hooks(optimizer):
    return len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks)


def of_all(mask, model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def of_others(mask, model):
    return torch.optim.SGD(model[1].parameters(), lr=0.1)


def of_a_frozen_gamma(mask, model):
    mask.gamma.requires_grad_(False)
    return of_all(mask, model)


@pytest.mark.parametrize(
    ("make", "schedule", "error", "message"),
    [
        (of_all, {"warmup_steps": -1}, ValueError, "_steps is out of range"),
        (of_all, {"ramp_steps": 0}, ValueError, "_steps is out of range"),
        (of_all, {"max_steps": 0}, ValueError, "_steps is out of range"),
        (of_others, {}, ValueError, r"not among the parameters of this optimizer.*model\.parameters\(\)"),
        (lambda mask, model: model, {}, TypeError, r"attach needs a torch\.optim\.Optimizer, got Sequential"),
        (of_a_frozen_gamma, {}, ValueError, r"requires_grad_\(\) before attach"),
    ],
)
def test_a_refused_attach_leaves_no_hook(build, make, schedule, error, message):
    mask, model = build()
    optimizer = make(mask, model)
    with pytest.raises(error, match=message):
        mask.attach(optimizer, **schedule)
    assert isinstance(optimizer, torch.nn.Module) or hooks(optimizer) == 0
    mask.gamma.requires_grad_()
    mask.attach(of_all(mask, model))  # and the way is still free


def test_attached_twice(start):
    mask, model, optimizer = start()
    other = torch.optim.Adam(model.parameters())
    for again in (optimizer, other):
        with pytest.raises(RuntimeError, match=r"attached already; call detach\(\) first"):
            mask.attach(again)
    assert (hooks(optimizer), hooks(other)) == (1, 0)
    assert mask.rule.ramp_steps == 60


def test_detach_and_attach_again_go_on_where_it_stopped(start, run_steps, table):
    mask, model, optimizer = start(20)
    expected = run_steps(mask, model, optimizer, table, n_steps=10)
    mask, model, optimizer = start(20)
    mask._handle.remove()
    mask.detach()  # nothing more to do
    assert hooks(optimizer) == 0
    before = {name: value.clone() for name, value in mask.state_dict().items()}
    optimizer.zero_grad()
    optimizer.step()
    assert all(torch.equal(value, before[name]) for name, value in mask.state_dict().items())
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    assert hooks(optimizer) == 1
    assert torch.equal(run_steps(mask, model, optimizer, table, n_steps=10), expected)


def test_a_loss_that_does_not_depend_on_the_mask(start, table):
    mask, model, optimizer = start()
    mask(table[0])
    model[1](table[0]).mean().backward()
    with pytest.raises(RuntimeError, match="the loss does not depend on the mask's output"):
        optimizer.step()
    assert mask.step == 0


@pytest.mark.parametrize(("bad", "kind"), [(float("nan"), "NaN"), (float("inf"), "NaN|infinite")])
def test_an_input_that_is_not_finite(start, run_steps, table, bad, kind):
    """The step is refused as a whole: neither gamma nor the weights move, and the run can go on with good data."""
    mask, model, optimizer = start(10)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    broken = table[0].clone()
    broken[3, 4] = bad
    with pytest.raises(FloatingPointError, match=rf"the gradient of gamma is ({kind}) .* gamma was not moved"):
        run_steps(mask, model, optimizer, (broken, table[1]), n_steps=1)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    run_steps(mask, model, optimizer, table)
    assert int(mask.gamma.sum()) == 3
