"""Parameter objects of the estimators: how weights and gamma are trained, and how M is chosen."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tamiz._utils.text import suggest

#: Parameters of the estimators that decide what gamma decides over.
GATING_PARAMETERS = ("groups", "keep", "drop", "costs", "budget")


class NamedParameters:
    """Answer a wrong name of a parameter with the nearest right one."""

    #: Parameters that are objects, with the classes of these.
    _nested: ClassVar[dict[str, tuple[Any, ...]]] = {}

    def __new__(cls, *args: Any, **parameters: Any) -> Any:
        """Refuse unknown names before ``__init__`` does, which cannot suggest a better one."""
        cls._check_names(parameters, TypeError)
        return super().__new__(cls)

    @classmethod
    def _check_names(cls, names: Iterable[str], error: type[Exception]) -> None:
        known = cls._get_param_names()  # type: ignore[attr-defined]
        for name in names:
            if name in known:
                continue
            homes = [
                f" Did you mean {parameter}={kind.__name__}({name}=...)?"
                for parameter, kinds in cls._nested.items()
                for kind in kinds
                if name in kind._get_param_names()
            ]
            hint = homes[0] if homes else suggest(name, known)
            raise error(f"{cls.__name__} has no parameter {name!r}.{hint} There are: {', '.join(known)}.")


@dataclass
class Options(NamedParameters):
    """Base of the parameter objects: ``get_params`` and ``set_params`` as of scikit-learn, which need not be loaded."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """List names and values of the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Not used: no parameter has parameters.
        """
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters.

        Parameters
        ----------
        **parameters
            Names and values.

        Returns
        -------
        self
        """
        self._check_names(parameters, ValueError)
        vars(self).update(parameters)
        return self

    def __repr__(self) -> str:
        shown = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        changed = [f"{name}={value!r}" for name, value, default in shown if repr(value) != repr(default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def check(self) -> None:
        """Raise ValueError for a parameter that is out of its range."""
        from sklearn.utils._param_validation import validate_parameter_constraints

        validate_parameter_constraints(self._constraints(), self.get_params(), caller_name=type(self).__name__)

    def _constraints(self) -> dict[str, Any]:
        return {}


@dataclass(kw_only=True, repr=False)
class Training(Options):
    """Rates, lengths and solver of the training of an estimator.

    Parameters
    ----------
    recipe : {"tamiz", "paper"}, default="tamiz"
        What "auto" stands for below and in the estimator: the values chosen for this package, or those of the paper, see
        :meth:`paper`.
    learning_rate : float or "auto", default="auto"
        Learning rate of the weights (Adam); "auto" is 0.003 for the linear, the additive and the pair network,
        0.01 for others.
    batch_size : int or "auto", default="auto"
        Rows per step; "auto" is the paper's max(2, N / 50) (256 from 50,000 rows on), at least 16 for
        the pair network, and N / 4 within 16 and 64 for networks with hidden layers.
    warmup_steps : int or "auto", default="auto"
        Steps before gamma moves; "auto" is 500 for the linear, the additive and the pair network, 0 for others.
    ramp_steps : int or "auto", default="auto"
        The paper's T, steps until the penalty has its full weight; "auto" is 20,000 for the linear network, 4,000 for the
        additive, 8,000 for the pair network, 2,000 for others. The selection is closed long before that.
    refinement_epochs : int or "auto", default="auto"
        Passes over the data after the selection is closed; "auto" is the paper's 150 for the linear, the additive and
        the pair network (from 50,000 rows on as many as 7,500 steps take), about 2,000 steps for others. Linear models of
        squared errors with ``l2="auto"`` are refined in closed form instead.
    max_steps : int or "auto", default="auto"
        Steps of selection after which the M largest are kept, with a ``ConvergenceWarning``; "auto" is four ramps.
    gamma_rows : {"auto", "held-out", "joint"}, default="auto"
        Rows that train gamma: rows that did not train the weights, or the same rows, as in the paper. "auto" is "held-out"
        where a feature has several weights (groups, categories, curves, pairs, hidden layers), and "joint" for the linear
        network of single columns and for networks of PyTorch. See :doc:`honest-gamma`.
    mu : float, default=1.0
        Weight of the count penalty beyond 1 (the paper's mu).
    rho : float, default=0.75
        Relaxation of the target of the soft variant (the paper's rho).
    mask_optimizer : {"adam", "rmsprop", "sign", "sgd"}, default="adam"
        Solver of gamma: Adam, RMSprop, steps of equal length by the sign of the gradient, or plain projected gradient.
    fit_intercept : bool, default=True
        Whether the linear, the additive and the pair network have a constant term.
    max_memory : float or None, default=None
        Bytes that the rows of a table may take which is read in blocks; None is a quarter of what is free.

    Examples
    --------
    >>> Training(ramp_steps=500)
    Training(ramp_steps=500)
    >>> Training(ramp_step=500)
    Traceback (most recent call last):
    TypeError: Training has no parameter 'ramp_step'. Did you mean 'ramp_steps'? There are: ...
    """

    recipe: str = "tamiz"
    learning_rate: float | str = "auto"
    batch_size: int | str = "auto"
    warmup_steps: int | str = "auto"
    ramp_steps: int | str = "auto"
    refinement_epochs: int | str = "auto"
    max_steps: int | str = "auto"
    gamma_rows: str = "auto"
    mu: float = 1.0
    rho: float = 0.75
    mask_optimizer: str = "adam"
    fit_intercept: bool = True
    max_memory: float | None = None

    @classmethod
    def paper(cls, **changes: Any) -> Training:
        """Follow the recipe of the paper, for its two networks ("linear" and "mlp") and variants ("hard" and "soft").

        Rate 0.001, and 0.05 for "mlp" until the refinement; l2 of 100 / N throughout; 5 epochs of warm-up; 300 epochs for
        "hard" and 200 for "soft" until the refinement, T of 300 and 250 epochs; 150 epochs of refinement; max(2, N / 50)
        rows per step; one start; gamma is trained on the same rows as the weights. With ``normalize="auto"`` columns are
        normalised as in its equation 9: the error function
        with two standard deviations, and statistics that do not count classes by their weights.

        Parameters
        ----------
        **changes
            Parameters with other values than the paper's.

        Examples
        --------
        >>> Training.paper(warmup_steps=0)
        Training(recipe='paper', warmup_steps=0)
        """
        return cls(recipe="paper", **changes)

    def _constraints(self) -> dict[str, Any]:
        from sklearn.utils._param_validation import Interval, StrOptions

        from tamiz._utils.validation import AUTO, NameOf, finite_number, whole_number
        from tamiz.core.rule import MASK_OPTIMIZERS

        return {
            "recipe": [StrOptions({"tamiz", "paper"})],
            "learning_rate": [AUTO, finite_number(0, or_equal=False)],
            **{name: [AUTO, whole_number(1)] for name in ("batch_size", "ramp_steps", "max_steps")},
            **{name: [AUTO, whole_number(0)] for name in ("warmup_steps", "refinement_epochs")},
            "gamma_rows": [StrOptions({"auto", "held-out", "joint"})],
            "mu": [finite_number(1e-6)],
            "rho": [Interval(numbers.Real, 0, 1, closed="both")],
            "mask_optimizer": [NameOf(lambda: MASK_OPTIMIZERS)],
            "fit_intercept": ["boolean"],
            "max_memory": [finite_number(0, or_equal=False), None],
        }


@dataclass(kw_only=True, repr=False)
class Auto(Options):
    """How ``n_features_to_select="auto"`` chooses M by inner cross-validation.

    Parameters
    ----------
    rule : {"one_se", "best"} or float, default="one_se"
        M is the fewest whose mean score is within one standard error of the best, is the best, or is within that number of
        the best, such as 0.01.
    minimum : int, default=1
        The least M that is tried.

    Examples
    --------
    >>> Auto(rule="best", minimum=3)
    Auto(rule='best', minimum=3)
    """

    rule: str | float = "one_se"
    minimum: int = 1

    def _constraints(self) -> dict[str, Any]:
        from sklearn.utils._param_validation import StrOptions

        from tamiz._utils.validation import finite_number, whole_number

        return {"rule": [StrOptions({"one_se", "best"}), finite_number(0)], "minimum": [whole_number(1)]}


def is_auto(value: Any) -> bool:
    """Check whether a parameter is left to inner cross-validation.

    Examples
    --------
    >>> is_auto("auto"), is_auto(Auto(minimum=2)), is_auto(3)
    (True, True, False)
    """
    return isinstance(value, Auto) or (isinstance(value, str) and value == "auto")
