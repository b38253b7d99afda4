"""Bad input is refused with words that say what to do, and a refusal leaves nothing behind."""

import pytest
import torch

from tamiz.torch import FeatureMask


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "must be at least 1, got 0"),
        (-3, "must be at least 1, got -3"),
        (11, r"n_features_to_select=11 is more than the 10 feature\(s\) there are"),
        (1.5, "fraction out of range"),
        (-0.1, "fraction out of range"),
        (0.0, "fraction out of range"),
        (1.0, "fraction out of range"),
        (float("nan"), "fraction out of range"),
        ("five", "must be an integer, a fraction"),
        (True, "must be an integer, a fraction"),
    ],
)
def test_a_wrong_number_of_features(value, message):
    with pytest.raises(ValueError, match=message):
        FeatureMask(10, value)


@pytest.mark.parametrize(("value", "m"), [(None, 5), (0.3, 3), (0.01, 1), (7, 7)])
def test_the_number_of_features_as_number_fraction_or_half(value, m):
    assert FeatureMask(10, value).n_features_to_select == m


@pytest.mark.parametrize("shape", [0, -1, (), (3, 0), (2.5,), 3.0, "abc", None, (3, "a")])
def test_a_wrong_shape(shape):
    with pytest.raises(ValueError, match="shape must be a positive integer or a tuple of them"):
        FeatureMask(shape, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "medium"}, "Unknown variant 'medium'.* There are: hard, soft, ranking"),
        ({"variant": None}, "Unknown variant None"),
        ({"mu": 0.0}, "mu is out of range"),
        ({"mu": float("nan")}, "mu is out of range"),
        ({"rho": 1.5}, "rho is out of range"),
        ({"mask_learning_rate": 0.0}, "mask_learning_rate is out of range"),
        ({"beta1": 1.0}, "beta1 is out of range"),
        ({"epsilon": 0.0}, "epsilon is out of range"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        FeatureMask(10, 3, **options)


def test_an_option_that_does_not_exist():
    with pytest.raises(TypeError, match="unexpected keyword"):
        FeatureMask(10, 3, gamma_rate=1.0)


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


def test_attached_twice(build):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mask.attach(optimizer, ramp_steps=70)
    other = torch.optim.Adam(model.parameters())
    for again in (optimizer, other):
        with pytest.raises(RuntimeError, match=r"attached already; call detach\(\) first"):
            mask.attach(again)
    assert (hooks(optimizer), hooks(other)) == (1, 0)
    assert mask.rule.ramp_steps == 70


def test_detach_and_attach_again_go_on_where_it_stopped(build, run_steps, table):
    paths = []
    for pause in (False, True):
        mask, model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        handle = mask.attach(optimizer, warmup_steps=5, ramp_steps=100)
        start = run_steps(mask, model, optimizer, table, n_steps=40)
        if pause:
            handle.remove()
            mask.detach()  # nothing more to do
            assert hooks(optimizer) == 0
            before = {name: value.clone() for name, value in mask.state_dict().items()}
            optimizer.zero_grad()
            optimizer.step()
            assert all(torch.equal(value, before[name]) for name, value in mask.state_dict().items())
            mask.attach(optimizer, warmup_steps=5, ramp_steps=100)
            assert hooks(optimizer) == 1
        paths.append(torch.cat([start, run_steps(mask, model, optimizer, table, n_steps=40)]))
    assert torch.equal(*paths)


def test_a_loss_that_does_not_depend_on_the_mask(build, table):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mask.attach(optimizer)
    mask(table[0])
    model[1](table[0]).mean().backward()
    with pytest.raises(RuntimeError, match="the loss does not depend on the mask's output"):
        optimizer.step()
    assert mask.step == 0


@pytest.mark.parametrize(("bad", "kind"), [(float("nan"), "NaN"), (float("inf"), "NaN|infinite")])
def test_an_input_that_is_not_finite(build, run_steps, table, bad, kind):
    """The step is refused as a whole: neither gamma nor the weights move, and the run can go on with good data."""
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=100)
    run_steps(mask, model, optimizer, table, n_steps=10)
    assert not mask.closed
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x, y = table
    broken = x.clone()
    broken[3, 4] = bad
    with pytest.raises(FloatingPointError, match=rf"the gradient of gamma is ({kind}) .* gamma was not moved"):
        run_steps(mask, model, optimizer, (broken, y), n_steps=1)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    run_steps(mask, model, optimizer, table)
    assert int(mask.gamma.sum()) == 3
