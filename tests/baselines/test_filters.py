"""Filters, each against an independent version, a case worked by hand, or its formula in loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import digamma
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine, make_classification
from sklearn.feature_selection import f_classif, f_regression, mutual_info_classif, mutual_info_regression

from tamiz.baselines import ILFS, MIM, MRMR, FisherScore, InfFS, ReliefF, infinite, information
from tamiz.baselines.infinite import count_tokens, own_class_share, relevance_by_em
from tamiz.baselines.relieff import scale_to_unit_range
from tamiz.paper import make_ground_truth


@pytest.mark.parametrize("loader", [load_iris, load_wine])
def test_fisher_is_the_f_statistic_up_to_a_factor(loader):
    X, y = loader(return_X_y=True)
    n_rows, n_classes = y.size, np.unique(y).size
    scores = FisherScore().fit(X, y).scores_
    np.testing.assert_allclose(scores * (n_rows - n_classes) / (n_classes - 1), f_classif(X, y)[0], rtol=1e-9)


def test_fisher_worked_by_hand_far_from_zero_and_with_duplicate_entries():
    # Class means 1 and 5 about 3 (2 rows each): between 2*4 + 2*4 = 16. Within 1+1+1+1 = 4. Score 4.
    X = np.array([[0.0, 1.0, 7.0], [2.0, 1.0, 7.0], [4.0, 3.0, 7.0], [6.0, 3.0, 7.0]])
    selector = FisherScore(n_features_to_select=1).fit(X, [0, 0, 1, 1])
    # The second column does not vary within classes: best. The third does not vary at all: worst.
    assert selector.scores_.tolist() == [4.0, np.inf, 0.0]
    assert selector.ranking_.tolist() == [2, 1, 3]
    X, y = load_iris(return_X_y=True)
    np.testing.assert_allclose(FisherScore().fit(X + 1e7, y).scores_, FisherScore().fit(X, y).scores_, rtol=1e-6)
    duplicated = sp.coo_array((np.ones(4), ([0, 0, 1, 3], [0, 0, 0, 0])), shape=(4, 2))
    expected = FisherScore().fit(duplicated.toarray(), [0, 0, 1, 1]).scores_
    assert FisherScore().fit(duplicated, [0, 0, 1, 1]).scores_.tolist() == expected.tolist()


@settings(max_examples=40, deadline=None)
@given(
    X=arrays(np.float64, (12, 3), elements=st.integers(-50, 50).map(float)),
    factor=st.sampled_from([-3.0, 0.5, 8.0]),
    shift=st.integers(-5, 5),
)
def test_fisher_scale_and_duplicated_rows_do_not_matter(X, factor, shift):
    y = np.arange(12) % 3
    scores = FisherScore().fit(X, y).scores_
    np.testing.assert_allclose(FisherScore().fit(X * factor + shift, y).scores_, scores, rtol=1e-7)
    np.testing.assert_allclose(FisherScore().fit(np.vstack([X, X]), np.r_[y, y]).scores_, scores, rtol=1e-7)


def by_definition(X, y, n_neighbors, seed):
    """Evaluate the formula of Ross (2014) entry by entry, on the same noise."""
    X = information.scaled_with_noise(X, np.random.RandomState(seed))
    kept = np.bincount(y)[y] > 1
    X, y = X[kept], y[kept]
    found = []
    for column in X.T:
        terms = []
        for i, value in enumerate(column):
            distances = np.abs(column - value)
            own = np.sort(np.delete(distances, i)[np.delete(y, i) == y[i]])
            k = min(n_neighbors, own.size)
            m = np.count_nonzero((distances < own[k - 1]) | (distances == 0))
            terms.append(digamma(k) - digamma(own.size + 1) - digamma(m))
        found.append(max(0.0, digamma(y.size) + np.mean(terms)))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_mim_small_classes(seed):
    """Classes of one row, of fewer rows than neighbours and of a few more."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(9), [1, 2, 3, 4, 7, 8, 9, 1, 20]))
    X = rng.normal(size=(y.size, 6))
    X[:, 1] = rng.integers(0, 3, size=y.size)
    X[:, 2] = y * rng.integers(0, 2, size=y.size)
    X[:, 3] = 7.3
    X[:, 4] = 1e3 + X[:, 4].round(1)
    for n_neighbors in (1, 3, 5, 30):
        scores = MIM(n_neighbors=n_neighbors, random_state=seed, task="classification").fit(X, y).scores_
        np.testing.assert_allclose(scores, by_definition(X, y, n_neighbors, seed), rtol=0, atol=1e-12)
        # scikit-learn searches small classes by matrix products, whose rounding decides whether the k-th neighbour counts,
        # and among ties who is a neighbour at all: it finds information even in the constant column 3.
        expected = mutual_info_classif(X, y, discrete_features=False, random_state=seed, n_neighbors=n_neighbors)
        np.testing.assert_allclose(scores[[0, 5]], expected[[0, 5]], rtol=0, atol=0.05)


