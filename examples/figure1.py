"""Figure 1 of the paper: the penalty over the unit square for two features, M = 1.

The binary penalty alone has its minima in all four corners, none and both features among them; with the count penalty
only the two corners with exactly one feature are left. Writes ``figure1.png`` (or the file named on the command line).
"""

import sys

import numpy as np

from tamiz.core.step import binary_penalty, penalty


def surfaces(n: int = 41) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The grid in one direction, and both penalties over the square."""
    grid = np.linspace(0, 1, n)
    masks = [[np.array([a, b]) for b in grid] for a in grid]
    return (
        grid,
        np.array([[binary_penalty(mask) for mask in row] for row in masks]),
        np.array([[penalty(mask, target=1) for mask in row] for row in masks]),
    )


def draw(path: str) -> None:
    """Both surfaces side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grid, binary, both = surfaces()
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), subplot_kw={"projection": "3d"}, layout="constrained")
    a, b = np.meshgrid(grid, grid, indexing="ij")
    for ax, values, title in zip(axes, (binary, both), ("$L_{1-2}$", "$L_{1-2} + L_M$, $M = 1$")):
        ax.plot_surface(a, b, values, cmap="viridis", rstride=1, cstride=1, linewidth=0)
        ax.set(xlabel=r"$\gamma_1$", ylabel=r"$\gamma_2$", title=title)
        ax.view_init(elev=28, azim=-120)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else "figure1.png"
    draw(target)
    _, binary, both = surfaces(2)
    print("corners (0,0) (0,1) (1,0) (1,1)")
    print("  L12     ", binary.ravel().tolist())
    print("  L12 + LM", both.ravel().tolist())
    print("drawn in", target)
