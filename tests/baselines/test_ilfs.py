from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from tamiz.baselines import ILFS
from tamiz.baselines.infinite import count_tokens, own_class_share, relevance_by_em


def test_quantisation_worked_by_hand():
    # Classes (0, 2) and (4, 10): means 1 and 7. Squared distances to own and other mean:
    #   0: 1, 49    2: 1, 25    4: 9, 9    10: 9, 81
    # Own shares 1/50, 1/26, 1/2, 1/10. Over their range (0.02 .. 0.5), in four bins of 0.12: tokens 0, 0, 3, 0.
    X, y = np.array([[0.0], [2.0], [4.0], [10.0]]), np.array([0, 0, 1, 1])
    shares = own_class_share(X, y, np.array([[1.0], [7.0]]))
    np.testing.assert_allclose(shares.ravel(), [1 / 50, 1 / 26, 1 / 2, 1 / 10])
    assert count_tokens(shares, 4).tolist() == [[3.0, 0.0, 0.0, 1.0]]


def test_one_round_of_em_worked_by_hand():
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


def test_scores_are_the_power_series_of_the_outer_product():
    X, y = load_wine(return_X_y=True)
    selector = ILFS(n_features_to_select=5).fit(X, y)
    p = selector.relevance_
    A = np.outer(p, p)
    r = 0.99 / np.linalg.eigvalsh(A)[-1]
    series = (np.linalg.inv(np.eye(13) - r * A) - np.eye(13)).sum(axis=1)
    np.testing.assert_allclose(selector.scores_, series, rtol=1e-9)
    assert np.array_equal(np.argsort(-p, kind="stable"), np.argsort(selector.ranking_))


def test_ties_go_by_column():
    X, y = load_wine(return_X_y=True)
    selector = ILFS().fit(np.hstack([X, X]), y)
    assert np.array_equal(selector.scores_[:13], selector.scores_[13:])
    assert (selector.ranking_[:13] < selector.ranking_[13:]).all()


def test_neither_units_nor_duplicated_rows_matter():
    X, y = load_wine(return_X_y=True)
    scores = ILFS().fit(X, y).scores_
    np.testing.assert_allclose(ILFS().fit(X * 4.0 - 8.0, y).scores_, scores, rtol=1e-6)
    np.testing.assert_allclose(ILFS().fit(np.vstack([X, X]), np.r_[y, y]).scores_, scores, rtol=1e-6)


def test_a_separating_column_beats_constant_and_even_ones():
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 30))
    X[:, 1] = 3.0
    X[:, 2] = y  # every entry sits on the mean of its class
    X[:, 3] = np.arange(40) // 2 % 2  # the classes have the same mean
    selector = ILFS(n_features_to_select=1).fit(X, y)
    assert selector.relevance_[2] > 0.9
    assert max(selector.scores_[1], selector.scores_[3]) < selector.scores_[2]


def test_em_survives_a_factor_that_dies_out():
    assert np.isfinite(relevance_by_em(np.array([[4.0, 0.0, 0.0], [4.0, 0.0, 0.0]]), 50)).all()
    assert np.isfinite(relevance_by_em(np.array([[0.0, 0.0, 4.0], [0.0, 4.0, 0.0]]), 500)).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_tokens": 1}, "The 'n_tokens' parameter of ILFS must be"),
        ({"n_rounds": 0}, "The 'n_rounds' parameter of ILFS must be"),
    ],
)
def test_impossible_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        ILFS(**params).fit(np.eye(4), [0, 0, 1, 1])
