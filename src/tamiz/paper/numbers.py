"""Numbers that the paper prints, and the published ones that our tables stand beside. Data, nothing else."""

from __future__ import annotations

_COLUMNS = ("lymphoma", "colon", "leukemia", "lung", "dexter", "gina", "gisette")


def _row(*cells: str) -> dict[str, tuple[float, float]]:
    """Cells "mean sd" in the order of the table's columns."""
    return {column: (float(cell.split()[0]), float(cell.split()[1])) for column, cell in zip(_COLUMNS, cells)}


#: Table "Microarray and FS challenge": (method, learner) -> data set -> (mean balanced accuracy, sd).
MICROARRAY: dict[tuple[str, str], dict[str, tuple[float, float]]] = {
    ("mim", "naive"): _row(
        "0.944 0.06", "0.815 0.08", "0.970 0.03", "0.982 0.02", "0.862 0.05", "0.839 0.03", "0.919 0.03"
    ),
    ("mim", "svm"): _row(
        "0.943 0.06", "0.807 0.07", "0.957 0.03", "0.983 0.02", "0.867 0.04", "0.834 0.03", "0.921 0.03"
    ),
    ("fisher", "naive"): _row(
        "0.948 0.06", "0.833 0.06", "0.969 0.04", "0.979 0.03", "0.904 0.05", "0.838 0.03", "0.918 0.03"
    ),
    ("fisher", "svm"): _row(
        "0.950 0.06", "0.828 0.07", "0.959 0.04", "0.983 0.02", "0.909 0.05", "0.831 0.03", "0.919 0.03"
    ),
    ("relieff", "naive"): _row(
        "0.942 0.05", "0.824 0.08", "0.961 0.04", "0.978 0.03", "0.908 0.04", "0.826 0.04", "0.916 0.04"
    ),
    ("relieff", "svm"): _row(
        "0.944 0.06", "0.815 0.07", "0.957 0.04", "0.982 0.02", "0.910 0.03", "0.817 0.03", "0.921 0.04"
    ),
    ("inffs", "naive"): _row(
        "0.852 0.12", "0.803 0.09", "0.943 0.06", "0.950 0.09", "0.812 0.09", "0.722 0.06", "0.844 0.11"
    ),
    ("inffs", "svm"): _row(
        "0.837 0.12", "0.791 0.08", "0.925 0.05", "0.892 0.02", "0.810 0.09", "0.723 0.06", "0.843 0.11"
    ),
    ("ilfs", "naive"): _row(
        "0.868 0.16", "0.831 0.07", "0.952 0.04", "0.931 0.12", "0.805 0.16", "0.749 0.13", "0.888 0.08"
    ),
    ("ilfs", "svm"): _row(
        "0.866 0.16", "0.812 0.07", "0.941 0.05", "0.953 0.10", "0.801 0.16", "0.748 0.13", "0.886 0.08"
    ),
    ("e2efs", "naivef"): _row(
        "0.929 0.06", "0.848 0.06", "0.971 0.03", "0.981 0.03", "0.923 0.02", "0.856 0.02", "0.961 0.02"
    ),
    ("e2efs", "naive"): _row(
        "0.933 0.06", "0.847 0.06", "0.960 0.04", "0.985 0.02", "0.924 0.02", "0.854 0.02", "0.962 0.02"
    ),
    ("e2efs", "svm"): _row(
        "0.929 0.06", "0.825 0.07", "0.972 0.02", "0.981 0.03", "0.923 0.02", "0.855 0.02", "0.961 0.02"
    ),
    ("e2efs-soft", "naivef"): _row(
        "0.923 0.07", "0.846 0.07", "0.970 0.03", "0.981 0.03", "0.920 0.02", "0.855 0.02", "0.961 0.03"
    ),
    ("e2efs-soft", "naive"): _row(
        "0.935 0.06", "0.847 0.06", "0.959 0.03", "0.986 0.02", "0.922 0.02", "0.855 0.02", "0.963 0.02"
    ),
    ("e2efs-soft", "svm"): _row(
        "0.932 0.06", "0.820 0.07", "0.971 0.03", "0.981 0.03", "0.920 0.02", "0.855 0.02", "0.961 0.02"
    ),
}

