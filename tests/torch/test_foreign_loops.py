"""Training loops that know nothing of the mask: other optimizers, copies, averages, SAM, Muon, compiled steps."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

SCHEDULE = {"warmup_steps": 5, "ramp_steps": 60}


@pytest.fixture
def closed(build, run_steps, table):
    """A mask that has closed in a plain loop, with its model and optimizer."""
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    run_steps(mask, model, optimizer, table)
    return mask, model, optimizer


def assert_binary(mask, true_features):
    assert mask.gamma.detach().nonzero().flatten().tolist() == true_features
    assert set(mask.gamma.detach().unique().tolist()) == {0.0, 1.0}


class ZeroFilling(torch.optim.Optimizer):
    """Replaces a missing gradient by zeros and applies weight decay to every parameter, as Muon with its Adam does."""

    def __init__(self, params, lr=0.05, weight_decay=0.5):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(p.grad, alpha=-group["lr"])


class SAM(torch.optim.Optimizer):
    """Sharpness-aware minimisation as it is usually written: two passes around a base optimizer."""

    def __init__(self, params, base, rho=0.05, **options):
        super().__init__(params, {"rho": rho, **options})
        self.base_optimizer = base(self.param_groups, **options)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([g.norm() for g in gradients]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.state[p]["old"] = p.data.clone()
                    p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = self.state[p]["old"]
        self.base_optimizer.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        self.first_step()
        with torch.enable_grad():
            closure()
        self.second_step()


@pytest.mark.parametrize("make", [lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1), ZeroFilling])
@pytest.mark.parametrize("how", ["attached", "detached", "copied"])
def test_a_closed_mask_rests_whatever_steps(closed, run_steps, table, true_features, make, how):
    mask, model, _ = closed
    if how == "copied":
        model = copy.deepcopy(model)
        mask = model[0]
    elif how == "detached":
        mask.detach()
    other = make(model.parameters())
    weight = model[1].weight.detach().clone()
    run_steps(mask, model, other, table, n_steps=5)
    assert not torch.equal(model[1].weight, weight)
    x = table[0]
    support = torch.zeros(16)
    support[true_features] = 1.0
    torch.testing.assert_close(model(x), model[1:](x * support))
    assert_binary(mask, true_features)
    assert mask.closed


@pytest.mark.parametrize("how", ["never attached", "detached", "copied"])
def test_an_open_mask_without_its_optimizer_rests_and_warns_once(build, run_steps, table, how):
    mask, model = build(hidden=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    if how != "never attached":
        mask.attach(optimizer, **SCHEDULE)
        run_steps(mask, model, optimizer, table, n_steps=12)
        mask.detach()
    if how == "copied":
        model = copy.deepcopy(model)
        mask, optimizer = model[0], torch.optim.AdamW(model.parameters(), lr=0.05)
    before = mask.gamma.detach().clone()
    with pytest.warns(UserWarning, match=r"trained without an optimizer.*mask\.attach\(optimizer\)") as record:
        run_steps(mask, model, optimizer, table, n_steps=3)
    assert len(record) == 1
    assert torch.equal(mask.gamma, before)
    assert mask.gamma.grad is None


def test_a_forward_alone_does_not_warn(build, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, model = build()
        model(table[0])
        model.eval()
        nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()


def test_an_averaged_model_of_a_closed_mask_is_closed(build, run_steps, table, true_features):
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    while not mask.closed:
        run_steps(mask, model, optimizer, table, n_steps=1)
        average.update_parameters(model)
    assert average.module[0].closed
    state = average.state_dict()
    assert state["module.0.gamma"].nonzero().flatten().tolist() == true_features
    average(table[0])
    assert_binary(average.module[0], true_features)
    twin = build(hidden=8)[1]
    twin.load_state_dict(average.module.state_dict())
    assert_binary(twin[0], true_features)


def test_an_averaged_model_keeps_eliminated_features_at_zero(build, run_steps, table):
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    average = AveragedModel(model)
    while mask.n_alive == 16:
        run_steps(mask, model, optimizer, table, n_steps=1)
        average.update_parameters(model)
    average(table[0])
    dead = mask.rank > 3
    assert not mask.closed
    assert bool((average.module[0].gamma[dead] == 0).all())
    assert bool((average.module[0].gamma[~dead] > 0).all())


def test_averaged_ranks_raise(closed, table):
    mask, model, _ = closed
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].rank.copy_(mask.rank // 2)
    with pytest.raises(RuntimeError, match=r"not consistent: it is closed with .* features instead of 3"):
        twin(table[0])


def test_weight_decay_without_a_gradient_does_not_reach_gamma(build, run_steps, table):
    paths = []
    for make in (lambda p: ZeroFilling(p, weight_decay=0.0), lambda p: ZeroFilling(p, weight_decay=0.5)):
        mask, model = build(hidden=8)
        for parameter in model[1:].parameters():
            parameter.requires_grad_(False)
        groups = [{"params": [mask.gamma]}, {"params": list(model[1:].parameters()), "weight_decay": 0.0}]
        optimizer = make(groups)
        mask.attach(optimizer, **SCHEDULE)
        paths.append(run_steps(mask, model, optimizer, table, n_steps=40))
    assert bool((paths[1][:5] == 1).all()), "gamma moved in the warm-up"
    assert (paths[0][-1] < 1).any()
    assert torch.equal(*paths)


@pytest.mark.parametrize("way", ["two steps", "closure"])
def test_sharpness_aware_minimisation(build, table, true_features, way):
    mask, model = build()
    optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.05)
    mask.attach(optimizer, **SCHEDULE)

    def closure():
        nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()

    steps = 0
    while not mask.closed:
        closure()
        if way == "closure":
            optimizer.step(closure)
        else:
            optimizer.first_step()
            closure()
            optimizer.second_step()
        steps += 1
        assert mask.step == steps < 500
        assert 0 <= float(mask.gamma.detach().min()) <= float(mask.gamma.detach().max()) <= 1
    assert_binary(mask, true_features)


def test_a_gamma_moved_between_two_steps_raises(build, run_steps, table):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    run_steps(mask, model, optimizer, table, n_steps=10)
    with torch.no_grad():
        mask.gamma.add_(0.5)
    with pytest.raises(RuntimeError, match="gamma was changed between two steps by something other than the mask"):
        run_steps(mask, model, optimizer, table, n_steps=1)


def test_nothing_is_selected_in_the_warm_up(build, run_steps, table):
    mask, model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
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
    mask.attach(optimizer, **SCHEDULE)
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
    mask.attach(optimizer, **SCHEDULE)
    run_steps(mask, model, optimizer, table, n_steps=8)
    mask.gamma.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"it was frozen before the mask closed; call mask\.gamma\.requires_grad_"):
        run_steps(mask, model, optimizer, table, n_steps=1)


def test_a_training_step_compiled_as_a_whole_does_not_trace_the_hook(build, run_steps, table, monkeypatch):
    """The hook runs as plain Python, and gamma takes the path of the plain loop."""
    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, **SCHEDULE)
    expected = run_steps(mask, model, optimizer, table, n_steps=20)

    mask, model = build(hidden=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    traced = []
    take_step = type(mask).take_step

    def watched(self):
        traced.append(torch.compiler.is_compiling())
        take_step(self)

    monkeypatch.setattr(type(mask), "take_step", watched)
    mask.attach(optimizer, **SCHEDULE)
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    @torch.compile(backend=backend)
    def step(x, y):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x).squeeze(-1), y).backward()
        optimizer.step()

    torch._dynamo.reset()
    path, n_graphs = [], []
    for _ in range(20):
        step(*table)
        path.append(mask.gamma.detach().clone())
        n_graphs.append(len(graphs))
    assert traced == [False] * 20
    assert graphs, "nothing was compiled"
    assert n_graphs[5] == n_graphs[-1], "the step was compiled again and again"
    assert (expected[-1] < 1).any()
    torch.testing.assert_close(torch.stack(path), expected, rtol=1e-4, atol=1e-4)
