"""find_pairs from end to end: what it finds, what it does not report, bad input."""

import io
import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tamiz import E2EFSClassifier, Training, find_pairs
from tamiz.pairs import search
from tamiz.pairs.search import screening_scores
from tamiz.paper import load_dataset, make_ground_truth


def logistic(random, logit):
    return (random.random(len(logit)) < 1 / (1 + np.exp(-logit))).astype(int)


@pytest.mark.parametrize(
    ("problem", "n_features"),
    [("ring", 256), ("xor", 64), ("ring+xor", 256), ("ring+xor+sum", 64)],
)
def test_true_columns_come_first(problem, n_features):
    X, y, truth = make_ground_truth(problem, 834, n_features, random_state=3)
    found = find_pairs(X, y, random_state=0, n_permutations=5)
    n_true = len(truth.informative)
    assert truth.share_found(found.ranking[:n_true]) == 1.0
    assert set(truth.informative) <= set(found.significant_columns())
    assert np.delete(found.scores, truth.informative).max() < 3


def test_the_same_rows_are_screened_once(monkeypatch):
    """Three folds and the table, whatever the number of M; another target is another search."""
    calls, search_full = [], search._search_full
    monkeypatch.setattr(search, "_search_full", lambda *args, **kw: calls.append(1) or search_full(*args, **kw))
    X = np.random.default_rng(5).normal(size=(90, 30))
    y = np.abs(X[:, 3]) > 0.7
    model = E2EFSClassifier("auto", network="pairs", cv=3, training=Training(ramp_steps=300), random_state=0).fit(X, y)
    assert (len(calls), len(model.cv_results_["n_features"])) == (4, 9)
    targets = np.where(y, 1.0, -1.0)[:, None]
    first = screening_scores(X, targets, is_classification=True)
    expected = first.copy()
    first[:] = 0.0
    np.testing.assert_array_equal(screening_scores(X, targets, is_classification=True), expected)
    assert len(calls) == 5
    assert not np.array_equal(screening_scores(X, -np.roll(targets, 1), is_classification=True), expected)
    assert len(calls) == 6


@pytest.mark.data
@pytest.mark.skipif("TAMIZ_DATA_HOME" not in os.environ, reason="TAMIZ_DATA_HOME is not set")
def test_madelon_has_twenty_relevant_columns():
    data = load_dataset("madelon", download=False)
    X, y = np.asarray(data.data), np.asarray(data.target)
    found = find_pairs(X, y, random_state=0, n_permutations=10)
    correlation = np.abs(np.corrcoef(X.T)) - np.eye(X.shape[1])
    relevant = np.flatnonzero(correlation.max(axis=0) > 0.5)
    assert len(relevant) == 20
    assert set(found.ranking[:20]) == set(relevant)
    assert len(found.significant_columns()) in (20, 21)


def test_a_product_on_top_of_two_strong_columns_is_found():
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 40))
    y = logistic(random, 0.7 * (X[:, 0] + X[:, 1]) + 2 * X[:, 5] * X[:, 6] + 2 * X[:, 0] * X[:, 1])
    found = find_pairs(X, y, random_state=0)
    assert {pair.indices for pair in found.pairs[:2]} == {(0, 1), (5, 6)}
    assert all(pair.p_value < 1e-4 for pair in found.pairs[:2])


@pytest.mark.parametrize("kind", ["wrong labels", "multiplied", "removable product"])
def test_effects_that_add_up_on_another_scale_are_a_matter_of_scale(kind):
    random = np.random.default_rng(1)
    X = random.normal(size=(1000, 20))
    if kind == "wrong labels":
        y = logistic(random, 6 * (X[:, 0] + X[:, 1]))
        y = np.where(random.random(1000) < 0.1, 1 - y, y)
    elif kind == "multiplied":
        y = np.exp(X[:, 0] + X[:, 1] + 0.5 * random.normal(size=1000))
    else:  # 2 a + 2 b + 1.5 a b = 1.5 (a + 4/3) (b + 4/3) - 8/3
        y = logistic(random, 2 * (X[:, 0] + X[:, 1]) + 1.5 * X[:, 0] * X[:, 1])
    found = find_pairs(X, y, random_state=0)
    assert found.significant_pairs() == []
    (scaled,) = [pair for pair in found.pairs if pair.shape.endswith(", a matter of scale")]
    assert scaled.indices == (0, 1)
    assert "A matter of scale: x0 and x1 act together only on the given scale" in found.note


