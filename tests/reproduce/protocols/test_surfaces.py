"""The penalties as surfaces."""

from __future__ import annotations

import numpy as np

from tamiz.paper.surfaces import Surfaces, surface


def test_surface_is_zero_only_where_one_feature_is_kept():
    _, binary, both = surface(11)
    zeros = np.argwhere(np.isclose(both, 0))
    assert zeros.tolist() == [[0, 10], [10, 0]]
    assert np.argwhere(np.isclose(binary, 0)).tolist() == [[0, 0], [0, 10], [10, 0], [10, 10]]


def test_surfaces_are_drawn(tmp_path):
    surfaces = Surfaces()
    outcome = surfaces.summarise(surfaces.make_plan(5), [], {}, {})
    surfaces.draw(outcome, [], {}, tmp_path)
    assert (tmp_path / "figure.png").stat().st_size > 5000
    assert len(outcome.records) == 25
