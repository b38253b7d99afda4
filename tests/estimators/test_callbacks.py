"""Callbacks of scikit-learn (1.9 and later) hear of the parts of a fit."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from tamiz import E2EFSClassifier, Training

callback = pytest.importorskip("sklearn.callback")
QUICK = {"training": Training(ramp_steps=500, refinement_epochs=10), "random_state": 0}


class Recorder:
    """Record each event with the name of its task."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(("begin", context.task_name))
        assert (X is None) == (context.parent is not None)

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))


@pytest.mark.parametrize("m", [2, "auto"])
def test_parts_of_a_fit_are_reported_and_change_nothing(table, m):
    recorder = Recorder()
    model = E2EFSClassifier(m, cv=2, **QUICK).set_callbacks(recorder).fit(*table)
    counts = Counter(recorder.events)
    assert recorder.events[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.events[-3:] == [("end", "train"), ("end", "fit"), ("teardown", "fit")]
    assert counts["end", "choose"] == (m == "auto")
    assert 0 < counts["end", "selection"] + counts["end", "refinement"] <= 100
    assert all(counts["begin", task] == count for (event, task), count in counts.items() if event == "end")
    np.testing.assert_array_equal(model.coef_, E2EFSClassifier(m, cv=2, **QUICK).fit(*table).coef_)


def test_a_fit_that_fails_ends_its_callbacks(table):
    recorder = Recorder()
    with pytest.raises(ValueError, match="more than the 30"):
        E2EFSClassifier(31, **QUICK).set_callbacks(recorder).fit(*table)
    assert recorder.events[-1] == ("teardown", "fit")


def test_the_progress_bar_of_scikit_learn_follows_a_grid_search(table, capsys):
    search = GridSearchCV(E2EFSClassifier(**QUICK), {"n_features_to_select": [2, 3]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(*table)
    shown = capsys.readouterr().out
    assert "E2EFSClassifier - fit" in shown
    assert "E2EFSClassifier - train" in shown