def test_strong_additive_columns_of_a_regression_are_no_pair():
    random = np.random.default_rng(0)
    X = random.uniform(size=(500, 30))
    y = 10 * X[:, 0] + 5 * np.exp(X[:, 1]) + 0.1 * random.normal(size=500)
    found = find_pairs(X, y, random_state=0)
    assert set(found.significant_columns()) == {0, 1}
    assert found.significant_pairs() == []
    with_product = find_pairs(X, y + 3 * (X[:, 2] - 0.5) * (X[:, 3] - 0.5), random_state=0)
    assert with_product.significant_pairs()[0].indices == (2, 3)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_pairs_of_several_classes(n_classes):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 30))
    y = np.array(list("abcd"))[np.digitize(X[:, 3] * X[:, 7], [-0.5, 0.0, 0.5][: n_classes - 1])]
    found = find_pairs(X, y, random_state=0)
    assert found.pairs[0].indices == (3, 7)
    assert set(found.significant_columns()) == {3, 7}


def test_categorical_columns_and_groups():
    random = np.random.default_rng(0)
    colour, size = random.integers(0, 4, 500), random.normal(size=500)
    frame = pd.DataFrame(random.normal(size=(500, 20)), columns=[f"n{i}" for i in range(20)])
    frame["colour"] = np.array(["red", "green", "blue", "black"])[colour]
    frame["size"] = size
    y = np.where(np.isin(colour, [0, 2]), size > 0, size < 0).astype(int)
    found = find_pairs(frame, y, categorical="auto", random_state=0)
    assert (found.pairs[0].first, found.pairs[0].second, found.pairs[0].shape) == ("colour", "size", "level x linear")
    dummies = np.column_stack([frame.drop(columns="colour"), np.eye(4)[colour]])
    grouped = find_pairs(dummies, y, groups=[*range(21), *["colour"] * 4], random_state=0)
    assert (grouped.pairs[0].first, grouped.pairs[0].second) == ("20", "colour")
    assert grouped.pairs[0].strength == pytest.approx(found.pairs[0].strength, rel=1e-3)


def test_a_sparse_table_gives_what_the_dense_one_of_degree_1_gives():
    X = sp.random(300, 60, density=0.25, format="csr", random_state=0)
    dense = X.toarray()
    y = (dense[:, 3] > 0) ^ (dense[:, 7] > 0)
    a, b = (find_pairs(table, y, degree=1, random_state=0, n_permutations=5) for table in (X, dense))
    assert set(a.significant_columns()[:2]) == {3, 7}
    assert a.pairs[0].indices == (3, 7)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-5, atol=1e-3)


def test_weights_of_zero_leave_rows_out():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 10))
    y = (X[:, 3] * X[:, 7] > 0).astype(int)
    y[300:] = (X[300:, 1] * X[300:, 2] > 0).astype(int)
    weight = np.repeat([1.0, 0.0], 300)
    found = find_pairs(X, y, sample_weight=weight, random_state=0)
    assert [pair.indices for pair in found.significant_pairs()] == [(3, 7)]
    doubled = find_pairs(X, y, sample_weight=5 * weight, random_state=0)
    np.testing.assert_allclose(doubled.scores, found.scores)


def test_same_seed_same_result_whatever_the_threads():
    X, y, _ = make_ground_truth("ring", 300, 600, random_state=0)
    a, b = (find_pairs(X, y, random_state=1, n_jobs=jobs, n_permutations=4) for jobs in (1, 3))
    np.testing.assert_array_equal(a.scores, b.scores)
    assert a.pairs == b.pairs
    assert a.n_effective_tests == b.n_effective_tests


