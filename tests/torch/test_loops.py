"""One table of training loops: in each the mask closes, keeps the true columns, rests afterwards, and prune agrees."""

import copy
import functools

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


def sgd(model):
    return optim.SGD(model.parameters(), lr=0.05)


def attached(mask, model, make=sgd, **schedule):
    optimizer = make(model)
    mask.attach(optimizer, **{**SCHEDULE, **schedule})
    return optimizer


def loop(make=sgd, wrap=lambda model: model, backward=torch.Tensor.backward, before=None, **schedule):
    """The loop that everyone writes: with another optimizer, model, backward pass, or something before the step."""

    def start(mask, model, loss):
        torch._dynamo.reset()
        optimizer, forward = attached(mask, model, make, **schedule), wrap(model)

        def step():
            if hasattr(optimizer, "train"):
                optimizer.train()
            optimizer.zero_grad()
            backward(loss(forward))
            if before is not None:
                before(model)
            optimizer.step()
            if hasattr(optimizer, "eval"):
                optimizer.eval()

        return step

    return start


def plain(kind, **options):
    return loop(lambda model: kind(model.parameters(), **options))


def foreign(kind):
    """An optimizer of pytorch_optimizer; the test is skipped without that package."""
    return getattr(pytest.importorskip("pytorch_optimizer"), kind)


def theirs(kind, **options):
    return loop(lambda model: foreign(kind)(model.parameters(), **options))


def with_closure(make):
    def start(mask, model, loss):
        optimizer = attached(mask, model, make)

        def closure():
            optimizer.zero_grad()
            value = loss(model)
            value.backward()
            return value

        return lambda: optimizer.step(closure)

    return start


def in_two_optimizers(split):
    """``split(mask, model)`` gives the optimizer that holds gamma, and another one."""

    def start(mask, model, loss):
        own, other = split(mask, model)
        mask.attach(own, **SCHEDULE)

        def step():
            model.zero_grad()
            loss(model).backward()
            other.step()
            own.step()

        return step

    return start


def muon_and_adam(mask, model):
    adam = optim.AdamW([p for p in model.parameters() if p.ndim != 2], lr=0.01, weight_decay=0.1)
    return adam, optim.Muon([p for p in model.parameters() if p.ndim == 2], lr=0.05, weight_decay=0.1)


def sam(way):
    def start(mask, model, loss):
        optimizer = foreign("SAM")(model.parameters(), optim.SGD, lr=0.05)
        mask.attach(optimizer, **SCHEDULE)

        def step():
            loss(model).backward()
            if way == "closure":
                optimizer.step(lambda: loss(model).backward())
            else:
                optimizer.first_step(zero_grad=True)
                loss(model).backward()
                optimizer.second_step(zero_grad=True)

        return step

    return start


def second_order(make, **schedule):
    # A graph that is its own gradient would never be freed.
    backward = functools.partial(torch.Tensor.backward, create_graph=True)

    def start(mask, model, loss):
        step = loop(make, backward=backward, **schedule)(mask, model, loss)
        return lambda: (step(), model.zero_grad())

    return start


def scaled(make):
    """fp16 gradients with a scale, and an overflow now and then; skipped steps do not count."""

    def start(mask, model, loss):
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

    return start


def accumulated(mask, model, loss):
    def third(model):
        return loss(model) / 3

    return loop(before=lambda model: [third(model).backward() for _ in range(2)])(mask, model, third)


def compiled_step(mask, model, loss):
    return torch.compile(loop()(mask, model, loss), backend="eager")


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


def frozen_network(mask, model, loss):
    """Nothing but the mask is trained: a graph is still there after it has closed."""
    first = optim.SGD(model[1:].parameters(), lr=0.05)
    for _ in range(300):
        first.zero_grad()
        loss(model[1:]).backward()
        first.step()
    model[1:].requires_grad_(False)
    return loop()(mask, model, loss)


def idle_branch(mask, model, loss):
    """Every other step trains a part of the network that has no mask."""
    other, count = nn.Linear(16, 1), [0]

    def alternate(x):
        count[0] += 1
        return (other if count[0] % 2 else model)(x)

    make = functools.partial(optim.Adam, lr=0.02)
    return loop(lambda model: make([*model.parameters(), *other.parameters()]), lambda model: alternate)(
        mask, model, loss
    )


def accelerated(mask, model, loss):
    accelerator = Accelerator(cpu=True)
    prepared, optimizer = accelerator.prepare(model, sgd(model))
    return loop(lambda model: optimizer, lambda model: prepared, accelerator.backward)(mask, model, loss)


def group_added_later(mask, model, loss):
    optimizer = optim.Adam([mask.gamma], lr=0.02)
    step = loop(lambda model: optimizer)(mask, model, loss)
    optimizer.add_param_group({"params": list(model[1:].parameters())})
    return step


def held_out(by_attach):
    def start(mask, model, loss):
        def other():
            return loss(model, rows=slice(128, 256))

        def before(model):
            with mask.held_out():
                other().backward()

        how = {"held_out": other} if by_attach else {"before": before}
        return loop(**how)(mask, model, lambda model: loss(model, rows=slice(0, 128)))

    return start


def data_parallel(wrap):
    def start(model):
        if not distributed.is_initialized():
            distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        return wrap(model)

    return loop(wrap=start)


def checkpointed(reentrant):
    def wrap(model):
        return lambda x: checkpoint(model, x.requires_grad_() if reentrant else x, use_reentrant=reentrant)

    return loop(wrap=wrap)


def functional(model):
    return lambda x: functional_call(model, dict(model.named_parameters()), (x,))


