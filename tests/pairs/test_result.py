"""Tables, text, HTML and pictures of a search."""

import pickle

import matplotlib
import numpy as np
import pandas as pd
import pytest

from tamiz import find_pairs


@pytest.fixture(scope="module")
def found():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(200, 6)), columns=["a", "b", "<c>", "d", "e", "f"])
    y = np.where(frame["a"] * frame["<c>"] > 0, "ill", "well")
    return find_pairs(frame, y, random_state=0, n_permutations=5, n_pairs=12)


@pytest.fixture(autouse=True)
def no_window():
    backend = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")
    matplotlib.use(backend)


def test_tables_as_frames(found):
    pairs, columns = found.pairs_to_frame(), found.columns_to_frame()
    assert list(pairs.columns) == ["first", "second", "strength", "p_value", "shape"]
    assert pairs.iloc[0][["first", "second", "shape"]].tolist() == ["a", "<c>", "linear x linear"]
    assert len(pairs) == 12
    assert pairs["p_value"].is_monotonic_increasing
    assert set(columns["column"][:2]) == {"a", "<c>"}
    assert set(columns["partner"][:2]) == {"a", "<c>"}
    assert len(columns) == 6
    assert columns["score"].is_monotonic_decreasing
    assert columns["p_value"].between(0, 1).all()


def test_text_and_html(found):
    text = repr(found)
    assert "1 significant pair and 2 significant columns" in text
    assert "a      <c>" in text
    assert "and 2 more in .pairs" in text
    html = found._repr_html_()
    assert "&lt;c&gt;" in html
    assert "<c>" not in html


def test_a_pair_is_drawn_with_its_names(found):
    ax = found.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a (rank)", "<c> (rank)")
    cells = found.cells()
    mean = ax.collections[0].get_array().reshape(cells.means.shape)
    half_y, half_x = (size // 2 for size in mean.shape)
    assert np.nanmean(mean[:half_y, :half_x]) < 0.3 < 0.7 < np.nanmean(mean[:half_y, -half_x:])
    assert found.plot("<c>").get_ylabel() == "a (rank)"
    assert found.plot(1, "e", ax=ax) is ax


def test_unknown_columns_are_reported(found):
    with pytest.raises(ValueError, match=r"no column 'bb'\. Did you mean 'b'"):
        found.plot("bb", "a")
    with pytest.raises(ValueError, match="indices go from 0 to 5"):
        found.plot(6, 0)


def test_numbers_categories_and_several_classes_are_drawn():
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=100), random.integers(0, 2, 100)])
    for y in (random.normal(size=100), random.integers(0, 3, 100)):
        ax = find_pairs(X, y, n_permutations=0).plot(0, 1)
        assert ax.get_ylabel() == "x1"


def test_an_empty_result_says_why_it_cannot_be_drawn():
    few = find_pairs(np.random.default_rng(0).normal(size=(10, 3)), np.arange(10) % 2)
    with pytest.raises(ValueError, match=r"no pair to draw\. Pairs cannot be judged on 10 rows"):
        few.plot()
    assert "cannot be judged" in few._repr_html_()
    assert len(few.columns_to_frame()) == 3
    assert few.pairs_to_frame().empty


def test_results_can_be_stored(found):
    again = pickle.loads(pickle.dumps(found))
    assert again.pairs == found.pairs
    np.testing.assert_array_equal(again.ranking, found.ranking)
