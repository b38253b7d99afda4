"""The loop stays the user's own: accumulation, clipping, mixed precision, compiled models, closures, Accelerate."""

import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask

SCHEDULE = {"warmup_steps": 5, "ramp_steps": 60}


def attached(build, make_optimizer=lambda p: torch.optim.SGD(p, lr=0.05), **options):
    mask, model = build(**options)
    optimizer = make_optimizer(model.parameters())
    mask.attach(optimizer, **SCHEDULE)
    return mask, model, optimizer


def test_gradient_accumulation_equals_the_large_batch(build, run_steps, table):
    mask, model, optimizer = attached(build, hidden=8)
    expected = run_steps(mask, model, optimizer, table, n_steps=25)
    mask, model, optimizer = attached(build, hidden=8)
    path = []
    for _ in range(25):
        optimizer.zero_grad()
        for x, y in zip(table[0].chunk(4), table[1].chunk(4)):
            (nn.functional.mse_loss(model(x).squeeze(1), y) / 4).backward()
        optimizer.step()
        path.append(mask.gamma.detach().clone())
    assert (expected[-1] < 1).any()
    torch.testing.assert_close(torch.stack(path), expected, rtol=1e-3, atol=1e-3)
    assert mask.step == 25


@pytest.mark.parametrize("max_norm", [1e-3, 1e3])
def test_clipping_by_norm_changes_the_weights_but_not_the_path_of_gamma(build, table, max_norm):
    """The network rests, so that the only thing that clipping could change is gamma."""
    paths = []
    for clip in (None, max_norm):
        mask, model, optimizer = attached(build, lambda p: torch.optim.SGD(p, lr=0.0), hidden=8)
        path = []
        for _ in range(25):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            path.append(mask.gamma.detach().clone())
        paths.append(torch.stack(path))
    assert (paths[0][-1] < 1).any()
    torch.testing.assert_close(*paths, rtol=1e-4, atol=1e-5)


def test_clipping_in_a_real_run(build, table, true_features):
    mask, model, optimizer = attached(build, lambda p: torch.optim.SGD(p, lr=0.2))
    while not mask.closed:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        assert mask.step < 500
    assert mask.support().nonzero().flatten().tolist() == true_features


def test_autocast_in_bfloat16(build, table, true_features):
    mask, model, optimizer = attached(build, hidden=16)
    while not mask.closed:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(table[0])
            assert out.dtype == torch.bfloat16
            loss = nn.functional.mse_loss(out.float().squeeze(1), table[1])
        loss.backward()
        assert mask.gamma.grad.dtype == torch.float32
        optimizer.step()
        assert mask.step < 500
    assert mask.support().nonzero().flatten().tolist() == true_features


@pytest.mark.parametrize(
    "make_optimizer",
    [lambda p: torch.optim.SGD(p, lr=0.05), lambda p: torch.optim.Adam(p, lr=0.01, fused=True)],
    ids=["unscaled by the scaler", "unscaled by the optimizer"],
)
def test_a_step_that_the_scaler_skips_does_not_advance_the_schedule(build, table, make_optimizer):
    """With a skipped step in between, the path is that of the run without scaler and without that step."""
    paths = {}
    for scaled in (False, True):
        mask, model, optimizer = attached(build, make_optimizer, hidden=8)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000, enabled=scaled)
        path = []
        for i in range(30):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(table[0])
            loss = nn.functional.mse_loss(out.float().squeeze(1), table[1])
            if i == 12:
                if not scaled:
                    continue
                loss = loss * float("inf")
            before = (mask.step, mask.gamma.detach().clone())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if i == 12:
                assert mask.step == before[0] == 12
                assert torch.equal(mask.gamma, before[1])
            else:
                path.append(mask.gamma.detach().clone())
        paths[scaled] = torch.stack(path)
        assert mask.step == 29
    assert (paths[True][-1] < 1).any()
    torch.testing.assert_close(paths[True], paths[False], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("where", "backend"),
    [("the whole model", "aot_eager"), ("the whole model", "inductor"), ("all but the mask", "aot_eager")],
)
def test_compiled_models_equal_eager_ones(build, run_steps, table, where, backend):
    mask, model, optimizer = attached(build, hidden=8)
    expected = run_steps(mask, model, optimizer, table, n_steps=20)
    mask, model, optimizer = attached(build, hidden=8)
    if where == "the whole model":
        compiled = torch.compile(model, backend=backend, fullgraph=True)
    else:
        compiled = nn.Sequential(mask, torch.compile(model[1:], backend=backend))
    path = run_steps(mask, compiled, optimizer, table, n_steps=20)
    assert (expected[-1] < 1).any()
    torch.testing.assert_close(path, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_an_optimizer_with_a_closure_moves_gamma_once_a_step(build, table, true_features, line_search):
    mask, model, optimizer = attached(
        build, lambda p: torch.optim.LBFGS(p, lr=0.3, max_iter=4, line_search_fn=line_search)
    )
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]) + 1e-3 * model[1].weight.square().sum()
        loss.backward()
        return loss

    gammas = []
    while not mask.closed:
        steps = mask.step
        optimizer.step(closure)
        assert mask.step == steps + 1
        gammas.append(mask.gamma.detach().clone())
        assert mask.step < 300
    assert calls > len(gammas)
    assert mask.support().nonzero().flatten().tolist() == true_features


