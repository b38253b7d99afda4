"""Numbers that the paper prints, and the published ones that our tables stand beside; the data lie in ``numbers.json``."""

from __future__ import annotations

from typing import Any

from tamiz.paper.datasets import read_facts

_DATA = read_facts("numbers.json")


def _by_learner(name: str) -> dict[tuple[str, str], Any]:
    return {(key.split()[0], key.split()[1]): row for key, row in _DATA[name].items()}


#: Table "Microarray and FS challenge": (method, learner) -> data set -> (mean balanced accuracy, sd).
MICROARRAY: dict[tuple[str, str], dict[str, tuple[float, float]]] = _by_learner("microarray")
#: The same table from the result files that the authors published with their code: the mean over the five numbers of
#: features. They differ a little from the printed one, ReliefF on DEXTER by more. None: the files of the filters on LUNG
#: repeat those of LEUKEMIA.
MICROARRAY_FILES: dict[tuple[str, str], dict[str, float | None]] = _by_learner("microarray_files")
#: The column of the paper's table that a data set of ours stands for.
STANDS_FOR: dict[str, str] = _DATA["stands_for"]
#: Tables of images: data set -> numbers of features.
IMAGE_SIZES: dict[str, tuple[int, ...]] = _DATA["image_sizes"]
#: Data set -> method -> accuracy in percent for each size, as printed. The four baselines are from another paper; on MNIST
#: and Fashion-MNIST all but two of their numbers are those of a CNN of three layers, while E2E-FS is WRN-16-4.
IMAGES: dict[str, dict[str, tuple[float, ...]]] = _DATA["images"]
#: Seconds of the whole computation for the fewest pixels, as printed (iSFS in hours).
IMAGES_SECONDS: dict[str, dict[str, int]] = _DATA["images_seconds"]
#: The baselines with WRN-16-4 alone, which the source of the paper has in its comments (SFS+DFS on MNIST repeats DFS there).
IMAGES_ONE_NETWORK: dict[str, dict[str, tuple[float, ...]]] = _DATA["images_one_network"]
#: The authors' published result files, mean of five runs, all methods alike: for MNIST and Fashion-MNIST the three-layer
#: network selects and a new WRN-16-4 judges; for CIFAR a DenseNet does both.
IMAGES_FILES: dict[str, dict[str, tuple[float, ...]]] = _DATA["images_files"]
#: Figure of the three-layer network: the paper prints no numbers; these are from the authors' published result files for
#: MADELON (the network trained anew on 5, 10, 15 and 20 selected features).
THREE_LAYER_MADELON_SIZES: tuple[int, ...] = _DATA["three_layer_madelon_sizes"]
THREE_LAYER_MADELON: dict[str, tuple[float, ...]] = _DATA["three_layer_madelon"]
#: Share of true features among the top k, mean over p = 8 ... 2048 (Passemiers et al. 2023).
GROUND_TRUTH: dict[str, dict[str, float]] = _DATA["ground_truth"]
