"""What a mask promises in a plain loop: exactly M, always, and by nothing but the loss."""

import math
import warnings
from itertools import pairwise

import pytest
import torch
from torch import nn

from tamiz.core import VARIANTS
from tamiz.torch import FeatureMask

SCHEDULE = {"warmup_steps": 20, "ramp_steps": 100}


def assert_closed_with(mask, m):
    gamma = mask.gamma.detach()
    assert mask.closed
    assert set(gamma.unique().tolist()) <= {0.0, 1.0}
    assert int(gamma.sum()) == m == int(mask.support().sum()) == mask.n_alive
    assert torch.equal(mask.support(), gamma == 1)
    assert float(mask.penalty()) == 0.0
    assert sorted(mask.ranking().flatten().tolist()) == list(range(1, mask.n_features + 1))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("m", [1, 3, 15])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # 15 of 16 by "hard" may need the limit
def test_a_plain_loop_ends_with_exactly_m(build, run_steps, table, variant, m):
    mask, model = build(m, variant)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    dead = [mask.rank > m]
    optimizer.register_step_post_hook(lambda *_: dead.append(mask.rank > m))
    path = run_steps(mask, model, optimizer, table)
    assert_closed_with(mask, m)
    assert len(path) <= mask.rule.step_limit + math.ceil(2 / 0.05)
    assert all(bool((after | ~before).all()) for before, after in pairwise(dead)), "a dead feature came back"
    assert bool((path[torch.stack(dead[1:])] == 0).all())
    assert bool((path[: SCHEDULE["warmup_steps"]] == 1).all()), "gamma moved in the warm-up"


@pytest.mark.parametrize(
    ("shape", "sample"),
    [
        (8, (8,)),
        (8, (5, 8)),
        ((8,), (8,)),
        ([2, 4], (2, 4)),
        ((1, 4, 4), (3, 4, 4)),
        ((3, 4, 4), (3, 4, 4)),
        ((6, 1), (6, 9)),
        (torch.Size([4, 1, 2]), (4, 3, 2)),
    ],
)
def test_shapes_that_fit_one_sample(shape, sample):
    torch.manual_seed(0)
    mask = FeatureMask(shape, 3, mask_learning_rate=0.05)
    x = torch.randn(12, *sample)
    target = (x * torch.rand(mask.shape)).flatten(1).sum(1)
    model = nn.Sequential(mask, nn.Flatten(), nn.Linear(math.prod(sample), 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mask.attach(optimizer, ramp_steps=60)
    while not mask.closed:
        optimizer.zero_grad()
        out = model(x)
        nn.functional.mse_loss(out.squeeze(1), target).backward()
        optimizer.step()
        assert mask.step < 400
    assert_closed_with(mask, 3)
    assert mask.ranking().shape == mask.support().shape == mask.gamma.shape == mask.shape
    torch.testing.assert_close(mask(x) + 0, x * mask.gamma)


@pytest.mark.parametrize(("shape", "input_shape"), [(8, (5, 7)), ((3, 4), (4,)), ((2, 4), (5, 3, 4)), (8, ())])
def test_an_input_that_does_not_fit_is_refused(shape, input_shape):
    with pytest.raises(ValueError, match="does not fit an input of shape"):
        FeatureMask(shape, 1)(torch.ones(input_shape))


def frozen_path(build, run_steps, table, make_optimizer, n_steps=150):
    """gamma's path while the weights stay where they are."""
    mask, model = build(hidden=8)
    for parameter in model[1:].parameters():
        parameter.requires_grad_(False)
    optimizer = make_optimizer(model.parameters())
    mask.attach(optimizer, **SCHEDULE)
    return run_steps(mask, model, optimizer, table, n_steps=n_steps)


@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=10.0),
        lambda p: torch.optim.SGD(p, lr=1e6, momentum=0.9, nesterov=True),
        lambda p: torch.optim.Adam(p, lr=0.5, weight_decay=10.0),
        lambda p: torch.optim.AdamW(p, lr=0.5, weight_decay=10.0),
    ],
)
def test_the_optimizer_and_its_weight_decay_leave_the_path_unchanged_bit_for_bit(
    build, run_steps, table, make_optimizer
):
    plain = frozen_path(build, run_steps, table, lambda p: torch.optim.SGD(p, lr=0.1))
    assert (plain[-1] < 1).any()
    assert torch.equal(frozen_path(build, run_steps, table, make_optimizer), plain)


def test_the_scale_of_the_loss_leaves_the_path_unchanged(build, run_steps, table):
    """What clipping by norm and loss scaling do: another length, the same direction."""
    plain = frozen_path(build, run_steps, table, lambda p: torch.optim.SGD(p, lr=0.1))
    mask, model = build(hidden=8)
    for parameter in model[1:].parameters():
        parameter.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mask.attach(optimizer, **SCHEDULE)
    scaled = run_steps(
        mask, model, optimizer, table, n_steps=150, loss=lambda a, b: 1024 * nn.functional.mse_loss(a, b)
    )
    assert torch.equal(scaled, plain)


def test_two_masks_in_one_model():
    torch.manual_seed(0)
    left, right = FeatureMask(6, 2, mask_learning_rate=0.05), FeatureMask(4, 1, "hard", mask_learning_rate=0.05)
    layer = nn.Linear(10, 1)
    x, z = torch.randn(64, 6), torch.randn(64, 4)
    y = x[:, 1] + x[:, 4] - z[:, 2]
    optimizer = torch.optim.SGD([left.gamma, right.gamma, *layer.parameters()], lr=0.1)
    left.attach(optimizer, ramp_steps=80)
    right.attach(optimizer, ramp_steps=80)
    while not (left.closed and right.closed):
        optimizer.zero_grad()
        nn.functional.mse_loss(layer(torch.cat([left(x), right(z)], 1)).squeeze(1), y).backward()
        optimizer.step()
        assert left.step < 500
    assert left.support().nonzero().flatten().tolist() == [1, 4]
    assert right.support().nonzero().flatten().tolist() == [2]


