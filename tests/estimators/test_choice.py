from __future__ import annotations

import json

import numpy as np
import pytest

from tamiz.estimators.chooser import Choice, choose_guarded, choose_simplest, choose_unbeaten, standard_errors

SCORES = np.array([[0.60, 0.62, 0.64], [0.80, 0.86, 0.80], [0.80, 0.90, 0.82], [0.79, 0.80, 0.82]])


def test_the_fewest_within_one_standard_error_of_the_best():
    best = SCORES.mean(axis=1).argmax()
    limit = SCORES[best].mean() - SCORES[best].std(ddof=1) / np.sqrt(3)
    assert best == 2
    assert SCORES[1].mean() >= limit > SCORES[0].mean()
    assert choose_simplest(SCORES, "one_se") == 1
    assert choose_simplest(SCORES, "best") == 2


@pytest.mark.parametrize(("tolerance", "expected"), [(0.0, 2), (0.01, 2), (0.02, 1), (0.22, 0)])
def test_a_tolerance(tolerance, expected):
    assert choose_simplest(SCORES, tolerance) == expected


def test_a_tolerance_takes_in_its_own_end():
    assert choose_simplest(np.array([[0.8, 0.8], [0.9, 0.9]]), 0.1) == 0


def test_ties_go_to_the_simplest_and_one_split_has_no_error():
    assert choose_simplest(np.array([[0.5, 0.5], [0.9, 0.9], [0.9, 0.9]]), "best") == 1
    assert np.isnan(standard_errors(np.array([[0.5]]))).all()
    assert choose_simplest(np.array([[0.5], [0.9]])) == 1


def test_what_could_not_be_fitted_is_not_taken():
    scores = np.array([[0.9, np.nan], [0.5, 0.5]])
    assert choose_simplest(scores, 1.0) == 1
    with pytest.raises(ValueError, match="no candidate has a score"):
        choose_simplest(np.full((2, 2), np.nan))


def test_the_guard_leaves_the_rule_only_for_a_gain_beyond_its_standard_error():
    rng = np.random.default_rng(0)
    hits = (rng.random(200) < 0.7).astype(float)
    other = hits.copy()
    other[:1] = 1 - other[:1]
    assert choose_guarded(np.array([hits, other, hits])) == 0
    other = hits.copy()
    other[np.flatnonzero(hits == 0)[:10]] = 1
    assert choose_guarded(np.array([hits, other, hits])) == 1
    assert choose_guarded(hits[None]) == 0
    best = other.copy()
    best[np.flatnonzero(other == 0)[:1]] = 1  # one row more: not beyond the error of that gain
    assert choose_guarded(np.array([hits, other, best])) == 1
    best[np.flatnonzero(other == 0)[:20]] = 1
    assert choose_guarded(np.array([hits, other, best])) == 2


def test_the_record_is_ready_for_json():
    record = Choice(["linear", "mlp"], np.array([[0.5, 0.7], [np.nan, 0.9]]), 0, 0.1, "r2", {"mlp": "memory"}).to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["mean"] == [0.6, None]
    assert record["chosen"] == "linear"
    assert record["reasons"] == {"mlp": "memory"}


def test_a_lucky_candidate_does_not_displace_the_simplest():
    # Four networks that are equally good on 40 rows in 5 folds: the best of them is so by luck.
    rng = np.random.default_rng(0)
    tables = rng.binomial(8, 0.8, (400, 4, 5)) / 8
    kept = np.array([[choose_simplest(scores) == 0, choose_unbeaten(scores) == 0] for scores in tables]).mean(axis=0)
    assert kept[0] < 0.7
    assert kept[1] > 0.9


def test_a_clearly_better_candidate_is_taken():
    rng = np.random.default_rng(0)
    scores = np.array([rng.normal(0.5, 0.05, 5), rng.normal(0.9, 0.05, 5), rng.normal(0.91, 0.05, 5)])
    assert choose_unbeaten(scores) == 1
    assert choose_unbeaten(scores[:, :1]) == choose_simplest(scores[:, :1])
    assert choose_unbeaten(np.array([[0.5, np.nan], [0.9, 0.9]])) == 1
