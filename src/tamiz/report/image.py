"""Draw the mask of an image-shaped input over the mean image."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tamiz.report.data import ImageMask
from tamiz.report.raster import png_address
from tamiz.report.svg import Frame, element, number, picture
from tamiz.selection import Selection


def image_plane(shape: Sequence[int]) -> tuple[int, int, int] | None:
    """Height, width and the axis of the channels (0, 2 or -1 for none) of an image-shaped input; None if it is none.

    Examples
    --------
    >>> image_plane((1, 28, 28)), image_plane((32, 32, 3)), image_plane((8, 8)), image_plane((12,))
    ((28, 28, 0), (32, 32, 2), (8, 8, -1), None)
    """
    if len(shape) == 2 and min(shape) > 1:
        return shape[0], shape[1], -1
    if len(shape) == 3 and shape[0] <= 4:
        return shape[1], shape[2], 0
    if len(shape) == 3 and shape[2] <= 4:
        return shape[0], shape[1], 2
    return None


def image_chart(selection: Selection, image: ImageMask | None) -> str:
    """Draw the kept pixels as outlined squares over the mean image (over an empty one if there is none)."""
    plane = image_plane(selection.shape or ())
    if plane is None:
        return ""
    height, width, axis = plane
    cube: np.ndarray = selection.support.reshape(selection.shape)
    mask = cube if axis < 0 else np.any(cube, axis=axis)
    side = 440 / max(height, width)
    frame = Frame(math.ceil(side * width), math.ceil(side * height))
    parts = [element("rect", x=0, y=0, width=frame.width, height=frame.height, class_="image-ground")]
    if image is not None and (image.height, image.width) == (height, width):
        parts.append(
            element(
                "image",
                x=0,
                y=0,
                width=frame.width,
                height=frame.height,
                href=_grey(image),
                preserveAspectRatio="none",
                class_="pixels",
            )
        )
    square = f"h{number(side)}v{number(side)}h-{number(side)}z"
    drawn = "".join(f"M{number(j * side)} {number(i * side)}{square}" for i, j in zip(*np.nonzero(mask), strict=True))
    parts.append(element("path", d=drawn, class_="kept-pixels"))
    label = f"{int(mask.sum()):,} kept pixels over the mean image of {height} by {width}"
    return picture(frame, label, *parts, class_="natural")


def _grey(image: ImageMask) -> str:
    """Return the mean image as a grey PNG."""
    values = np.asarray(image.mean, dtype=np.float64).reshape(image.height, image.width)
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    spread = np.ptp(values)
    return png_address(((values - values.min()) / (spread if spread > 0 else 1.0) * 255).astype(np.uint8))


def class_image_charts(selection: Selection, images: Sequence[tuple[str, ImageMask]]) -> list[tuple[str, str]]:
    """Draw the kept pixels over the mean image of each class."""
    return [(label, image_chart(selection, image)) for label, image in images]
