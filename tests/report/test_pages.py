"""The text of the pages: complete, escaped, self-contained, small enough."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest

from tamiz.baselines import registry
from tamiz.evaluation.intervals import Interval, PairedTest, corrected_interval
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.report import render
from tamiz.report.colours import method_positions
from tamiz.report.data import Confusion, Curve, CurvePoint, Distribution, Scores, SelectReport
from tamiz.report.describe import describe_kept
from tamiz.report.evidence import ActsWith, Correlations, PairsFound
from tamiz.report.lines import history_chart
from tamiz.report.pages import _environment
from tamiz.report.select_view import verdict
from tamiz.report.svg import N_COLOURS
from tamiz.report.text import clean_text
from tamiz.selection import Selection

VOID = {"meta", "link", "input", "br", "img"}


class Checker(HTMLParser):
    """Fails on an element that is closed out of order; gathers ids, labels and addresses."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.targets, self.addresses, self.text = [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name in ("aria-labelledby", "for") or (name == "href" and value.startswith("#")):
                self.targets.append(value.lstrip("#"))
            elif name in ("href", "src", "action", "style") or name.startswith("on"):
                self.addresses.append((name, value))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("which", ["select_data", "compare_data", "regression_data", "image_data"])
def test_pages_are_well_formed_and_need_nothing_from_outside(request, which):
    page = render(request.getfixturevalue(which))
    checked = Checker(page)
    assert len(set(checked.ids)) == len(checked.ids)
    assert set(checked.targets) <= set(checked.ids)
    assert all(name == "href" and value.startswith("data:") for name, value in checked.addresses)
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert not re.search(r"@import|url\(", page)


def test_the_policy_allows_exactly_our_style_and_script(select_data):
    page = render(select_data)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1).replace("&#39;", "'")
    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_the_select_page_says_all_it_should(select_data):
    page = render(select_data)
    words = " ".join(" ".join(Checker(page).text).split())
    for wanted in (
        "12 of 400 features kept",
        "balanced accuracy is 0.912 (0.874 to 0.950) over 10 held-out folds",
        "There is no clear difference from all 400 features",
        "It is better than with 12 random features by 0.308",
        "Next in line: the 20 that came closest",
        "80 of 87 held-out rows were put in the right class.",
        "tamiz select colon.csv --target diagnosis -k 12 --seed 7",
        "Seed 7",
        "3 columns with missing numbers were imputed.",
        "class_weight",
        "scikit-learn",
    ):
        assert wanted in words
    for kept in select_data.kept:
        assert f"<bdi>{kept.name}</bdi>" in page
        assert all(stand_in.name in page for stand_in in kept.stand_ins)
    sections = ["kept", "heat", "together", "folds", "predict", "curve", "spread", "run", "repeat"]
    assert re.findall(r'<section id="([\w-]+)"', page) == sections


def test_the_answers_come_first_and_the_optimiser_last(select_data):
    page = render(select_data)
    answers = page[page.index('<dl class="answers">') : page.index("<main")]
    for wanted in ("0.874 to 0.950; chance 0.500", "no clear difference; −0.004 to +0.106", "better; +0.210 to +0.406"):
        assert wanted in answers
    assert "<strong>0.56</strong>" in answers
    assert "without a signal below 0.10" in answers
    run = page.index('<section id="run"')
    for jargon in ("steps", "engine", "mask closed", "Mask closed"):
        assert jargon not in page[page.index("<body") : run]
    assert "2,400" in page[run:]
    assert render(replace(select_data, scores=None, stability=None)).count('class="answers"') == 0
    assert "Nothing to be seen here" in render(replace(select_data, verdict="Nothing to be seen here"))


def test_statistics_of_the_null_are_shown_where_they_were_measured(select_data):
    scores = replace(select_data.scores, p_value=0.0123)
    stability = replace(select_data.stability, p_value=0.2, null=None)
    words = render(replace(select_data, scores=scores, stability=stability))
    assert "chance 0.500; p = 0.012" in words
    assert "1 is always the same set; p = 0.200" in words


