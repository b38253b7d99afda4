"""No selection at all."""

from __future__ import annotations

import numpy as np

from tamiz.baselines import AllFeatures


def test_all_features_keeps_all_in_their_order():
    X = np.random.default_rng(0).normal(size=(4, 6))
    X[0, 0] = np.nan
    selector = AllFeatures(n_features_to_select=2).fit(X)
    assert selector.ranking_.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(selector.transform(X), X, equal_nan=True)
