"""One table of training loops: in each the mask closes, keeps the true columns, rests afterwards, and prune agrees."""

import copy

import pytest
import torch
from accelerate import Accelerator
from schedulefree import AdamWScheduleFree, ScheduleFreeWrapper, SGDScheduleFree
from torch import distributed, nn, optim
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

from tamiz.torch import FeatureMask, prune

SCHEDULE = {"warmup_steps": 5, "ramp_steps": 60}


class ZeroFilling(optim.Optimizer):
    """Replaces a missing gradient by zeros and applies weight decay to every parameter, as Muon with its Adam does."""

    def __init__(self, params, lr=0.05, weight_decay=0.5):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                gradient = torch.zeros_like(p) if p.grad is None else p.grad
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(gradient, alpha=-group["lr"])


class SAM(optim.Optimizer):
    """Sharpness-aware minimisation as it is usually written: two passes around a base optimizer."""

    def __init__(self, params, base, rho=0.05, **options):
        super().__init__(params, {"rho": rho, **options})
        self.base_optimizer = base(self.param_groups, **options)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        held = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.norm() for p in held]).norm()
        for p in held:
            self.state[p]["old"] = p.data.clone()
            p.add_(p.grad * (0.05 / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for p in [p for group in self.param_groups for p in group["params"] if p.grad is not None]:
            p.data = self.state[p]["old"]
        self.base_optimizer.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        self.first_step()
        with torch.enable_grad():
            closure()
        self.second_step()


class Hutchinson(optim.Optimizer):
    """Divides by the diagonal of the Hessian, found by a second backward pass inside the step, as AdaHessian does."""

    def __init__(self, params, lr=0.2):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            held = [p for p in group["params"] if p.grad is not None and p.grad.requires_grad]
            signs = [torch.randint_like(p, 2) * 2 - 1 for p in held]
            products = torch.autograd.grad([p.grad for p in held], held, signs, retain_graph=True)
            with torch.no_grad():
                for p, sign, product in zip(held, signs, products):
                    curvature = (sign * product).abs()
                    mean = self.state[p]["mean"] = self.state[p].get("mean", curvature).lerp(curvature, 0.1)
                    p.sub_(group["lr"] * p.grad / (mean + 0.5))


def plain(make):
    """The loop that everyone writes, with one optimizer of all parameters."""

    def loop(mask, model, loss):
        optimizer = make(model.parameters())
        mask.attach(optimizer, **SCHEDULE)

        def step():
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()

        return step

    return loop


def sgd(model):
    return optim.SGD(model.parameters(), lr=0.05)


def attached(mask, model, make=sgd):
    optimizer = make(model)
    mask.attach(optimizer, **SCHEDULE)
    return optimizer


def with_closure(make):
    def loop(mask, model, loss):
        optimizer = attached(mask, model, make)

        def closure():
            optimizer.zero_grad()
            value = loss(model)
            value.backward()
            return value

        return lambda: optimizer.step(closure)

    return loop


def muon_and_adam(mask, model, loss):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    muon = optim.Muon(matrices, lr=0.05, weight_decay=0.1)
    adam = optim.AdamW([p for p in model.parameters() if p.ndim != 2], lr=0.01, weight_decay=0.1)
    mask.attach(adam, **SCHEDULE)

    def step():
        model.zero_grad()
        loss(model).backward()
        muon.step()
        adam.step()

    return step


def sam(way):
    def loop(mask, model, loss):
        optimizer = SAM(model.parameters(), optim.SGD, lr=0.05)
        mask.attach(optimizer, **SCHEDULE)

        def step():
            loss(model).backward()
            if way == "closure":
                optimizer.step(lambda: loss(model).backward())
            else:
                optimizer.first_step()
                loss(model).backward()
                optimizer.second_step()

        return step

    return loop


def schedule_free(make):
    def loop(mask, model, loss):
        optimizer = make(model.parameters())
        mask.attach(optimizer, **SCHEDULE)

        def step():
            optimizer.train()
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
            optimizer.eval()

        return step

    return loop


def create_graph(make):
    def loop(mask, model, loss):
        optimizer = attached(mask, model, make)

        def step():
            optimizer.zero_grad()
            loss(model).backward(create_graph=True)
            optimizer.step()
            model.zero_grad()  # a graph that is its own gradient would never be freed

        return step

    return loop


def accumulated(mask, model, loss):
    optimizer = attached(mask, model)

    def step():
        optimizer.zero_grad()
        for _ in range(3):
            (loss(model) / 3).backward()
        optimizer.step()

    return step


def scaled(make):
    """fp16 gradients with a scale, and an overflow now and then; skipped steps do not count."""

    def loop(mask, model, loss):
        optimizer, scaler, count = attached(mask, model, make), torch.amp.GradScaler("cpu", init_scale=64.0), [0]

        def step():
            count[0] += 1
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                value = loss(model)
            scaler.scale(value * (float("inf") if count[0] % 7 == 0 else 1.0)).backward()
            scaler.step(optimizer)
            scaler.update()

        return step

    return loop


def clipped(mask, model, loss):
    optimizer = attached(mask, model)

    def step():
        optimizer.zero_grad()
        loss(model).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def checkpointed(reentrant):
    def loop(mask, model, loss):
        optimizer = attached(mask, model)

        def forward(x):
            x = x.requires_grad_() if reentrant else x
            return checkpoint(model, x, use_reentrant=reentrant)

        def step():
            optimizer.zero_grad()
            loss(forward).backward()
            optimizer.step()

        return step

    return loop


def compiled(**options):
    def loop(mask, model, loss):
        torch._dynamo.reset()
        optimizer, fast = attached(mask, model), torch.compile(model, backend="aot_eager", **options)

        def step():
            optimizer.zero_grad()
            loss(fast).backward()
            optimizer.step()

        return step

    return loop


def compiled_step(mask, model, loss):
    torch._dynamo.reset()
    optimizer = attached(mask, model)

    @torch.compile(backend="eager")
    def step():
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()

    return step


def functional(mask, model, loss):
    optimizer = attached(mask, model)

    def step():
        optimizer.zero_grad()
        parameters = dict(model.named_parameters())
        loss(lambda x: functional_call(model, parameters, (x,))).backward()
        optimizer.step()

    return step


def one_optimizer_each(mask, model, loss):
    """One optimizer for each parameter, stepped in backward hooks."""
    optimizers = {p: optim.SGD([p], lr=0.05) for p in model.parameters()}
    mask.attach(optimizers[mask.gamma], **SCHEDULE)

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    return lambda: loss(model).backward()


def gamma_alone(mask, model, loss):
    own, weights = optim.SGD([mask.gamma], lr=0.05), optim.Adam(model[1:].parameters(), lr=0.02)
    mask.attach(own, **SCHEDULE)

    def step():
        model.zero_grad()
        loss(model).backward()
        own.step()
        weights.step()

    return step


def frozen_network(mask, model, loss):
    """Nothing but the mask is trained: a graph is still there after it has closed."""
    for _ in range(300):
        loss(model[1:]).backward()
        with torch.no_grad():
            for p in model[1:].parameters():
                p -= 0.05 * p.grad
                p.grad = None
    model[1:].requires_grad_(False)
    return plain(lambda p: optim.SGD(p, lr=0.05))(mask, model, loss)


def idle_branch(mask, model, loss):
    """Every other step trains a part of the network that has no mask."""
    other = nn.Linear(16, 1)
    optimizer = optim.Adam([*model.parameters(), *other.parameters()], lr=0.02)
    mask.attach(optimizer, **SCHEDULE)
    count = [0]

    def step():
        count[0] += 1
        optimizer.zero_grad()
        loss(other if count[0] % 2 else model).backward()
        optimizer.step()

    return step


def accelerated(mask, model, loss):
    accelerator = Accelerator(cpu=True)
    prepared, optimizer = accelerator.prepare(model, sgd(model))
    mask.attach(optimizer, **SCHEDULE)

    def step():
        optimizer.zero_grad()
        accelerator.backward(loss(prepared))
        optimizer.step()

    return step


def group_added_later(mask, model, loss):
    optimizer = optim.Adam([mask.gamma], lr=0.02)
    mask.attach(optimizer, **SCHEDULE)
    optimizer.add_param_group({"params": list(model[1:].parameters())})

    def step():
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()

    return step


def held_out(mask, model, loss):
    optimizer = attached(mask, model)

    def step():
        optimizer.zero_grad()
        loss(model, rows=slice(0, 128)).backward()
        with mask.held_out():
            loss(model, rows=slice(128, 256)).backward()
        optimizer.step()

    return step


def data_parallel(wrap):
    def loop(mask, model, loss):
        torch._dynamo.reset()
        if not distributed.is_initialized():
            distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        wrapped, optimizer = wrap(model), attached(mask, model)

        def step():
            optimizer.zero_grad()
            loss(wrapped).backward()
            optimizer.step()

        return step

    return loop


LOOPS = {
    "sgd": plain(lambda p: optim.SGD(p, lr=0.05)),
    "nesterov, decay": plain(lambda p: optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": plain(lambda p: optim.Adam(p, lr=0.02)),
    "adam fused": plain(lambda p: optim.Adam(p, lr=0.02, fused=True)),
    "adamw foreach": plain(lambda p: optim.AdamW(p, lr=0.02, weight_decay=0.1, foreach=True)),
    "amsgrad, rate in a tensor": plain(lambda p: optim.Adam(p, lr=torch.tensor(0.02), amsgrad=True, foreach=False)),
    "radam": plain(lambda p: optim.RAdam(p, lr=0.1)),
    "nadam": plain(lambda p: optim.NAdam(p, lr=0.02)),
    "rmsprop": plain(lambda p: optim.RMSprop(p, lr=0.01)),
    "rprop": plain(lambda p: optim.Rprop(p, lr=0.01)),
    "asgd": plain(lambda p: optim.ASGD(p, lr=0.05)),
    "adagrad": plain(lambda p: optim.Adagrad(p, lr=0.1)),
    "adafactor": plain(lambda p: optim.Adafactor(p, lr=0.05)),
    "decay without a gradient": plain(ZeroFilling),
    "muon and adamw": muon_and_adam,
    "sam in two steps": sam("two steps"),
    "sam by closure": sam("closure"),
    "sgd by closure": with_closure(sgd),
    "lbfgs, strong wolfe": with_closure(lambda m: optim.LBFGS(m.parameters(), line_search_fn="strong_wolfe")),
    "lbfgs, max_iter 4": with_closure(lambda m: optim.LBFGS(m.parameters(), lr=0.1, max_iter=4)),
    "lbfgs, max_iter 1": with_closure(lambda m: optim.LBFGS(m.parameters(), lr=0.1, max_iter=1)),
    "schedule-free adamw": schedule_free(lambda p: AdamWScheduleFree(p, lr=0.02)),
    "schedule-free sgd": schedule_free(lambda p: SGDScheduleFree(p, lr=0.5)),
    "schedule-free wrapper": schedule_free(lambda p: ScheduleFreeWrapper(optim.SGD(p, lr=0.2), momentum=0.9)),
    "second order": create_graph(lambda m: Hutchinson(m.parameters())),
    "create_graph with adam": create_graph(lambda m: optim.Adam(m.parameters(), lr=0.02)),
    "accumulated": accumulated,
    "scaler": scaled(sgd),
    "scaler, fused": scaled(lambda m: optim.Adam(m.parameters(), lr=0.02, fused=True)),
    "clipped": clipped,
    "checkpoint": checkpointed(False),
    "checkpoint, reentrant": checkpointed(True),
    "compiled": compiled(),
    "compiled as one graph": compiled(fullgraph=True),
    "compiled step": compiled_step,
    "functional_call": functional,
    "one optimizer each": one_optimizer_each,
    "gamma alone": gamma_alone,
    "frozen network": frozen_network,
    "idle branch": idle_branch,
    "group added later": group_added_later,
    "accelerate": accelerated,
    "held-out rows": held_out,
    "ddp": data_parallel(DistributedDataParallel),
    "ddp, static graph": data_parallel(lambda model: DistributedDataParallel(model, static_graph=True)),
    "compiled ddp": data_parallel(lambda m: torch.compile(DistributedDataParallel(m), backend="aot_eager")),
    "ddp of compiled": data_parallel(lambda m: DistributedDataParallel(torch.compile(m, backend="eager"))),
}


@pytest.fixture
def process_group(monkeypatch):
    """Take down a group of processes that a loop has started."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    yield
    if distributed.is_initialized():
        distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")
@pytest.mark.parametrize("name", LOOPS)
def test_right_in_every_loop(name, build, table, true_features):
    mask, model = build(hidden=8)
    x, y = table

    def loss(model, rows=slice(None)):
        return nn.functional.mse_loss(model(x[rows]).squeeze(-1), y[rows])

    step = LOOPS[name](mask, model, loss)
    for _ in range(800):
        step()
        if mask.closed:
            break
    assert mask.closed
    expected = torch.zeros(16).index_fill(0, torch.tensor(true_features), 1.0)
    assert torch.equal(mask.gamma.detach(), expected)
    before, n_steps = copy.deepcopy(model.state_dict()), mask.step
    for _ in range(12):
        step()
    assert torch.equal(mask.gamma.detach(), expected), "gamma moved after closing"
    assert mask.step > n_steps
    moved = [key for key, value in model.state_dict().items() if not torch.equal(value, before[key])]
    assert "1.weight" in moved or name == "frozen network"
    assert loss(model).item() < 0.5 * y.var().item()
    model.eval()
    small = prune(model)
    torch.testing.assert_close(small(x[:, true_features]), model(x), rtol=1e-4, atol=1e-4)


# ---- the same numbers as in the plain loop ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["accumulated", "sgd by closure", "compiled step", "functional_call", "ddp", "compiled", "accelerate"]
)
@pytest.mark.usefixtures("process_group")
def test_gamma_takes_the_path_of_the_plain_loop(name, build, table):
    paths = []
    for loop in (LOOPS["sgd"], LOOPS[name]):
        mask, model = build(hidden=8)
        step = loop(mask, model, lambda model: nn.functional.mse_loss(model(table[0]).squeeze(-1), table[1]))
        path = []
        for _ in range(25):
            step()
            path.append(mask.gamma.detach().clone())
        paths.append(torch.stack(path))
    assert bool((paths[0][-1] < 1).any())
    torch.testing.assert_close(paths[1], paths[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["scaler", "scaler, fused"])
def test_skipped_steps_do_not_count(name, build, table):
    mask, model = build(hidden=8)
    step = LOOPS[name](mask, model, lambda model: nn.functional.mse_loss(model(table[0]).squeeze(-1), table[1]))
    for _ in range(14):
        step()
    assert mask.step == 12


def test_gamma_is_moved_by_held_out_rows_only(build, table):
    """The training rows are noise: gamma is where it would be without them, and the weights without the others."""
    x, y = table
    noise = torch.randn(64, 16, generator=torch.Generator().manual_seed(1))

    def run(train, others):
        mask, model = build(hidden=8)
        optimizer = attached(mask, model, lambda m: optim.SGD(m.parameters(), lr=0.0))
        gradients = []
        for _ in range(20):
            optimizer.zero_grad()
            if train is not None:
                nn.functional.mse_loss(model(train).squeeze(1), train[:, 0]).backward()
            if others:
                with mask.held_out():
                    nn.functional.mse_loss(model(x).squeeze(1), y).backward()
            gradients.append(None if train is None else model[1].weight.grad.clone())
            optimizer.step()
        return mask.gamma.detach().clone(), gradients

    gamma, gradients = run(noise, True)
    assert bool((gamma < 1).any())
    assert torch.equal(gamma, run(None, True)[0])
    assert torch.equal(gradients[0], run(noise, False)[1][0])


def test_held_out_rows_of_two_masks_and_of_a_closed_one(chosen):
    first, second = FeatureMask(4, 1), FeatureMask(3, 1)
    model = nn.Sequential(first, nn.Linear(4, 3), second, nn.Linear(3, 1))
    optimizer = sgd(model)
    first.attach(optimizer)
    second.attach(optimizer)
    with first.held_out(), second.held_out():
        model(torch.randn(5, 4)).mean().backward()
    assert first.gamma.grad is not None
    assert second.gamma.grad is not None
    assert model[1].weight.grad is None
    with pytest.raises(RuntimeError, match="entered already"), first.held_out(), first.held_out():
        pass
    done = chosen(4, [1])
    with done.held_out():
        model[1](done(torch.randn(5, 4))).mean().backward()
    assert model[1].weight.grad is None, "a closed mask needs no other rows"


# ---- copies and averages ------------------------------------------------------------------------------------------------


def averaged_by_hand(model):
    """Averages everything in the state, through ``.data``, as ema_pytorch and Lightning's callback do."""
    twin = copy.deepcopy(model)

    def update(model):
        for mine, theirs in zip((*twin.parameters(), *twin.buffers()), (*model.parameters(), *model.buffers())):
            mine.data.copy_(mine.data * 0.95 + theirs.data * 0.05)

    return twin, update


def averaged_by_torch(use_buffers):
    def make(model):
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95), use_buffers=use_buffers)
        return average.module, average.update_parameters

    return make


def floats_only(model):
    """Averages parameters and leaves buffers as they were copied."""
    average, twin = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95)), copy.deepcopy(model)

    def update(model):
        average.update_parameters(model)
        for mine, theirs in zip(twin.parameters(), average.module.parameters()):
            mine.data.copy_(theirs.data)

    return twin, update


