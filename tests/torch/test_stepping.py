"""One rule, three texts: the compiled update, the tensor operations and ``tamiz.core`` on arrays move gamma alike."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from tamiz.core import VARIANTS, MaskState, Slot, advance
from tamiz.torch import FeatureMask
from tamiz.torch.stepping import CHUNK, Stepper

STATE = ("gamma", "first", "second", "rank")


def step_compiled(mask, gradient):
    return Stepper(mask._tensors(), mask.rule).step_compiled(gradient)


def step_by_tensors(mask, gradient):
    return Stepper(mask._tensors(), mask.rule).step_by_tensors(gradient)


def made(n_features, m, variant, dtype=None, **schedule):
    # Five times the usual rate: the same decisions in a fifth of the steps.
    mask = FeatureMask(n_features, m, variant, dtype=dtype, mask_learning_rate=0.05)
    mask.attach(torch.optim.SGD([mask.gamma], lr=1.0), **schedule)
    return mask


def array_state(mask, dtype=np.float64):
    parts = [getattr(mask, name).detach().numpy().ravel() for name in STATE]
    gamma, first, second = (part.astype(dtype) for part in parts[:3])
    return MaskState(
        gamma,
        first,
        second,
        parts[3].astype(np.int64),
        *(np.asarray(int(mask.counters[slot])) for slot in (Slot.AGE, Slot.KEPT)),
    )


def near_the_edge(a, b):
    """Features that died in one text only, or that swapped ranks, must have stood within rounding of the edge."""
    differs = np.asarray(a.rank) != np.asarray(b.rank)
    return not differs.any() or (np.abs(a.gamma[differs]) < 1e-5).all() or (np.abs(b.gamma[differs]) < 1e-5).all()


entries = st.one_of(
    st.just(0.0),
    st.sampled_from([1.0, -1.0, 1e30, -1e30, 1e-30, -1e-30, 1e-37, 1e-41]),
    st.floats(-10, 10, width=32),
)


@st.composite
def runs(draw):
    n_features = draw(st.integers(2, 12))
    rows = draw(st.lists(st.lists(entries, min_size=n_features, max_size=n_features), min_size=1, max_size=4))
    return np.asarray(rows, np.float32), draw(st.integers(1, n_features - 1)), draw(st.sampled_from(sorted(VARIANTS)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some of these runs need the limit
@settings(max_examples=15, deadline=None)
@given(run=runs(), ramp=st.sampled_from([10, 60]))
@example(run=(np.array([[0.0, 4e-42]], np.float32), 1, "hard"), ramp=10)  # a gradient of denormal numbers
@example(run=(np.array([[0.0, 1e-38]], np.float32), 1, "hard"), ramp=10)
@example(run=(np.array([[0.0, 2.0**-126]], np.float32), 1, "hard"), ramp=10)  # the smallest that counts
def test_the_three_texts_agree_step_by_step(run, ramp):
    gradients, m, variant = run
    schedule = {"warmup_steps": 2, "ramp_steps": ramp, "max_steps": 60}
    fast = made(gradients.shape[1], m, variant, **schedule)
    slow = made(gradients.shape[1], m, variant, **schedule)
    for step in range(1, 150):
        gradient = gradients[step % len(gradients)].copy()
        slow.load_state_dict(fast.state_dict())
        expected = advance(array_state(fast), gradient.astype(np.float64), step, fast.rule)
        step_by_tensors(slow, torch.from_numpy(gradient.copy()))
        step_compiled(fast, torch.from_numpy(gradient))
        got, by_tensors = array_state(fast), array_state(slow)
        assert np.isfinite(got.gamma).all()
        if (got.rank != expected.rank).any() or (by_tensors.rank != expected.rank).any():
            assert near_the_edge(got, expected) or step >= fast.rule.step_limit
            assert sorted(got.rank[got.rank > 0]) == sorted(set(got.rank[got.rank > 0]))
            continue
        for name in ("gamma", "first", "second"):
            np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=2e-4, atol=2e-6)
            np.testing.assert_allclose(getattr(by_tensors, name), getattr(expected, name), rtol=2e-4, atol=2e-6)
        assert fast.counters[: Slot.FORCED].tolist() == slow.counters[: Slot.FORCED].tolist()
        if fast.closed:
            break
    assert fast.closed
    assert int((fast.gamma == 1).sum()) == m == int(fast.gamma.sum())


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_whole_run_ends_alike(variant):
    """Without taking the state over in between: the same support and nearly the same ranks after a thousand steps."""
    random = np.random.default_rng(3)
    strength = np.linspace(-2.0, 0.5, 60)
    fast = made(60, 7, variant, warmup_steps=10, ramp_steps=120)
    slow = made(60, 7, variant, warmup_steps=10, ramp_steps=120)
    exact = made(60, 7, variant, dtype=torch.float64, warmup_steps=10, ramp_steps=120)
    while not (fast.closed and slow.closed and exact.closed):
        gradient = (strength + 0.5 * random.standard_normal(60)).astype(np.float32)
        step_compiled(fast, torch.from_numpy(gradient.copy()))
        step_by_tensors(slow, torch.from_numpy(gradient.copy()))
        step_by_tensors(exact, torch.from_numpy(gradient.astype(np.float64)))
        assert fast.step < 4000
    assert torch.equal(fast.support(), exact.support())
    assert torch.equal(slow.support(), exact.support())
    assert np.corrcoef(fast.ranking(), exact.ranking())[0, 1] > 0.98


@pytest.mark.parametrize("move", [step_compiled, step_by_tensors])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # only "soft" settles by itself here
def test_without_any_gradient_the_first_features_are_kept(move, variant):
    """A zero gradient leaves all alike to the last bit, so only the index can decide."""
    mask = made(9, 4, variant, ramp_steps=40)
    while not mask.closed:
        move(mask, torch.zeros(9))
        assert mask.step < 1000
    assert mask.support().tolist() == [True] * 4 + [False] * 5
    assert mask.ranking().tolist() == list(range(1, 10))


@pytest.mark.parametrize("move", [step_compiled, step_by_tensors])
def test_the_limit_decides_with_a_warning_and_keeps_the_largest(move):
    mask = made(6, 2, "hard", ramp_steps=1000, max_steps=20)
    pull = torch.tensor([-3.0, 1.0, 2.0, -2.0, 3.0, 1.5])
    for _ in range(19):
        move(mask, pull.clone())
    assert mask.n_alive == 6
    with pytest.warns(ConvergenceWarning, match="did not settle within 20 steps of selection; the 2 largest were kept"):
        move(mask, pull.clone())
    assert mask.counters[Slot.FORCED] == 2
    assert mask.n_alive == 2
    assert mask.support().tolist() == [True, False, False, True, False, False]
    assert mask.step == 20
    while not mask.closed:
        move(mask, pull.clone())  # no second warning: that would be an error here
        assert mask.step < 200


@pytest.mark.parametrize("move", [step_compiled, step_by_tensors])
def test_no_warning_where_the_last_deaths_fall_on_the_limit(move):
    pull = torch.tensor([-1.0, 1.0])
    free = made(2, 1, "soft", ramp_steps=100)
    while free.n_alive > 1:
        move(free, pull.clone())
    last = free.step
    mask = made(2, 1, "soft", ramp_steps=100, max_steps=last)
    for _ in range(last):
        move(mask, pull.clone())
    assert mask.n_alive == 1
    assert mask.counters[Slot.FORCED] == 0


@pytest.mark.parametrize("move", [step_compiled, step_by_tensors])
@pytest.mark.parametrize(("bad", "kind"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
@pytest.mark.parametrize("steps_before", [0, 1, 30])
def test_a_gradient_that_is_not_finite_is_refused_and_nothing_moves(move, bad, kind, steps_before):
    mask = made(5, 2, "soft", warmup_steps=1, ramp_steps=40)
    for _ in range(steps_before):
        move(mask, torch.tensor([-1.0, 0.5, 1.0, -0.5, 1.0]))
    before = {name: value.clone() for name, value in mask.state_dict().items()}
    with pytest.raises(
        FloatingPointError, match=rf"{kind} in 1 of 5 entries \(first: feature 3\); gamma was not moved"
    ):
        move(mask, torch.tensor([1.0, 1.0, 1.0, bad, 1.0]))
    for name, value in mask.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("move", [step_compiled, step_by_tensors])
def test_a_dead_feature_cannot_stop_the_run(move):
    mask = made(3, 1, "soft", ramp_steps=100)
    while mask.n_alive == 3:
        move(mask, torch.tensor([-2.0, -1.0, 5.0]))
    dead = int((mask.rank == 3).nonzero())
    pull = torch.tensor([-2.0, -1.0, 5.0])
    while not mask.closed:
        pull[dead] = np.nan
        move(mask, pull.clone())
        assert torch.isfinite(mask.gamma).all()


def test_large_finite_gradients_are_not_taken_for_infinite():
    mask = made(4, 2, "soft", warmup_steps=1, ramp_steps=10)
    huge = torch.full((4,), 3e38)
    step_compiled(mask, huge.clone())  # in the warm-up, where the sum of squares overflows float32
    step_compiled(mask, huge.clone())
    assert mask.step == 2
    assert torch.isfinite(mask.gamma).all()


def test_the_mask_holds_six_vectors_at_most():
    n_features = 10_000
    mask = made(n_features, 10, "soft", ramp_steps=10)
    stepper = Stepper(mask._tensors(), mask.rule)
    stepper.step_compiled(torch.ones(n_features))
    kept = sum(t.numel() * t.element_size() for t in (*mask.parameters(), *mask.buffers()))
    own = {part.data_ptr() for part in (*mask.parameters(), *mask.buffers())}
    scratch = sum(part.nbytes for part in stepper._arrays if part.ctypes.data not in own)
    gradient = 4 * n_features
    assert kept + scratch + gradient <= 6 * 4 * n_features + 100


def test_a_graph_that_needs_the_old_gamma_notices_the_step():
    mask = made(3, 1, "soft", ramp_steps=10)
    loss = (mask.gamma**2).sum()
    step_compiled(mask, torch.ones(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def toy_target(step, rule):
    """Fall from F to M in a straight line over half the ramp, then on to zero."""
    share = np.minimum(1.0, 2.0 * np.asarray(step) / rule.ramp_steps)
    lowest = rule.n_features_to_select * np.maximum(0.0, 2.0 - np.asarray(step) / rule.ramp_steps) / 2.0
    return rule.n_features + share * (lowest - rule.n_features)


def test_the_schedule_is_computed_in_chunks_and_follows_the_position():
    """After a chunk, after a jump and with another rule, a step uses the alpha and target of its own number."""
    mask = FeatureMask(40, 2, mask_learning_rate=1e-6)
    mask.attach(torch.optim.SGD([mask.gamma], lr=1.0), ramp_steps=10 * CHUNK, max_steps=10**6)
    stepper = Stepper(mask._tensors(), mask.rule)
    random = np.random.default_rng(0)
    for start in (0, CHUNK - 2, CHUNK, 3, 5 * CHUNK + 7):
        mask.counters[Slot.STEP] = start
        for step in range(start + 1, start + 4):
            before, gradient = array_state(mask), random.standard_normal(40).astype(np.float32)
            stepper.step_compiled(torch.from_numpy(gradient.copy()))
            expected = advance(before, gradient.astype(np.float64), step, mask.rule)
            np.testing.assert_allclose(mask.first.numpy(), expected.first, rtol=1e-4, atol=1e-6)
