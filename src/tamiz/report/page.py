"""Render a study, an estimator, a comparison or a search for pairs as one page of HTML."""

from __future__ import annotations

import base64
import copy
import dataclasses
import functools
import hashlib
import inspect
import math
import re
from importlib import resources
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz._utils.text import counted
from tamiz._utils.validation import check_target_length
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.cross_validation import curve_sizes, evaluate
from tamiz.evaluation.subjects import task_of
from tamiz.report import text
from tamiz.report.columns import Columns, check_report_table
from tamiz.report.select_view import Shown, select_view
from tamiz.report.views import About, compare_view, pairs_view
from tamiz.rows.targets import decide_task
from tamiz.selection import Selection
from tamiz.study import Study

#: Cells of the encoded table that the page looks at; of larger tables it takes a sample of the rows.
_MOST_CELLS = 8_000_000
#: Content-Security-Policy: our style and script by their hash, pictures inside the page, nothing else.
_POLICY = "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'"


def render(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    cv: Any = None,
    image_shape: tuple[int, ...] | None = None,
    spreadsheet_safe: bool = True,
    **about: Any,
) -> str:
    """Render the page that :func:`tamiz.report.report` writes.

    Parameters
    ----------
    source, X, y
        As for :func:`tamiz.report.report`.
    cv : int, cross-validation splitter or None, default=None
        Folds in which the estimator selects anew, for scores on held-out rows; None measures none.
    image_shape : tuple of int or None, default=None
        Shape of the inputs where they are images, such as (28, 28): the page shows the mask over the mean image.
    spreadsheet_safe : bool, default=True
        Whether CSV downloads from the page start out with cells such as ``=1+1`` made harmless; the page has a switch.
    **about
        What the page says about the run: ``title``, ``task``, ``target``, ``n_rows``, ``n_features``, ``notes``,
        ``settings``, ``seed``, ``command``, ``created``.

    Returns
    -------
    str

    Examples
    --------
    >>> selection = Selection(np.array([True, False]), np.array([1, 2]), feature_names=["<script>", "b"])
    >>> "&lt;script&gt;" in render(selection, title="toy")
    True
    """
    from tamiz.pairs.result import PairSearch

    if isinstance(source, (Comparison, PairSearch)):
        if X is not None or y is not None or cv is not None or image_shape is not None:
            raise ValueError("A comparison or a search for pairs holds all the page shows: leave out X, y and cv.")
        said = About(**about)
        if isinstance(source, Comparison):
            name, view = "compare.html.j2", compare_view(source, said)
        else:
            name, view = "pairs.html.j2", pairs_view(source, said)
    else:
        shown, said = gather(source, X, y, cv=cv, image_shape=image_shape, **about)
        name, view = "select.html.j2", select_view(shown, said)
    templates = resources.files("tamiz.report").joinpath("templates")
    style, script = (templates.joinpath(part).read_text(encoding="utf-8") for part in ("report.css", "report.js"))
    payload = text.json_for_script(view.pop("payload"))
    hashes = (base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in (style, script))
    template = _environment().get_template(name)
    return template.render(
        **view,
        style=style,
        script=script,
        payload=payload,
        about=said,
        spreadsheet_safe=spreadsheet_safe,
        policy=_POLICY.format(*hashes),
    )