#: The same table from the result files that the authors published with their code: the mean over the five numbers of
#: features, in the order of the columns. They differ a little from the printed one, ReliefF on DEXTER by more. None: the
#: files of the filters on LUNG repeat those of LEUKEMIA.
_FILES: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("mim", "naive"): (0.947, 0.810, 0.969, None, 0.869, 0.840, 0.920),
    ("mim", "svm"): (0.945, 0.794, 0.955, None, 0.871, 0.835, 0.922),
    ("fisher", "naive"): (0.948, 0.835, 0.968, None, 0.905, 0.839, 0.918),
    ("fisher", "svm"): (0.950, 0.820, 0.956, None, 0.907, 0.832, 0.920),
    ("relieff", "naive"): (0.939, 0.824, 0.961, None, 0.861, 0.823, 0.917),
    ("relieff", "svm"): (0.942, 0.810, 0.953, None, 0.866, 0.816, 0.922),
    ("inffs", "naive"): (0.852, 0.799, 0.941, None, 0.812, 0.723, 0.843),
    ("inffs", "svm"): (0.835, 0.789, 0.923, None, 0.810, 0.723, 0.842),
    ("ilfs", "naive"): (0.867, 0.823, 0.954, None, 0.807, 0.755, 0.879),
    ("ilfs", "svm"): (0.864, 0.804, 0.935, None, 0.805, 0.753, 0.878),
    ("e2efs", "naivef"): (0.936, 0.841, 0.973, 0.987, 0.921, 0.856, 0.963),
    ("e2efs", "naive"): (0.936, 0.842, 0.973, 0.986, 0.921, 0.856, 0.963),
    ("e2efs", "svm"): (0.943, 0.821, 0.958, 0.979, 0.920, 0.853, 0.963),
    ("e2efs-soft", "naivef"): (0.936, 0.841, 0.973, 0.986, 0.920, 0.856, 0.963),
    ("e2efs-soft", "naive"): (0.936, 0.841, 0.973, 0.986, 0.920, 0.856, 0.963),
    ("e2efs-soft", "svm"): (0.942, 0.819, 0.958, 0.978, 0.919, 0.852, 0.962),
}
MICROARRAY_FILES = {place: dict(zip(_COLUMNS, means)) for place, means in _FILES.items()}

#: The column of the paper's table that a data set of ours stands for.
STANDS_FOR = {
    "leukemia_3571": "leukemia",
    "gina_rebuilt": "gina",
    "gisette_rebuilt": "gisette",
    "gisette_genuine_168rows": "gisette",
    "cifar10_subset_lossless": "cifar10",
    "cifar10_subset_jpeg": "cifar10",
}