def test_copies_are_no_pair_and_what_cannot_be_searched_is_told_with_the_reason():
    random = np.random.default_rng(0)
    X = np.repeat(random.normal(size=(200, 1)), 6, axis=1)
    found = find_pairs(X, (np.abs(X[:, 0]) > 0.7).astype(int), random_state=0)
    assert found.significant_pairs() == find_pairs(X, np.arange(200) % 2, random_state=0).significant_pairs() == []
    assert len(found.significant_columns()) == 6
    X = random.normal(size=(100, 5))
    X[:, 2] = 4.0
    found = find_pairs(X, np.arange(100) % 2, random_state=0)
    assert list(found.unused) == ["x2"]
    assert "constant" in found.unused["x2"]
    assert (found.p_values[2], found.partners[2]) == (1.0, -1)
    for table, words in (
        (np.ones((50, 3)), "no pair to judge: 0 of 3"),
        (X[:50, :1], "no pair to judge: 1 of 1"),
        (X[:19], "cannot be judged on 19 rows: give at least 20"),
    ):
        nothing = find_pairs(table, np.arange(len(table)) % 2)
        assert nothing.pairs == []
        assert words in repr(nothing)


X0, Y0 = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.zeros(30)}, "holds only one class"),
        ({"y": np.full(30, 1.5), "task": "regression"}, "y is constant"),
        ({"y": np.arange(30).astype(str)}, "30 classes on 30 rows"),
        ({"y": Y0[:20]}, "one entry for each of the 30 rows"),
        ({"y": np.where(Y0, np.nan, 0.5)}, "Input y contains NaN"),
        ({"y": np.array(["a", None] * 15, dtype=object)}, "Input y contains NaN"),
        ({"X": np.where(X0 > 1, np.nan, X0)}, "contains NaN in column"),
        ({"X": np.full((30, 2), "a")}, "could not convert string to float"),
        ({"degree": 5}, "degree == 5, must be <= 4"),
        ({"n_permutations": -1}, "n_permutations == -1, must be >= 0"),
        ({"n_permutations": "many"}, "n_permutations must be an instance of"),
        ({"n_pairs": 0}, "n_pairs == 0, must be >= 1"),
        ({"method": "quick"}, "Unknown method 'quick'.*auto, full, sketch"),
        ({"task": "regresion"}, "Did you mean 'regression'"),
        ({"sample_weight": np.ones(3)}, "sample_weight must hold 30"),
        ({"sample_weight": -np.ones(30)}, "finite numbers from 0"),
        ({"y": np.where(np.arange(30) < 5, "a", "b"), "sample_weight": np.arange(30) > 9}, "one class only .'b'."),
    ],
)
def test_bad_input_is_reported(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        find_pairs(**{"X": X0, "y": Y0, **arguments})


def test_progress_shows_the_time_left(monkeypatch):
    stream, bar = io.StringIO(), search.ProgressBar
    monkeypatch.setattr(search, "ProgressBar", lambda label: bar(label, stream=stream, delay=0, interval=0))
    find_pairs(X0, Y0, verbose=1, n_permutations=3, random_state=0)
    assert all(words in stream.getvalue() for words in ("find_pairs [", " left", "100%"))


def test_more_permutations_while_the_strongest_pair_is_in_doubt():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 6))
    counts = {}
    for strength in (0.0, 0.3, 0.4, 0.5, 5.0):
        y = strength * X[:, 0] * X[:, 1] + random.normal(size=60)
        found = find_pairs(X, y, random_state=0)
        counts[found.n_permutations > 20] = found.pairs[0].p_value
        assert (found.n_permutations > 20) or not 0.01 < found.pairs[0].p_value < 0.15
    assert set(counts) == {False, True}


@pytest.mark.parametrize("kind", ["balanced", "rare class", "counts", "correlated", "regression"])
def test_family_wise_error_stays_near_5_percent(kind):
    """A bounded form of benchmarks/pairs_calibration.py: of 20 tables, more than 5 hits have a probability of 0.03 %."""
    hits = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        X = random.normal(size=(80, 12))
        y = random.permutation(80) < (8 if kind == "rare class" else 40)
        if kind == "counts":
            X = random.poisson(0.5, size=(80, 12)).astype(float)
        if kind == "correlated":
            X = X * 0.4 + random.normal(size=(80, 1))
        target = random.normal(size=80) if kind == "regression" else y
        found = find_pairs(X, target, random_state=seed, n_jobs=1, n_permutations=10)
        hits += bool(found.significant_pairs())
    assert hits <= 5