def test_effects_are_named_by_the_class_they_speak_for(select_data):
    page = render(select_data)
    first = select_data.kept[0]
    side = "tumour" if first.effect > 0 else "healthy"
    assert page.count(f"<bdi>higher → {side}</bdi>") > 3
    numbers = replace(select_data, task="regression", classes=(), target="dose")
    assert "<bdi>higher → more dose</bdi>" in render(numbers)
    classes = ("a", "b", "c")
    kept = tuple(replace(k, class_effects=(0.5, -0.2, 0.1)) for k in select_data.kept)
    many = render(replace(select_data, classes=classes, kept=kept, held_out=None, projections=()))
    assert many.count("<bdi>higher → a</bdi>") == 12
    assert many.count('class="bar cells"') == 12


def test_columns_count_as_in_the_file(select_data):
    shifted = replace(select_data, columns=tuple(range(1, 401)))
    index = select_data.kept[0].index
    assert f'<td class="num minor" data-v="{index}">{index}</td>' in render(select_data)
    assert f'<td class="num minor" data-v="{index + 1}">{index + 1}</td>' in render(shifted)


def test_a_spike_of_the_loss_does_not_flatten_the_rest(selection):
    history = {**selection.history, "loss": np.r_[5000.0, np.linspace(1.0, 0.1, 119)]}
    chart = history_chart(replace(selection, history=history), "loss", 400)
    assert "5,000" not in re.sub(r'data-tip="[^"]*"', "", chart)
    assert "5,000" in chart  # the value is still told


def test_near_copies_are_outlined_and_named(select_data):
    names = select_data.correlations.names
    values = np.eye(len(names))
    values[0, 1] = values[1, 0] = -0.93
    page = render(replace(select_data, correlations=Correlations(names, values)))
    assert 'class="outline"' in page
    assert f'<li><bdi>{names[0]}</bdi> and <bdi>{names[1]}</bdi> <span class="r">−0.93</span></li>' in page
    alone = render(replace(select_data, correlations=Correlations(names, np.eye(len(names)))))
    assert 'class="outline"' not in alone
    assert "No two kept columns are near copies" in alone


def test_pairs_are_listed_or_their_absence_is_explained(select_data):
    found = PairsFound((ActsWith("a", "b<", False, "linear x linear", 0.001),), 60)
    page = render(replace(select_data, pairs=found))
    assert "<bdi>b&lt;</bdi></td><td>left out</td><td>linear x linear</td>" in page
    more = PairsFound((*found.found, ActsWith("a", "c", True, "linear x linear", 0.01)), 60)
    assert "2 pairs in all; of each kept column its strongest partner is listed." in render(
        replace(select_data, pairs=more)
    )
    few = render(replace(select_data, pairs=PairsFound(note="Pairs cannot be judged on 8 rows: give at least 20.")))
    assert "Pairs cannot be judged on 8 rows" in few


def with_comparison(data, **changes):
    """The same page of a comparison that is changed."""
    return replace(data, comparison=replace(data.comparison, **changes))


def test_the_compare_page_says_all_it_should(compare_data):
    page = render(compare_data)
    words = " ".join(" ".join(Checker(page).text).split())
    assert "e2efs-soft has the best mean balanced accuracy at M = 5, 10, 20, 50, 100." in words
    assert "4 of the other 5 methods are significantly behind it." in words
    assert page.count('<td class="num best"') == 5
    for section in ("curves", "ranks", "time", "agreement", "tests", "repeat"):
        assert f'<section id="{section}"' in page


def test_lower_scores_can_be_better(compare_data):
    page = render(with_comparison(compare_data, metric=replace(BALANCED_ACCURACY, greater_is_better=False)))
    assert "svm-rfe has the best mean" in page
    assert "lower is better" in page


def test_parts_that_are_missing_are_left_out():
    selection = Selection(np.array([True, False]), np.array([1, 2]))
    page = render(SelectReport("bare", "selection", 0, 2, selection, describe_kept(selection)))
    assert re.findall(r'<section id="(\w+)"', page) == ["kept", "repeat"]
    Checker(page)


def test_nothing_kept():
    nothing = Selection(
        np.zeros(3, bool), np.arange(1, 4), history={"step": np.array([0, 5]), "n_alive": np.array([3, 0])}
    )
    page = render(SelectReport("none", "selection", 0, 3, nothing, ()))
    assert "0 of 3 features kept" in page
    Checker(page)


