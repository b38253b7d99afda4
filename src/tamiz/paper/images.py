"""Tables of images of the paper: accuracy of a network that sees only the selected pixels.

Every method is scored alike: a new network is trained on the pixels that it chose, for the same number of epochs, from the
same first weights and in the same order of rows. E2E-FS also has the network that comes out of its selection and is
refined, which is what the paper's tables show; it has been trained before, during and after the selection.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from tamiz._utils.extras import require
from tamiz._utils.text import counted
from tamiz.baselines.registry import get_method, make_selector
from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.paper.datasets import find_entry
from tamiz.paper.numbers import IMAGE_SIZES, IMAGES, IMAGES_FILES, IMAGES_ONE_NETWORK, IMAGES_SECONDS, STANDS_FOR
from tamiz.paper.protocol import REFERENCES, Cell, Protocol, seed_from
from tamiz.paper.recipes import Parts, load_checked
from tamiz.paper.tables import TableRow, display_name

if TYPE_CHECKING:
    from torch import nn

    from tamiz.paper.deep import Recipe
    from tamiz.selection import Selection

#: Epochs of the paper: of each training with all or with selected pixels, of the selection, and T, by variant.
EPOCHS, SELECTION_EPOCHS = 110, 70
RAMP_EPOCHS = {"hard": 100, "soft": 250}
#: E2E-FS goes on beyond its 70 epochs until its mask is closed, which needs an alpha near 1, but no longer than this.
LONGEST_SELECTION = {"hard": 110, "soft": 70}
IMAGE_METHODS = ("dfs", "sfs", "isfs", "sfs+dfs", "e2efs", "e2efs-soft")
#: Other accuracies than the printed ones, with what is said of them: the printed baselines are from an older paper and, on MNIST
#: and Fashion-MNIST, nearly all those of a CNN of three layers.
OTHER_NUMBERS = {
    "with WRN-16-4 alone the source of the paper has": IMAGES_ONE_NETWORK,
    "the authors' result files have": IMAGES_FILES,
}
#: Options of the protocol that decide how networks are trained.
NETWORK_OPTIONS = ("depth", "width", "epochs", "batch_size")
#: Rows of the tables: a new network, the same for all methods, or the one that E2E-FS has trained with its mask.
NEW, OWN = "new network", "own network"


@lru_cache(maxsize=1)
def load_pictures(name: str, data_home: str | None, expected: str, n_images: int) -> Parts:
    """Load the predefined parts of a data set; of each part a random draw, the same for all methods (0: all).

    Rows have the colours first, mean 0 and standard deviation 1 over all training values.
    """
    dataset, _ = load_checked(name, data_home, expected)
    height, width, colours = dataset.image_shape
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for rows in cast("tuple[np.ndarray, np.ndarray]", (dataset.train, dataset.test)):
        if 0 < n_images < rows.size:
            generator = np.random.default_rng(seed_from("images", name, n_images))
            rows = np.sort(generator.choice(rows, n_images, replace=False))
        pixels = dataset.data[rows].reshape(-1, height, width, colours).transpose(0, 3, 1, 2)
        parts.append((pixels.reshape(rows.size, -1).astype(np.float32) / 255.0, dataset.target[rows]))
    (train, y_train), (test, y_test) = parts
    mean, spread = train.mean(), train.std()
    return Parts((train - mean) / spread, y_train, (test - mean) / spread, y_test, (colours, height, width))


def new_network(plan: Images, pictures: Parts, seed: int) -> nn.Module:
    """Build a network that reads flat rows."""
    from torch import nn

    from tamiz.torch.trainer import seeded

    with seeded(seed):
        network = plan.build(pictures.shape, pictures.n_classes)
    return nn.Sequential(nn.Unflatten(1, pictures.shape), network).to(plan.device)


def train_network(plan: Images, model: nn.Module, rows: np.ndarray, pictures: Parts, seed: int) -> float:
    """Train a network on training rows; return the seconds."""
    from tamiz.paper.networks import fit_network

    loss = get_loss(plan.training.loss)
    problem = Problem(rows, loss.encode(pictures.y_train, pictures.n_classes))
    started = time.perf_counter()
    fit_network(model, problem, plan.training, loss, seed=seed)
    return time.perf_counter() - started


def accuracy_of(model: nn.Module, rows: np.ndarray, y: np.ndarray, device: str = "cpu") -> float:
    """Compute the share of rows whose class has the largest output.

    Examples
    --------
    >>> from torch import nn
    >>> accuracy_of(nn.Identity(), np.array([[0.1, 0.9], [0.8, 0.2]], dtype=np.float32), np.array([1, 1]))
    0.5
    """
    import torch

    model.eval()
    with torch.no_grad():
        pieces = [model(torch.from_numpy(part).to(device)).argmax(1).cpu() for part in np.array_split(rows, 20)]
    return float((torch.cat(pieces).numpy() == y).mean())


def score_pixels(plan: Images, columns: np.ndarray, pictures: Parts, seed: int) -> float:
    """Train a new network that sees only these columns; return its test accuracy."""
    keep = np.zeros(pictures.n_features, dtype=np.float32)
    keep[columns] = 1.0
    model = new_network(plan, pictures, seed)
    train_network(plan, model, pictures.train * keep, pictures, seed)
    return accuracy_of(model, pictures.test * keep, pictures.y_test, plan.device)


def select_by_baseline(
    plan: Images, method: str, pictures: Parts, m_values: Sequence[int], seed: int
) -> tuple[list[np.ndarray], float]:
    """Select by a method that has no mask; return the columns for each M and the seconds."""
    more: dict[str, Any] = {"random_state": seed}
    if method in IMAGE_METHODS:
        more |= {"network": plan.build, "recipe": plan.training, "input_shape": pictures.shape, "device": plan.device}
        more |= {"class_weight": None, "normalize": None}
    started = time.perf_counter()
    # iSFS goes down to the smallest number; what it cuts on the way ranks after what it keeps.
    selector = make_selector(method, min(m_values), **more).fit(pictures.train, pictures.y_train)
    return [np.flatnonzero(selector.ranking_ <= m) for m in m_values], time.perf_counter() - started


def select_and_refine(
    plan: Images, start: nn.Module, method: str, m: int, pictures: Parts, seed: int
) -> tuple[Selection, nn.Module]:
    """Select M pixels by E2E-FS from a network trained on all of them, and refine the network."""
    import torch
    from torch import nn

    from tamiz.paper.networks import recipe_optimizer
    from tamiz.torch import FeatureMask, train
    from tamiz.torch.batches import full_sizes

    recipe, n_rows, variant = plan.training, len(pictures.train), get_method(method).options["variant"]
    rate = plan.mask_learning_rate(variant, n_rows)
    mask = FeatureMask(pictures.n_features, m, variant, mask_learning_rate=rate)
    model = nn.Sequential(mask, copy.deepcopy(start)).to(plan.device)
    selection = train(
        model,
        (torch.from_numpy(pictures.train).to(plan.device), torch.from_numpy(pictures.y_train).to(plan.device)),
        nn.functional.cross_entropy,
        optimizer=partial(recipe_optimizer, recipe, n_samples=n_rows),
        batch_size=plan.batch_size,
        refinement_steps=recipe.epochs * len(full_sizes(n_rows, plan.batch_size)),
        refinement_rates=recipe.rates(),
        seed=seed,
        **plan.phases(variant, n_rows),
    )
    return selection, model


def run_method(
    plan: Images, method: str, pictures: Parts, m_values: Sequence[int], seeds: tuple[int, int]
) -> dict[str, Any]:
    """Select by a method, then train a new network on each selection; return what is stored in a cell.

    ``seeds`` are those of the selection and of the networks that score it, which are the same for all methods.
    """
    seed, judge = seeds
    info, n_sizes = get_method(method), len(m_values)
    own: list[float] = []
    converged, supports = [True] * n_sizes, [np.arange(pictures.n_features)]
    seconds = [0.0] * n_sizes
    if info.trains_model:
        start = new_network(plan, pictures, seed)
        pretraining = train_network(plan, start, pictures.train, pictures, seed)
        supports, seconds, converged = [], [], []
        for m in m_values:
            selection, refined = select_and_refine(plan, start, method, m, pictures, seed_from(seed, m))
            supports.append(selection.indices)
            converged.append(bool(selection.converged))
            # The trainer counts selection, rest and refinement together; steps cost about the same in all.
            seconds.append(pretraining + selection.seconds * selection.closed_at / selection.n_steps)
            own.append(accuracy_of(refined, pictures.test, pictures.y_test, plan.device))
    elif not info.keeps_all:
        supports, once = select_by_baseline(plan, method, pictures, m_values, seed)
        seconds = [once] * n_sizes
    accuracy = [score_pixels(plan, columns, pictures, judge) for columns in supports]
    return {
        "scores": [[NEW, None, accuracy * (n_sizes // len(accuracy))], *([[OWN, None, own]] if own else [])],
        "converged": converged,
        "support": None if info.keeps_all else [columns.tolist() for columns in supports],
        "seconds": seconds,
        "n_features": pictures.n_features,
        "shape": list(pictures.shape),
        "n_rows": [len(pictures.train), len(pictures.test)],
    }


class Images(Protocol):
    """The tables of MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, with the masks as pictures.

    Needs torch, and by default a GPU; ``--images 2000 --epochs 11 --depth 10 --width 1 --batch-size 32`` runs in minutes on two
    cores.

    Examples
    --------
    >>> Images(datasets=["mnist"], methods=["DFS"]).methods
    ('dfs', 'random', 'all')
    >>> Images(datasets=["colon"])
    Traceback (most recent call last):
    ValueError: colon holds no images.
    """

    name = "images"
    measure = "accuracy"
    unit, digits, n_published = "run", 4, 5
    headline_detail = NEW
    least: ClassVar = {**Protocol.least, "images": 0, "depth": 10, "batch_size": 2}

    datasets: Sequence[str] = ("mnist", "fashion_mnist")
    methods: Sequence[str] = IMAGE_METHODS
    #: Training images, and test images at most; 0: all.
    images: int = 0
    #: Epochs of each training; the selection and T are scaled with them.
    epochs: int = EPOCHS
    #: Depth (6n + 4) and widening factor of the Wide ResNet.
    depth: int = 16
    width: int = 4
    batch_size: int = 128
    runs: int = 1
    device: str = "cpu"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.datasets:
            if find_entry(name).image_shape is None:
                raise ValueError(f"{name} holds no images.")
        for method in self.methods:
            if method not in (*IMAGE_METHODS, *REFERENCES):
                raise ValueError(
                    f"{method} is not part of the tables of images; there are: {', '.join(IMAGE_METHODS)}."
                )
        if (self.depth - 4) % 6:
            raise ValueError(f"The depth of a Wide ResNet is 6n + 4 (10, 16, 22, ...), got {self.depth}.")
        if self.device != "cpu":
            from tamiz.torch.trainer import checked_device

            checked_device(self.device)

    @property
    def training(self) -> Recipe:
        """Recipe of every training."""
        from tamiz.paper.deep import IMAGES as RECIPE

        return replace(RECIPE.with_epochs(self.epochs), batch_size=self.batch_size)

    def phases(self, variant: str, n_rows: int) -> dict[str, Any]:
        """Compute ramp, least and most steps of the selection; the paper's epochs are scaled by ``epochs / 110``.

        Examples
        --------
        >>> Images().phases("soft", 60000)
        {'ramp_steps': 117250, 'selection_steps': 32830, 'max_steps': 32830}
        >>> Images(epochs=11).phases("hard", 6000)
        {'ramp_steps': 470, 'selection_steps': 329, 'max_steps': 517}
        """
        epoch = -(-n_rows // self.batch_size) * self.epochs / EPOCHS
        lengths = (RAMP_EPOCHS[variant], SELECTION_EPOCHS, LONGEST_SELECTION[variant])
        ramp, least, most = (max(1, round(epochs * epoch)) for epochs in lengths)
        return {"ramp_steps": ramp, "selection_steps": least, "max_steps": most}

    def mask_learning_rate(self, variant: str, n_rows: int) -> float:
        """Rate of gamma: 0.01, or more where the selection is so short that it could hardly go from 1 to 0.

        Examples
        --------
        >>> Images().mask_learning_rate("soft", 60000), Images(epochs=11).mask_learning_rate("soft", 6400)
        (0.01, 0.02857142857142857)
        """
        return max(0.01, 10 / self.phases(variant, n_rows)["selection_steps"])

    def build(self, shape: Sequence[int], n_outputs: int) -> nn.Module:
        """Build the network, in the memory format in which convolutions on a CPU take half the time."""
        import torch

        from tamiz.paper.networks import make_network

        network: Any = make_network("wrn16x4", shape, n_outputs, depth=self.depth, widen_factor=self.width)
        ordered: nn.Module = network.to(memory_format=torch.channels_last)
        return ordered

    def make_cells(self, data_home: str | None = None) -> list[Cell]:
        """Make one cell per data set, method and run, for all numbers of pixels; all first runs come first."""
        cells = []
        phases = {"selection": SELECTION_EPOCHS, "ramp": RAMP_EPOCHS, "longest": LONGEST_SELECTION}
        for name in self.datasets:
            _, checksum = load_checked(name, data_home)
            for method in self.methods:
                settings = {
                    "dataset": name,
                    "data": checksum,
                    "method": method,
                    "recipe": None,
                    "n_images": self.images,
                    "configuration": {name: getattr(self, name) for name in NETWORK_OPTIONS},
                    "training": asdict(self.training),
                    "phases": phases,
                    "sizes": list(IMAGE_SIZES[STANDS_FOR.get(name, name)]),
                    "device": self.device,
                }
                cells += self.repeat(f"{name}, run {{}}, {method}", settings, self.runs)
        return sorted(cells, key=lambda cell: cell.settings["unit"])

    @classmethod
    def run_cell(cls, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Run one method on one data set, for each number of pixels."""
        name, method, run, seed = (settings[key] for key in ("dataset", "method", "unit", "seed"))
        pictures = load_pictures(name, data_home, settings["data"], settings["n_images"])
        seeds = (seed_from("images", name, method, run, seed), seed_from("images", name, "judge", run, seed))
        plan = cls(**settings["configuration"], device=settings["device"])
        return run_method(plan, method, pictures, settings["sizes"], seeds)

    @property
    def is_whole(self) -> bool:
        """Whether network and epochs are the paper's."""
        return (self.depth, self.width, self.epochs) == (16, 4, EPOCHS)

    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title, introduction, and what the scores are means of."""
        counts = {cell.settings["dataset"]: results[cell.key]["n_rows"] for cell in cells if cell.key in results}
        rows = "; ".join(f"{display_name(name)}: {train:,} and {test:,}" for name, (train, test) in counts.items())
        extent = "the paper's network and epochs"
        if not self.is_whole:
            extent = (
                f"the paper: WRN-16-4, {EPOCHS} epochs, all images; that takes about eight days of one core for each variant of "
                "E2E-FS and data set, so that less was run here: compare the order of the methods, not the numbers"
            )
        selecting, longest = (
            f"{epochs * self.epochs / EPOCHS:.3g}" for epochs in (SELECTION_EPOCHS, LONGEST_SELECTION["hard"])
        )
        introduction = (
            f"Test accuracy of WRN-{self.depth}-{self.width} trained for {self.epochs} epochs ({extent}), mean of "
            f"{counted(self.runs, self.unit)}; in brackets the paper's. Training and test images: {rows or 'none'}. Every "
            f'method is judged by a new network on the pixels that it chose; the rows "{OWN}" are, as in the paper, the network '
            f"that E2E-FS trained while selecting, refined for as many epochs: it has been trained on all pixels before, so "
            f"compare methods by the rows of the new networks. Rates and decay are the paper's; Nesterov's momentum of 0.9, "
            f"batches of {self.batch_size}, no augmentation, one mean and deviation for all values are not named there. "
            f"E2E-FS-Soft selects for {selecting} epochs, its rho rising in the last quarter of them; E2E-FS goes on until its "
            f"mask is closed, for {longest} epochs at most. CIFAR-100 is not run here: its file is not at hand; the command "
            "runs it where it can be downloaded."
        )
        basis = (
            f"of new networks (WRN-{self.depth}-{self.width}, {self.epochs} epochs), mean over {{sizes}} values and "
            "{units}; the paper's are larger and were trained longer"
        )
        return "Images: " + ", ".join(map(display_name, self.datasets)), introduction, basis

    def published(self, row: TableRow) -> tuple[Sequence[float | None], float | None]:
        """Printed accuracies; the paper's rows of E2E-FS are own networks."""
        known = IMAGES[STANDS_FOR.get(row.dataset, row.dataset)].get(row.method)
        if known is None or (row.detail == NEW) == get_method(row.method).trains_model:
            return (), None
        return tuple(value / 100 for value in known), float(np.mean(known)) / 100

    def reasons(self, row: TableRow) -> list[str]:
        """Known differences to the paper, and what else was published of the row."""
        found = [] if self.is_whole else ["smaller networks, fewer images and epochs than the paper's"]
        column = STANDS_FOR.get(row.dataset, row.dataset)
        for title, table in OTHER_NUMBERS.items():
            if row.method in table.get(column, {}):
                found.append(f"{title} {np.mean(table[column][row.method]) / 100:.3f}")
        return found

    def sections(self, rows: Sequence[TableRow]) -> list[str]:
        """Add the paper's times."""
        times = []
        for dataset in dict.fromkeys(STANDS_FOR.get(name, name) for name in self.datasets):
            printed = IMAGES_SECONDS[dataset].items()
            listed = ", ".join(f"{get_method(method).title} {seconds:,} s" for method, seconds in printed)
            times.append(f"- {display_name(dataset)}: {listed}.")
        return [
            "### The paper's times",
            "On its GPU, of everything for the fewest pixels. E2E-FS is the quickest there; with a shortened training its "
            "selection is the longest part.",
            "\n".join(times),
        ]

    def draw(self, summary: Any, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Draw the masks of the first run, one file per data set: methods down, numbers of pixels across."""
        figures = require("matplotlib.figure", "plot", "The picture of the masks")
        files = {}
        for dataset in dict.fromkeys(cell.settings["dataset"] for cell in cells):
            first = [cell for cell in cells if (cell.settings["dataset"], cell.settings["unit"]) == (dataset, 0)]
            found = [(cell.settings, results[cell.key]) for cell in first if cell.key in results]
            shown = [(settings, result) for settings, result in found if result["support"] is not None]
            if not shown:
                continue
            sizes = shown[0][0]["sizes"]
            figure = figures.Figure(figsize=(1.6 * len(sizes), 1.7 * len(shown)), layout="constrained")
            grid = figure.subplots(len(shown), len(sizes), squeeze=False)
            for line, (settings, result) in zip(grid, shown, strict=True):
                for axes, m, support in zip(line, sizes, result["support"], strict=True):
                    axes.imshow(mask_image(support, result["shape"]), cmap="gray", vmin=0, vmax=1)
                    axes.set(xticks=[], yticks=[], title=str(m) if settings is shown[0][0] else "")
                line[0].set_ylabel(get_method(settings["method"]).title, fontsize="small")
            path = folder / f"masks-{dataset}.png"
            figure.savefig(str(path), dpi=110)
            files[f"masks of {dataset}"] = str(path)
        return files


def mask_image(support: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """Draw a selection as an image: (height, width), or (height, width, colours).

    Examples
    --------
    >>> mask_image([1, 2], (1, 2, 2)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    flat = np.zeros(int(np.prod(shape)))
    flat[list(support)] = 1.0
    image = flat.reshape(tuple(shape)).transpose(1, 2, 0)
    return image[:, :, 0] if image.shape[2] == 1 else image