@pytest.mark.parametrize(("n_rows", "own", "least"), [(150, 0.0, 6), (300, 0.5, 11)])
def test_a_product_is_found_about_as_often_as_by_a_test_of_products_alone(n_rows, own, least):
    """A plain product test with Bonferroni's correction finds 0.8 and 1.0 of these; 12 tables, standard error 0.13.

    With effects of their own another scale removes a part of the product, but the product explains more than that scale.
    """
    hits = 0
    for seed in range(12):
        random = np.random.default_rng([seed, 3])
        X = random.normal(size=(n_rows, 30))
        y = 0.5 * X[:, 3] * X[:, 7] + own * (X[:, 3] + X[:, 7]) + random.normal(size=n_rows)
        found = find_pairs(X, y, random_state=0, n_permutations=20, n_jobs=1)
        hits += (3, 7) in [pair.indices for pair in found.significant_pairs()]
    assert hits >= least


def strong_columns(kind, random):
    """Return a table with two strong columns and no pair."""
    n = 600 if kind == "wrong labels" else 300
    X = random.normal(size=(n, 12))
    if kind == "counts":
        X = random.poisson(random.uniform(0.1, 1.0, 20), size=(n, 20)).astype(float)
        X[:, :2] = random.poisson(1.0, size=(n, 2))
    elif kind in ("far values", "changing spread"):
        X = np.exp(1.5 * X)
    both, noise = X[:, 0] + X[:, 1], random.normal(size=n)
    slope, shift = {"certain classes": (3, 0), "rare class": (3, -8), "counts": (2, -4)}.get(kind, (6, 0))
    return X, {
        "separated classes": (both > 0).astype(int),
        "spread alone": noise * (0.3 + X[:, 0] ** 2),
        "far values": both + noise,
        "changing spread": both + noise * X[:, 0],
    }.get(kind, logistic(random, slope * both + shift) ^ ((random.random(n) < 0.1) & (kind == "wrong labels")))


STRONG = ["certain classes", "rare class", "separated classes", "counts", "far values", "changing spread"]


@pytest.mark.parametrize("kind", [*STRONG, "spread alone", "wrong labels"])
def test_family_wise_error_beside_two_strong_columns(kind):
    """A bounded form of the second part of benchmarks/pairs_calibration.py; of 12 tables, 4 and more have a hit in 0.2 %."""
    hits = 0
    for seed in range(12):
        X, y = strong_columns(kind, np.random.default_rng([seed, 1]))
        hits += bool(find_pairs(X, y, random_state=0, n_permutations=10, n_jobs=1).significant_pairs())
    assert hits <= 3


def test_the_sketch_finds_a_strong_pair_among_many_columns(monkeypatch):
    monkeypatch.setattr(search, "MAX_FULL_COLUMNS", 1000)
    monkeypatch.setattr(search, "_SKETCH_PRODUCTS", 1e9)
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3000)).astype(np.float32)
    y = np.where(X[:, 17] * X[:, 2500] + 0.1 * random.normal(size=200) > 0, "yes", "no")
    found = find_pairs(X, y, random_state=0)
    assert (found.method, found.n_permutations) == ("sketch", 0)
    assert [pair.indices for pair in found.significant_pairs()] == [(17, 2500)]
    assert set(found.significant_columns()) == {17, 2500}
    assert "searched on 111 of 200 rows" in found.note
    assert "strongest of 4,498,500 pairs" in repr(found)


@pytest.mark.parametrize("kind", ["rare class", "numbers", "sparse"])
def test_the_sketch_judges_as_the_full_search_does(kind, monkeypatch):
    monkeypatch.setattr(search, "_SKETCH_PRODUCTS", 100 * 60**2)
    random = np.random.default_rng(2)
    X = random.normal(size=(300, 60))
    if kind == "sparse":
        X = sp.csr_array(np.where(X > 0, X, 0.0))
    dense = X.toarray() if kind == "sparse" else X
    y = dense[:, 3] * dense[:, 7] + dense[:, 1] + 0.3 * random.normal(size=300)
    if kind == "rare class":
        y = (dense[:, 3] * dense[:, 7] < -0.6).astype(int)
    quick, again = (find_pairs(X, y, method="sketch", random_state=0, n_jobs=jobs) for jobs in (1, 2))
    whole = find_pairs(X, y, method="full", n_permutations=0, random_state=0)
    assert quick.pairs[0].indices == whole.pairs[0].indices == (3, 7)
    assert quick.pairs[0].p_value == pytest.approx(whole.pairs[0].p_value, rel=1e-2)
    assert quick.fitted[:1] == whole.fitted[:1]
    assert quick.pairs == again.pairs
    noise = find_pairs(X, random.integers(0, 2, 300), method="sketch", random_state=0)
    assert noise.significant_pairs(0.01) == []