@pytest.mark.parametrize(
    "make",
    [averaged_by_hand, averaged_by_torch(True), averaged_by_torch(False), floats_only],
    ids=["data", "all", "copied", "floats"],
)  # fmt: skip
def test_an_average_from_the_start_ends_with_the_mask_of_the_model(make, build, run_steps, table, true_features):
    mask, model = build(hidden=8)
    optimizer = attached(mask, model)
    average, update = make(model)
    while not mask.closed:
        run_steps(mask, model, optimizer, table, n_steps=1)
        update(model)
        if mask.n_alive < 16:
            dead = mask.gamma == 0
            average(table[0])
            assert bool((average[0].gamma[dead] == 0).all())
    assert average[0].closed
    assert average[0].gamma.nonzero().flatten().tolist() == true_features
    small = prune(average)
    torch.testing.assert_close(small(table[0][:, true_features]), average(table[0]), rtol=1e-4, atol=1e-4)
    twin = build(hidden=8)[1]
    twin.load_state_dict(average.state_dict())
    assert twin[0].closed


@pytest.mark.parametrize("way", ["attached", "detached", "copied", "compiled", "exported"])
@pytest.mark.parametrize("write", ["decay", "data"])
def test_a_closed_mask_rests_whatever_writes_to_it(way, write, build, run_steps, table, true_features):
    mask, model = build(hidden=8)
    optimizer = attached(mask, model)
    run_steps(mask, model, optimizer, table)
    if way != "attached":
        mask.detach()
    if way == "copied":
        model = copy.deepcopy(model)
        mask = model[0]
    torch._dynamo.reset()
    forward = torch.compile(model, backend="aot_eager") if way == "compiled" else model
    other = ZeroFilling(model.parameters(), lr=0.1)
    for _ in range(5):
        other.zero_grad()
        nn.functional.mse_loss(forward(table[0]).squeeze(1), table[1]).backward()
        other.step()
        if write == "data":
            for tensor in (mask.gamma, mask.rank, mask.counters):
                tensor.data.mul_(2)
    if way == "exported":
        forward = torch.export.export(model, (table[0],)).module()
    support = torch.zeros(16).index_fill(0, torch.tensor(true_features), 1.0)
    torch.testing.assert_close(forward(table[0]), model[1:](table[0] * support))
    assert mask.closed
    assert mask.n_alive == 3
    assert torch.equal(mask.gamma.detach(), support)
    torch.testing.assert_close(prune(model)(table[0][:, true_features]), forward(table[0]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("closed", [False, True])
def test_an_ensemble_by_vmap(closed, build, run_steps, table):
    models = []
    for seed in range(3):
        mask, model = build(hidden=8)
        torch.manual_seed(seed)
        nn.init.normal_(model[1].weight, std=0.3)
        optimizer = attached(mask, model)
        run_steps(mask, model, optimizer, table, n_steps=None if closed else 20)
        models.append(model)
    parameters, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    run = torch.vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))
    outputs = run(parameters, buffers, table[0])
    torch.testing.assert_close(outputs, torch.stack([model(table[0]) for model in models]), rtol=1e-4, atol=1e-5)
    outputs.mean().backward()