def test_mim_blocks_and_threads_do_not_matter(monkeypatch):
    X, y = load_wine(return_X_y=True)
    whole = MIM(random_state=1).fit(X, y).scores_
    monkeypatch.setattr(information, "_ENTRIES_AT_A_TIME", 5 * X.shape[0])
    assert np.array_equal(MIM(random_state=1).fit(X, y).scores_, whole)
    assert np.array_equal(MIM(random_state=1, n_jobs=2).fit(X, y).scores_, whole)


def test_mim_is_scikit_learns_for_regression_and_takes_few_rows():
    X, y = load_diabetes(return_X_y=True)
    expected = mutual_info_regression(X, y, discrete_features=False, random_state=4)
    assert np.array_equal(MIM(task="regression", random_state=4).fit(X, y).scores_, expected)
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="Every class has one sample only"):
        MIM().fit(X, ["a", "b", "c"])
    assert MIM().fit(X, [0.5, 1.5, 1.0]).scores_.shape == (2,)  # fewer rows than neighbours


def test_mrmr_mutual_information_sees_a_ring():
    X, y, truth = make_ground_truth("ring", n_features=100, random_state=0)
    assert truth.share_found(MRMR(2).fit(X, y).get_support(indices=True)) < 1
    found = MRMR(2, relevance="mutual_info", random_state=0).fit(X, y).get_support(indices=True)
    assert truth.share_found(found) == 1


@pytest.mark.parametrize("k", [1, 3, 10, 100])
def test_relieff_formula_in_loops_for_three_classes(k):
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:9, 60:75, 110:121]  # unequal priors
    X, y = X[rows] + 1e-6 * np.random.default_rng(0).normal(size=(rows.size, 4)), y[rows]
    unit, weights = scale_to_unit_range(X), np.zeros(4)
    table, prior = np.abs(unit[:, None] - unit), np.bincount(y) / y.size
    for i, own in enumerate(y):
        near = [j for j in np.argsort(table[i].sum(axis=1), kind="stable") if j != i]
        for c, share in enumerate(prior):
            factor = -1.0 if c == own else share / (1.0 - prior[own])
            weights += factor * table[i][[j for j in near if y[j] == c][:k]].mean(axis=0) / y.size
    np.testing.assert_allclose(ReliefF(n_neighbors=k).fit(X, y).scores_, weights, rtol=1e-9, atol=1e-12)


def data_sets():
    for loader in (load_iris, load_wine, load_breast_cancer):
        X, y = loader(return_X_y=True)
        X, y = X[y < 2], y[y < 2]
        keep = np.random.default_rng(0).permutation(y.size)[:120]
        yield loader.__name__, X[keep], y[keep]
    yield "wide", *make_classification(80, 60, n_informative=6, random_state=1)
    yield "four classes", *make_classification(120, 20, n_informative=6, n_classes=4, random_state=2)


@pytest.mark.parametrize(("name", "X", "y"), [pytest.param(*one, id=one[0]) for one in data_sets()])
def test_relieff_orders_features_as_skrebate_does(name, X, y):
    skrebate = pytest.importorskip("skrebate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Threshold 1: columns of few different values stay numbers, as they are for us.
        peer = skrebate.ReliefF(n_neighbors=10, categorical_threshold=1, n_jobs=1).fit(X, y)
    assert spearmanr(ReliefF(n_neighbors=10).fit(X, y).scores_, peer.feature_importances_).statistic >= 0.99


def test_relieff_regression_formula_in_loops():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(25, 3))
    y = 2 * X[:, 0] + 0.1 * rng.normal(size=25)
    unit, target, k = scale_to_unit_range(X), scale_to_unit_range(y[:, None])[:, 0], 4
    differ, joint, changes = np.zeros(3), np.zeros(3), 0.0
    for i in range(25):
        near = [j for j in np.argsort(np.abs(unit - unit[i]).sum(axis=1), kind="stable") if j != i][:k]
        for j in near:
            changes += abs(target[i] - target[j]) / k
            differ += np.abs(unit[i] - unit[j]) / k
            joint += abs(target[i] - target[j]) * np.abs(unit[i] - unit[j]) / k
    expected = joint / changes - (differ - joint) / (25 - changes)
    selector = ReliefF(n_features_to_select=1, n_neighbors=k).fit(X, y)
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-9)
    assert selector.ranking_[0] == 1


def test_relieff_blocks_give_the_same(monkeypatch):
    X, y = make_classification(70, 9, random_state=3)
    whole = ReliefF().fit(X, y).scores_
    monkeypatch.setattr("tamiz.baselines.relieff._PAIRS_AT_A_TIME", 70 * 17)
    np.testing.assert_allclose(ReliefF().fit(X, y).scores_, whole, rtol=1e-12)