def best(scores, n):
    return sorted(np.argsort(-scores, kind="stable")[:n].tolist())


def normal(n=300, f=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, f))


def test_screening_scores_are_those_of_the_search():
    X = normal()
    y = np.sign(X[:, 3] * X[:, 30])
    scores = screening_scores(X, y[:, None], is_classification=True)
    np.testing.assert_allclose(scores, find_pairs(X, y > 0, n_permutations=0).scores, rtol=1e-3, atol=1e-3)
    assert best(scores, 2) == [3, 30]
    grouped = screening_scores(X, y[:, None], is_classification=True, groups=np.arange(40) % 20)
    assert (grouped.shape, best(grouped, 2)) == ((20,), [3, 10])
    assert best(screening_scores(X, X[:, [8]] ** 2, is_classification=False), 1) == [8]


def test_screening_by_classes_labels_and_several_numbers():
    X = normal(600)
    quarter = (X[:, 3] > 0).astype(int) + 2 * (X[:, 5] * X[:, 6] > 0)
    one_of_four = np.where(quarter[:, None] == np.arange(4), 1.0, -1.0)
    labels = 2.0 * np.column_stack([X[:, 3] > 0, X[:, 5] * X[:, 6] > 0, np.ones(600)]) - 1
    numbers = np.column_stack([X[:, 3], X[:, 5] * X[:, 6], np.zeros(600)])
    for targets, is_classification in ((one_of_four, True), (labels, True), (numbers, False)):
        assert best(screening_scores(X, targets, is_classification=is_classification), 3) == [3, 5, 6]


def test_weights_of_classes_do_not_count_those_of_rows_do():
    X = normal(500)
    y = np.where((X[:, 3] * X[:, 30] > 1.2), 1.0, -1.0)[:, None]
    balanced = np.where(y[:, 0] > 0, 1 / np.mean(y > 0), 1 / np.mean(y < 0))
    plain = screening_scores(X, y, is_classification=True)
    np.testing.assert_allclose(screening_scores(X, y, is_classification=True, sample_weight=balanced), plain)
    half = np.arange(500) % 2 == 0
    mixed = np.where(half, np.sign(X[:, 3] * X[:, 30]), np.sign(X[:, 7] * X[:, 9]))[:, None]
    weighted = screening_scores(X, mixed, is_classification=True, sample_weight=np.where(half, 1.0, 0.01))
    assert best(weighted, 2) == [3, 30]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_array])
def test_screening_of_sparse_tables_few_rows_and_constants(kind):
    X = np.where(normal(400, seed=1) > 0, normal(400), 0.0)
    y = np.sign(X[:, [3]] * X[:, [30]] + 1e-3)
    assert best(screening_scores(kind(X), y, is_classification=True), 2) == [3, 30]
    few = normal(10, 6)
    few[:, 2] = 7.0
    scores = screening_scores(kind(few), few[:, [4]], is_classification=False)
    assert scores[4] == pytest.approx(1.0)
    assert scores[2] == -np.inf
    assert (np.abs(scores[[0, 1, 3, 5]]) < 1).all()
    assert (screening_scores(normal(), np.ones((300, 1)), is_classification=True) == -np.inf).all()


def test_screening_of_very_wide_tables_uses_the_sketch(monkeypatch):
    monkeypatch.setattr(search, "MAX_FULL_COLUMNS", 30)
    X = normal(600)
    assert best(screening_scores(X, np.sign(X[:, [3]] * X[:, [30]]), is_classification=True), 2) == [3, 30]
