"""The pictures of the docs that come from runs: python docs/make_figures.py [folder, docs/images by default]."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

from tamiz import E2EFSClassifier, E2EFSPath

matplotlib.use("Agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
N_NOISE = 300


def noisy_table() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's breast-cancer table with 300 columns of noise added."""
    X, y = load_breast_cancer(return_X_y=True)
    return np.hstack([X, np.random.default_rng(0).normal(size=(len(X), N_NOISE))]), y


def save(figure: plt.Figure, path: Path) -> None:
    """Write one picture and let go of it."""
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_run(folder: Path) -> None:
    """The number alive and the paths of gamma of one real fit, for the soft and the ranking variant."""
    X, y = noisy_table()
    for kind in ("sieve", "path"):
        figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
        for ax, variant in zip(axes, ("soft", "ranking")):
            model = E2EFSClassifier(n_features_to_select=8, variant=variant, random_state=0).fit(X, y)
            model.selection_.plot(kind, ax=ax)
            ax.set_title(f'variant="{variant}"', pad=18)
        save(figure, folder / f"{'gamma' if kind == 'path' else kind}.png")


def draw_choice(folder: Path) -> None:
    """Score against M with standard errors, and the one-standard-error choice; the code of choosing-m.md."""
    X, y = noisy_table()
    numbers = [1, 2, 4, 8, 16, 32, 64]
    scores = np.empty((5, len(numbers)))
    for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
        path = E2EFSPath(numbers, estimator=E2EFSClassifier(random_state=0), cv=None).fit(X[train], y[train])
        scores[fold] = [path.estimators_[m].score(X[test], y[test]) for m in numbers]
    mean, error = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    best = mean.argmax()
    chosen = next(m for m, score in zip(numbers, mean) if score >= mean[best] - error[best])
    figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
    ax.errorbar(numbers, mean, yerr=error, color="#0b6e70", marker="o", capsize=3, label="mean and standard error")
    ax.axhline(mean[best] - error[best], color="#b5511d", linestyle="--", label="best minus one standard error")
    ax.axvline(chosen, color="black", linewidth=0.8, linestyle=":", label=f"smallest M above it: {chosen}")
    ax.set_xscale("log", base=2)
    ax.set_xticks(numbers, [str(m) for m in numbers])
    ax.set(xlabel="features kept (M)", ylabel="held-out accuracy")
    ax.legend(loc="lower right", frameon=False)
    save(figure, folder / "score-against-m.png")


def record_masks(script: Path) -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """Run an example and record its masks: the final support of each, and gamma at every forward pass of training."""
    import torch

    from tamiz.torch import FeatureMask

    gammas: dict[FeatureMask, list[np.ndarray]] = {}

    def record(module: torch.nn.Module, inputs: object) -> None:
        if isinstance(module, FeatureMask) and module.training:
            gammas.setdefault(module, []).append(module.gamma.detach().flatten().numpy().copy())

    handle = torch.nn.modules.module.register_module_forward_pre_hook(record)
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        handle.remove()
    return [(mask.support().numpy(), paths) for mask, paths in gammas.items()]


def draw_gallery(folder: Path) -> None:
    """Draw gamma against the steps of every example with a mask; of images the pixels that are kept, too."""
    for script in sorted((HERE.parent / "examples").glob("*.py")):
        if "FeatureMask" not in script.read_text():
            continue
        support, paths = max(record_masks(script), key=lambda found: len(found[1]))
        image = support[0] if support.ndim == 3 else None
        figure, axes = plt.subplots(
            1, 1 if image is None else 2, figsize=(6.4, 2.4), layout="constrained", squeeze=False
        )
        for kept, color, width in ((False, "#b9b9b9", 0.6), (True, "#0b6e70", 1.4)):
            axes[0, 0].plot(np.array(paths)[:, support.ravel() == kept], color=color, linewidth=width)
        axes[0, 0].set(xlabel="step", ylabel="gamma", ylim=(-0.03, 1.03))
        if image is not None:
            axes[0, 1].imshow(image, cmap="Greys", vmin=0, vmax=1)
            axes[0, 1].set(xticks=[], yticks=[], title="pixels kept")
        figure.savefig(folder / f"example-{script.stem.replace('_', '-')}.webp", dpi=90)
        plt.close(figure)


def draw_masks(folder: Path) -> None:
    """Draw the masks of the recipes in training-loops.md, by running their blocks."""
    page = (HERE / "training-loops.md").read_text(encoding="utf-8")
    parts = re.split(r"^##+ (.*)$", page, flags=re.MULTILINE)
    sections = dict(zip(["Start", *parts[1::2]], parts[::2]))
    names = {"Start": None, "Graphs, and models with several inputs": "graphs", "Images, series, tokens": None,
             "Images": "images", "Series": "series", "Tokens": "tokens"}  # fmt: skip
    namespace: dict[str, Any] = {}
    for section, name in names.items():
        for code in re.findall(r"^```python\n(.*?)^```$", sections[section], flags=re.MULTILINE | re.DOTALL):
            exec(compile(code, section, "exec"), namespace)
        if name is not None:
            figure, ax = plt.subplots(figsize=(4.2, 2.8), layout="constrained")
            namespace["mask"].plot(ax=ax, n_shown=8)
            figure.savefig(folder / f"mask-{name}.webp", dpi=90)
            plt.close(figure)


def main() -> None:
    """Draw all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "images"
    folder.mkdir(parents=True, exist_ok=True)
    # examples/ is no package: the script is loaded by its path.
    runpy.run_path(str(HERE.parent / "examples" / "figure1.py"))["draw"](str(folder / "figure1.png"))
    draw_run(folder)
    draw_choice(folder)
    draw_gallery(folder)
    draw_masks(folder)


if __name__ == "__main__":
    main()