def test_m_equal_to_f_is_closed_at_once(build, run_steps, table):
    mask, model = build(16)
    assert_closed_with(mask, 16)
    assert mask.ranking().tolist() == list(range(1, 17))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer)
    path = run_steps(mask, model, optimizer, table, n_steps=3)
    assert bool((path == 1).all())


def test_before_the_end_support_ranking_and_penalty_speak_of_what_is_now(build, run_steps, table):
    mask, model = build(variant="hard")
    assert mask.n_alive == 16
    assert not mask.closed
    with pytest.raises(RuntimeError, match=r"nothing is selected yet: gamma has not moved in 0 steps.*train on"):
        mask.support()
    assert float(mask.penalty()) == 2 * 13
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    run_steps(mask, model, optimizer, table, n_steps=60)
    assert mask.step == 60
    assert int(mask.support().sum()) == 3
    assert sorted(mask.ranking().tolist()) == list(range(1, 17))


def test_repr_tells_the_state(build):
    assert repr(FeatureMask((1, 4, 4), 0.25)) == (
        "FeatureMask((1, 4, 4), n_features_to_select=4, variant='soft', alive=16)"
    )
    assert repr(FeatureMask(3, 3, "hard")) == "FeatureMask(3, n_features_to_select=3, variant='hard', closed)"


def test_reset_goes_back_to_the_start(build, run_steps, table):
    mask, model = build()
    fresh = {name: value.clone() for name, value in mask.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    run_steps(mask, model, optimizer, table, n_steps=80)
    mask.reset()
    assert all(torch.equal(value, fresh[name]) for name, value in mask.state_dict().items())


def test_a_forward_alone_does_not_warn(build, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, model = build()
        model(table[0])
        model.eval()
        nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()


def test_a_gamma_moved_between_two_steps_raises(build, run_steps, table):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    run_steps(mask, model, optimizer, table, n_steps=10)
    with torch.no_grad():
        mask.gamma.add_(0.5)
    with pytest.raises(RuntimeError, match="gamma was changed between two steps by something other than the mask"):
        run_steps(mask, model, optimizer, table, n_steps=1)


def test_nothing_is_selected_in_the_warm_up(build, run_steps, table):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    run_steps(mask, model, optimizer, table, n_steps=4)
    for ask in (mask.support, mask.finalize):
        with pytest.raises(
            RuntimeError, match=r"nothing is selected yet: gamma has not moved in 4 steps \(warm-up: 5\)"
        ):
            ask()
    run_steps(mask, model, optimizer, table, n_steps=2)
    assert int(mask.support().sum()) == 3


def test_finalize_closes_at_once_by_the_present_order(build, run_steps, table):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    run_steps(mask, model, optimizer, table, n_steps=20)
    ranking, support = mask.ranking(), mask.support()
    assert not mask.closed
    mask.finalize()
    assert mask.closed
    assert float(mask.penalty()) == 0
    assert torch.equal(mask.ranking(), ranking)
    assert torch.equal(mask.gamma, support.float())
    run_steps(mask, model, optimizer, table, n_steps=3)
    assert torch.equal(mask.gamma, support.float())
    assert mask.step == 23
    mask.finalize()  # nothing more to do


def test_a_mask_frozen_in_mid_selection_names_the_reason(build, run_steps, table):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    run_steps(mask, model, optimizer, table, n_steps=8)
    mask.gamma.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"gamma was frozen in mid-selection: call mask\.gamma\.requires_grad_"):
        run_steps(mask, model, optimizer, table, n_steps=1)


def attached(build, make_optimizer=lambda p: torch.optim.SGD(p, lr=0.05), **options):
    mask, model = build(**options)
    optimizer = make_optimizer(model.parameters())
    mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
    return mask, model, optimizer


def test_a_closure_without_a_loss_does_not_advance_the_schedule(build):
    """As Lightning does when a training step returns None: no gradient came into being, no step is counted."""
    mask, _, optimizer = attached(build)
    optimizer.step(lambda: None)
    assert mask.step == 0


def test_evaluation_between_steps_changes_nothing(build, run_steps, table):
    mask, model, optimizer = attached(build, hidden=8)
    expected = run_steps(mask, model, optimizer, table, n_steps=15)
    mask, model, optimizer = attached(build, hidden=8)
    path = []
    for _ in range(15):
        path.append(run_steps(mask, model, optimizer, table, n_steps=1)[0])
        model.eval()
        with torch.no_grad():
            plain = model[1:](table[0] * mask.gamma)
            torch.testing.assert_close(model(table[0]), plain)
        with torch.inference_mode():
            torch.testing.assert_close(model(table[0]), plain)
        model.train()
    assert torch.equal(torch.stack(path), expected)


def test_a_mask_behind_a_learned_layer_sends_the_gradient_on(table):
    torch.manual_seed(0)
    mask = FeatureMask(8, 2, mask_learning_rate=0.05)
    model = nn.Sequential(nn.Linear(16, 8), mask, nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mask.attach(optimizer, ramp_steps=60)
    while not mask.closed:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()
        assert model[0].weight.grad.abs().sum() > 0
        optimizer.step()
        assert mask.step < 400
    assert int(mask.gamma.sum()) == 2
