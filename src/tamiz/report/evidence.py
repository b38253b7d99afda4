"""Records of what the page shows beside the scores: cells, correlations, folds, pairs, projections, sets by M."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Hold z scores of kept columns (rows of ``z``) by rows of the table (columns of ``z``), both ordered by clustering.

    Parameters
    ----------
    names : tuple of str
        Names of the kept columns.
    rows : ndarray of int
        Rows of the table, counted from 0.
    z : ndarray of shape (n_names, n_rows)
        Standardised values; NaN is missing.
    groups : ndarray of int
        Class (or third of the target) of each row.
    labels : tuple of str
        Names of the groups.
    wrong : ndarray of bool or None, default=None
        Rows whose held-out prediction was wrong.
    n_rows : int, default=0
        Rows that the table has.
    """

    names: tuple[str, ...]
    rows: np.ndarray
    z: np.ndarray
    groups: np.ndarray
    labels: tuple[str, ...]
    wrong: np.ndarray | None = None
    n_rows: int = 0


@dataclass(frozen=True, eq=False)
class HeatSets:
    """Hold the cells of the heat maps of several sets of columns, over the rows of the heat map of the page.

    Parameters
    ----------
    names : tuple of str
        Names of the columns that any of the sets has.
    codes : ndarray of uint8, shape (n_columns, n_rows)
        Their z scores, see :func:`~tamiz.report.raster.quantise`.
    orders : dict of int to tuple of int
        For each M the places of its columns in ``names``, columns that are alike side by side.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    orders: dict[int, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Correlations:
    """Hold Pearson correlations of kept columns, in the order of the heat map."""

    names: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True)
class ActsWith:
    """Name a column that acts together with a kept one, beyond what each says alone."""

    name: str
    partner: str
    partner_kept: bool
    shape: str
    p_value: float


@dataclass(frozen=True)
class PairsFound:
    """Hold the pairs with a kept column among ``n_searched`` columns; ``note`` says why there are none to judge."""

    found: tuple[ActsWith, ...] = ()
    n_searched: int = 0
    note: str = ""


@dataclass(frozen=True, eq=False)
class FoldGrid:
    """Hold which folds kept which columns: the kept columns, then those that half of the folds chose and the fit did not.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    kept : tuple of bool
        Whether the fit on all rows kept them.
    chosen : ndarray of bool, shape (n_names, n_folds)
        Whether each fold kept them.
    """

    names: tuple[str, ...]
    kept: tuple[bool, ...]
    chosen: np.ndarray


@dataclass(frozen=True)
class Stability:
    """Hold the stability of the selection over folds: 1 is always the same set.

    Parameters
    ----------
    value : float
        Nogueira's measure.
    null : float or None, default=None
        Value that 95 % of selections without a signal stay below, where it was measured.
    p_value : float or None, default=None
        Share of selections without a signal that are at least as stable.
    n_folds : int, default=0
        Folds.
    """

    value: float
    null: float | None = None
    p_value: float | None = None
    n_folds: int = 0


@dataclass(frozen=True, eq=False)
class Projection:
    """Hold two principal components of the training rows of one fold, and where its held-out rows fall.

    Parameters
    ----------
    title : str
        Which columns.
    points : ndarray of shape (n_rows, 2)
        Coordinates.
    groups : ndarray of int
        Class of each row.
    held_out : ndarray of bool
        Rows that the fold held out.
    explained : tuple of float
        Share of the variance that each component explains.
    labels : tuple of str
        Names of the classes.
    """

    title: str
    points: np.ndarray
    groups: np.ndarray
    held_out: np.ndarray
    explained: tuple[float, float]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class KeptSet:
    """Hold the columns that are kept with another M, by contribution, and their effects."""

    n_features: int
    columns: tuple[int, ...]
    effects: tuple[float | None, ...]
