"""The pages: complete, escaped, self-contained, small enough, and nothing inferred on them."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, E2EFSPath, StabilitySelection, find_pairs, select
from tamiz.evaluation.intervals import Interval
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.report import report
from tamiz.report.page import _environment, gather, render
from tamiz.report.select_view import select_view
from tamiz.report.text import clean_text
from tamiz.selection import Selection
from tamiz.tables import TableEncoder

VOID = {"meta", "link", "input", "br", "img"}


class Checker(HTMLParser):
    """Fails on an element that is closed out of order; gathers ids, labels, addresses and words."""

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

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def words_of(page):
    return Checker(page).words


def sections_of(page):
    return re.findall(r'<section id="([\w-]+)"', page)


def block_of(page):
    return json.loads(re.search(r'id="payload">(.*?)</script>', page).group(1))


def make_page(which, request):
    if which == "comparison":
        return render(request.getfixturevalue("comparison"), **request.getfixturevalue("about"))
    if which == "pairs":
        X = np.random.default_rng(0).normal(size=(200, 6))
        return render(find_pairs(X, X[:, 0] * X[:, 1] > 0, random_state=0, n_permutations=0), task="classification")
    if which == "image":
        selection = request.getfixturevalue("selection_factory")(784, 39, shape=(1, 28, 28))
        return render(selection, np.random.default_rng(0).normal(size=(50, 784)), np.arange(50) % 2)
    return render(request.getfixturevalue(which))


@pytest.mark.parametrize("which", ["genes", "houses", "comparison", "pairs", "image"])
def test_pages_are_well_formed_and_need_nothing_from_outside(request, which):
    page = make_page(which, request)
    checked = Checker(page)
    assert len(set(checked.ids)) == len(checked.ids)
    assert set(checked.targets) <= set(checked.ids)
    assert all(name == "href" and value.startswith("data:") for name, value in checked.addresses)
    assert not re.search(r"@import|url\(|https://|http://(?!www\.w3\.org/2000/svg)", page)
    assert "\u2212" not in page  # one minus sign everywhere
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1).replace("&#39;", "'")
    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_the_page_of_a_study_shows_what_the_study_says(genes):
    page = render(genes, command="tamiz select genes.csv", created="2026-01-31T09:05:59+00:00")
    words, evaluation = Checker(page).words, genes.evaluation
    score, held = evaluation.score, evaluation.held_out
    for wanted in (
        "6 of 120 columns kept",
        "90 rows; classification of diagnosis",
        genes.verdict,
        f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f})",
        f"chance {evaluation.chance:.3f}",
        evaluation.null.p_text,
        f"without a signal below {evaluation.null.highest_stability:.2f}",
        evaluation.effect_name,
        "Next in rank: 20 columns left out",
        f"{int((held.truth == held.predicted).sum())} of 90 held-out rows were put in the right class.",
        "tamiz select genes.csv",
        "Made 2026-01-31 09:05.",
        "scikit-learn",
    ):
        assert wanted in words or wanted in page, wanted
    for kept in genes.kept:
        assert f"<bdi>{kept['column']}</bdi>" in page
    sections = ["alerts", "kept", "heat", "together", "folds", "predict", "curve", "spread", "tried", "run", "repeat"]
    assert [name for name in sections if name in sections_of(page)] == sections_of(page)
    assert set(sections) - {"alerts", "tried"} <= set(sections_of(page))
    assert page.index('<dl class="answers">') < page.index("<main") < page.index('id="run"')


def test_effects_are_those_of_held_out_rows_and_weights_say_where_they_are_from(genes):
    shown, _ = gather(genes)
    effects = genes.evaluation.effects
    assert shown.effects[1] == [effects.get(int(c)) for c in shown.columns.kept]
    assert "held-out rows" in shown.effects[0]
    X, y = load_iris(return_X_y=True)
    clf = E2EFSClassifier(2, random_state=0).fit(X, (y > 0).astype(int))
    alone, _ = gather(clf, X, (y > 0).astype(int))
    assert "from the training rows" in alone.effects[0]
    assert sorted(alone.effects[1]) == pytest.approx(sorted(clf.coef_[clf.coef_ != 0]))


def test_clusters_stand_in_the_page_and_in_the_record(genes):
    assert genes.to_dict()["clusters"] == genes.clusters
    cluster = next(one for one in genes.clusters if "gene_007" in one)
    assert set(cluster) == {"gene_000", "gene_007"}
    assert cluster[0] in genes.selection.names
    block = block_of(render(genes))
    assert block["clusters"][block["names"].index(cluster[0])] == cluster[1:]


def test_alerts_come_first(houses):
    page = render(houses)
    assert page.index('id="alerts"') < page.index('<dl class="answers">')
    assert houses.alerts[0].message in words_of(page)
    assert 'id="alerts"' not in render(dataclasses.replace(houses, alerts=()))


def test_a_column_with_levels_is_one_column(houses):
    page = render(houses)
    words, block = words_of(page), block_of(page)
    placed = "Levels of a category are placed by the mean of the target over their rows."
    for said in ("11 levels of Neighborhood", placed, "lowest third of SalePrice", "higher → more SalePrice"):
        assert said in words
    assert f"4 of {len(houses.evaluation.names)} columns kept" in words
    number = block["names"].index("Neighborhood")
    assert all(effect > 0 for kept in block["sets"].values() for place, effect in kept if place == number)
    assert "Neighborhood=" not in page  # pictures, lists and data block show columns
    assert (block["nKept"], set(block["names"])) == (4, set(houses.evaluation.names))
    assert page.count("rows are missing") == 3  # gaps are shown as gaps, not as medians


def test_a_report_infers_no_pairs():
    """Pairs of noise were once searched on the rows that selected the columns."""
    source = resources.files("tamiz.report")
    texts = [path.read_text(encoding="utf-8") for path in source.iterdir() if path.name.endswith(".py")]
    assert not any("find_pairs(" in text for text in texts)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(150, 60)), rng.integers(0, 2, 150)
    clf = E2EFSClassifier(5, network="pairs", random_state=0).fit(X, y)
    assert "act together" not in render(clf, X, y)


def test_one_column_is_told_in_the_singular():
    X, y = load_iris(return_X_y=True)
    words = words_of(render(select(X, target=(y == 0).astype(int), k=1, permutations=0)))
    assert "1 of 4 columns kept" in words
    assert "The column shown was kept in every one of the 5 folds." in words
    for wrong in (r"\b1 columns", r"\b1 rows", r"-0\.000"):
        assert not re.search(wrong, words[: words.index("Settings, and how")]), wrong


def test_estimators_paths_selectors_and_pipelines_are_taken():
    data = load_breast_cancer(as_frame=True)
    X, y = data.data.iloc[:150], np.where(data.target[:150] == 1, "benign", "malignant")
    ours = E2EFSClassifier(3, random_state=0, l2=0.01)
    for source in (
        ours,
        make_pipeline(StandardScaler(), ours),
        E2EFSPath([2, 4], estimator=ours, cv=3),
        StabilitySelection(ours, n_resamples=4, random_state=0),
        SelectKBest(k=5),
        make_pipeline(SelectKBest(k=5), LogisticRegression(max_iter=5000)),
    ):
        words = words_of(render(source.fit(X, y), X, y))
        columns = gather(source, X, y)[0].columns
        assert 1 <= columns.n_kept <= 5
        assert f"{columns.n_kept} of 30 columns kept" in words
        assert set(columns.names) == set(X.columns)


def test_a_pipeline_with_an_encoder_counts_columns_and_is_cross_validated():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 90)
    frame = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
    frame["colour"] = np.where(rng.random(90) < 0.9, np.array(["red", "blue"])[y], np.array(["blue", "red"])[y])
    pipe = make_pipeline(TableEncoder(), E2EFSClassifier(1, random_state=0)).fit(frame, y)
    page = render(pipe, frame, y, cv=3)
    assert "1 of 5 columns kept" in words_of(page)
    assert block_of(page)["names"][0] == "colour"
    assert {"predict", "folds"} <= set(sections_of(page))


def test_cv_adds_what_held_out_rows_tell():
    X, y = (part[:90] for part in load_breast_cancer(return_X_y=True))
    page = render(E2EFSClassifier(3, random_state=0, l2=0.01).fit(X, y), X, y, cv=3)
    assert "in every one of the 3 folds" in words_of(page)
    assert re.search(r'class="verdict">(3 of 30 columns predict|No sign)', page)
    assert {"curve", "predict", "folds"} <= set(sections_of(page))


BAD = [
    (lambda s, p: render(s, y=[1]), ValueError, "y was given without X"),
    (lambda s, p: render(s, cv=3), ValueError, "cv needs X and y"),
    (lambda s, p: render(s, task="sorting"), ValueError, "task must be 'classification' or 'regression'"),
    (lambda s, p: render(s, image_shape=(3, 3)), ValueError, "holds 9 pixels, the selection 400"),
    (lambda s, p: render(s, np.zeros((3, 400)), [1, 2]), ValueError, "3 rows"),
    (lambda s, p: render(object()), TypeError, "report needs a Study, a Selection or a fitted selector, got object"),
    (lambda s, p: render(E2EFSClassifier(2)), Exception, "not fitted yet"),
    (lambda s, p: render(make_pipeline(StandardScaler())), TypeError, "no step that selects"),
    (lambda s, p: report(s, path=p), IsADirectoryError, "is a folder; give the name of a file"),
    (lambda s, p: report(s, path=p / "no" / "r.html"), FileNotFoundError, "There is no folder"),
    (lambda s, p: render(s, wrong=1), TypeError, "wrong"),
    (lambda s, p: render(s, np.zeros((4, 3))), ValueError, "X has 3 columns, the selection was made on 400"),
    (lambda s, p: render(s, [["a"]]), ValueError, "The report needs X as a table of numbers"),
]


@pytest.mark.parametrize(("call", "kind", "message"), BAD)
def test_bad_input_is_refused(selection, tmp_path, call, kind, message):
    with pytest.raises(kind, match=message):
        call(selection, tmp_path)


def test_ready_sources_take_no_table(genes, comparison):
    for source, message in ((genes, "A study holds its table"), (comparison, "holds all the page shows")):
        with pytest.raises(ValueError, match=message):
            render(source, np.zeros((3, 120)))


def test_bare_selections_of_none_one_and_all(tmp_path):
    for n, n_kept, headline in (
        (3, 0, "0 of 3 columns kept"),
        (1, 1, "1 of 1 column kept"),
        (5, 5, "5 of 5 columns kept"),
    ):
        history = {"step": np.array([0, 5]), "n_alive": np.array([n, n_kept])}
        source = Selection(np.arange(n) < n_kept, np.arange(1, n + 1), history=history)
        page = report(source, path=tmp_path / "r.html").read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert headline in words_of(page)
        assert set(sections_of(page)) <= {"kept", "repeat", "run"}
    Checker(render(source, np.full((3, 5), np.nan), ["a", "b", "b"]))


def test_without_jinja_the_error_says_what_to_install(selection, monkeypatch):
    _environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "tamiz\[cli\]"'):
        render(selection)


def test_the_compare_page_says_all_it_should(comparison, about):
    page = render(comparison, **about)
    words = words_of(page)
    assert "e2efs-soft has the best mean balanced accuracy at M = 5, 10, 20, 50, 100." in words
    assert re.search(r"(\d|None) of the other 5 methods (is|are) significantly behind it\.", words)
    assert page.count('<td class="num best"') == 5
    assert sections_of(page) == ["curves", "ranks", "stability", "time", "agreement", "tests", "repeat"]
    other = dataclasses.replace(comparison, metric=dataclasses.replace(BALANCED_ACCURACY, greater_is_better=False))
    assert "svm-rfe has the best mean" in render(other, **about)
    bare = dataclasses.replace(comparison, seconds=None, supports=None, scores=np.full((6, 5, 1), np.nan))
    assert sections_of(render(bare, **about)) == ["curves", "repeat"]


def test_no_pair_is_said_as_that():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    page = render(find_pairs(X, rng.integers(0, 2, 80), random_state=0, n_permutations=0), task="classification")
    assert "No pair is significant" in page
    assert "0 significant pairs of 15" in page


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "</script><b>", '" onload="x', "{{ 7*7 }}", "a\x00b\ud800"]
)
def test_names_are_text_wherever_they_stand(comparison, selection_factory, table_factory, hostile):
    selection = selection_factory(30, 4, names=[f"{hostile}{i}" for i in range(30)])
    X, y = table_factory(selection)
    said = {
        **dict.fromkeys(("title", "target", "command"), hostile),
        "notes": (hostile,),
        "settings": {hostile: hostile},
    }
    one = render(selection, X, np.where(y == "tumour", hostile, "b"), task="classification", **said)
    methods = tuple(f"{hostile}{i}" for i in range(6))
    metric = dataclasses.replace(BALANCED_ACCURACY, name=hostile)
    two = render(dataclasses.replace(comparison, methods=methods, metric=metric), n_rows=9, n_features=9, **said)
    for page in (one, two):
        checked = Checker(page)
        assert all(name == "href" and value.startswith("data:") for name, value in checked.addresses)
        assert (page.count("<script"), page.count("</script>")) == (2, 2)
        assert "<b>" not in page
        assert clean_text(hostile) in checked.text
        page.encode("utf-8")


@pytest.mark.parametrize(
    ("n_features", "n_kept", "name"),
    [(20_000, 20, "ENSG_{}"), (20_000, 10_000, "ENSG_{}"), (3000, 1500, "é" * 400 + "{}")],
)
def test_pages_stay_under_a_megabyte_and_a_half(selection_factory, table_factory, n_features, n_kept, name):
    selection = selection_factory(n_features, n_kept, names=[name.format(i) for i in range(n_features)])
    page = render(selection, *table_factory(selection, n_rows=40))
    assert len(page.encode("utf-8")) < 1_500_000
    assert page.count("<tr>") < 1000


def test_what_was_tried_is_listed(selection):
    tried = {"candidates": ["linear", "mlp"], "mean": [0.8, None], "standard_error": [0.1, None], "chosen": "linear"}
    tried |= {
        "scores": [[0.7, 0.9], [None, None]],
        "rule": "one_se",
        "scoring": "accuracy",
        "reasons": {"mlp": "no torch"},
    }
    page = render(dataclasses.replace(selection, choices={"network": tried}))
    assert "Means over 2 inner folds of all rows; taken: the simplest within one standard error" in page
    assert "<td>no torch</td>" in page
    tried |= {"mean": [None, None], "scores": [[None], [None]]}
    assert "nothing else was trained" in render(dataclasses.replace(selection, choices={"network": tried}))


def test_several_targets_and_a_test_score(houses):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    study = select(X, target=X[:, :2] + 0.1 * rng.normal(size=(80, 2)), k=2, permutations=0)
    page = render(study)
    assert page.count("Predicted against actual, ") == 2
    evaluation = dataclasses.replace(houses.evaluation, test_score=Interval(0.5, 0.4, 0.6))
    assert "0.500 (0.400 to 0.600)" in render(dataclasses.replace(houses, evaluation=evaluation))


def test_regressors_show_predictions(houses):
    view = select_view(*gather(houses))
    assert [title for title, _, _ in view["predictions"]["charts"]] == ["Predicted against actual"]
    listed = dict(view["predictions"]["rows"])
    error = np.abs(houses.evaluation.held_out.truth - houses.evaluation.held_out.predicted).mean()
    assert listed["mean absolute error"].startswith(f"{error:,.0f}")