#: Tables of images: data set -> numbers of features, and method -> accuracy in percent for each.
IMAGE_SIZES = {
    "mnist": (39, 78, 196, 392),
    "fashion_mnist": (39, 78, 196, 392),
    "cifar10": (153, 307, 768, 1536),
    "cifar100": (153, 307, 768, 1536),
}
#: As printed. The four baselines are from another paper; on MNIST and Fashion-MNIST all but two of their numbers are
#: those of a CNN of three layers, while E2E-FS is WRN-16-4.
IMAGES: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {
        "dfs": (95.73, 98.56, 99.32, 99.46),
        "sfs": (89.78, 95.66, 99.14, 99.53),
        "isfs": (97.08, 98.62, 99.13, 99.56),
        "sfs+dfs": (95.60, 98.47, 99.38, 99.48),
        "e2efs": (91.87, 97.54, 99.28, 99.49),
        "e2efs-soft": (95.44, 97.89, 99.15, 99.30),
    },
    "fashion_mnist": {
        "dfs": (78.85, 85.50, 90.45, 92.61),
        "sfs": (67.85, 81.86, 89.33, 92.36),
        "isfs": (82.63, 86.33, 90.09, 92.60),
        "sfs+dfs": (79.81, 86.29, 90.44, 92.59),
        "e2efs": (78.11, 83.06, 91.45, 93.88),
        "e2efs-soft": (86.16, 89.93, 92.70, 93.68),
    },
    "cifar10": {
        "dfs": (67.43, 79.92, 87.71, 90.69),
        "sfs": (61.00, 72.49, 85.55, 90.44),
        "isfs": (64.15, 79.27, 89.85, 91.58),
        "sfs+dfs": (68.13, 79.03, 88.04, 91.06),
        "e2efs": (71.80, 82.76, 90.37, 93.01),
        "e2efs-soft": (76.50, 84.43, 91.32, 92.72),
    },
    "cifar100": {
        "dfs": (34.55, 49.68, 57.92, 67.42),
        "sfs": (24.66, 37.86, 56.66, 66.39),
        "isfs": (30.74, 44.55, 62.83, 67.22),
        "sfs+dfs": (36.86, 46.64, 60.46, 64.94),
        "e2efs": (40.48, 53.32, 63.08, 69.78),
        "e2efs-soft": (48.65, 56.98, 67.03, 70.30),
    },
}

#: Standard deviations that the paper prints, of its own methods only.
IMAGES_DEVIATIONS: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {"e2efs": (3.81, 0.90, 0.08, 0.04), "e2efs-soft": (0.53, 0.13, 0.09, 0.04)},
    "fashion_mnist": {"e2efs": (3.34, 1.30, 0.50, 0.09), "e2efs-soft": (0.44, 0.14, 0.18, 0.09)},
    "cifar10": {"e2efs": (0.32, 0.62, 0.51, 0.18), "e2efs-soft": (0.87, 0.26, 0.15, 0.17)},
    "cifar100": {"e2efs": (1.00, 1.15, 0.53, 0.15), "e2efs-soft": (0.45, 0.25, 0.18, 0.13)},
}
_HOUR = 3600
#: Seconds of the whole computation for the fewest pixels, as printed (iSFS in hours).
IMAGES_SECONDS: dict[str, dict[str, int]] = {
    name: dict(zip(("dfs", "sfs", "isfs", "sfs+dfs", "e2efs", "e2efs-soft"), values, strict=True))
    for name, values in {
        "mnist": (3960, 5940, 32 * _HOUR, 5940, 3420, 3420),
        "fashion_mnist": (4400, 6600, 35 * _HOUR, 6600, 3800, 3800),
        "cifar10": (4840, 7260, 39 * _HOUR, 7260, 4180, 4180),
        "cifar100": (4840, 7260, 39 * _HOUR, 7260, 4180, 4180),
    }.items()
}

