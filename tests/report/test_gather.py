"""Parts of a page from held-out predictions and refits."""

from types import SimpleNamespace

import numpy as np

from tamiz.evaluation.results import HeldOut
from tamiz.report.gather import make_confusion, make_kept_sets, make_residuals
from tamiz.selection import Selection


def held(truth, said):
    n = len(truth)
    return HeldOut(np.arange(n), np.zeros(n), np.array(truth), np.array(said))


def test_the_confusion_counts_every_row_once():
    found = make_confusion(held(list("aabbc"), list("abbbc")))
    assert found.labels == ("a", "b", "c")
    assert [list(row) for row in found.counts] == [[1, 1, 0], [0, 2, 0], [0, 0, 1]]


def test_a_class_that_was_only_predicted_has_a_column():
    found = make_confusion(held(list("aa"), list("ab")))
    assert np.sum(found.counts) == 2
    assert found.labels == ("a", "b")


def test_residuals_are_pairs_of_truth_and_prediction():
    found = make_residuals(held([1.0, 2.0], [1.5, 1.0]))
    values = [np.asarray(part, dtype=float).tolist() for part in vars(found).values() if np.ndim(part) == 1]
    assert [1.0, 2.0] in values
    assert [1.5, 1.0] in values


def test_a_set_is_made_of_each_fit_the_smallest_first():
    ranking = np.arange(1, 7)

    def fitted(m):
        chosen = Selection(support=ranking <= m, ranking=ranking, n_steps=1)
        return SimpleNamespace(selection_=chosen, coef_=np.zeros((1, 6)))

    found = make_kept_sets((m, fitted(m)) for m in (4, 1))
    assert [entry.n_features for entry in found] == [1, 4]
    assert all(len(entry.columns) == entry.n_features for entry in found)
