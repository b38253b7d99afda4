"""Record what fits give on a grid of settings, and compare two records: a refactoring must not change results.

python benchmarks/results_grid.py record before.npz      # with the tree before the change
python benchmarks/results_grid.py record after.npz       # with the tree after it
python benchmarks/results_grid.py compare before.npz after.npz

Only public names are used, so that the script runs on both trees.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

warnings.simplefilter("ignore")

SEEDS = (0, 1)
VARIANTS = ("hard", "soft", "ranking")


def tables() -> dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Return small dense tables with every kind of target."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(90, 60))
    X[:, 20:40] = np.round(np.abs(X[:, 20:40]))  # ties and zeros
    X[:, 50] = 1.0
    signal = X[:, 3] - X[:, 7] + 0.5 * X[:, 25]
    targets = {
        "two": (signal > 0).astype(int),
        "three": np.digitize(signal, [-0.7, 0.7]),
        "labels": np.column_stack([signal > 0, X[:, 11] > 0, X[:, 12] > 0.5]).astype(int),
        "number": 10 * signal + rng.normal(size=90),
        "numbers": np.column_stack([signal, X[:, 11]]) + 0.1 * rng.normal(size=(90, 2)),
    }
    return {"dense": (X, targets)}


def describe(estimator: object, X: object) -> dict[str, np.ndarray]:
    """Collect ranking, weights, predictions and history of a fitted estimator."""
    selection = estimator.selection_
    found = {"ranking": selection.ranking, "steps": np.array([selection.n_steps, selection.closed_at])}
    found.update({f"history_{key}": np.asarray(value) for key, value in selection.history.items()})
    for name in ("coef_", "intercept_", "scores_"):
        if hasattr(estimator, name):
            found[name] = np.asarray(getattr(estimator, name))
    if hasattr(estimator, "predict"):
        found["predict"] = np.asarray(estimator.predict(X))
    if hasattr(estimator, "decision_function"):
        found["decision"] = np.asarray(estimator.decision_function(X))
    if hasattr(estimator, "predict_proba"):
        found["proba"] = np.asarray(estimator.predict_proba(X))
    return found


def linear_cells() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Fit the linear engine: losses, variants, targets, normalisations, dense and sparse, weights, seeds."""
    from tamiz import E2EFSClassifier, E2EFSRegressor, Training

    X, targets = tables()["dense"]
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0))
    weight = np.random.default_rng(1).uniform(0, 2, size=90)
    short = {"training": Training(ramp_steps=2000, refinement_epochs=20)}
    classes = itertools.product(("squared_hinge", "logistic", "softmax"), ("two", "three", "labels"))
    numbers = itertools.product(("squared_error", "huber"), ("number", "numbers"))
    cases = [(E2EFSClassifier, *case) for case in classes] + [(E2EFSRegressor, *case) for case in numbers]
    for (make, loss, kind), variant, table in itertools.product(cases, VARIANTS, ("dense", "sparse")):
        if (loss, kind) == ("softmax", "labels"):
            continue
        rows = X if table == "dense" else sparse
        for seed in SEEDS:
            fit = make(5, loss=loss, variant=variant, random_state=seed, **short).fit(rows, targets[kind])
            yield f"linear/{loss}/{kind}/{variant}/{table}/{seed}", describe(fit, rows)
    for normalize, table in itertools.product(("erf", "standard", None), ("dense", "sparse")):
        rows = X if table == "dense" else sparse
        fit = E2EFSClassifier(5, normalize=normalize, random_state=0, **short).fit(rows, targets["two"], weight)
        yield f"linear/normalize-{normalize}/{table}", describe(fit, rows)
    for name, options in {
        "defaults": {},
        "all": {"n_features_to_select": 60},
        "limit": {"training": Training(max_steps=50)},
        "no-intercept": {"training": Training(fit_intercept=False)},
        "unweighted": {
            "class_weight": None,
            "l2": 0.1,
            "training": Training(learning_rate=0.01, batch_size=7, warmup_steps=3),
        },
        "mu-rho": {"training": Training(mu=2.0, rho=0.5)},
        "no-refinement": {"training": Training(refinement_epochs=0)},
    }.items():
        fit = E2EFSClassifier(**{"n_features_to_select": 4, "random_state": 0, **options}).fit(X, targets["three"])
        yield f"linear/{name}", describe(fit, X)


