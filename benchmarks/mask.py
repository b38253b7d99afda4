"""What the mask costs, as ratios measured side by side in one run.

    python benchmarks/mask.py [--busy] [step] [states] [cnn] [shrink] [memory] [prune] [xor] [madelon]

Without arguments everything but ``madelon`` (which needs TAMIZ_DATA_HOME). The two sides of a ratio take turns, many times;
printed is the median of the ratios of the turns, so that a busy machine disturbs both sides alike. With ``--busy`` one
thread is used and processor time is measured instead of wall time, for a machine that others are working on.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from tamiz.torch import FeatureMask, prune, train

BATCH = 128
SECONDS = 12.0
Step = Callable[[], object]
clock = time.perf_counter


class NaiveMask(nn.Module):
    """The mask as one would write it first: the input times a parameter."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(n_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gamma


def squared_hinge(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (1 - outputs * targets).clamp_min(0).square().mean()


def three_layer_net(n_features: int) -> nn.Sequential:
    """The dense network of the paper."""
    layers: list[nn.Module] = []
    for n_units in (50, 25, 10):
        layers += [nn.Linear(n_features, n_units, bias=False), nn.BatchNorm1d(n_units), nn.ReLU()]
        n_features = n_units
    return nn.Sequential(*layers, nn.Linear(n_features, 1))


def ratios(sides: dict[str, Step], seconds: float = SECONDS) -> dict[str, float]:
    """Median time of each side over that of the first, the sides taking turns."""
    base = next(iter(sides))
    for step in sides.values():
        for _ in range(5):
            step()
    begin = clock()
    sides[base]()
    per_turn = max(1, int(0.01 / (clock() - begin)))
    started = time.perf_counter()
    times: dict[str, list[float]] = {name: [] for name in sides}
    while time.perf_counter() - started < seconds or len(times[base]) < 15:
        for name, step in sides.items():
            begin = clock()
            for _ in range(per_turn):
                step()
            times[name].append(clock() - begin)
    print(f"    plain step {1e3 * statistics.median(times[base]) / per_turn:.3f} ms, {len(times[base])} turns")
    return {
        name: statistics.median(mine / plain for mine, plain in zip(times[name], times[base]))
        for name in sides
        if name != base
    }


def training_step(model: nn.Module, x: torch.Tensor, y: torch.Tensor, loss: Callable, fused: bool = False) -> Step:
    """One step of the loop that everyone writes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=fused or None)
    for module in model.modules():
        if isinstance(module, FeatureMask):
            # All features stay alive: the rule runs in full, but gamma hardly moves.
            module.attach(optimizer, ramp_steps=10**9, max_steps=10**9)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def three_layers(n_features: int, mask: nn.Module | None = None) -> nn.Module:
    torch.manual_seed(0)
    net = three_layer_net(n_features)
    return net if mask is None else nn.Sequential(mask, net)


def still(shape: int | tuple[int, ...]) -> FeatureMask:
    return FeatureMask(shape, 10, mask_learning_rate=1e-9)


def part_step() -> None:
    """masked step / plain step, all features alive."""
    print("masked step / plain step, three-layer network, batch 128, Adam")
    loss = squared_hinge
    for n_features, target in ((500, 1.08), (5_000, 1.10), (50_000, 1.10)):
        x, y = torch.randn(BATCH, n_features), torch.randn(BATCH, 1).sign()
        for fused in (False, True):
            sides = {
                "plain": training_step(three_layers(n_features), x, y, loss, fused),
                "mask": training_step(three_layers(n_features, still(n_features)), x, y, loss, fused),
                "x * g": training_step(three_layers(n_features, NaiveMask(n_features)), x, y, loss, fused),
            }
            found = ratios(sides, SECONDS / 2)
            kind = "fused Adam" if fused else "Adam"
            print(
                f"  F={n_features:6d} {kind:10s}: mask {found['mask']:.3f} (target {target:.2f}), x*g {found['x * g']:.3f}"
            )


def part_states() -> None:
    """A moving and a closed mask in front of two layers over no mask."""
    print("step with a moving and with a closed mask / no mask, two layers, batch 128, fused Adam")
    loss = nn.functional.mse_loss
    for n_features, hidden, moving, closed in (
        (50, 64, 1.20, 1.08),
        (1_000, 128, 1.12, 1.04),
        (20_000, 64, 1.10, 1.03),
    ):
        x, y = torch.randn(BATCH, n_features), torch.randn(BATCH, 1)
        sides: dict[str, Step] = {}
        for name in ("plain", "moving", "closed"):
            torch.manual_seed(0)
            layers = [nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, 1)]
            masks = [] if name == "plain" else [still(n_features)]
            sides[name] = training_step(nn.Sequential(*masks, *layers), x, y, loss, fused=True)
            if name == "closed":
                sides[name]()
                masks[0].finalize()
        found = ratios(sides, SECONDS / 2)
        print(
            f"  F={n_features:6d}: moving {found['moving']:.3f} (target {moving:.2f}), "
            f"closed {found['closed']:.3f} (target {closed:.2f})"
        )


def small_cnn() -> list[nn.Module]:
    torch.manual_seed(0)
    return [
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 49, 10),
    ]


def part_cnn() -> None:
    """masked step / plain step, small CNN."""
    print("masked step / plain step, small CNN on 28 x 28, batch 128, Adam")
    x, y = torch.randn(BATCH, 1, 28, 28), torch.randint(10, (BATCH,))
    loss = nn.functional.cross_entropy
    sides = {
        "plain": training_step(nn.Sequential(*small_cnn()), x, y, loss),
        "mask": training_step(nn.Sequential(still((1, 28, 28)), *small_cnn()), x, y, loss),
    }
    print(f"  mask {ratios(sides)['mask']:.3f} (target 1.05)")


def part_shrink() -> None:
    """A whole selection of the trainer over as many plain steps on all features."""
    n_features, m, n_rows = 50_000, 50, 512
    print(f"whole selection / as many plain steps, F={n_features}, M={m}, batch 128, the trainer's defaults")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n_rows, n_features, generator=generator)
    y = x[:, :20].sum(1, keepdim=True).sign()
    loss = squared_hinge
    plain, order = three_layers(n_features), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01, fused=True)
    plain_times: list[float] = []

    def plain_step() -> None:
        begin = clock()
        rows = torch.randint(n_rows, (BATCH,), generator=order)
        optimizer.zero_grad()
        loss(plain(x.index_select(0, rows)), y.index_select(0, rows)).backward()
        optimizer.step()
        plain_times.append(clock() - begin)

    masked_time, last = 0.0, clock()

    def between(report: object) -> None:
        # Every few steps of the selection a plain one is measured, so that both meet the same machine.
        nonlocal masked_time, last
        masked_time += clock() - last
        if report.step % 10 == 0:  # type: ignore[attr-defined]
            plain_step()
        last = clock()

    model = three_layers(n_features, FeatureMask(n_features, m))
    for _ in range(3):
        plain_step()
    plain_times.clear()
    last = clock()
    selection = train(model, (x, y), loss, batch_size=BATCH, refinement_steps=0, callbacks=[between])
    ratio = masked_time / (statistics.fmean(plain_times) * selection.n_steps)
    print(
        f"    {selection.n_steps} steps, {masked_time:.1f} s; plain step {1e3 * statistics.fmean(plain_times):.2f} ms"
    )
    print(f"  {ratio:.3f} (target 0.80)")


def part_memory() -> None:
    """Memory of the mask in vectors of length F."""
    n_features = 1_000_000
    mask = FeatureMask(n_features, 10)
    held = sum(t.numel() * t.element_size() for t in (*mask.parameters(), *mask.buffers()))
    optimizer = torch.optim.SGD(mask.parameters(), lr=0.1)
    mask.attach(optimizer, ramp_steps=1000)
    mask.gamma.grad = torch.randn(n_features)
    optimizer.step()
    mask.gamma.grad = torch.randn(n_features)
    mask.first = mask.first.clone()  # another tensor: the scratch is made anew
    tracemalloc.start()  # what NumPy takes in a step
    optimizer.step()
    scratch = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    vector = 4 * n_features
    total = (held + scratch) / vector + 1
    print("extra memory of the mask in vectors of F float32 numbers")
    print(f"  held {held / vector:.2f}, scratch {scratch / vector:.2f}, gradient 1.00: {total:.2f} (target 6)")


def part_prune() -> None:
    """The pruned network beside the whole one."""
    print("three-layer network pruned from 5,000 to 10 features, prediction of 128 rows")
    model = three_layers(5_000, FeatureMask(5_000, 10))
    x = torch.randn(BATCH, 5_000)
    train(model, (x, x[:, :1].sign()), squared_hinge, warmup_steps=5, ramp_steps=150, refinement_steps=0)
    small = prune(model)
    values = small.select(x)
    size = [sum(p.numel() for p in net.parameters()) for net in (model[1], small)]
    with torch.no_grad():
        found = ratios({"whole": lambda: model(x), "pruned": lambda: small(values)}, SECONDS / 4)
        gap = float((model(x) - small(values)).abs().max())
    print(
        f"  parameters {size[0]} -> {size[1]} ({size[1] / size[0]:.4f}), time {found['pruned']:.3f}, largest gap {gap:.1e}"
    )


def xor_problem(seed: int, n_features: int = 256, n_rows: int = 1000) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 + seed)
    x = torch.randn(n_rows, n_features, generator=generator)
    return x, torch.where((x[:, 0] > 0) != (x[:, 1] > 0), 1.0, -1.0).unsqueeze(1)


def part_xor() -> None:
    """XOR of two features among 254 of noise, at the defaults of the trainer."""
    print("XOR of two features among 254 of noise, 1,000 rows, three-layer network, defaults of train")
    found = 0
    for seed in range(10):
        torch.manual_seed(seed)
        model = nn.Sequential(FeatureMask(256, 2), three_layer_net(256))
        selection = train(model, xor_problem(seed), squared_hinge, seed=seed)
        x, y = xor_problem(seed + 500)
        with torch.no_grad():
            accuracy = float((model(x).sign() == y).float().mean())
        right = selection.indices.tolist() == [0, 1]
        found += right
        print(
            f"    seed {seed}: {selection.indices.tolist()} {'found' if right else 'missed'}, {selection.n_steps} steps, "
            f"{selection.seconds:.1f} s, accuracy on new rows {accuracy:.3f}"
        )
    print(f"  found {found} of 10 (target 9)")


def part_madelon() -> None:
    """Balanced accuracy on MADELON, M = 5, 3 folds."""
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    print("MADELON, M=5, three-layer network, defaults of train, 3 folds")
    with np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / "madelon.npz") as file:
        X, y = file["X"][: int(file["n_train"])].astype(np.float64), file["y"][: int(file["n_train"])]
    y = np.where(y == y.max(), 1.0, -1.0)
    scores = []
    for fold, (rows, others) in enumerate(StratifiedKFold(3, shuffle=True, random_state=42).split(X, y)):
        scaler = StandardScaler().fit(X[rows])
        torch.manual_seed(fold)
        model = nn.Sequential(FeatureMask(X.shape[1], 5), three_layer_net(X.shape[1]))
        data = (scaler.transform(X[rows]).astype(np.float32), y[rows].astype(np.float32)[:, None])
        selection = train(model, data, squared_hinge, seed=fold)
        with torch.no_grad():
            predicted = model(torch.as_tensor(scaler.transform(X[others]), dtype=torch.float32)).sign().numpy().ravel()
        scores.append(balanced_accuracy_score(y[others], predicted))
        print(f"    fold {fold}: {selection.indices.tolist()}, {selection.n_steps} steps, {scores[-1]:.3f}", flush=True)
    print(f"  balanced accuracy {np.mean(scores):.3f} (target 0.89)")


PARTS = {
    "step": part_step,
    "states": part_states,
    "cnn": part_cnn,
    "shrink": part_shrink,
    "memory": part_memory,
    "prune": part_prune,
    "xor": part_xor,
    "madelon": part_madelon,
}


def main(names: list[str]) -> None:
    global clock
    if "--busy" in names:
        names.remove("--busy")
        torch.set_num_threads(1)
        clock = time.process_time
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(PARTS)}")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for name in names or [name for name in PARTS if name != "madelon"]:
        started = time.perf_counter()
        PARTS[name]()
        print(f"    ({name}: {time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
