"""The classifier and the regressor that select their own inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions

from tamiz._utils.validation import NameOf
from tamiz.core.losses import get_loss, names_of
from tamiz.estimators.base import BaseE2EFS
from tamiz.estimators.networks import Network
from tamiz.estimators.training import Auto, Training
from tamiz.rows.targets import EncodedTarget, class_weights

#: Parameters and attributes of the classifier that a regressor has not.
_OF_CLASSES = ("class_weight", "classes_", "multilabel_")


def _entries(cls: type, section: str) -> dict[str, str]:
    """List the entries of a section of a docstring by their names."""
    # From Python 3.13 on the compiler takes the indentation away; cleandoc does so for all.
    text = cleandoc(str(cls.__doc__)).partition(f"{section}\n{'-' * len(section)}\n")[2].partition("\n\n")[0]
    return {entry.partition(" : ")[0].strip(): entry for entry in re.split(r"\n(?=\w)", text)}


class E2EFSClassifier(ClassifierMixin, BaseE2EFS):
    """Select exactly M features and train a classifier on them, in one run (E2E-FS).

    At once a classifier and a selector: ``predict`` and ``score`` use the model that was trained along with the selection,
    ``transform`` keeps the selected columns, for any other model. Two classes have one output; more have one output per
    class ("squared_hinge" and "logistic": one against the rest); an indicator table of labels one output per label.

    Parameters
    ----------
    n_features_to_select : int, float, "auto", Auto or None, default=None
        M; a float in (0, 1) is a fraction of the columns, None half of them. With groups, M counts groups; with a budget it
        must be None. "auto": the fewest of 1, 2, 3, 5, 7, 10, 15, 20, 30, ... (500 at most) whose mean score on inner folds
        is within one standard error of the best; ``Auto(rule=, minimum=)`` for another rule or a least M.
    network : {"linear", "additive", "pairs", "mlp", "auto"}, network object or callable, default="linear"
        The paper's network without hidden units, a sum of curves, one for each column (sees what a straight line does not),
        curves and products of pairs of columns (sees what columns tell only together), the paper's network with hidden
        layers (all four compiled, no torch needed). :class:`Pairs`, :class:`Dense` and :class:`TorchNetwork` have
        parameters of their own. A function of the number of inputs and of outputs that builds an ``nn.Module`` is trained
        by PyTorch. "auto" tries the compiled ones on inner folds and takes the simplest that no other clearly beats, row by
        row.
    variant : {"soft", "hard", "ranking"}, default="soft"
        E2E-FS-Soft, E2E-FS, or the variant that orders all features in one fit.
    loss : {"auto", "squared_hinge", "logistic", "softmax"}, default="auto"
        "auto" is the paper's squared hinge; from 1,000 rows on, and ten for each kept column, the final linear model is then
        a logistic regression on the kept columns (with ``l2="auto"``; ``loss_``).
    class_weight : {"balanced"}, dict or None, default="balanced"
        "balanced": each class has the same total weight. Not used for indicator tables.
    l2 : float or "auto", default="auto"
        Factor of the squared norm of the weights; a number holds for selection and refinement. "auto", for the linear
        network, is the paper's 100 / N (more below 57 rows), with C > 2 classes divided by C^2, with two classes in more
        than 500 rows times (500 / N)^2, at least a tenth; during refinement times M / 100. For "mlp" and PyTorch it is at
        most 0.01 and 8 / N, a tenth of that during refinement; for the additive network 100 / N, but 30 / N beyond 187
        rows, and beyond 100 rows 100 / N times that of its refinement. The pair network has that of the additive one, but
        at least 1 / N in the refinement.
    normalize : {"auto", "erf", "erf2", "standard"} or None, default="auto"
        Normalisation of the columns: :class:`ErfScaler` as in the code that the paper's authors released ("erf", the
        default) or as the paper prints it ("erf2", that of ``Training.paper()``), mean 0 and standard deviation 1, or none.
        Rows count by their weights, those of ``class_weight`` included, except with ``Training.paper()``. With "auto" a
        final model of many rows may read standardised columns (see ``loss``, ``normalize_``).
    groups : array-like of labels, shape (n_features,), list of lists, mapping or None, default=None
        Columns with the same label are kept or eliminated together, and M counts groups. Or lists of the names or numbers
        of the columns of each group (a mapping also names the groups); a column in none of them is a group of its own.
    keep, drop : list of names or numbers of columns, default=None
        Columns that are always, or never, selected, with their groups. Kept ones count towards M or the budget.
    costs : array-like, shape (n_features,), or mapping of names or numbers to costs, default=None
        What each column costs, from 0 on; a group costs the sum of its columns, unless a mapping names the group. What a
        mapping does not name costs 1. Only with ``budget``.
    budget : float or None, default=None
        Takes the place of M: the selected columns together cost at most this, and nothing left out would still fit.
    missing : {"error", "indicator"}, default="error"
        NaN raises an error, or is replaced by the mean of the training rows; columns with gaps then get an indicator, which
        the model reads along with the column.
    cv : int, splitter or iterable, default=5
        Inner folds of ``n_features_to_select="auto"`` and ``network="auto"``: a number (shuffled, stratified for classes, at
        most the rows of the smallest class; by the groups or the time given to :meth:`fit`), or as in scikit-learn.
    scoring : str, callable or None, default=None
        Score on inner folds, as in scikit-learn; None is the balanced accuracy for classes, R2 for numbers.
    training : Training or None, default=None
        Rates, lengths and solver of the training; None is ``Training()``. ``Training.paper()`` is the paper's recipe.
    random_state : int, RandomState instance or None, default=None
        An integer makes the fit repeatable.
    verbose : int or bool, default=0
        Whether to show a progress bar. With scikit-learn 1.9 and later ``set_callbacks`` takes its callbacks, such as
        ``sklearn.callback.ProgressBar()``, also for searches over this estimator; that a callback asks to stop is not heard.

    Attributes
    ----------
    classes_ : ndarray
        The classes; for an indicator table the numbers of its columns.
    multilabel_ : bool
        Whether the target was an indicator table of labels.
    selection_ : Selection
        Record of the run.
    ranking_ : ndarray of int, shape (n_features_in_,)
        A permutation of 1 .. F; 1 is the best. Selected features hold 1 .. M, by what they contribute to the outputs of the
        model (``selection_.contribution``); the others follow, the last eliminated first. ``selection_.elimination`` is
        the order of the rule alone.
    feature_importances_ : ndarray of float, shape (n_features_in_,)
        Contribution of each column to the outputs of the model (``selection_.contribution``); 0 for those not selected.
    gamma_ : ndarray of float, shape (n_features_in_,)
        The mask at the end: ones and zeros.
    passes_ : list of PassRecord
        What each pass read, where the table was read in blocks: columns, rows, rows kept, bytes.
    n_features_to_select_ : int
        Number of groups that were selected: M, or what the budget decided; without groups, of columns.
    model_ : object
        The trained model, which reads the M selected columns after their normalisation; ``model_.scores``. Of the additive
        and of the pair network ``model_.effects(i)`` is the curve of the i-th selected column.
    coef_ : ndarray, shape (n_outputs, n_features_in_)
        Weights of the columns *after they were normalised*, 0 for those not selected (linear network only).
    intercept_ : ndarray, shape (n_outputs,)
        Constant terms (linear network only).
    pairs_ : list of PairEffect
        Joint effects of the selected columns or groups, strongest first: ``first``, ``second``, ``indices`` and ``strength``, the
        norm of the joint effect (pair network only); ``model_.pair_effects(i, j, X)`` evaluates one.
    module_ : torch.nn.Module
        The trained network, which reads the M selected columns after their normalisation (networks with hidden layers
        only; made on demand for ``network="mlp"``, which needs PyTorch installed).
    n_iter_ : int
        Training steps.
    network_ : str
        Name of the network, "auto" decided; "callable" for a function.
    l2_ : float
        Weight decay of the selection, "auto" decided.
    cv_results_ : dict of str to ndarray
        With ``n_features_to_select="auto"`` only: "n_features", "mean_test_score", "std_test_score" and the scores of each
        inner fold, "split0_test_score", ..., as in scikit-learn's RFECV.
    loss_ : str
        Name of the loss, "auto" decided.
    normalize_ : str or None
        Normalisation of the columns.
    statistics_ : object or None
        Mean and standard deviation of the selected columns; None without normalisation.
    missing_ : object or None
        What replaces missing values of the selected columns, and which of these have an indicator; None for
        ``missing="error"``.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 200))
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, "ill", "well")
    >>> clf = E2EFSClassifier(n_features_to_select=2, random_state=0).fit(X, y)
    >>> clf.get_support(indices=True).tolist(), clf.score(X, y) > 0.9, clf.transform(X).shape
    ([3, 7], True, (60, 2))
    """

    _task = "classification"
    _automatic_loss = "squared_hinge"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseE2EFS._parameter_constraints,
        "loss": [NameOf(lambda: ["auto", *names_of("classification")])],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        n_features_to_select: int | float | str | Auto | None = None,
        *,
        network: str | Network | Callable[..., Any] = "linear",
        variant: str = "soft",
        loss: str = "auto",
        class_weight: Any = "balanced",
        l2: float | str = "auto",
        normalize: str | None = "auto",
        groups: Any = None,
        keep: Any = None,
        drop: Any = None,
        costs: Any = None,
        budget: float | None = None,
        missing: str = "error",
        cv: Any = 5,
        scoring: Any = None,
        training: Training | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        self._keep_parameters(locals())

    def _weigh(self, target: EncodedTarget, sample_weight: np.ndarray) -> np.ndarray:
        if target.codes is None or target.classes is None:
            return sample_weight
        factors = class_weights(self.class_weight, target.classes, target.codes, sample_weight)
        weights = sample_weight * factors[target.codes]
        if not weights.any():
            raise ValueError("class_weight leaves no row with a weight above 0.")
        return weights

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute scores: above 0 for the second of two classes, the largest for the class predicted, above 0 for a label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table; only the selected columns matter.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_outputs)
        """
        scores = self._scores(X)
        return scores if self.multilabel_ or self.classes_.size > 2 else scores[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row, or an indicator table of labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_labels)
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return (scores > 0).astype(np.int64)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Compute probabilities of the classes (of each label, for an indicator table).

        Classes count as ``class_weight`` says: with "balanced", probabilities are those of classes that are equally
        frequent. For the squared hinge they are the logistic function of twice the score; the scores of the linear network
        are scaled for that, by what is left of them on rows that were left out.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return expit(get_loss(self.loss_).slope * scores)
        return get_loss(self.loss_).class_probabilities(scores.reshape(len(scores), -1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = not self._find_loss().exclusive
        # The checks of scikit-learn want a good score on two columns, of which the default keeps one (as RFE says too).
        tags.classifier_tags.poor_score = True
        return tags


class E2EFSRegressor(RegressorMixin, BaseE2EFS):
    """Select exactly M features and train a regression on them, in one run (E2E-FS).

    At once a regressor and a selector: ``predict`` and ``score`` use the model that was trained along with the selection,
    ``transform`` keeps the selected columns, for any other model. Several targets share one selection. Targets are
    standardised inside, so their scale does not matter. What is not listed here is as in :class:`E2EFSClassifier`.

    Parameters
    ----------
    loss : {"auto", "squared_error", "huber"}, default="auto"
        "auto" is the squared error; Huber's loss is robust against outliers of y.
    l2 : float or "auto", default="auto"
        Factor of the squared norm of the weights; a number holds for selection and refinement. "auto", for the linear
        network, is 100 / N (more below 57 rows; beyond 500 times (500 / N)^2, at least a tenth), divided by the number of
        outputs. With "auto" and squared errors, selected columns are then exchanged for others while that lowers the
        penalised error (without groups, forced columns or missing values), and the model on the columns that are kept is a
        ridge regression whose penalty is chosen by generalised cross-validation. For other networks see
        :class:`E2EFSClassifier`.
    normalize : {"auto", "erf", "erf2", "standard"} or None, default="auto"
        Normalisation of the columns: mean 0 and standard deviation 1 ("standard", the default for squared errors),
        :class:`ErfScaler` as in the code that the paper's authors released ("erf", the default for other losses) or as the
        paper prints it ("erf2"), or none. Rows count by their weights.

    Attributes
    ----------
    one_dimensional_ : bool
        Whether the target was a vector.
    coef_ : ndarray, shape (n_outputs, n_features_in_)
        Weights of the columns *after they were normalised*, for y in its own units; 0 for those not selected (linear network
        only).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 30))
    >>> y = 3 * X[:, 3] - 2 * X[:, 7]
    >>> reg = E2EFSRegressor(n_features_to_select=2, random_state=0).fit(X, y)
    >>> reg.get_support(indices=True).tolist(), reg.predict(X).shape
    ([3, 7], (200,))
    """

    _task = "regression"
    _automatic_loss = "squared_error"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseE2EFS._parameter_constraints,
        "loss": [NameOf(lambda: ["auto", *names_of("regression")])],
    }

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted numbers of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table; only the selected columns matter.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_outputs)
        """
        scores = self._scores(X)
        return scores[:, 0] if self.one_dimensional_ else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


# The regressor's docstring lists what differs; the rest of its parameters and attributes are described once.
for _section in ("Parameters", "Attributes") if E2EFSRegressor.__doc__ else ():
    _own, _shared = _entries(E2EFSRegressor, _section), _entries(E2EFSClassifier, _section)
    _all = {name: _own.get(name, text) for name, text in _shared.items() if name not in _OF_CLASSES} | _own
    _doc = cleandoc(str(E2EFSRegressor.__doc__))
    E2EFSRegressor.__doc__ = _doc.replace("\n".join(_own.values()), "\n".join(_all.values()))
