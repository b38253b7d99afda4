"""What a mask promises in a plain loop: exactly M, always, and by nothing but the loss; it can be watched."""

import math
import warnings
from itertools import pairwise

import matplotlib
import pytest
import torch
from torch import nn

from tamiz.core.rule import VARIANTS
from tamiz.torch import FeatureMask

matplotlib.use("Agg")
SCHEDULE = {"warmup_steps": 20, "ramp_steps": 100}


def assert_closed_with(mask, m):
    gamma = mask.gamma.detach()
    assert mask.closed
    assert set(gamma.unique().tolist()) <= {0.0, 1.0}
    assert int(gamma.sum()) == m == int(mask.support().sum()) == mask.n_alive
    assert torch.equal(mask.support(), gamma == 1)
    assert float(mask.penalty()) == 0.0
    assert sorted(mask.ranking().flatten().tolist()) == list(range(1, mask.n_features + 1))


def close(model, masks, x, y, optimizer):
    """Train until all masks are closed."""
    for _ in range(500):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        optimizer.step()
        if all(mask.closed for mask in masks):
            return
    raise AssertionError("the masks never closed")


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


SHAPES = [  # of the mask and of one sample
    (8, (8,)), (8, (5, 8)), ((8,), (8,)), ([2, 4], (2, 4)), ((1, 4, 4), (3, 4, 4)), ((3, 4, 4), (3, 4, 4)), ((6, 1), (6, 9)),
    (torch.Size([4, 1, 2]), (4, 3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "sample"), SHAPES)
def test_shapes_that_fit_one_sample(shape, sample):
    torch.manual_seed(0)
    mask = FeatureMask(shape, 3, mask_learning_rate=0.05)
    x = torch.randn(12, *sample)
    target = (x * torch.rand(mask.shape)).flatten(1).sum(1)
    model = nn.Sequential(mask, nn.Flatten(), nn.Linear(math.prod(sample), 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mask.attach(optimizer, ramp_steps=60)
    close(model, [mask], x, target, optimizer)
    assert_closed_with(mask, 3)
    assert mask.ranking().shape == mask.support().shape == mask.gamma.shape == mask.shape
    torch.testing.assert_close(mask(x) + 0, x * mask.gamma)


@pytest.mark.parametrize(("shape", "input_shape"), [(8, (5, 7)), ((3, 4), (4,)), ((2, 4), (5, 3, 4)), (8, ())])
def test_an_input_that_does_not_fit_is_refused(shape, input_shape):
    with pytest.raises(ValueError, match="does not fit an input of shape"):
        FeatureMask(shape, 1)(torch.ones(input_shape))


UNTOUCHED = {  # optimizers and losses that leave the path of gamma as it is
    "decay": (lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=10.0), 1),
    "momentum": (lambda p: torch.optim.SGD(p, lr=1e6, momentum=0.9, nesterov=True), 1),
    "adam": (lambda p: torch.optim.Adam(p, lr=0.5, weight_decay=10.0), 1),
    "adamw": (lambda p: torch.optim.AdamW(p, lr=0.5, weight_decay=10.0), 1),
    "the scale of the loss": (lambda p: torch.optim.SGD(p, lr=0.1), 1024),  # as clipping by norm and scalers do
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_the_optimizer_and_its_decay_leave_the_path_unchanged_bit_for_bit(build, run_steps, table, name):
    paths = []
    for make, scale in ((lambda p: torch.optim.SGD(p, lr=0.1), 1), UNTOUCHED[name]):
        mask, model = build(hidden=8)
        model[1:].requires_grad_(False)
        optimizer = make(model.parameters())
        mask.attach(optimizer, **SCHEDULE)
        loss = lambda a, b, scale=scale: scale * nn.functional.mse_loss(a, b)  # noqa: E731
        paths.append(run_steps(mask, model, optimizer, table, n_steps=100, loss=loss))
    assert (paths[0][-1] < 1).any()
    assert torch.equal(*paths)


def test_two_masks_in_one_model():
    torch.manual_seed(0)
    left, right = FeatureMask(6, 2, mask_learning_rate=0.05), FeatureMask(4, 1, "hard", mask_learning_rate=0.05)
    layer = nn.Linear(10, 1)
    x = torch.randn(64, 10)
    optimizer = torch.optim.SGD([left.gamma, right.gamma, *layer.parameters()], lr=0.1)
    left.attach(optimizer, ramp_steps=80)
    right.attach(optimizer, ramp_steps=80)
    y = x[:, 1] + x[:, 4] - x[:, 8]
    close(lambda x: layer(torch.cat([left(x[:, :6]), right(x[:, 6:])], 1)), [left, right], x, y, optimizer)
    assert left.support().nonzero().flatten().tolist() == [1, 4]
    assert right.support().nonzero().flatten().tolist() == [2]


def test_m_equal_to_f_is_closed_at_once(start):
    mask, _, _ = start(3, m=16)
    assert_closed_with(mask, 16)
    assert mask.ranking().tolist() == list(range(1, 17))
    assert mask.step == 3


def test_before_the_end_support_ranking_and_penalty_speak_of_what_is_now(start, run_steps, table):
    mask, model, optimizer = start(4, variant="hard")
    assert (mask.n_alive, mask.closed, float(mask.penalty())) == (16, False, 2 * 13)
    for ask in (mask.support, mask.finalize):
        with pytest.raises(
            RuntimeError, match=r"selected yet: gamma has not moved in 4 steps \(warm-up: 5\); .*train on"
        ):
            ask()
    run_steps(mask, model, optimizer, table, n_steps=20)
    assert mask.step == 24
    assert int(mask.support().sum()) == 3
    assert sorted(mask.ranking().tolist()) == list(range(1, 17))


def test_finalize_closes_at_once_by_the_present_order(start, run_steps, table):
    mask, model, optimizer = start(20)
    ranking, support = mask.ranking(), mask.support()
    assert not mask.closed
    mask.finalize()
    assert_closed_with(mask, 3)
    assert torch.equal(mask.ranking(), ranking)
    run_steps(mask, model, optimizer, table, n_steps=3)
    assert torch.equal(mask.gamma, support.float())
    assert mask.step == 23
    mask.finalize()  # nothing more to do


def test_reset_goes_back_to_the_start(start, build):
    mask, _, _ = start(30)
    mask.reset()
    fresh = build()[0].state_dict()
    assert all(torch.equal(value, fresh[name]) for name, value in mask.state_dict().items())


def test_a_forward_alone_does_not_warn(build, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, model = build()
        model(table[0])
        model.eval()
        nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()


def test_a_gamma_that_others_move_or_freeze_raises(start, run_steps, table):
    mask, model, optimizer = start(10)
    with torch.no_grad():
        mask.gamma.add_(0.5)
    with pytest.raises(RuntimeError, match="gamma was changed between two steps by something other than the mask"):
        run_steps(mask, model, optimizer, table, n_steps=1)
    mask.gamma.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"gamma was frozen in mid-selection: call mask\.gamma\.requires_grad_"):
        run_steps(mask, model, optimizer, table, n_steps=1)


def test_a_closure_without_a_loss_does_not_advance_the_schedule(start):
    """As Lightning does when a training step returns None: no gradient came into being, no step is counted."""
    mask, _, optimizer = start()
    optimizer.step(lambda: None)
    assert mask.step == 0


def test_evaluation_between_steps_changes_nothing(start, run_steps, table):
    expected = run_steps(*start(hidden=8), table, n_steps=15)
    mask, model, optimizer = start(hidden=8)
    path = []
    for _ in range(15):
        path.append(run_steps(mask, model, optimizer, table, n_steps=1)[0])
        model.eval()
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                torch.testing.assert_close(model(table[0]), model[1:](table[0] * mask.gamma))
        model.train()
    assert torch.equal(torch.stack(path), expected)


def test_a_mask_behind_a_learned_layer_sends_the_gradient_on(table):
    torch.manual_seed(0)
    mask = FeatureMask(8, 2, mask_learning_rate=0.05)
    model = nn.Sequential(nn.Linear(16, 8), mask, nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mask.attach(optimizer, ramp_steps=60)
    before = model[0].weight.detach().clone()
    close(model, [mask], *table, optimizer)
    assert_closed_with(mask, 2)
    assert not torch.equal(model[0].weight, before)


# ---- watched ------------------------------------------------------------------------------------------------------------


def test_repr_tells_the_state():
    assert repr(FeatureMask((1, 4, 4), 0.25)) == (
        "FeatureMask((1, 4, 4), n_features_to_select=4, variant='soft', alive=16)"
    )
    assert repr(FeatureMask(3, 3, "hard")) == "FeatureMask(3, n_features_to_select=3, variant='hard', closed)"


def test_a_summary_in_every_phase(build, start, run_steps, table, true_features):
    first = ["warm-up, step 0: 16 of 16 features alive, 3 to select", "sum of gamma 16, penalty 26"]
    assert build()[0].summary().splitlines() == first
    mask, model, optimizer = start(10)
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

    assert len(FeatureMask(80, 3).plot(n_shown=20).patches) == 20
    assert FeatureMask((3, 8, 6), 3).plot().images[0].get_array().shape == (8, 6)
    _, mine = pyplot.subplots()
    assert FeatureMask((5, 1), 3).plot(["a", "b", "c", "d", "e"], ax=mine) is mine
    assert [label.get_text() for label in mine.get_yticklabels()] == ["a", "b", "c", "d", "e"]
    pyplot.close("all")