def plain_inffs(X, alpha):
    """The published steps with whole matrices."""
    low = X.min(axis=0)
    X = (X - low) / np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    n_features = X.shape[1]
    with np.errstate(all="ignore"):
        correlation = np.array(
            [[0.0 if np.ptp(a) == 0 or np.ptp(b) == 0 else spearmanr(a, b).statistic for b in X.T] for a in X.T]
        )
    spread = X.std(axis=0, ddof=1)
    sigma = np.maximum.outer(spread, spread)
    sigma = (sigma - sigma.min()) / (sigma - sigma.min()).max()
    A = alpha * (1 - np.abs(correlation)) + (1 - alpha) * sigma
    r = 0.99 / np.linalg.eigvalsh(A)[-1]
    return (np.linalg.inv(np.eye(n_features) - r * A) - np.eye(n_features)).sum(axis=1)


def test_inffs_worked_by_hand():
    # Ranks of the columns: (1,2,3), (3,2,1) and (1,3,2); Spearman: -1 between the first two, 0.5 and -0.5 with the
    # third. Scaled to [0, 1] the columns are (0, .5, 1), (1, .5, 0), (0, 1, .5), all of one standard deviation, so
    # sigma, which starts at 0 and has no range, is 0. With alpha = 1/2:
    #       | 0    0    1/4 |
    #   A = | 0    0    1/4 |      A v = lambda v: v = (1, 1, sqrt 2), lambda = sqrt(2)/4.
    #       | 1/4  1/4  0   |
    # With r = 0.99 / lambda and q = r/4 = 0.99/sqrt(2): x = 1 + q z, z = 1 + 2 q x  =>  x = (1 + q) / (1 - 2 q^2).
    X = np.array([[1.0, 6.0, 0.0], [2.0, 5.0, 8.0], [3.0, 4.0, 4.0]])
    q = 0.99 / np.sqrt(2.0)
    x = (1 + q) / (1 - 2 * q**2)
    z = 1 + 2 * q * x
    selector = InfFS(n_features_to_select=1).fit(X)
    np.testing.assert_allclose(selector.scores_, [x - 1, x - 1, z - 1], rtol=1e-6)
    assert selector.ranking_.tolist() == [2, 3, 1]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_inffs_whole_matrices_give_the_same(alpha):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(15, 9)) ** 3
    X[:, 4] = 2.0  # no correlation exists
    X[:, 6] = np.round(X[:, 6])  # ties
    np.testing.assert_allclose(InfFS(alpha=alpha).fit(X).scores_, plain_inffs(X, alpha), rtol=1e-6)


@pytest.mark.parametrize("memory", [10**9, 0])
def test_inffs_blocks_and_single_precision_give_the_same(memory, monkeypatch):
    X = np.random.default_rng(2).normal(size=(12, 23))
    expected = plain_inffs(X, 0.5)
    monkeypatch.setattr(infinite, "_BLOCK", 5)
    monkeypatch.setattr(infinite, "_FLOAT64_UP_TO", 0)
    monkeypatch.setattr(infinite, "_MEMORY_FOR_CORRELATIONS", memory)
    np.testing.assert_allclose(InfFS().fit(X).scores_, expected, rtol=1e-4)


def test_inffs_largest_eigenvalue_where_power_iteration_swings():
    path = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])  # eigenvalues +-sqrt(2)
    assert infinite.largest_eigenvalue(lambda v: path @ v, 3) == pytest.approx(np.sqrt(2.0))
    star = np.array([[0.0, 2.0], [0.5, 0.0]])
    assert infinite.largest_eigenvalue(lambda v: (star + star.T) @ v, 2) == pytest.approx(2.5)


def test_ilfs_quantisation_worked_by_hand():
    # Classes (0, 2) and (4, 10): means 1 and 7. Squared distances to own and other mean:
    #   0: 1, 49    2: 1, 25    4: 9, 9    10: 9, 81
    # Own shares 1/50, 1/26, 1/2, 1/10. Over their range (0.02 .. 0.5), in four bins of 0.12: tokens 0, 0, 3, 0.
    X, y = np.array([[0.0], [2.0], [4.0], [10.0]]), np.array([0, 0, 1, 1])
    shares = own_class_share(X, y, np.array([[1.0], [7.0]]))
    np.testing.assert_allclose(shares.ravel(), [1 / 50, 1 / 26, 1 / 2, 1 / 10])
    assert count_tokens(shares, 4).tolist() == [[3.0, 0.0, 0.0, 1.0]]


