"""One rule, two texts: the compiled update and ``tamiz.core`` on arrays move gamma alike."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from tamiz.core.rule import VARIANTS, Slot
from tamiz.core.step import advance
from tamiz.torch import FeatureMask
from tamiz.torch.stepping import CHUNK, mask_state


def made(n_features, m, variant="soft", apart=False, options=None, **schedule):
    """A mask at five times the usual rate: the same decisions in a fifth of the steps. Apart: not in contiguous memory."""
    mask = FeatureMask(n_features, m, variant, **{"mask_learning_rate": 0.05, **(options or {})})
    if apart:
        mask.gamma.data = torch.ones(2 * n_features)[::2]
    mask.attach(torch.optim.SGD([mask.gamma], lr=1.0), **schedule)
    return mask


def move(mask, gradient):
    mask.gamma.grad = torch.as_tensor(gradient).clone()
    mask.take_step()


def array_state(mask):
    gamma, first, second, rank, counters = (part.detach().numpy().copy() for part in mask._tensors())
    return mask_state([*(part.astype(np.float64) for part in (gamma, first, second)), rank, counters])


def near_the_edge(a, b):
    """Features that died in one text only, or that swapped ranks, must have stood within rounding of the edge."""
    differs = a.rank != b.rank
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
def test_both_texts_agree_step_by_step(run, ramp):
    gradients, m, variant = run
    mask, apart = (made(gradients.shape[1], m, variant, a, None, warmup_steps=2, ramp_steps=ramp, max_steps=60)
                   for a in (False, True))  # fmt: skip
    for step in range(1, 150):
        gradient = gradients[step % len(gradients)]
        expected = advance(array_state(mask), gradient.astype(np.float64), step, mask.rule)
        for one in (mask, apart):
            move(one, gradient)
        assert all(torch.equal(a, b) for a, b in zip(mask._tensors(), apart._tensors()))
        got = array_state(mask)
        assert np.isfinite(got.gamma).all()
        if (got.rank != expected.rank).any():
            assert near_the_edge(got, expected) or step >= mask.rule.step_limit
            assert sorted(got.rank[got.rank > 0]) == sorted(set(got.rank[got.rank > 0]))
            continue
        for name in ("gamma", "first", "second"):
            np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=2e-4, atol=2e-6)
        if mask.closed:
            break
    assert mask.closed
    assert int((mask.gamma == 1).sum()) == m == int(mask.gamma.sum())


COSTS = np.random.default_rng(1).integers(1, 6, size=16).astype(float)


@pytest.mark.parametrize(
    ("m", "options"),
    [(7, {"variant": v}) for v in VARIANTS] + [(None, {"strength": 0.2}), (None, {"costs": COSTS, "budget": 9})],
)
def test_a_whole_run_ends_as_that_of_the_core(m, options):
    """Without taking the state over in between: the same ranks, and nearly the same gamma in each step."""
    options = {"mask_learning_rate": 0.02, **options}
    mask = made(16, m, options.pop("variant", "soft"), options=options, warmup_steps=10, ramp_steps=120)
    state = array_state(mask)
    random, pull = np.random.default_rng(3), np.linspace(-2.0, 0.5, 16)
    while not mask.closed:
        gradient = (pull + 0.5 * random.standard_normal(16)).astype(np.float32)
        move(mask, gradient)
        state = advance(state, gradient.astype(np.float64), mask.step, mask.rule)
        if int(mask.counters[Slot.OPEN]) or mask.gates is None:  # the mask then fills up its budget
            np.testing.assert_allclose(mask._tensors()[0].detach(), state.gamma, atol=1e-3)
        assert mask.step < 4000
    assert mask.gates is not None or mask.rank.tolist() == state.rank.tolist()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # only "soft" settles by itself here
def test_without_any_gradient_the_first_features_are_kept(variant):
    """A zero gradient leaves all alike to the last bit, so only the index can decide."""
    mask = made(9, 4, variant, ramp_steps=40)
    while not mask.closed:
        move(mask, torch.zeros(9))
        assert mask.step < 1000
    assert mask.support().tolist() == [True] * 4 + [False] * 5
    assert mask.ranking().tolist() == list(range(1, 10))


@pytest.mark.parametrize("apart", [False, True])
def test_the_limit_decides_with_a_warning_and_keeps_the_largest(apart):
    mask = made(6, 2, "hard", apart, ramp_steps=1000, max_steps=20)
    pull = torch.tensor([-3.0, 1.0, 2.0, -2.0, 3.0, 1.5])
    for _ in range(19):
        move(mask, pull)
    assert mask.n_alive == 6
    with pytest.warns(ConvergenceWarning, match="did not settle within 20 steps of selection; the 2 largest were kept"):
        move(mask, pull)
    assert (mask.n_alive, mask.step, int(mask.counters[Slot.FORCED])) == (2, 20, 2)
    assert mask.support().tolist() == [True, False, False, True, False, False]
    while not mask.closed:
        move(mask, pull)  # no second warning: that would be an error here
        assert mask.step < 200


def test_no_warning_where_the_last_deaths_fall_on_the_limit():
    pull = torch.tensor([-1.0, 1.0])
    free = made(2, 1, ramp_steps=100)
    while free.n_alive > 1:
        move(free, pull)
    mask = made(2, 1, ramp_steps=100, max_steps=free.step)
    for _ in range(free.step):
        move(mask, pull)
    assert (mask.n_alive, int(mask.counters[Slot.FORCED])) == (1, 0)


@pytest.mark.parametrize(("bad", "kind"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
@pytest.mark.parametrize("steps_before", [0, 1, 12])
def test_a_gradient_that_is_not_finite_is_refused_and_nothing_moves(bad, kind, steps_before):
    mask = made(5, 2, warmup_steps=1, ramp_steps=40)
    for _ in range(steps_before):
        move(mask, torch.tensor([-1.0, 0.5, 1.0, -0.5, 1.0]))
    before = {name: value.clone() for name, value in mask.state_dict().items()}
    with pytest.raises(
        FloatingPointError, match=rf"{kind} in 1 of 5 entries \(first: feature 3\); gamma was not moved"
    ):
        move(mask, torch.tensor([1.0, 1.0, 1.0, bad, 1.0]))
    assert all(torch.equal(value, before[name]) for name, value in mask.state_dict().items())


def test_large_gradients_and_those_of_dead_features_are_not_refused():
    mask = made(4, 2, warmup_steps=1, ramp_steps=10)
    for _ in range(2):  # the first in the warm-up, where the sum of squares overflows float32
        move(mask, torch.full((4,), 3e38))
    assert mask.step == 2
    mask, pull = made(3, 1, ramp_steps=100), torch.tensor([-2.0, -1.0, 5.0])
    while mask.n_alive == 3:
        move(mask, pull)
    pull[int((mask.rank == 3).nonzero())] = np.nan
    while not mask.closed:
        move(mask, pull)
        assert torch.isfinite(mask.gamma).all()


def test_the_mask_holds_six_vectors_at_most():
    n_features = 10_000
    mask = made(n_features, 10, ramp_steps=10)
    move(mask, torch.ones(n_features))
    kept = sum(t.numel() * t.element_size() for t in (*mask.parameters(), *mask.buffers()))
    own = {part.data_ptr() for part in (*mask.parameters(), *mask.buffers())}
    scratch = sum(part.nbytes for part in mask._stepper._arrays if part.ctypes.data not in own)
    assert kept + scratch + 4 * n_features <= 6 * 4 * n_features + 100


def test_a_graph_that_needs_the_old_gamma_notices_the_step():
    mask = made(3, 1, ramp_steps=10)
    loss = (mask.gamma**2).sum()
    move(mask, torch.ones(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_schedule_is_computed_in_chunks_and_follows_the_position():
    """After a chunk, after a jump and with another rule, a step uses the alpha and target of its own number."""
    mask = made(40, 2, options={"mask_learning_rate": 1e-6}, ramp_steps=10 * CHUNK, max_steps=10**6)
    random = np.random.default_rng(0)
    for start in (0, CHUNK - 2, CHUNK, 3, 5 * CHUNK + 7):
        mask.counters[Slot.STEP] = start
        for step in range(start + 1, start + 4):
            before, gradient = array_state(mask), random.standard_normal(40).astype(np.float32)
            move(mask, gradient)
            expected = advance(before, gradient.astype(np.float64), step, mask.rule)
            np.testing.assert_allclose(mask.first.numpy(), expected.first, rtol=1e-4, atol=1e-6)