def compiled(**options):
    return loop(wrap=lambda model: torch.compile(model, backend="aot_eager", **options))


LOOPS = {
    "sgd": loop(),
    "nesterov, decay": plain(optim.SGD, lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": plain(optim.Adam, lr=0.02),
    "adam fused": plain(optim.Adam, lr=0.02, fused=True),
    "adamw foreach": plain(optim.AdamW, lr=0.02, weight_decay=0.1, foreach=True),
    "amsgrad, rate in a tensor": plain(optim.Adam, lr=torch.tensor(0.02), amsgrad=True, foreach=False),
    "radam": plain(optim.RAdam, lr=0.1),
    "nadam": plain(optim.NAdam, lr=0.02),
    "rmsprop": plain(optim.RMSprop, lr=0.01),
    "rprop": plain(optim.Rprop, lr=0.01),
    "asgd": plain(optim.ASGD, lr=0.05),
    "adagrad": plain(optim.Adagrad, lr=0.1),
    "adafactor": plain(optim.Adafactor, lr=0.05),
    "decay without a gradient": plain(ZeroFilling),
    "soap": theirs("SOAP", lr=0.02),
    "prodigy": theirs("Prodigy", lr=1.0),
    "lamb": theirs("Lamb", lr=0.02),
    "shampoo": theirs("Shampoo", lr=0.1),
    "lion": theirs("Lion", lr=0.01),
    "lookahead": loop(lambda m: foreign("Lookahead")(optim.Adam(m.parameters(), lr=0.05))),
    "muon and adamw": in_two_optimizers(muon_and_adam),
    "sam in two steps": sam("two steps"),
    "sam by closure": sam("closure"),
    "sgd by closure": with_closure(sgd),
    "lbfgs, strong wolfe": with_closure(lambda m: optim.LBFGS(m.parameters(), line_search_fn="strong_wolfe")),
    "lbfgs, max_iter 4": with_closure(lambda m: optim.LBFGS(m.parameters(), lr=0.1, max_iter=4)),
    "lbfgs, max_iter 1": with_closure(lambda m: optim.LBFGS(m.parameters(), lr=0.1, max_iter=1)),
    "schedule-free adamw": plain(AdamWScheduleFree, lr=0.02),
    "schedule-free sgd": plain(SGDScheduleFree, lr=0.5),
    "schedule-free wrapper": loop(lambda m: ScheduleFreeWrapper(optim.SGD(m.parameters(), lr=0.2), momentum=0.9)),
    # It begins with steps that are too long, without a mask too.
    "adahessian": second_order(lambda m: foreign("AdaHessian")(m.parameters()), warmup_steps=60, ramp_steps=200),
    "create_graph with adam": second_order(lambda m: optim.Adam(m.parameters(), lr=0.02)),
    "accumulated": accumulated,
    "scaler": scaled(sgd),
    "scaler, fused": scaled(lambda m: optim.Adam(m.parameters(), lr=0.02, fused=True)),
    "clipped": loop(before=lambda model: nn.utils.clip_grad_norm_(model.parameters(), 1.0)),
    "checkpoint": checkpointed(False),
    "checkpoint, reentrant": checkpointed(True),
    "compiled": compiled(),
    "compiled as one graph": compiled(fullgraph=True),
    "compiled step": compiled_step,
    "functional_call": loop(wrap=functional),
    "one optimizer each": one_optimizer_each,
    "gamma alone": in_two_optimizers(
        lambda mask, model: (optim.SGD([mask.gamma], lr=0.05), optim.Adam(model[1:].parameters(), lr=0.02))
    ),
    "frozen network": frozen_network,
    "idle branch": idle_branch,
    "group added later": group_added_later,
    "accelerate": accelerated,
    "held-out rows": held_out(by_attach=False),
    "held-out rows by attach": held_out(by_attach=True),
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


@pytest.mark.parametrize("by_attach", [False, True])
def test_gamma_is_moved_by_held_out_rows_only(by_attach, build, table):
    """The training rows are noise: gamma is where it would be without them, and the weights without the others."""
    noise = torch.randn(64, 16, generator=torch.Generator().manual_seed(1))

    def run(train, others):
        mask, model = build(hidden=8)
        optimizer = optim.SGD(model.parameters(), lr=0.0)

        def other_loss():
            return nn.functional.mse_loss(model(table[0]).squeeze(1), table[1])

        mask.attach(optimizer, **SCHEDULE, held_out=other_loss if others and by_attach else None)
        gradients = []
        for _ in range(20):
            optimizer.zero_grad()
            if train:
                nn.functional.mse_loss(model(noise).squeeze(1), noise[:, 0]).backward()
            if others and not by_attach:
                with mask.held_out():
                    other_loss().backward()
            optimizer.step()
            gradients.append(model[1].weight.grad)
        return mask.gamma.detach().clone(), gradients

    gamma, gradients = run(True, True)
    assert bool((gamma < 1).any())
    assert torch.equal(gamma, run(False, True)[0])
    assert torch.equal(gradients[0], run(True, False)[1][0])


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


def averaged_by_ema_pytorch(model):
    ema = pytest.importorskip("ema_pytorch").EMA(model, beta=0.95, update_after_step=0, update_every=1)
    return ema.ema_model, lambda model: ema.update()


def averaged_by_hand(model):
    """Averages everything in the state, through ``.data``, as Lightning's callback does."""
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


@pytest.mark.parametrize(
    "make",
    [averaged_by_ema_pytorch, averaged_by_hand, averaged_by_torch(True), averaged_by_torch(False)],
    ids=["ema_pytorch", "data", "all", "copied"],
)
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
