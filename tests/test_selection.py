"""The record that every fit returns."""

import numpy as np
import pytest

from tamiz.selection import Selection


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
    assert selection.n_features == 4
    assert selection.n_features_to_select == 2
    assert selection.indices.tolist() == [0, 2]
    assert selection.ordered.tolist() == [2, 0]
    assert selection.names == ["c", "a"]
    assert selection.gamma.tolist() == [1, 0, 1, 0]
    assert record(feature_names=None).names == ["x2", "x0"]


def test_to_json_and_back():
    selection = record(shape=(2, 2), seed=7, seconds=0.5)
    again = Selection.from_json(selection.to_json())
    assert again.to_dict() == selection.to_dict()
    assert again.shape == (2, 2)


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


def test_other_names():
    assert record().with_names(["w", "x", "y", "z"]).names == ["y", "w"]
    assert record().with_names(None).feature_names is None


def test_ranks_by_contribution_keep_the_support_and_the_order_of_elimination():
    selection = record(choices={"l2": {"chosen": 0.1}})
    ranked = selection.ranked_by([3.0, 1.0])
    assert ranked.ranking.tolist() == [1, 3, 2, 4]
    assert ranked.names == ["a", "c"]
    assert ranked.elimination.tolist() == [2, 3, 1, 4]
    assert ranked.contribution.tolist() == [3.0, 0.0, 1.0, 0.0]
    assert selection.ranked_by([1.0, 1.0]).ranking.tolist() == [2, 3, 1, 4]  # ties stay as they were
    again = Selection.from_json(ranked.to_json())
    assert again.to_dict() == ranked.to_dict()
    assert isinstance(again.elimination, np.ndarray)
    assert Selection.from_json(selection.to_json()).elimination is None
    with pytest.raises(ValueError, match="shape"):
        selection.ranked_by([1.0, 2.0, 3.0])