def test_an_open_mask_without_its_optimizer_rests_and_warns_once(build, run_steps, table):
    mask, model = build(hidden=8)
    optimizer = attached(mask, model, lambda m: optim.AdamW(m.parameters(), lr=0.05))
    run_steps(mask, model, optimizer, table, n_steps=12)
    for way in ("detached", "copied"):
        mask.detach()
        if way == "copied":
            model = copy.deepcopy(model)
            mask, optimizer = model[0], optim.AdamW(model.parameters(), lr=0.05)
        before = mask.gamma.detach().clone()
        with pytest.warns(UserWarning, match=r"trained without an optimizer.*mask\.attach\(optimizer\)") as record:
            run_steps(mask, model, optimizer, table, n_steps=3)
        assert len(record) == 1
        assert torch.equal(mask.gamma, before)
        assert mask.gamma.grad is None


def test_a_mask_that_is_never_used_warns(build, table):
    mask, model = build()
    optimizer = attached(mask, model)
    for _ in range(99):
        optimizer.zero_grad()
        model[1](table[0]).mean().backward()
        optimizer.step()
    with pytest.warns(UserWarning, match="gamma had no gradient in the last 100 steps"):
        optimizer.step()
    assert mask.step == 0


def test_gradients_for_each_sample(build, table):
    mask, model = build(hidden=8)
    attached(mask, model)
    parameters = dict(model.named_parameters())

    def loss(parameters, x, y):
        return (functional_call(model, parameters, (x[None],)).squeeze() - y).square()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, *table)
    nn.functional.mse_loss(model(table[0]).squeeze(1), table[1]).backward()
    torch.testing.assert_close(each["0.gamma"].mean(0), mask.gamma.grad, rtol=1e-4, atol=1e-5)
