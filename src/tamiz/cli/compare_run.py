"""``tamiz compare``: several methods on the same folds of one table."""

from __future__ import annotations

import datetime
import importlib
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._names import suggest
from tamiz._version import __version__
from tamiz.baselines import registry
from tamiz.benchmark.compare import Comparison, Method, compare_methods
from tamiz.cli.console import Terminal
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.estimator import ModelOptions, model_maker
from tamiz.cli.options import TableOptions, Variant
from tamiz.cli.output import output_folder
from tamiz.cli.prepare import load_table, parse_k, resolve_k
from tamiz.report.data import CompareReport, MethodRank, PairTest
from tamiz.report.records import to_plain
from tamiz.report.text import csv_text
from tamiz.report.write import library_versions, report

#: Our own methods: ``e2efs-soft`` and so on.
OWN = {f"e2efs-{variant}": variant.value for variant in Variant}
DEFAULTS = {
    "classification": ("e2efs-soft", "fisher", "relieff", "lasso", "random", "all"),
    "regression": ("e2efs-soft", "relieff", "lasso", "random", "all"),
}
#: Baselines whose ranking depends on how many features are asked for; see :class:`~tamiz.benchmark.compare.Method`.
_FIT_AT = {"isfs": "each", "lasso": "each", "svm-rfe": "smallest"}
DEFAULT_K = (5, 10, 20)
ALPHA = 0.05


@dataclass(frozen=True)
class CompareOptions:
    """What the user asked for."""

    table: TableOptions
    k_values: str | None
    methods: str | None
    out: Path
    network: str = "linear"
    force: bool = False
    spreadsheet_safe: bool = True
    command: str | None = None


def known_methods() -> list[str]:
    """All methods, ours first.

    Examples
    --------
    >>> known_methods()[:4]
    ['e2efs-soft', 'e2efs-hard', 'e2efs-ranking', 'fisher']
    """
    return [*OWN, *registry.available()]


def parse_methods(text: str) -> list[str]:
    """Names separated by commas, each as the registry spells it, none twice.

    Examples
    --------
    >>> parse_methods("e2efs, Fisher,svm_rfe,fisher")
    ['e2efs-hard', 'fisher', 'svm-rfe']
    """
    found = []
    for word in text.split(","):
        name = word.strip().lower()
        if not name:
            continue
        if name == "e2efs":
            name = "e2efs-hard"
        if name not in OWN:
            try:
                name = registry.canonical_name(name)
            except ValueError:
                hint = suggest(name, known_methods(), n=3)
                raise CommandError(
                    f"Unknown method {word.strip()!r}.{hint} There are: {', '.join(known_methods())}.", EXIT_USAGE
                ) from None
        if name not in found:
            found.append(name)
    if not found:
        raise CommandError(f"Name at least one method: {', '.join(known_methods())}.", EXIT_USAGE)
    return found


def parse_values(text: str) -> list[int | float]:
    """Numbers of features, separated by commas.

    Examples
    --------
    >>> parse_values("5, 10,0.5")
    [5, 10, 0.5]
    """
    values = [parse_k(word.strip()) for word in text.split(",") if word.strip()]
    if not values:
        raise CommandError("Say how many features to keep, such as -k 5,10,20.", EXIT_USAGE)
    return values


def _baseline(name: str, task: str) -> Method:
    try:
        kind = registry.load(name)
    except ImportError as error:
        raise CommandError(str(error), EXIT_USAGE) from None
    if task == "regression" and kind._target == "classes":
        raise CommandError(f"The method {name!r} needs classes, but the task is regression. Leave it out.", EXIT_USAGE)
    takes = inspect.signature(kind).parameters

    def make(n_features_to_select: int, seed: int) -> Any:
        more: dict[str, Any] = {"random_state": seed} if "random_state" in takes else {}
        if "task" in takes:
            more["task"] = task
        return registry.make(name, n_features_to_select=n_features_to_select, **more)

    return Method(
        make, fit_at=_FIT_AT.get(name, "largest"), keeps_all=name == "all", side_by_side=kind._engine != "torch"
    )


def make_methods(names: Sequence[str], task: str, network: str) -> dict[str, Method]:
    """How to make each method for a task."""
    methods = {}
    for name in names:
        if name in OWN:
            make = model_maker(ModelOptions(OWN[name], network), task)
            methods[name] = Method(make, fit_at="each", side_by_side=network == "linear")
        else:
            methods[name] = _baseline(name, task)
    return methods


