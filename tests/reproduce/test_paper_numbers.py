"""Numbers of the publications: no row and no column is missing."""

from __future__ import annotations

from tamiz.paper import images_table
from tamiz.paper.images_training import (
    IMAGE_METHODS,
)
from tamiz.paper.numbers import (
    IMAGE_SIZES,
    IMAGES,
    IMAGES_DEVIATIONS,
    IMAGES_ONE_NETWORK,
    IMAGES_SECONDS,
    MICROARRAY,
    MICROARRAY_FILES,
)


def test_paper_numbers_have_every_row_and_column():
    assert len(MICROARRAY) == 16
    assert {len(row) for row in MICROARRAY.values()} == {7}
    assert MICROARRAY["e2efs-soft", "naive"]["gisette"] == (0.963, 0.02)
    assert MICROARRAY["inffs", "svm"]["lung"] == (0.892, 0.02)
    assert MICROARRAY_FILES.keys() == MICROARRAY.keys()
    for place, row in MICROARRAY_FILES.items():
        known = {name: mean for name, mean in row.items() if mean is not None}
        assert len(known) == (7 if place[0].startswith("e2efs") else 6)
        # ReliefF on DEXTER is the one row that the files and the paper do not share.
        off = {name for name, mean in known.items() if abs(mean - MICROARRAY[place][name][0]) > 0.016}
        assert off == ({"dexter"} if place[0] == "relieff" else set())


def test_the_papers_image_tables_are_whole():
    assert set(IMAGES) == set(IMAGE_SIZES)
    for rows in IMAGES.values():
        assert set(rows) == set(IMAGE_METHODS)
        assert {len(row) for row in rows.values()} == {4}
    for name, rows in IMAGES_DEVIATIONS.items():
        assert {method: len(row) for method, row in rows.items()} == {"e2efs": 4, "e2efs-soft": 4}
        assert set(IMAGES_SECONDS[name]) == set(IMAGE_METHODS)
    for orders in images_table.PUBLISHED_ORDERS.values():
        for rows in orders.values():
            assert set(rows) <= set(IMAGE_METHODS)
            assert {len(row) for row in rows.values()} == {4}
    # The two printed numbers of the baselines that are those of WRN-16-4.
    shared = {
        (name, method, m)
        for name, rows in IMAGES_ONE_NETWORK.items()
        for method, row in rows.items()
        for m, one, printed in zip(IMAGE_SIZES[name], row, IMAGES[name][method], strict=True)
        if one == printed
    }
    assert shared == {("mnist", "isfs", 78), ("fashion_mnist", "dfs", 392)}