def torch_cells() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Fit the torch engine: the estimators' networks, the trainer, masks in loops of one's own."""
    import torch
    from torch import nn

    from tamiz import Dense, E2EFSClassifier, E2EFSRegressor, TorchNetwork, Training
    from tamiz.torch import FeatureMask, train

    torch.set_num_threads(1)
    X, targets = tables()["dense"]
    short = {"training": Training(ramp_steps=200, refinement_epochs=10), "random_state": 3}
    for loss, kind in (("squared_hinge", "two"), ("logistic", "labels"), ("softmax", "three"), ("softmax", "two")):
        fit = E2EFSClassifier(5, network=Dense(n_init=2), loss=loss, **short).fit(X, targets[kind])
        yield f"mlp/{loss}/{kind}", describe(fit, X)
    for loss, kind in (("squared_error", "number"), ("huber", "numbers")):
        fit = E2EFSRegressor(5, network=Dense(n_init=2), loss=loss, **short).fit(X, targets[kind])
        yield f"mlp/{loss}/{kind}", describe(fit, X)
    linear = TorchNetwork(lambda a, b: nn.Linear(a, b), n_init=2)
    fit = E2EFSClassifier(5, network=linear, **short).fit(X, targets["two"])
    yield "callable", describe(fit, X)

    rows, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(targets["number"], dtype=torch.float32)
    for variant, shape, dtype in itertools.product(VARIANTS, (60, (6, 10)), (torch.float32, torch.float64)):
        torch.manual_seed(0)
        mask = FeatureMask(shape, 5, variant)
        model = nn.Sequential(mask, nn.Flatten(), nn.Linear(60, 8), nn.Tanh(), nn.Linear(8, 1), nn.Flatten(0)).to(dtype)
        x = rows.to(dtype) if shape == 60 else rows.reshape(-1, 6, 10).to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
        mask.attach(optimizer, warmup_steps=5, ramp_steps=150)
        path = []
        for _ in range(700):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y.to(dtype)).backward()
            optimizer.step()
            path.append(mask.gamma.detach().reshape(-1).numpy().copy())
        found = {"gamma": np.stack(path[::20]), "ranking": mask.ranking().numpy(), "rank": mask.rank.numpy()}
        found["weights"] = torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()
        yield f"mask/{variant}/{shape}/{dtype}", found
    for variant in VARIANTS:
        torch.manual_seed(0)
        model = nn.Sequential(FeatureMask(60, 5, variant), nn.Linear(60, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))
        selection = train(model, (rows, y), nn.functional.mse_loss, ramp_steps=300, refinement_steps=60, average=0.5)
        found = {"ranking": selection.ranking, "outputs": model(rows).detach().numpy()}
        found.update({f"history_{key}": np.asarray(value) for key, value in selection.history.items()})
        yield f"train/{variant}", found


def baseline_cells() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Fit every baseline on classes and, where it takes them, on numbers."""
    from tamiz.baselines import registry

    X, targets = tables()["dense"]
    for name in registry.BASELINES:
        make = registry.BASELINES[name].load()
        options = {"n_features_to_select": 5}
        parameters = make().get_params()
        if "random_state" in parameters:
            options["random_state"] = 0
        kinds = ["two", "three"] + (["number"] if parameters.get("task") == "auto" else [])
        losses = (
            ["auto"]
            if "loss" not in parameters or "epochs" not in parameters
            else ["squared_hinge", "logistic", "softmax"]
        )
        for kind, loss in itertools.product(kinds, losses):
            if "epochs" in parameters:
                options["epochs"] = 6
                options["loss"] = loss if kind != "number" else {"logistic": "huber"}.get(loss, "squared_error")
            yield f"baseline/{name}/{kind}/{loss}", describe(make(**options).fit(X, targets[kind]), X)
        if "network" in parameters:
            wide = {**options, "network": "mlp", "loss": "auto"}
            yield f"baseline/{name}/three_layer", describe(make(**wide).fit(X, targets["three"]), X)


def record(path: str, parts: list[str]) -> None:
    """Run the grid and write one compressed file."""
    arrays: dict[str, np.ndarray] = {}
    for part in parts or ["linear", "torch", "baseline"]:
        for name, found in globals()[f"{part}_cells"]():
            arrays.update({f"{name}|{key}": value for key, value in found.items()})
            print(name, flush=True)
    np.savez_compressed(path, **arrays)
    print(f"{len(arrays)} arrays in {path}")


def compare(before: str, after: str) -> None:
    """Print every array that differs, with the largest difference."""
    old, new = np.load(before, allow_pickle=False), np.load(after, allow_pickle=False)
    only = sorted(set(old.files) ^ set(new.files))
    same, different = 0, []
    for name in sorted(set(old.files) & set(new.files)):
        a, b = old[name], new[name]
        if a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            same += 1
        else:
            size = (
                float(np.max(np.abs(a.astype(float) - b))) if a.shape == b.shape and a.dtype.kind in "biuf" else np.inf
            )
            different.append(f"{name}: {size:.3g}")
    print(f"{same} arrays are the same to the bit, {len(different)} differ, {len(only)} are in one record only")
    print("\n".join(different + [f"only in one: {name}" for name in only]))


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2], sys.argv[3:])
    else:
        compare(*sys.argv[2:4])