def test_ilfs_one_round_of_em_worked_by_hand():
    # Three tokens: p(t | relevant) starts at 5000, 2500.5, 1 over 7501.5, the other one reversed;
    # the prior is the share of the last two tokens.
    counts = np.array([[2.0, 0.0, 2.0], [1.0, 0.0, 3.0]])
    a, b = 5000 / 7501.5, 1 / 7501.5
    prior = np.array([0.5, 0.75])
    low = prior * a / (prior * a + (1 - prior) * b)  # p(relevant | feature, token 0)
    high = prior * b / (prior * b + (1 - prior) * a)  # and token 2
    expected = (counts[:, 0] * low + counts[:, 2] * high) / 4
    np.testing.assert_allclose(relevance_by_em(counts, 1), expected)
    # Second round: p(token | relevant) is now the share of the relevant mass on each token.
    mass = np.array([counts[:, 0] @ low, counts[:, 2] @ high])
    rest = np.array([counts[:, 0] @ (1 - low), counts[:, 2] @ (1 - high)])
    a1, c1 = mass / mass.sum()
    a2, c2 = rest / rest.sum()
    low = expected * a1 / (expected * a1 + (1 - expected) * a2)
    high = expected * c1 / (expected * c1 + (1 - expected) * c2)
    np.testing.assert_allclose(relevance_by_em(counts, 2), (counts[:, 0] * low + counts[:, 2] * high) / 4)


def test_ilfs_scores_are_the_power_series_of_the_outer_product():
    X, y = load_wine(return_X_y=True)
    selector = ILFS(n_features_to_select=5).fit(X, y)
    p = selector.relevance_
    A = np.outer(p, p)
    r = 0.99 / np.linalg.eigvalsh(A)[-1]
    series = (np.linalg.inv(np.eye(13) - r * A) - np.eye(13)).sum(axis=1)
    np.testing.assert_allclose(selector.scores_, series, rtol=1e-9)
    assert np.array_equal(np.argsort(-p, kind="stable"), np.argsort(selector.ranking_))


def test_ilfs_a_separating_column_beats_constant_and_even_ones():
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 30))
    X[:, 1] = 3.0
    X[:, 2] = y  # every entry sits on the mean of its class
    X[:, 3] = np.arange(40) // 2 % 2  # the classes have the same mean
    selector = ILFS(n_features_to_select=1).fit(X, y)
    assert selector.relevance_[2] > 0.9
    assert max(selector.scores_[1], selector.scores_[3]) < selector.scores_[2]


WINE, WINE_CLASSES = load_wine(return_X_y=True)
DIGITS = load_digits()  # 17 values, three pixels that never change, ten classes
CANCER, CANCER_CLASSES = load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize(
    ("X", "y", "options"),
    [
        (WINE, WINE_CLASSES, {}),
        (WINE.astype(np.float32), WINE_CLASSES, {}),
        (WINE[:, :1], WINE_CLASSES, {}),
        (np.asfortranarray(CANCER), CANCER_CLASSES, {"n_neighbors": 7, "n_jobs": 2}),
        (DIGITS.data[:400], DIGITS.target[:400], {}),
        (WINE, np.arange(len(WINE)) % 60, {}),
    ],
    ids=["wine", "float32", "one column", "seven neighbours", "ties", "many classes"],
)
def test_mim_is_scikit_learns_for_classes(X, y, options):
    known = {key: value for key, value in options.items() if key != "n_jobs"}
    expected = mutual_info_classif(X, y, discrete_features=False, random_state=4, **known)
    selector = MIM(random_state=4, task="classification", **options).fit(X, y)
    np.testing.assert_allclose(selector.scores_, expected, rtol=0, atol=1e-9)


MRMR_RULES = {
    "f": lambda relevance, shared: relevance / shared.mean(axis=1),
    "mutual_info": lambda relevance, shared: relevance + np.log(np.maximum(1 - shared**2, 1e-9)).mean(axis=1) / 2,
}


@pytest.mark.parametrize(
    ("X", "y", "rule", "relevance"),
    [
        (WINE, WINE_CLASSES, "f", f_classif(WINE, WINE_CLASSES)[0]),
        (WINE[:, 1:], WINE[:, 0], "f", f_regression(WINE[:, 1:], WINE[:, 0])[0]),
        (WINE, WINE_CLASSES, "mutual_info", mutual_info_classif(WINE, WINE_CLASSES, n_neighbors=10, random_state=3)),
    ],
)
def test_mrmr_greedy_rule(X, y, rule, relevance):
    correlations, picked = np.abs(np.corrcoef(X, rowvar=False)), [int(np.argmax(relevance))]
    while len(picked) < 6:
        value = MRMR_RULES[rule](relevance, correlations[:, picked])
        value[picked] = -np.inf
        picked.append(int(np.argmax(value)))
    assert MRMR(6, relevance=rule, random_state=3).fit(X, y).selection_.ordered.tolist() == picked