#: The baselines with WRN-16-4 alone, which the source of the paper has in its comments (SFS+DFS on MNIST repeats DFS there).
IMAGES_ONE_NETWORK: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {
        "dfs": (92.92, 97.36, 98.72, 98.98),
        "sfs": (88.18, 94.98, 98.70, 99.41),
        "isfs": (96.76, 98.62, 99.10, 99.30),
        "sfs+dfs": (92.92, 97.36, 98.72, 98.98),
    },
    "fashion_mnist": {
        "dfs": (72.58, 76.52, 87.05, 92.61),
        "sfs": (64.17, 73.53, 85.60, 92.48),
        "isfs": (77.99, 82.58, 88.16, 91.72),
        "sfs+dfs": (65.09, 73.87, 85.86, 92.40),
    },
}
#: The authors' published result files, mean of five runs, all methods alike: for MNIST and Fashion-MNIST the three-layer
#: network selects and a new WRN-16-4 judges; for CIFAR a DenseNet does both.
IMAGES_FILES: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {
        "dfs": (76.93, 93.11, 97.97, 98.77),
        "sfs": (83.06, 93.19, 97.85, 98.84),
        "isfs": (83.99, 93.89, 97.71, 98.78),
        "e2efs": (91.34, 98.36, 99.34, 99.45),
        "e2efs-soft": (97.26, 99.01, 99.43, 99.59),
    },
    "fashion_mnist": {
        "dfs": (79.93, 84.11, 87.57, 89.97),
        "sfs": (79.95, 84.21, 87.84, 89.62),
        "isfs": (80.70, 84.80, 87.90, 89.96),
        "e2efs": (82.66, 87.98, 90.79, 92.10),
        "e2efs-soft": (85.48, 88.83, 90.97, 92.14),
    },
    "cifar10": {
        "dfs": (45.68, 54.25, 73.29, 82.43),
        "sfs": (45.95, 57.28, 74.42, 84.81),
        "e2efs": (69.32, 81.79, 89.47, 91.49),
        "e2efs-soft": (75.56, 83.04, 88.88, 90.99),
    },
    "cifar100": {
        "dfs": (25.85, 27.30, 40.83, 47.54),
        "sfs": (23.21, 31.98, 42.74, 50.66),
        "e2efs": (42.69, 54.59, 66.91, 69.98),
        "e2efs-soft": (49.68, 59.12, 66.86, 70.03),
    },
}

#: Figure of the three-layer network: the paper prints no numbers; these are from the authors' published result files for
#: MADELON (the network trained anew on 5, 10, 15 and 20 selected features).
THREE_LAYER_MADELON_SIZES = (5, 10, 15, 20)
THREE_LAYER_MADELON = {
    "e2efs": (0.8892, 0.8411, 0.8043, 0.7726),
    "e2efs-soft": (0.8912, 0.8631, 0.8223, 0.7806),
    "fisher": (0.6952, 0.8721, 0.8562, 0.8046),
    "mim": (0.6351, 0.6346, 0.6234, 0.6134),
    "relieff": (0.7486, 0.8788, 0.8920, 0.8941),
    "inffs": (0.6689, 0.7609, 0.7944, 0.7799),
    "ilfs": (0.5837, 0.6228, 0.6844, 0.7296),
    "dfs": (0.8820, 0.8552, 0.8170, 0.7877),
    "sfs": (0.6482, 0.7231, 0.7682, 0.7770),
    "isfs": (0.8840, 0.8967, 0.8762, 0.8391),
}

#: Share of true features among the top k, mean over p = 8 ... 2048 (Passemiers et al. 2023).
GROUND_TRUTH = {
    "random forest": {"ring": 1.00, "xor": 0.44, "ring+xor": 0.88, "ring+xor+sum": 0.84},
    "TreeSHAP": {"ring": 1.00, "xor": 0.27, "ring+xor": 0.80, "ring+xor+sum": 0.76},
    "mRMR": {"ring": 1.00, "xor": 0.03, "ring+xor": 0.80, "ring+xor+sum": 0.72},
    "LassoNet (light budget)": {"ring": 0.20, "xor": 0.78, "ring+xor": 0.38, "ring+xor+sum": 0.60},
    "CancelOut": {"ring": 0.19, "xor": 0.52, "ring+xor": 0.31, "ring+xor+sum": 0.51},
    "ReliefF": {"ring": 0.27, "xor": 0.67, "ring+xor": 0.30, "ring+xor+sum": 0.38},
    "Saliency": {"ring": 0.17, "xor": 0.48, "ring+xor": 0.27, "ring+xor+sum": 0.49},
    "concrete autoencoder": {"ring": 0.07, "xor": 0.10, "ring+xor": 0.10, "ring+xor+sum": 0.18},
}

#: MADELON, k = 20: AUROC on the validation part of a forest trained on the selected columns (the same paper).
MADELON_AUROC = {
    "random": 0.612,
    "mutual information": 0.833,
    "ReliefF": 0.941,
    "LassoNet": 0.950,
    "random forest": 0.965,
    "CancelOut": 0.697,
}
