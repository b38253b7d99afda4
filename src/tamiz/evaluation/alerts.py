"""Alerts about rows, columns and what was kept: what makes scores look better than they are."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import list_some, quote
from tamiz.evaluation.metrics import get_metric
from tamiz.evaluation.results import Evaluation
from tamiz.evaluation.subjects import Subject
from tamiz.rows.rows import Rows
from tamiz.tables.columns import Alert, is_running_number

#: Fewer rows are too few to tell a running number from a measurement.
_LEAST_ROWS = 20
#: A smaller share of rows that are copies changes no score that one could see.
_LEAST_SHARE_OF_COPIES = 0.01
#: Rows that nearly repeat another are told of from this share on; where they are merely nearer than expected, from the second
#: on: in few dimensions rows lie unevenly, and a third may seem so.
_LEAST_SHARE_OF_NEAR_COPIES, _LEAST_SHARE_OF_NEAR_ROWS = 0.05, 0.4
#: A class of fewer rows is rare; a column with a higher score on held-out rows is suspected to be a leak.
_FEW_ROWS, _LEAK = 10, 0.95
#: Rows, evenly, whose ranks tell which columns to look at.
_MOST_RANKED = 5000
#: Correlation of columns that are nearly copies; sought among so many columns, in so many rows.
_NEAR_COPY, _MOST_COMPARED = 0.995, (2000, 1000)
#: More sets of copied columns are one alert.
_MOST_SETS = 5
#: Cells that are looked at; of larger tables the first rows.
_MOST_CELLS = 20_000_000
_CELLS_AT_ONCE = 4_000_000


def find_repeated(X: Any, y: Any) -> np.ndarray:
    """Mark the rows that are copies of an earlier row, features and target alike.

    Columns of few values make equal rows by chance; where that is likely, none are marked.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> found = [find_repeated(table, np.zeros(35)) for table in (np.vstack([X, X[:5]]), np.zeros((35, 2)))]
    >>> [np.flatnonzero(rows).tolist() for rows in found]
    [[30, 31, 32, 33, 34], []]
    """
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        rows = [X.data[a:b].tobytes() + X.indices[a:b].tobytes() for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
        distinct = None
    else:
        X = np.ascontiguousarray(X)
        rows = [row.tobytes() for row in X]
        distinct = np.array([np.unique(X[:, j]).size for j in range(min(X.shape[1], 200))])
    rows = [row + repr(target).encode() for row, target in zip(rows, np.asarray(y).tolist(), strict=True)]
    seen, repeated = set[bytes](), np.zeros(len(rows), dtype=bool)
    for number, row in enumerate(rows):
        repeated[number] = row in seen
        seen.add(row)
    if repeated.any() and distinct is not None and np.log(distinct).sum() < np.log(10.0 * len(rows) ** 2):
        repeated[:] = False
    return repeated


def find_identifiers(X: Any) -> dict[int, str]:
    """Find columns that look like a running number or an identifier, and which of the two.

    A running number counts the rows, in any order. An identifier is a different whole number in every row.

    Examples
    --------
    >>> X = np.column_stack([np.arange(30), np.random.default_rng(0).permutation(1000)[:30], np.linspace(0, 1, 30) ** 2])
    >>> find_identifiers(X)
    {0: 'a running number', 1: 'an identifier'}
    """
    if sp.issparse(X) or X.shape[0] < _LEAST_ROWS:
        return {}
    found = {}
    for j in range(X.shape[1]):
        column = np.asarray(X[:, j], dtype=np.float64)
        column = column[np.isfinite(column)]
        if column.size < max(_LEAST_ROWS, 0.9 * X.shape[0]) or np.any(column != np.round(column)):
            continue
        if is_running_number(column):
            found[j] = "a running number"
        elif np.unique(column).size == column.size:
            found[j] = "an identifier"
    return found


def find_column_copies(X: Any) -> list[tuple[int, int, bool]]:
    """Find pairs of columns that are copies of each other, up to unit and sign, or nearly; tell which are exact.

    Columns are compared in the rows where both have a value. Copies without gaps have the same projection on a random
    direction, so that of many columns only neighbours in the order of projections are compared; near copies are not sought
    there.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> find_column_copies(np.column_stack([X, 5 - 2 * X[:, 1], X[:, 2] + 0.01 * X[:, 3]]))
    [(1, 4, True), (2, 5, False)]
    """
    if sp.issparse(X) or X.shape[0] < _LEAST_ROWS:
        return []
    X = np.asarray(X, dtype=np.float64)
    known = np.isfinite(X)
    whole, n_known = bool(known.all()), np.maximum(known.sum(axis=0), 1)
    Z = X if whole else np.where(known, X, 0.0)
    Z = Z - Z.sum(axis=0) / n_known
    if not whole:
        Z[~known] = 0.0
    Z /= np.maximum(np.linalg.norm(Z, axis=0), 1e-300)
    if few := Z.shape[1] <= _MOST_COMPARED[1]:
        some, held = Z[: _MOST_COMPARED[0]], known[: _MOST_COMPARED[0]].astype(np.float64)
        in_both = (some**2).T @ held  # the square sum of each column where the other one has a value
        pairs = np.argwhere(np.triu((some.T @ some) ** 2 > 0.98 * in_both * in_both.T, 1))
    else:
        projected = np.abs(np.random.default_rng(0).normal(size=Z.shape[0]) @ Z)
        order = np.argsort(projected, kind="stable")
        near = np.flatnonzero((np.diff(projected[order]) < 1e-5) & (projected[order][1:] > 0))
        pairs = np.sort(np.column_stack([order[near], order[near + 1]]), axis=1)
    found = []
    for i, j in pairs.tolist():
        if (both := known[:, i] & known[:, j]).sum() < _LEAST_ROWS:
            continue
        one, other = (Z[both, column] - Z[both, column].mean() for column in (i, j))
        r = abs(float(one @ other)) / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-300)
        if r > (_NEAR_COPY if few else 1 - 1e-6):
            found.append((i, j, r > 1 - 1e-6))
    return sorted(found)


def _find_copy_alerts(rows: Rows, copies: list[tuple[int, int, bool]]) -> list[Alert]:
    """Name each set of columns that are copies or nearly so; columns of several levels are not compared."""
    single = np.bincount(rows.columns, minlength=len(rows.names)) == 1
    first, exact = np.arange(single.size), np.zeros(single.size, dtype=bool)
    near = exact.copy()
    for i, j, same in copies:
        i, j = rows.columns[[i, j]]
        if single[i] and single[j]:
            first[first == first[j]] = first[i]
            (exact if same else near)[i] = True
    found = []
    for column in np.flatnonzero(np.bincount(first) > 1):
        alike = first == column
        names, kind = tuple(rows.names[k] for k in np.flatnonzero(alike)), "copy" if exact[alike].any() else "near copy"
        words = "copies, up to their unit" if kind == "copy" else f"nearly copies (correlation above {_NEAR_COPY})"
        words += ", or nearly" if kind == "copy" and near[alike].any() else ""
        do = "leave one out" if len(names) == 2 else "keep one"
        found.append(Alert(kind, names, f"Columns {list_some(names)} are {words}: {do}."))
    if len(found) <= _MOST_SETS:
        return found
    names = tuple(name for alert in found for name in alert.columns)
    message = f"{len(found):,} sets of columns are copies, or nearly: {list_some(names)}. Keep one of each."
    return [Alert("copy", names, message)]


def find_row_alerts(rows: Rows) -> list[Alert]:
    """Find copies and near copies of rows and of columns, and columns that look like running numbers or identifiers.

    Parameters
    ----------
    rows : Rows
        The rows; of large tables the first are looked at.

    Examples
    --------
    >>> X = np.column_stack([np.arange(30.0), np.random.default_rng(0).normal(size=30)])
    >>> find_row_alerts(Rows(X, np.zeros(30), names=["id", "x"]))[0].message
    "Column 'id' looks like a running number: leave it out unless it measures something."
    """
    n_features = max(1, rows.columns.size)
    some = rows.used[: max(1, _MOST_CELLS // n_features)]
    part, found = rows.fold(some, some[:1])[0], list[Alert]()
    with_gaps, numbers = part.X, getattr(rows.source, "numbers", None)
    if numbers is not None and not sp.issparse(numbers) and np.isnan(numbers).any():
        encoder = copy.copy(rows.encoder).set_params(impute=False)  # imputed values hide copies and running numbers
        with_gaps = encoder.fit(rows.source, rows=some).transform(rows.source, rows=some)
    column_copies, repeated = find_column_copies(with_gaps), find_repeated(part.X, part.y)
    identifiers = find_identifiers(with_gaps[~repeated] if repeated.any() else with_gaps)
    measured = np.delete(np.arange(part.X.shape[1]), list(identifiers))
    if identifiers:  # they differ in rows that are copies otherwise
        repeated = find_repeated(part.X[:, measured], part.y)
    n_repeated = int(repeated.sum())
    if n_repeated and n_repeated >= _LEAST_SHARE_OF_COPIES * some.size:
        message = (
            f"{n_repeated:,} of {some.size:,} rows are copies of other rows. Copies in the training and the test part of a fold "
            "make the score too good: remove them, or keep them together with groups."
        )
        found.append(Alert("repeated rows", (), message))
    elif rows.groups is None and rows.time is None:
        measured = np.setdiff1d(measured, [other for _, other, _ in column_copies])
        share = share_of_near_copies(part.X[:, measured] if measured.size < part.X.shape[1] else part.X)
        if share >= _LEAST_SHARE_OF_NEAR_COPIES:
            message = (
                f"{share:.0%} of the rows nearly repeat another row, as those of one patient or machine do. In the training and "
                "the test part of a fold they make the score too good: keep them together with groups, or name the time."
            )
            found.append(Alert("near-repeated rows", (), message))
    found += _find_copy_alerts(rows, column_copies)
    for kind in ("a running number", "an identifier"):
        names = tuple(rows.names[rows.columns[j]] for j, its in identifiers.items() if its == kind)
        if names:
            one = len(names) == 1
            looks = f"Column {quote(names[0])} looks" if one else f"{len(names)} columns ({list_some(names)}) look each"
            found.append(Alert("identifier", names, f"{looks} like {kind}: leave it out unless it measures something."))
    return found


def find_target_alerts(rows: Rows, task: str) -> list[Alert]:
    """Find a target that is a running number, and classes of few rows.

    Examples
    --------
    >>> find_target_alerts(Rows(np.zeros((30, 1)), np.arange(30.0)), "regression")[0].kind
    'running target'
    >>> find_target_alerts(Rows(np.zeros((30, 1)), np.arange(30) < 4), "classification")[0].message
    "Class 'True' of the target has 4 rows, too few for a score to trust: join it with another, or leave its rows out."
    """
    y = rows.y[rows.used]
    if y.ndim > 1:
        return []
    if task == "regression":
        kinds = [alert.kind for alert in getattr(rows.source, "alerts", ())]
        if not is_running_number(y) or "running target" in kinds:  # the table itself may have said so
            return []
        return [Alert("running target", (), "The target is evenly spaced, as running numbers are: choose another one.")]
    rare = [(label, count) for label, count in zip(*np.unique(y, return_counts=True), strict=True) if count < _FEW_ROWS]
    if not rare:
        return []
    advice = "too few for a score to trust: join {0} with another, or leave {1} rows out."
    if len(rare) == 1:
        message = f"Class {quote(rare[0][0])} of the target has {rare[0][1]} rows, {advice.format('it', 'its')}"
    else:
        labels, few = list_some([label for label, _ in rare]), f"fewer than {_FEW_ROWS} rows each"
        message = f"Classes {labels} of the target have {few}, {advice.format('each', 'their')}"
    return [Alert("rare class", (), message)]


def share_of_near_copies(X: Any, seed: int = 0) -> float:
    """Estimate the share of rows that have a neighbour much nearer than rows drawn one by one would have.

    Where fewer rows have one, only those are counted that repeat another with small changes.
    The distances to the 6th to 15th neighbour give the dimension of the rows (Levina and Bickel 2004), and with it the
    distance to the first that is expected. Of many rows, those are compared that a sample of 2,000 holds.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> patients = np.repeat(generator.normal(size=(40, 20)), 3, axis=0)
    >>> bool(share_of_near_copies(patients + 0.1 * generator.normal(size=patients.shape)) > 0.9)
    True
    >>> share_of_near_copies(generator.normal(size=(120, 20)))
    0.0
    """
    from sklearn.neighbors import NearestNeighbors

    generator, far, near = np.random.default_rng(seed), 15, 5
    rows, columns = (
        np.sort(generator.choice(n, most, replace=False)) if n > most else np.arange(n)
        for n, most in zip(X.shape, (2000, 1000), strict=True)
    )
    part = X[rows][:, columns]
    Z = np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)
    Z = np.where(np.isfinite(Z), Z, 0.0)
    Z = (Z - Z.mean(axis=0)) / np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1.0)
    if rows.size < 2 * far:
        return 0.0
    distances = NearestNeighbors(n_neighbors=far).fit(Z).kneighbors()[0]
    fine = distances[:, 0] > 1e-5 * np.median(distances[:, -1])  # equal rows are counted elsewhere
    if fine.sum() < far:
        return 0.0
    logs = np.log(distances[fine, -1:] / distances[fine])
    dimension = 1 / max(float(logs[:, near:-1].mean()), 1e-9)
    expected = float(np.sum(1 / np.arange(1, far))) / dimension
    # Three times the expected ratio is five deviations away; copies with small changes are farther still.
    nearer, repeated = (float(np.mean(logs[:, 0] > max(n * expected, least))) for n, least in ((3, 0.5), (8, 2.5)))
    return nearer if nearer >= _LEAST_SHARE_OF_NEAR_ROWS else repeated


def find_leaks(evaluation: Evaluation, rows: Rows, X: Any) -> list[Alert]:
    """Find columns that alone predict the target nearly perfectly on held-out rows, as well as all columns together.

    Columns whose ranks separate a class (or follow the numbers of the target) are judged by a small tree over the folds. Rows
    of rare classes are left out: no column predicts these.

    Parameters
    ----------
    evaluation : Evaluation
        Its folds, units and score of all columns are used.
    rows : Rows
        The rows.
    X : ndarray
        Encoded rows; sparse ones are not searched.
    """
    from scipy.stats import rankdata
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if sp.issparse(X) or np.ndim(rows.y) > 1 or rows.used.size < _LEAST_ROWS:
        return []
    used, classes = rows.used, evaluation.task == "classification"
    if classes:
        _, codes, counts = np.unique(rows.y[used], return_inverse=True, return_counts=True)
        frequent = counts[codes] >= _FEW_ROWS
        if not frequent.all() and np.count_nonzero(counts >= _FEW_ROWS) > 1:
            used, X = used[frequent], X[frequent]
    y = rows.y[used]
    some = np.arange(0, y.size, -(-y.size // _MOST_RANKED))
    targets = [y[some] == label for label in np.unique(y[some])] if classes else [rankdata(y[some])]
    # Levels may tell together what none tells alone.
    suspects = set(np.flatnonzero(np.bincount(evaluation.units) > 1).tolist()) if classes else set()
    step = max(1, _CELLS_AT_ONCE // some.size)
    for start in range(0, X.shape[1], step):
        part = X[some, start : start + step]
        tables = (np.nan_to_num(part), np.isnan(part)) if np.isnan(part).any() else (part,)
        for ranks, target in itertools.product((rankdata(table, axis=0) for table in tables), targets):
            if classes:
                n = int(target.sum())
                area = (ranks[target].sum(axis=0) - n * (n + 1) / 2) / n / max(1, some.size - n)
                found = np.abs(area - 0.5) > 0.45
            else:
                centred, deviation = ranks - ranks.mean(axis=0), target - target.mean()
                spread = np.linalg.norm(centred, axis=0) * np.linalg.norm(deviation)
                found = np.abs(centred.T @ deviation) > 0.85 * np.maximum(spread, 1e-12)
            suspects.update(evaluation.units[start : start + step][found].tolist())
    place = np.full(rows.n_rows, -1)
    place[used] = np.arange(y.size)
    metric = evaluation.metric
    if metric.response != "predict" or not metric.greater_is_better:
        metric = get_metric(None, evaluation.task)
    everything = evaluation.interval("all_features").value if metric is evaluation.metric else 1.0
    leaks = []
    for unit in sorted(suspects):
        own, parts = np.asarray(X[:, evaluation.units == unit], dtype=np.float64), []
        for train, test in evaluation.splits[: evaluation.n_folds]:
            train, test = train[place[train] >= 0], test[place[test] >= 0]
            tree: Any = DecisionTreeClassifier(max_depth=4, class_weight="balanced", random_state=0)
            tree = tree if classes else DecisionTreeRegressor(max_leaf_nodes=50, random_state=0)
            tree.fit(own[place[train]], rows.y[train])
            parts.append(metric.measure(rows.y[test], tree.predict(own[place[test]]), rows.y[train]))
        score, name = float(np.nanmean(metric.combine(parts))), evaluation.names[unit]
        if score > max(_LEAK, everything - 0.03):
            message = (
                f"Column {quote(name)} alone predicts the target ({metric.name} {score:.3f} on held-out rows): "
                "is it known at the time of the prediction? If not, leave it out."
            )
            leaks.append(Alert("leak", (name,), message))
    return leaks


def find_seed_alerts(names: Sequence[str], support: np.ndarray, again: np.ndarray) -> list[Alert]:
    """Name the kept columns that a fit with another random state does not keep.

    Examples
    --------
    >>> find_seed_alerts(["a", "b", "c"], np.array([True, True, False]), np.array([True, False, True]))[0].message
    "Another random state keeps 'c' instead of 'b': their places are not certain."
    """
    lost, found = (tuple(names[int(j)] for j in np.flatnonzero(one)) for one in (support & ~again, again & ~support))
    message = (
        f"Another random state keeps {list_some(found)} instead of {list_some(lost)}: their places are not certain."
    )
    return [Alert("seed", lost, message)] if lost else []


def find_selection_alerts(evaluation: Evaluation, support: np.ndarray, X: Any, units: np.ndarray) -> list[Alert]:
    """Find kept columns that few folds kept or that are constant, and folds without a score.

    Parameters
    ----------
    evaluation : Evaluation
        Scores over folds.
    support : ndarray of bool
        Columns of the table that were kept.
    X : ndarray or sparse matrix
        Encoded rows.
    units : ndarray of int
        Column of the table of each column of X.
    """
    names, kept = evaluation.names, np.flatnonzero(support)
    found = []
    rare = tuple(names[j] for j in kept if evaluation.fold_share[j] < 0.5)
    if rare:
        verb = "was" if len(rare) == 1 else "were"
        message = (
            f"{len(rare)} of {kept.size} kept columns {verb} kept by fewer than half of the folds: {list_some(rare)}. "
            "Such columns are the least certain; more rows or fewer columns help."
        )
        found.append(Alert("unstable", rare, message))
    columns = np.flatnonzero(np.isin(units, kept))
    part = X[:, columns]
    Z = np.nan_to_num(np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64))
    constant = tuple(names[j] for j in np.setdiff1d(kept, units[columns[np.ptp(Z, axis=0) > 0]]))
    if constant:
        message = f"Kept although constant: {list_some(constant)}. There are fewer columns of use than were asked for."
        found.append(Alert("constant", constant, message))
    without = int((~np.isfinite(evaluation.values("kept"))).sum())
    if without:
        message = (
            f"In {without} of {len(evaluation.folds)} folds {evaluation.metric.name} is not defined; "
            "the score is that of the others."
        )
        found.append(Alert("no score", (), message))
    return found


def find_alerts(
    evaluation: Evaluation, subject: Subject, X: Any, support: np.ndarray, again: np.ndarray
) -> tuple[Alert, ...]:
    """Collect the alerts about a study, each kind once for the same columns.

    Parameters
    ----------
    evaluation : Evaluation
        Scores on held-out rows.
    subject : Subject
        What was evaluated, with its rows.
    X : array or sparse matrix
        All rows, encoded.
    support, again : ndarray of bool
        Columns that were kept, and those that a fit with another seed keeps.
    """
    rows = subject.rows
    found = [
        *find_leaks(evaluation, rows, X),
        *find_row_alerts(rows),
        *find_target_alerts(rows, subject.task),
        *find_selection_alerts(evaluation, support, X, subject.units),
        *find_seed_alerts(subject.unit_names, support, again),
        *getattr(rows.source, "alerts", ()),
    ]
    about = {(alert.kind, alert.columns): alert for alert in reversed(found)}
    # Of columns that are dropped there is nothing to tell, nor of what was a copy of one of them.
    dropped = {*subject.unit_names} - {subject.unit_names[unit] for unit in subject.allowed}
    return tuple(
        alert
        for (kind, columns), alert in reversed(about.items())
        if not dropped.intersection(columns) or len({*columns} - dropped) > kind.endswith("copy")
    )