def test_the_chosen_number_is_marked_even_off_the_curve(select_data):
    curve = Curve("r2", (CurvePoint(4, Interval(0.5)), CurvePoint(2, Interval(0.4))), chosen=12)
    page = render(replace(select_data, curve=curve))
    line = re.search(r'<line x1="([\d.]+)" x2="[\d.]+" [^>]*class="chosen"', page[page.index('id="curve"') :])
    assert float(line.group(1)) > 600
    assert page.index("M = 2</th>") < page.index("M = 4</th>")


def test_without_jinja_the_error_says_what_to_install(select_data, monkeypatch):
    _environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "tamiz\[cli\]"'):
        render(select_data)


def test_bare_comparison(compare_data):
    bare = with_comparison(compare_data, seconds=None, scores=np.full((6, 5, 1), np.nan))
    bare = replace(bare, agreement=None, ranks=(), tests=(), command=None)
    page = render(bare)
    assert re.findall(r'<section id="(\w+)"', page) == ["curves", "repeat"]
    Checker(page)


def test_one_kept_of_one_and_all_kept():
    one = Selection(np.array([True]), np.array([1]))
    everything = Selection(np.ones(5, bool), np.arange(1, 6))
    for selection in (one, everything):
        X = np.full((3, selection.n_features), np.nan)
        kept = describe_kept(selection, X, ["a", "b", "b"])
        page = render(SelectReport("odd", "classification", 3, selection.n_features, selection, kept))
        assert "Next in line" not in page
        Checker(page)


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "</script><b>", '" onload="x', "{{ 7*7 }}", "a\x00b\ud800"]
)
def test_names_are_text_wherever_they_stand(selection_factory, report_factory, compare_data, hostile):
    selection = selection_factory(30, 4, names=[f"{hostile}{i}" for i in range(30)])
    data = report_factory(selection)
    data = replace(
        data,
        title=hostile,
        target=hostile,
        notes=(hostile,),
        settings={hostile: hostile},
        command=hostile,
        effect_name=hostile,
        confusion=Confusion((hostile, "b"), ((1, 0), (0, 1))),
        scores=replace(data.scores, metric=hostile),
        curve=replace(data.curve, metric=hostile),
    )
    methods = tuple(f"{hostile}{i}" for i in range(6))
    other = with_comparison(compare_data, methods=methods, metric=replace(BALANCED_ACCURACY, name=hostile))
    other = replace(other, title=hostile, ranks=(), tests=())
    for page in (render(data), render(other)):
        checked = Checker(page)
        assert all(name == "href" and value.startswith("data:") for name, value in checked.addresses)
        assert page.count("<script") == 2
        assert page.count("</script>") == 2
        assert "<b>" not in page
        assert clean_text(hostile) in checked.text
        page.encode("utf-8")


@pytest.mark.parametrize("n_kept", [20, 10_000])
def test_twenty_thousand_features_stay_under_a_megabyte_and_a_half(selection_factory, report_factory, n_kept):
    names = [f"ENSG{i:011d}_transcript" for i in range(20_000)]
    page = render(report_factory(selection_factory(20_000, n_kept, names=names), n_rows=40))
    assert len(page.encode("utf-8")) < 1_500_000
    assert page.count("<tr>") < 1000


def test_very_long_names_are_cut_off_by_the_budget(selection_factory):
    selection = selection_factory(3000, 1500, names=[f"{'é' * 400}{i}" for i in range(3000)], n_records=2)
    page = render(SelectReport("long", "selection", 0, 3000, selection, describe_kept(selection)))
    assert len(page.encode("utf-8")) < 1_500_000


def test_verdict_for_losses_and_for_missing_intervals():
    selection = Selection(np.array([True, False]), np.array([1, 2]))
    scores = Scores("error", Interval(0.1), difference=Interval(-0.2, -0.3, -0.1), higher_is_better=False)
    assert verdict(scores, selection).endswith("It is better than with all 2 features by 0.200.")
    assert verdict(replace(scores, higher_is_better=True), selection).endswith(
        "worse than with all 2 features by 0.200."
    )
    assert (
        verdict(Scores("r2", Interval(0.5), difference=Interval(0.1)), selection)
        == "With the kept feature, r2 is 0.500."
    )