def run_compare(options: CompareOptions, talk: Terminal) -> dict[str, Any]:
    """Run the whole command; the record is ready for JSON and is also in ``compare.json``."""
    asked = parse_methods(options.methods) if options.methods else None
    values = parse_values(options.k_values) if options.k_values is not None else []
    with output_folder(options.out, options.force) as folder:
        data = load_table(options.table, talk, lambda n_features: _check_all(values, n_features))
        n_features = len(data.features)
        values = values or [m for m in DEFAULT_K if m < n_features] or [max(1, n_features // 2)]
        m_values = sorted({resolve_k(value, n_features) for value in values})
        methods = make_methods(asked or DEFAULTS[data.target.task], data.target.task, options.network)
        _load_engines(methods, data.target.task)
        with talk.progress("comparing", len(methods) * len(m_values) * len(data.folds)) as tick:
            found = compare_methods(
                data.prepare,
                data.y,
                methods,
                m_values,
                data.folds,
                task=data.target.task,
                n_features=n_features,
                seed=options.table.seed,
                n_jobs=data.n_jobs,
                tick=tick,
            )
        for name, message in found.failures.items():
            talk.warn(f"{name} failed: {message}")
        if np.isnan(found.scores).all():
            raise CommandError("Every method failed; see above.")
        facts = {
            "title": data.table.path.name,
            "task": data.target.task,
            "n_rows": data.table.n_rows,
            "n_features": n_features,
            "target": data.target.name,
        }
        page = _page(options, facts, found, talk)
        record = _record(options, facts, found, page)
        _write(folder, options, found, page, record)
    record["files"] = {
        name: str(options.out / file)
        for name, file in {"report": "report.html", "csv": "compare.csv", "json": "compare.json"}.items()
    }
    return record


def _load_engines(methods: Mapping[str, Method], task: str) -> None:
    """Load the compiled engine, and torch, before anything is timed: else the first method would pay for all."""
    own = [name for name in methods if name in OWN and methods[name].side_by_side]
    if own:
        X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
        methods[own[0]].make(1, 0).fit(X, np.repeat([0, 1], 6) if task == "classification" else X[:, 0])
    if any(not method.side_by_side for method in methods.values()):
        importlib.import_module("torch")


def _check_all(values: Sequence[int | float], n_features: int) -> None:
    for value in values:
        resolve_k(value, n_features)


def _none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _page(options: CompareOptions, facts: dict[str, Any], found: Comparison, talk: Terminal) -> CompareReport:
    ranks, tests = found.ranks(ALPHA), found.tests(ALPHA)
    best = min(ranks.mean_ranks, key=lambda name: (math.isnan(ranks.mean_ranks[name]), ranks.mean_ranks[name]))
    against_best = {t.second if t.first == best else t.first: t for t in tests if best in (t.first, t.second)}
    middle = len(found.m_values) // 2
    agreement = found.agreement(middle)
    return CompareReport(
        **facts,
        metric=found.metric,
        methods=found.methods,
        m_values=found.m_values,
        scores=tuple(tuple(tuple(_none(v) for v in row) for row in table) for table in found.scores.tolist()),
        seconds=tuple(tuple(_none(v) for v in row) for row in found.seconds.tolist()),
        agreement=tuple(tuple(_none(v) for v in row) for row in agreement.tolist()),
        agreement_at=found.m_values[middle],
        ranks=tuple(
            MethodRank(
                name,
                ranks.mean_ranks[name],
                against_best[name].p_value if name in against_best else None,
                name in against_best and against_best[name].significant,
            )
            for name in found.methods
        ),
        tests=tuple(PairTest(t.first, t.second, t.difference, t.p_value, t.significant) for t in tests),
        alpha=ALPHA,
        notes=(
            *talk.notes,
            "The same folds for all methods; imputing, encoding and selecting happen inside each fold; every selection is "
            "scored by the same linear model on the kept features (logistic or ridge regression, standardised).",
        ),
        settings={"folds": found.scores.shape[2], "network of e2efs": options.network, "seed": options.table.seed},
        versions=library_versions(),
        seed=options.table.seed,
        command=options.command,
        created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        test_share=found.test_share,
    )


def _record(options: CompareOptions, facts: dict[str, Any], found: Comparison, page: CompareReport) -> dict[str, Any]:
    results = []
    for i, name in enumerate(found.methods):
        for j, m in enumerate(found.m_values):
            interval = found.interval(i, j)
            results.append(
                {
                    "method": name,
                    "k": m,
                    "score": interval.mean,
                    "low": interval.low,
                    "high": interval.high,
                    "seconds": found.seconds[i, j],
                    "stability": found.stability(i, j),
                    "folds": found.scores[i, j],
                }
            )
    return to_plain(
        {
            "tamiz": __version__,
            "file": str(options.table.file),
            **{key: value for key, value in facts.items() if key != "title"},
            "metric": found.metric,
            "results": results,
            "ranks": page.ranks,
            "tests": page.tests,
            "friedman_p_value": found.ranks(ALPHA).p_value,
            "failures": found.failures,
            "seed": options.table.seed,
            "notes": list(page.notes),
            "command": options.command,
        }
    )


def _write(
    folder: Path, options: CompareOptions, found: Comparison, page: CompareReport, record: dict[str, Any]
) -> None:
    columns = ("method", "k", "score", "low", "high", "seconds", "stability")
    rows = [[result[column] for column in columns] for result in record["results"]]
    text = csv_text(columns, rows, spreadsheet_safe=options.spreadsheet_safe)
    (folder / "compare.csv").write_text(text, encoding="utf-8", newline="")
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=2)
    (folder / "compare.json").write_text(text + "\n", encoding="utf-8")
    report(page, folder / "report.html", spreadsheet_safe=options.spreadsheet_safe)
