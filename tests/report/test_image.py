"""Masks over images."""

import numpy as np
import pytest

from tamiz.report.data import ImageMask
from tamiz.report.image import class_image_charts, image_chart, image_plane
from tamiz.selection import Selection


def selection_of(shape, kept):
    support = np.zeros(int(np.prod(shape)), dtype=bool)
    support[kept] = True
    ranking = np.empty(support.size, dtype=np.int64)
    ranking[np.argsort(~support, kind="stable")] = np.arange(1, support.size + 1)
    return Selection(support=support, ranking=ranking, n_steps=1, shape=shape)


@pytest.mark.parametrize(
    ("shape", "plane"),
    [((5, 7), (5, 7, -1)), ((3, 8, 9), (8, 9, 0)), ((8, 9, 4), (8, 9, 2)), ((1, 9), None), ((2, 3, 4, 5), None)],
)
def test_which_inputs_are_images(shape, plane):
    assert image_plane(shape) == plane


def test_each_kept_pixel_is_one_square():
    drawn = image_chart(selection_of((4, 4), [0, 5, 15]), None)
    assert drawn.count("z") >= 3
    assert "3 kept pixels over the mean image of 4 by 4" in drawn
    assert "<image" not in drawn


def test_colours_of_one_pixel_are_one_square():
    assert "1 kept pixels" in image_chart(selection_of((5, 6, 3), [0, 1, 2]), None)
    assert "1 kept pixels" in image_chart(selection_of((3, 5, 6), [0, 30, 60]), None)


def test_the_mean_image_lies_below_if_it_fits():
    selection = selection_of((2, 3), [1])
    mean = ImageMask(height=2, width=3, mean=[0.0, 1.0, 2.0, 3.0, float("nan"), 5.0])
    assert "data:image/png;base64," in image_chart(selection, mean)
    assert "<image" not in image_chart(selection, ImageMask(height=3, width=2, mean=[0.0] * 6))
    assert [label for label, _ in class_image_charts(selection, [("a", mean), ("b", mean)])] == ["a", "b"]


def test_tables_have_no_image():
    assert image_chart(selection_of((6,), [1]), None) == ""