def test_verdict_joins_what_is_unclear():
    selection = Selection(np.arange(3) < 2, np.arange(1, 4))
    open_ended = Interval(0.1, -0.1, 0.3)
    said = verdict(Scores("r2", Interval(0.5), difference=open_ended, difference_random=open_ended), selection)
    assert said.endswith(
        "no clear difference from all 3 features or from 2 random features: both intervals include zero."
    )


@pytest.mark.parametrize(
    ("created", "shown"),
    [
        ("2026-01-31T09:05:59+00:00", "Made 2026-01-31 09:05 UTC."),
        ("2026-01-31", "Made 2026-01-31."),
        ("today", "Made today."),
    ],
)
def test_the_moment_is_readable(select_data, created, shown):
    assert shown in render(replace(select_data, created=created))


def test_intervals_of_bounded_scores_stay_inside(compare_data):
    high = np.broadcast_to([1.0, 1.0, 0.9], (6, 5, 3))
    assert "0.967 (0.823 to 1.000)" in render(with_comparison(compare_data, scores=high))
    unbounded = replace(BALANCED_ACCURACY, high=np.inf)  # its name alone does not limit it
    assert "0.967 (0.823 to 1.110)" in render(with_comparison(compare_data, scores=high, metric=unbounded))


def test_a_run_that_did_not_converge_says_so(select_data):
    stopped = Selection(np.array([True, False]), np.array([1, 2]), converged=False)
    bare = SelectReport("stopped", "selection", 0, 2, stopped, describe_kept(stopped))
    assert "Step limit reached." in render(bare)
    assert "Step limit reached." not in render(select_data)


def test_histories_that_say_nothing_draw_nothing():
    for history in (
        {"step": np.array([0]), "loss": np.array([1.0])},
        {"step": np.array([0, 1]), "loss": np.array([np.nan, np.nan])},
        {"loss": np.array([1.0, 2.0])},
        {"step": np.array([0, 1]), "gamma_path": np.zeros((3, 1)), "gamma_path_features": np.array([0])},
    ):
        selection = Selection(np.array([True, False]), np.array([1, 2]), history=history)
        page = render(SelectReport("odd", "selection", 0, 2, selection, describe_kept(selection)))
        assert 'id="sieve"' not in page


