"""The list of kept features."""

from dataclasses import replace

from tamiz.report.kept_view import direction, effect_colour, kept_rows, kept_view, payload, runners_up


def test_each_kept_feature_has_a_row(select_data):
    rows = kept_rows(select_data)
    assert len(rows) == len(select_data.kept) == select_data.selection.n_features_to_select
    assert kept_view(select_data)["rows"] == rows


def test_the_direction_follows_the_sign(select_data):
    kept = replace(select_data.kept[0], class_effects=())
    low, high = select_data.classes
    assert direction(replace(kept, effect=0.5), select_data) == f"higher → {high}"
    assert direction(replace(kept, effect=-0.5), select_data) == f"higher → {low}"
    assert direction(replace(kept, effect=None), select_data) == ""
    assert effect_colour(0.5) != effect_colour(-0.5) == effect_colour(None)


def test_runners_up_are_not_kept_and_come_by_rank(select_data):
    found = runners_up(select_data)
    ranks = [rank for rank, _, _ in found]
    assert ranks == sorted(ranks)
    assert min(ranks) > select_data.selection.n_features_to_select
    assert not {name for _, name, _ in found} & {kept.name for kept in select_data.kept}


def test_the_data_of_the_script_is_of_this_page(select_data):
    assert payload(select_data)
