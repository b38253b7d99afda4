"""The record that every fit returns."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tamiz import E2EFSRegressor
from tamiz.selection import Selection, one_per_cluster


def record(**change):
    values = {
        "support": np.array([True, False, True, False]),
        "ranking": np.array([2, 3, 1, 4]),
        "history": {"step": np.array([1, 2]), "loss": np.array([0.5, 0.25])},
        "feature_names": np.array(["a", "<b>", "c", "d"], dtype=object),
    }
    return Selection(**{**values, **change})


def test_what_it_tells():
    selection = record()
    assert (selection.n_features, selection.n_features_to_select, selection.names) == (4, 2, ["c", "a"])
    assert [part.tolist() for part in (selection.indices, selection.ordered)] == [[0, 2], [2, 0]]
    assert selection.gamma.tolist() == [1, 0, 1, 0]
    assert record(feature_names=None).names == ["x2", "x0"]
    assert record().with_names(["w", "x", "y", "z"]).names == ["y", "w"]
    assert record().with_names(None).feature_names is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranking": np.array([1, 2, 3])}, "support has 4 entries, ranking has 3"),
        ({"ranking": np.array([1, 1, 2, 3])}, "permutation"),
        ({"support": np.array([True, True, False, False])}, "smallest ranks"),
        ({"feature_names": ["a"]}, "1 feature names for 4 features"),
    ],
)
def test_records_that_contradict_themselves_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        record(**change)


def test_a_notebook_shows_names_as_text():
    selection = record(support=np.array([False, True, False, False]), ranking=np.array([2, 1, 3, 4]))
    html = selection._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>1 of 4 features" in html
    assert "<td><b></td>" not in html


def test_what_was_measured_and_chosen_survives_json():
    ranked = record(
        shape=(2, 2),
        seed=7,
        choices={"l2": {"chosen": 0.1}},
        elimination=np.array([2, 3, 1, 4]),
        contribution=np.array([3.0, 0.0, np.nan, 0.0]),
        effects={"grid": np.eye(2)},
    )
    again = Selection.from_json(ranked.to_json())
    assert again.to_json() == ranked.to_json()
    assert again.shape == (2, 2)
    assert isinstance(again.elimination, np.ndarray)
    assert again.effects["grid"].tolist() == [[1, 0], [0, 1]]
    assert Selection.from_json(record().to_json()).elimination is None


def clustered_table(n=120, seed=0):
    """Columns 0, 3, 6 are nearly the same, so are 1 and 4 (with the other sign)."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 8))
    X[:, 3], X[:, 6] = X[:, 0] + 0.1 * X[:, 3], 5 * X[:, 0] + 0.5 * X[:, 6]
    X[:, 4] = -X[:, 1] + 0.1 * X[:, 4]
    return X


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, pd.DataFrame])
def test_clusters_begin_with_the_best_kept_column(kind):
    support = np.array([False, False, True, True, True, False, True, False])
    selection = Selection(support, np.array([5, 6, 1, 3, 4, 7, 2, 8]))
    X = clustered_table()
    assert selection.clusters(kind(X)) == [[6, 3, 0], [4, 1]]
    assert selection.clusters(kind(X), threshold=0.9999) == []
    X[:3, 0] = np.nan  # a missing value counts as the mean
    if kind is np.asarray:
        assert selection.clusters(X, threshold=0.8) == [[6, 3, 0], [4, 1]]


def test_chance_makes_no_clusters():
    X = np.random.default_rng(0).normal(size=(8, 3000))
    selection = Selection(np.arange(3000) < 20, np.arange(1, 3001))
    assert np.abs(np.corrcoef(X.T)[:20, 20:]).max() > 0.9
    assert selection.clusters(X) == []
    assert Selection(np.zeros(3000, dtype=bool), np.arange(1, 3001)).clusters(X) == []
    for table, threshold, message in ((X[:, :8], 0.9, "X has 8 columns"), (X, 0, r"threshold must be in \(0, 1\]")):
        with pytest.raises(ValueError, match=message):
            selection.clusters(table, threshold)


@pytest.mark.parametrize("named", [False, True])
def test_one_column_of_each_cluster(named):
    X = clustered_table(300)
    y = X @ [3, 3, 0, 3, -3, 1, 0, 0.5] + 0.1 * np.random.default_rng(1).normal(size=300)
    table = pd.DataFrame(X, columns=list("abcdefgh")) if named else X
    drop = ["h"] if named else [7]
    model = one_per_cluster(E2EFSRegressor(3, drop=drop, random_state=0), table, y)
    kept = set(model.get_support(indices=True))
    assert [len(kept & cluster) for cluster in ({0, 3, 6}, {1, 4}, {5})] == [1, 1, 1]
    assert 7 in model.drop
