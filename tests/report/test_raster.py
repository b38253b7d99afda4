"""Pictures of many cells, read back by an independent reader."""

import base64
import io

import numpy as np
import pytest

from tamiz.report.raster import (
    MISSING_CODE,
    diverging_palette,
    grid_payload,
    label_room,
    png_address,
    quantise,
    raster_chart,
)


def pixels_of(address):
    image = pytest.importorskip("PIL.Image")
    return image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))


def test_a_grey_picture_is_read_back():
    values = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    np.testing.assert_array_equal(np.asarray(pixels_of(png_address(values))), values)


def test_a_palette_is_read_back():
    codes = np.array([[0, 127, 254, 255]], dtype=np.uint8)
    colours = np.asarray(pixels_of(png_address(codes, diverging_palette())).convert("RGB"))[0]
    blue, middle, red, missing = colours.astype(int)
    assert blue[2] > blue[0]
    assert red[0] > red[2]
    assert middle.min() > 240
    assert len(set(missing)) == 1


def test_values_keep_their_order_and_missing_ones_stand_apart():
    values = np.linspace(-2, 2, 41)
    codes = quantise(values, 1.5).astype(int)
    assert (np.diff(codes) >= 0).all()
    assert codes[20] == 127
    np.testing.assert_array_equal(quantise(-values, 1.5)[::-1], quantise(values, 1.5))
    assert quantise(np.array([np.nan, np.inf]), 1.0).tolist() == [MISSING_CODE] * 2


def test_the_script_gets_the_codes_of_the_picture():
    codes = np.array([[1, 2], [3, 4]], dtype=np.uint8)
    block = grid_payload(codes, 3.0, ["a", "b" * 90], ["c", "d"], "z")
    assert np.frombuffer(base64.b64decode(block["codes"]), dtype=np.uint8).reshape(2, 2).tolist() == codes.tolist()
    assert len(block["rows"][1]) <= 60


@pytest.mark.parametrize("square", [True, False])
def test_a_chart_names_its_rows_and_its_grid(square):
    codes = np.zeros((2, 5), dtype=np.uint8)
    drawn = raster_chart(codes, ["first", "<b>"], "a title", key="heat", width=600, cell_height=14, square=square)
    assert "first" in drawn
    assert "&lt;b&gt;" in drawn
    assert 'data-grid="heat"' in drawn
    assert label_room(600) > label_room(320)
