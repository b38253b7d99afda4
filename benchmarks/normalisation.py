"""Compare normalisations of the columns: sqrt(2) against 2 standard deviations, and statistics with and without class weights.

Balanced accuracy of the model that selected (joint) and of a linear SVM on what was selected, mean over splits of the paper's
protocol and three numbers of features. The SVM sees columns normalised alike for all rows of the table.

    python benchmarks/normalisation.py --datasets lymphoma,colon,leukemia_3571,lung --splits 15
    python benchmarks/normalisation.py --final

``--final`` compares final models of 1,000 rows and more on the same columns, M = 10: the squared hinge on erf, the default, and
scikit-learn's logistic regression; balanced accuracy and log loss on held-out rows, three folds.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, ErfScaler, Training
from tamiz.evaluation.intervals import wilcoxon_pairs
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import find_data_home
from tamiz.paper.recipes import GRIDS, erf_pair, fit_svm, load_checked, load_split

M_VALUES = (10, 50, 200)
KINDS = ("erf", "erf2")


def fit_joint(train, y, test, kind, weighted, m, recipe):
    """Return the columns selected and the predictions of the model that selected them."""
    if weighted:
        model = E2EFSClassifier(m, normalize=kind, training=Training(recipe=recipe), random_state=0).fit(train, y)
        return model.get_support(indices=True), model.predict(test)
    scaler = ErfScaler(kind=kind).fit(train)
    model = E2EFSClassifier(m, normalize=None, training=Training(recipe=recipe), random_state=0).fit(
        scaler.transform(train), y
    )
    return model.get_support(indices=True), model.predict(scaler.transform(test))


def measure(dataset, n_splits, recipe):
    """Return scores[kind, weighted][learner], shape (n_splits, number of M)."""
    home = str(find_data_home())
    _, checksum = load_checked(dataset, home)
    ways = list(itertools.product(KINDS, (True, False)))
    scores = {
        way: {"joint": np.zeros((n_splits, len(M_VALUES))), "svm": np.zeros((n_splits, len(M_VALUES)))} for way in ways
    }
    for split in range(n_splits):
        parts = load_split(dataset, home, checksum, split)
        for way, (i, m) in itertools.product(ways, enumerate(M_VALUES)):
            columns, predicted = fit_joint(parts.train, parts.y_train, parts.test, *way, m, recipe)
            scores[way]["joint"][split, i] = balanced_accuracy(parts.y_test, predicted)
            train, test = erf_pair(parts.train[:, columns], parts.test[:, columns])
            machine = fit_svm(train, parts.y_train, GRIDS["small"], 0)
            scores[way]["svm"][split, i] = balanced_accuracy(parts.y_test, machine.predict(test))
    return scores


def tables_of_many_rows():
    """Yield (name, X, y): eight of 40 columns have effects that are lines, or that level off; then real tables."""
    generator, shape = np.random.default_rng(7), (4000, 40)
    normal = generator.normal(size=shape)
    drawn = {"normal": normal, "t3": generator.standard_t(3, shape), "log-normal": np.exp(generator.normal(size=shape))}
    effects = {name: X[:, :8].sum(axis=1) for name, X in drawn.items()}
    drawn["effects level off"], effects["effects level off"] = np.sinh(normal), np.tanh(2 * normal[:, :8]).sum(axis=1)
    for name, X in drawn.items():
        effect = (effects[name] - effects[name].mean()) / effects[name].std()
        yield name, X, (effect + 0.7 * generator.normal(size=shape[0]) > 0).astype(int)
    yield "digits", *load_digits(return_X_y=True)
    for name in ("madelon", "gina_rebuilt", "gisette_rebuilt", "mnist", "fashion_mnist"):
        file = np.load(find_data_home() / f"{name}.npz")
        X, y = (file[key] if key in file else file[f"{key}_train"] for key in "Xy")
        rows = generator.permutation(len(y))[:4000]
        yield name, X[rows].astype(np.float32), y[rows]


def compare_final_models(m=10):
    """Print balanced accuracy and log loss of three final models on the same columns."""
    print("| data | erf, squared hinge | default | logistic regression | columns of the default |")
    print("|---|---:|---:|---:|---|")
    for name, X, y in tables_of_many_rows():
        found, kinds = np.zeros((3, 3, 2)), []
        for fold, (train, test) in enumerate(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)):
            hinge = E2EFSClassifier(m, normalize="erf", loss="squared_hinge", random_state=0).fit(X[train], y[train])
            ours = E2EFSClassifier(m, random_state=0).fit(X[train], y[train])
            plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced"))
            plain.fit(ours.transform(X[train]), y[train])
            for place, (model, table) in enumerate(((hinge, X), (ours, X), (plain, ours.transform(X)))):
                loss = log_loss(y[test], model.predict_proba(table[test]))
                found[fold, place] = balanced_accuracy(y[test], model.predict(table[test])), loss
            kinds.append(ours.normalize_)
        cells = " | ".join(f"{accuracy:.3f}, {loss:.3f}" for accuracy, loss in found.mean(axis=0))
        print(f"| {name} | {cells} | {', '.join(kinds)} |", flush=True)


def main():
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=15)
    parser.add_argument("--recipe", default="tamiz", choices=["tamiz", "paper"])
    parser.add_argument("--final", action="store_true")
    options = parser.parse_args()
    if options.final:
        compare_final_models()
        return
    print("| data | normalisation | statistics | joint | SVM | p against the default (joint, SVM) |")
    print("|---|---|---|---:|---:|---:|")
    for dataset in options.datasets.split(","):
        scores = measure(dataset, options.splits, options.recipe)
        default = scores["erf", True]
        for (kind, weighted), found in scores.items():
            tests = []
            for learner in ("joint", "svm"):
                one, other = found[learner].mean(axis=1), default[learner].mean(axis=1)
                pair = {"this": one, "default": other}
                tests.append("–" if (one == other).all() else f"{wilcoxon_pairs(pair, 0.05)[0].p_value:.2f}")
            words = "class-weighted" if weighted else "plain"
            means = " | ".join(f"{found[learner].mean():.3f}" for learner in ("joint", "svm"))
            print(f"| {dataset} | {kind} | {words} | {means} | {', '.join(tests)} |", flush=True)


if __name__ == "__main__":
    main()
