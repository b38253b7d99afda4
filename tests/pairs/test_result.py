"""Tables, text, HTML and pictures of a search."""

import pickle

import matplotlib
import numpy as np
import pandas as pd
import pytest

from tamiz import find_pairs
from tamiz.pairs.columns import read_columns
from tamiz.pairs.result import cut_axis, describe_cells
from tamiz.pairs.target import read_target


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


def test_tables_text_and_errors(found):
    again = pickle.loads(pickle.dumps(found))
    pairs, columns = again.pairs_to_dict(), again.columns_to_dict()
    assert (pairs["first"][0], pairs["second"][0], pairs["shape"][0]) == ("a", "<c>", "linear x linear")
    assert (len(pairs["p_value"]), pairs["p_value"]) == (12, sorted(pairs["p_value"]))
    assert set(columns["column"][:2]) == set(columns["partner"][:2]) == {"a", "<c>"}
    assert columns["score"] == sorted(columns["score"], reverse=True)
    for words in (
        "1 pair is significant (p < 0.05, corrected for 15 pairs)",
        "2 of 6 columns are significant: 0 on their own, 2 only in a pair; 200 rows.",
        "a      <c>",
        "and 2 more in .pairs",
    ):
        assert words in repr(again)
    few = find_pairs(np.random.default_rng(0).normal(size=(10, 3)), np.arange(10) % 2)
    for call, message in (
        (lambda: found.plot("bb", "a"), r"plot: there is no column 'bb'\. Did you mean 'b'"),
        (lambda: found.plot(6, 0), "columns are numbered from 0 to 5"),
        (few.plot, r"no pair to draw\. Pairs cannot be judged on 10 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_pair_is_drawn_with_its_names(found):
    ax = found.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "<c>")
    mean = np.asarray(ax.images[0].get_array())[::-1]
    half_y, half_x = (size // 2 for size in mean.shape)
    assert np.nanmean(mean[:half_y, :half_x]) < 0.3 < 0.7 < np.nanmean(mean[:half_y, -half_x:])
    assert found.plot("<c>").get_ylabel() == "a"
    assert found.plot(1, "e", ax=ax) is ax


def test_the_summary_counts_each_column_once():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 12))
    logit = 2 * X[:, :3].sum(axis=1) + 2.5 * X[:, 5] * X[:, 6]
    found = find_pairs(X, random.random(300) < 1 / (1 + np.exp(-logit)), random_state=0)
    assert "5 of 12 columns are significant: 3 on their own, 2 only in a pair" in found.summary
    noise = find_pairs(X, random.normal(size=300), random_state=0)
    assert noise.summary.startswith("No pair is significant (p < 0.05, corrected for 66 pairs). 0 of 12 columns")


@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_any_target_is_drawn(kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4))
    X[:, 2] = random.integers(0, 3, 90)
    y = {"two": X[:, 0] > 0, "three": random.integers(0, 3, 90), "numbers": X[:, 0] * X[:, 1]}[kind]
    axes = find_pairs(X, y, random_state=0, n_permutations=0).plot(0, 2)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.images[0].get_array().shape) == ("x0", "x2", (3, 3))


@pytest.mark.parametrize(("n_rows", "n_cells"), [(30, 3), (300, 6), (5000, 8)])
def test_cells_by_rank_hold_about_equally_many_rows(n_rows, n_cells):
    table = read_columns(np.random.default_rng(0).normal(size=(n_rows, 1)))
    codes, names, ticks = cut_axis(table, 0, repr)
    assert len(np.bincount(codes)) == len(names) == n_cells
    assert np.ptp(np.bincount(codes)) <= 1
    ends = [float(end) for name in names for end in name.split(" to ")]
    assert ends == sorted(ends)
    assert (float(ticks[0]), float(ticks[-1])) == (table.values.min(), table.values.max())


def test_few_values_are_cells_of_their_own_and_heavy_ties_leave_no_empty_cell():
    random = np.random.default_rng(0)
    few = cut_axis(read_columns(random.integers(0, 4, size=(100, 1)).astype(float)), 0, "{:g}".format)
    assert few[1] == few[2] == ["0", "1", "2", "3"]
    tied = np.where(random.random(500) < 0.7, 0.0, random.normal(size=500))[:, None]
    assert (np.bincount(cut_axis(read_columns(tied), 0, str)[0]) > 0).all()
    codes = np.tile([0, 1, 2], 20)  # a group of one-hot columns is cut by category
    table = read_columns(np.eye(3)[codes], groups=["colour"] * 3)
    np.testing.assert_array_equal(cut_axis(table, 0, str)[0], codes)


def test_cells_of_a_category_have_its_names():
    frame = pd.DataFrame({"colour": ["red", "blue"] * 15, "x": np.arange(30.0)})
    found = find_pairs(frame, np.arange(30) % 3, categorical="auto", n_permutations=0)
    assert found.cells("colour", "x").columns == ["blue", "red"]


def test_means_shares_and_counts():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 0]] * 6)
    table, digits = read_columns(X), "{:g}".format
    classes = describe_cells(table, read_target(["a", "b", "c", "c"] * 6, None, 24), 0, 1, digits)
    np.testing.assert_array_equal(classes.codes, [[1, 0], [0, 2]])
    np.testing.assert_array_equal(classes.values, [[1, np.nan], [1, 1]])
    assert classes.tips[1] == ["x0 0, x1 0: 100% a (6 rows)", "x0 1, x1 0: 100% c (12 rows)"]
    target = read_target([1.0, 3.5, 2.0, 4.0] * 6, None, 24, "regression")
    numbers = describe_cells(table, target, 0, 1, digits)
    np.testing.assert_allclose(numbers.values, [[3.5, np.nan], [1, 3]])
    assert (numbers.low, numbers.high, numbers.label) == (1.0, pytest.approx(3.5), "mean of y")