def gather(
    source: Any, X: Any = None, y: Any = None, cv: Any = None, image_shape: tuple[int, ...] | None = None, **about: Any
) -> tuple[Shown, About]:
    """Collect what the page and the summary of one selection show.

    Parameters
    ----------
    source, X, y, cv, image_shape, **about
        As for :func:`tamiz.report.report`.

    Returns
    -------
    shown : Shown
    about : About
    """
    if isinstance(source, Study):
        if X is not None or y is not None or cv is not None:
            raise ValueError("A study holds its table and its evaluation: leave out X, y and cv.")
        return _of_study(source, about)
    selection, model, before = find_selection(source)
    given = X
    if before is not None and X is not None:
        X = before.transform(X)
    if image_shape is not None:
        pixels, n = math.prod(image_shape), selection.n_features
        if pixels != n:
            raise ValueError(f"image_shape {image_shape} holds {pixels} pixels, the selection {n}.")
        selection = dataclasses.replace(selection, shape=tuple(image_shape))
    if y is not None and X is None:
        raise ValueError("y was given without X; give both, or neither.")
    table = None if X is None else check_report_table(X, selection)
    if y is not None:
        check_target_length(table, y)
    task = about.pop("task", None)
    if task not in (None, "classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    if task is None and y is not None:
        task = decide_task(y) if model is None else task_of(model, y)
    evaluation = None
    if cv is not None:
        if table is None or y is None:
            raise ValueError("cv needs X and y: the folds are made of their rows.")
        # Only linear models are quick enough to be trained once more for every M of a curve.
        m = int(selection.group_support.sum())
        sizes = curve_sizes(selection.group_support.size, m) if hasattr(model, "coef_") and before is None else []
        evaluation = evaluate(source, given, y, cv=cv, sizes=sizes)
    settings = {}
    if hasattr(model, "get_params"):
        usual = {name: one.default for name, one in inspect.signature(type(model)).parameters.items()}
        parameters = sorted(model.get_params(deep=False).items())
        settings = {key: value for key, value in parameters if value is not usual.get(key)}
    columns = Columns(selection)
    known = {
        "title": "Selection" if model is None else type(model).__name__,
        "task": task or "selection",
        "n_rows": 0 if table is None else table.shape[0],
        "n_features": len(columns),
        "seed": selection.seed,
        "settings": settings,
    }
    verdict = None if evaluation is None else evaluation.verdict
    shown = Shown(columns, table, None if y is None else np.asarray(y), model, evaluation, verdict=verdict)
    return shown, About(**{**known, **about})


def _of_study(study: Study, about: dict[str, Any]) -> tuple[Shown, About]:
    """Collect what the page of a study shows; of a large table a sample of its rows."""
    rows, encoder, evaluation = study.rows, study.encoder, study.evaluation
    drawn = rows.used
    most = max(1, _MOST_CELLS // max(1, study.units.size))
    if drawn.size > most:
        drawn = np.sort(np.random.default_rng(0).choice(drawn, most, replace=False))
    selection, numbers = study.model.selection_, list[int]()
    if encoder is None:
        X = rows.source[drawn]
        names = np.array(rows.names, dtype=object)
    else:
        gaps = copy.copy(encoder)
        gaps.impute = False  # a missing value is shown as one
        X = gaps.transform(rows.source, rows=drawn)
        numbers = [feature.column + 1 for feature in encoder.features_]
        names = encoder.get_feature_names_out()
    if selection.n_features == len(names):  # otherwise missing indicators stand behind the columns
        selection = dataclasses.replace(selection, feature_names=names)
    if not (rows.is_plain and len(evaluation.names) == selection.n_features):
        unit_names = np.array(evaluation.names, dtype=object)
        selection = dataclasses.replace(selection, groups=study.units, group_names=unit_names)
    columns = Columns(selection, numbers)
    effects = evaluation.effects
    sets = []
    for m, model in study.models.items():
        kept = study.selection_of(model).ordered
        sizes = []
        for members in (columns.members[int(c)] for c in kept):
            found = [effects[i] for i in members.tolist() if i in effects]
            # Of a column with levels the largest counts, without a sign.
            sizes.append(max(map(abs, found), default=None) if len(members) > 1 else next(iter(found), None))
        sets.append((m, kept.tolist(), sizes))
    settings = {name: value for name, value in study.settings.items() if value is not None}
    known = {
        "title": study.title,
        "task": study.task,
        "target": ", ".join(study.targets),
        "targets": study.targets,
        "n_rows": rows.n_rows,
        "n_features": evaluation.n_features,
        "notes": study.notes,
        "settings": settings,
        "seed": study.settings.get("seed"),
    }
    alerts = [(alert.kind.capitalize(), alert.message) for alert in study.alerts]
    shown = Shown(
        columns, X, rows.y[drawn], study.model, evaluation, sets, alerts, study.verdict, drawn, study.q_values
    )
    return shown, About(**{**known, **about})


def find_selection(source: Any) -> tuple[Selection, Any, Any]:
    """Find the selection of a source, the estimator that holds it, and what comes before it in a pipeline.

    Examples
    --------
    >>> selection = Selection(np.array([False, True]), np.array([2, 1]))
    >>> find_selection(selection)[0] is selection
    True
    """
    if isinstance(source, Selection):
        return source, None, None
    if hasattr(source, "steps"):  # a pipeline
        places = [place for place, (_, step) in enumerate(source.steps) if hasattr(step, "get_support")]
        if not places:
            raise TypeError("The pipeline has no step that selects features.")
        before = source[: places[-1]] if places[-1] else None
        selection, model, _ = find_selection(source.steps[places[-1]][1])
        if before is not None and selection.feature_names is None and hasattr(before, "get_feature_names_out"):
            selection = selection.with_names(before.get_feature_names_out())
        features = getattr(source.steps[0][1], "features_", None)  # of a TableEncoder
        if before is not None and selection.groups is None and features and len(features) == selection.n_features:
            names = list(dict.fromkeys(feature.column_name for feature in features))
            groups = np.array([names.index(feature.column_name) for feature in features])
            if not set(groups[selection.support]) & set(groups[~selection.support]):
                selection = dataclasses.replace(selection, groups=groups, group_names=np.array(names, dtype=object))
        return selection, model, before
    inner = getattr(source, "best_estimator_", source)  # of a path the estimator that was chosen
    if isinstance(getattr(inner, "selection_", None), Selection):
        return inner.selection_, inner, None
    if not hasattr(source, "get_support"):
        raise TypeError(f"report needs a Study, a Selection or a fitted selector, got {type(source).__name__}.")
    support = source.get_support()  # raises NotFittedError before fit
    ranking = np.asarray(getattr(source, "ranking_", np.arange(support.size)), dtype=np.float64)
    ranks = np.lexsort((ranking, ~support)).argsort() + 1
    given = getattr(source, "feature_names_in_", None)
    return Selection(support, ranks, variant=type(source).__name__, engine="own", feature_names=given), source, None


@functools.cache
def _environment() -> Any:
    jinja2 = require("jinja2", "cli", "The report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tamiz.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: text.clean_text(value) if type(value) is str else value,
    )
    markup = require("markupsafe", "cli", "The report").Markup
    environment.filters |= {
        "counted": counted,
        "code": lambda message: markup(
            re.sub("`(.+?)`", r"<code>\1</code>", str(markup.escape(text.clean_text(message))))
        ),
        "ends": text.describe_ends,
        "interval": text.describe_score,
        "markup": markup,  # only for text that was made or escaped here
        "number": text.format_number,
        "p": text.format_p_value,
        "plain": text.format_value,
        "score": text.format_score,
        "seconds": text.format_seconds,
        "short": text.shorten,
    }
    environment.tests["finite"] = lambda value: value is not None and math.isfinite(value)
    environment.globals["format_seconds"] = text.format_seconds
    return environment
