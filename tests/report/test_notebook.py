"""The summary for notebooks."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

from tamiz import E2EFSClassifier
from tamiz.report import summary
from tamiz.selection import Selection


def test_bars_histograms_and_both_themes(selection, table):
    shown = summary(selection, *table)
    text = shown._repr_html_()
    assert text.count('class="bar effect"') == 12
    assert text.count('class="chart small overlaid"') == 12
    assert "prefers-color-scheme:dark" in text
    assert "[data-jp-theme-light=false]" in text
    assert "12 of 400 features kept" in text
    assert repr(shown).startswith("Summary(12 of 400 features: gene_")
    HTMLParser().feed(text)


def test_names_are_escaped_and_long_lists_cut():
    names = [f"<b>{i}" for i in range(30)]
    selection = Selection(np.ones(30, bool), np.arange(1, 31), feature_names=names)
    text = summary(selection)._repr_html_()
    assert "<b>0" not in text
    assert "&lt;b&gt;0" in text
    assert "and 10 more" in text


def test_scores_of_held_out_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = np.where(X[:, 1] > 0, "ill", "well")
    clf = E2EFSClassifier(n_features_to_select=1, random_state=0).fit(X, y)
    text = summary(clf, X, y, cv=3)._repr_html_()
    assert "on held-out rows" in text
    assert "higher → ill" in text


def test_cells_keep_their_alignment_in_a_notebook(selection, table):
    """JupyterLab aligns the cells of its tables by a rule of two classes and an element; ours has to be more specific."""
    text = summary(selection, *table)._repr_html_()
    assert (
        ".tamiz-summary table:not(.other) td,.tamiz-summary table:not(.other) th{padding:2px 10px 2px 0;text-align:left"
        in text
    )