def test_long_refinement_does_not_squeeze_the_sieve():
    step = np.arange(0, 10_001, 100)
    history = {
        "step": step,
        "phase": np.where(step < 1000, 1, 3),
        "n_alive": np.maximum(1, 5 - step // 200),
        "loss": 1.0 / (step + 1),
    }
    selection = Selection(np.arange(5) < 1, np.arange(1, 6), closed_at=1000, n_steps=10_000, history=history)
    page = render(SelectReport("long", "selection", 0, 5, selection, describe_kept(selection)))
    assert "the charts of the sieve end at step 1,300, the run at 10,000." in page
    assert "step 1,300: 1 alive" in page
    assert "step 1,400: 1 alive" not in page
    assert "step 10,000: 1.00e−4" in page  # the loss is shown to the end


def test_empty_curves_and_many_classes(select_data):
    labels = tuple(f"class {i}" for i in range(30))
    counts = tuple(tuple(int(i == j) for j in range(30)) for i in range(30))
    page = render(replace(select_data, curve=Curve("r2", ()), confusion=Confusion(labels, counts)))
    assert 'id="curve"' not in page
    assert "<details open>" in page  # too many for a picture: the table is shown at once
    Checker(page)


def test_a_feature_without_values_has_no_picture(select_data):
    first = replace(select_data.kept[0], distribution=None, effect=None, fold_share=None, stand_ins=())
    page = render(replace(select_data, kept=(first, *select_data.kept[1:])))
    assert page.count('class="chart small overlaid"') == 11
    assert isinstance(select_data.kept[1].distribution, Distribution)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="render needs a SelectReport, CompareReport or PairsReport, got str"):
        render("page")


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    bright, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def mixed(top, bottom, share):
    channels = [round(share * int(top[i : i + 2], 16) + (1 - share) * int(bottom[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{c:02x}" for c in channels)


def test_colours_have_enough_contrast_in_every_theme():
    style = resources.files("tamiz.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    blocks = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6}|\.\d+);", block))
        for block in re.findall(r"\{([^{}]*--paper: [^{}]*)\}", style)
    ]
    assert len(blocks) == 4  # light, dark by switch, dark by system, print
    assert blocks[1] == blocks[2]
    for theme in blocks:
        grounds = [theme[g] for g in ("paper", "raised", "sunken")]
        for ink in ("ink", "soft", "accent-ink"):
            assert min(contrast(theme[ink], ground) for ground in grounds) >= 4.5, ink
        for series in [f"s{i}" for i in range(N_COLOURS)] + ["strong-rule", "negative", "blue", "red"]:
            assert contrast(theme[series], theme["paper"]) >= 3, series
        assert len({theme[f"s{i}"] for i in range(N_COLOURS)}) == N_COLOURS
        assert contrast(theme["warn-ink"], theme["warn"]) >= 4.5
        darkest = mixed(theme["heat"], theme["paper"], float(theme["heat-top"]) + 0.03)
        assert contrast(theme["ink"], darkest) >= 4.5


def test_the_page_says_which_intervals_it_shows(compare_data):
    plain = render(compare_data)
    assert "Student t over splits" in plain
    corrected = render(with_comparison(compare_data, test_share=0.2))
    assert "after Nadeau and Bengio" in corrected
    assert "Student t" not in corrected
    expected = corrected_interval(compare_data.comparison.scores[0, 0], 0.2, limits=(0, 1))
    assert f"{expected.value:.3f} ({expected.low:.3f} to {expected.high:.3f})" in corrected


def with_methods(data, n_methods):
    """The same comparison with so many methods."""
    names = tuple(f"method {i}" for i in range(n_methods))
    scores = data.comparison.scores[np.arange(n_methods) % len(data.methods)]
    changed = replace(data.comparison, methods=names, scores=scores, seconds=None)
    return replace(data, comparison=changed, agreement=None, ranks=(), tests=())


def test_many_methods_are_drawn_without_whiskers_and_tests_fold_away(compare_data):
    assert 'class="whisker' in render(with_methods(compare_data, 8))
    many = with_methods(compare_data, 10)
    page = render(many)
    assert 'class="whisker' not in page
    assert "drawn without intervals" in page
    tests = tuple(PairedTest(a, b, 0.1, 0.2, False) for a in many.methods for b in many.methods if a < b)
    page = render(replace(many, tests=tests))
    Checker(page)
    assert "0 of 45 pairs differ significantly" in page
    assert "<summary>All 45 pairs</summary>" in page


def test_all_features_are_something_to_compare_with_not_a_winner(compare_data):
    names = ("all", *compare_data.methods[1:])
    words = render(replace(with_comparison(compare_data, methods=names), ranks=()))
    assert "all has the best" not in words
    assert "All 2,000 features together: 0." in words


def test_a_method_has_one_colour_everywhere_and_no_two_share_one(compare_data):
    every = registry.available()
    assert len(every) <= N_COLOURS
    assert len(set(method_positions(every))) == len(every)
    few = with_comparison(compare_data, methods=("relieff", "all", "e2efs", "mine", "lasso", "fisher"))
    page = render(replace(few, ranks=(), tests=()))
    place = every.index("relieff")
    assert re.search(rf'data-key="{place}"><svg[^>]*>.*?class="line s{place}".*?<bdi>relieff</bdi>', page)


def test_keeping_everything_agrees_with_nobody(compare_data):
    named = with_comparison(compare_data, methods=("all", *compare_data.methods[1:]))
    page = render(replace(named, ranks=(), tests=()))
    agreement = page[page.index('<section id="agreement"') : page.index('<section id="repeat"')]
    assert "<bdi>all</bdi>" not in agreement
    assert "<bdi>fisher</bdi>" in agreement


def test_a_page_that_cannot_hold_all_names_says_so(select_data):
    def page_with(names):
        return render(replace(select_data, selection=select_data.selection.with_names(names)))

    words = page_with([f"{'long name ' * 200}{i}" for i in range(400)])
    assert re.search(r"holds the names of the first \d+ of 400 features by rank: the search knows only these", words)
    words = page_with([f"{'long name ' * 6000}{i}" for i in range(400)])
    assert "not even of all that were kept" in words
    assert "holds the names" not in page_with([f"gene {i}" for i in range(400)])