def test_a_closure_by_keyword_equals_the_plain_step(build, run_steps, table):
    mask, model, optimizer = attached(build, hidden=8)
    expected = run_steps(mask, model, optimizer, table, n_steps=20)
    mask, model, optimizer = attached(build, hidden=8)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(table[0]).squeeze(1), table[1])
        loss.backward()
        return loss

    for gamma in expected:
        loss = optimizer.step(closure=closure)
        assert loss.requires_grad
        assert torch.equal(mask.gamma, gamma)


def test_a_closure_without_a_loss_does_not_advance_the_schedule(build):
    """As Lightning does when a training step returns None: no gradient came into being, no step is counted."""
    mask, _, optimizer = attached(build)
    optimizer.step(lambda: None)
    assert mask.step == 0


@pytest.mark.parametrize("attach_first", [True, False])
def test_accelerate(build, run_steps, table, attach_first):
    from accelerate import Accelerator

    mask, model, optimizer = attached(build, hidden=8)
    expected = run_steps(mask, model, optimizer, table, n_steps=20)
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    if attach_first:
        mask.attach(optimizer, **SCHEDULE)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*table), batch_size=128)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    if not attach_first:
        mask.attach(optimizer, **SCHEDULE)
    path = []
    for _ in range(20):
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.mse_loss(model(x).squeeze(1), y))
                optimizer.step()
                optimizer.zero_grad()
        path.append(mask.gamma.detach().clone())
    assert mask.step == 20, "one step for two batches"
    torch.testing.assert_close(torch.stack(path), expected, rtol=1e-3, atol=1e-3)
    mask.detach()
    assert not optimizer.optimizer._optimizer_step_pre_hooks


def test_a_schedule_free_optimizer_does_not_average_gamma(build, run_steps, table):
    """Its train() and eval() exchange the weights; gamma is the same in both, and so is the path."""
    schedulefree = pytest.importorskip("schedulefree", reason="needs the package schedulefree")

    def make_optimizer(parameters):
        return schedulefree.AdamWScheduleFree(parameters, lr=0.01, weight_decay=0.1)

    mask, model, optimizer = attached(build, make_optimizer, hidden=8)
    optimizer.train()
    expected = run_steps(mask, model, optimizer, table, n_steps=20)
    mask, model, optimizer = attached(build, make_optimizer, hidden=8)
    path = []
    for _ in range(20):
        optimizer.train()
        path.append(run_steps(mask, model, optimizer, table, n_steps=1)[0])
        weight = model[1].weight.detach().clone()
        optimizer.eval()
        assert torch.equal(mask.gamma, path[-1])
    assert not torch.equal(model[1].weight, weight), "the weights are averaged"
    assert not mask.closed
    assert (expected[-1] < 1).any()
    torch.testing.assert_close(torch.stack(path), expected, rtol=1e-3, atol=1e-3)


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


def test_exported_and_traced_models_multiply(build, table):
    mask, model = build(hidden=8)
    with torch.no_grad():
        mask.gamma.copy_(torch.rand(16))
    expected = model(table[0])
    program = torch.export.export(model.eval(), (table[0],))
    torch.testing.assert_close(program.module()(table[0]), expected)


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
