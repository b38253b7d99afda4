"""Base class and registry of the protocols, and the cells that they consist of."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

from tamiz._utils.names import pick, pick_name
from tamiz._version import __version__
from tamiz.baselines.registry import available
from tamiz.evaluation.comparison import pick_methods
from tamiz.paper.dataset_registry import find_entry

#: Methods that a table always has: what chance and no selection give.
REFERENCES = ("random", "all")


def canonical_json(value: Any) -> str:
    """Return JSON that is the same for equal values, to be hashed.

    Examples
    --------
    >>> canonical_json({"b": 1.5, "a": [1, None]})
    '{"a":[1,null],"b":1.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def seed_from(*parts: Any) -> int:
    """Compute a seed of 31 bits that depends on all parts and is the same on every machine.

    Examples
    --------
    >>> seed_from("colon", 3, "fisher") == seed_from("colon", 3, "fisher") != seed_from("colon", 4, "fisher")
    True
    """
    digest = hashlib.sha256(canonical_json(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


@dataclass(frozen=True)
class Cell:
    """One piece of work of a run.

    Parameters
    ----------
    protocol : str
        Name of the protocol.
    name : str
        Human-readable name: data set, split, method.
    settings : mapping
        Everything that decides the result, as JSON: data set and checksum of the data, split, method with all its
        parameters, numbers of features, learners, seed. A changed setting is another cell.
    version : str, default=the version of tamiz
        Version that computes it.

    Examples
    --------
    >>> one, two = Cell("microarray", "a", {"unit": 1}), Cell("microarray", "a", {"unit": 2})
    >>> one.key == Cell("microarray", "b", {"unit": 1}).key, one.key == two.key
    (True, False)
    """

    protocol: str
    name: str
    settings: Mapping[str, Any]
    version: str = __version__

    @cached_property
    def key(self) -> str:
        """Hash of all that decides the result."""
        content = {"protocol": self.protocol, "settings": self.settings, "version": self.version}
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class ProtocolOption:
    """Option of a protocol, for ``make_plan`` and the command line.

    Parameters
    ----------
    name : str
        Name in the plan.
    flags : tuple of str
        What users type, such as ``("--datasets", "-d")``.
    help : str
        Help text.
    kind : {"text", "integer", "words", "integers"}, default="text"
        One value, or a list separated by commas.
    default : str, int or tuple
        Default value.
    shown_default : str or None, default=None
        Text that the help shows as the default; None shows ``default``.
    minimum, maximum : int or None, default=None
        Limits of an integer, or of the integers of a list.
    choices : sequence of str, default=()
        Allowed words; case and punctuation do not matter.
    parse : callable or None, default=None
        Checks and completes the value further.

    Examples
    --------
    >>> ProtocolOption("grid", ("--grid",), "Grid.", choices=("small", "full"), default="small").check("Full")
    'full'
    >>> ProtocolOption("n_repeats", ("--repeats",), "Repeats.", "integer", 20, minimum=1).check(0)
    Traceback (most recent call last):
    ValueError: --repeats must be at least 1, got 0.
    """

    name: str
    flags: tuple[str, ...]
    help: str
    kind: Literal["text", "integer", "words", "integers"] = "text"
    default: Any = None
    shown_default: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: Sequence[str] = ()
    parse: Callable[[Any], Any] | None = None

    def check(self, value: Any) -> Any:
        """Return the value as the plan holds it, or raise ValueError."""
        values = tuple(value) if self.kind in ("words", "integers") else (value,)
        if not values or (self.minimum is not None and min(values) < self.minimum):
            raise ValueError(f"{self.flags[0]} must be at least {self.minimum or 1}, got {value}.")
        if self.choices:
            values = tuple(dict.fromkeys(pick_name(word, self.choices, self.name.rstrip("s")) for word in values))
        if self.kind == "integers":
            values = tuple(sorted(set(values)))
        checked = values if self.kind in ("words", "integers") else values[0]
        return checked if self.parse is None else self.parse(checked)


def pick_datasets(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of data sets as the registry spells them, none twice.

    Examples
    --------
    >>> pick_datasets(["COLON", "colon"])
    ('colon',)
    """
    return tuple(dict.fromkeys(find_entry(name).name for name in names))


def with_references(methods: Sequence[str], references: Sequence[str] = REFERENCES) -> tuple[str, ...]:
    """Return the methods as the registry spells them, with those that every table has; none twice.

    Examples
    --------
    >>> with_references(["Fisher", "all"])
    ('fisher', 'all', 'random')
    """
    return tuple(dict.fromkeys([*pick_methods(methods), *references]))


def datasets_option(default: Sequence[str]) -> ProtocolOption:
    """Option for the data sets of a table."""
    text = "Separated by commas; see tamiz datasets."
    return ProtocolOption(
        "datasets", ("--datasets", "-d"), text, "words", tuple(default), "the table's", parse=pick_datasets
    )


def methods_option(default: Sequence[str], references: Sequence[str] = REFERENCES) -> ProtocolOption:
    """Option for the methods of a table; the references are added."""
    text = (
        f"Separated by commas: {', '.join(name for name in available() if name not in REFERENCES)}. Rows for "
        f"{' and '.join(references)} features are added."
    )
    return ProtocolOption(
        "methods",
        ("--methods", "-m"),
        text,
        "words",
        tuple(default),
        "the table's",
        parse=lambda names: with_references(names, references),
    )


def units_option(name: str, flag: str, text: str, default: int) -> ProtocolOption:
    """Option for a number of repeats or runs."""
    return ProtocolOption(name, (flag,), text, "integer", default, minimum=1)


SEED_OPTION = ProtocolOption(
    "seed", ("--seed",), "The same seed gives the same result.", "integer", 0, minimum=0, maximum=2**31 - 1
)


class Protocol(ABC):
    """Base class of protocols. A new one is a subclass and a line in :data:`PROTOCOLS`.

    Class attributes: ``name`` (of the command and in every cell), ``headline`` (in the list of commands), ``description``
    (the help of the command), ``example`` (what may follow the name) and ``options``.
    """

    name: ClassVar[str]
    headline: ClassVar[str]
    description: ClassVar[str]
    example: ClassVar[str] = ""
    options: ClassVar[tuple[ProtocolOption, ...]] = ()

    def make_plan(self, **given: Any) -> SimpleNamespace:
        """Check the options and complete them by their defaults.

        Raises
        ------
        ValueError
            If a name is unknown or a number too small; nothing has been read or written then.
        """
        unknown = set(given) - {option.name for option in self.options}
        if unknown:
            raise TypeError(f"{self.name} has no option {', '.join(sorted(unknown))}")
        plan = SimpleNamespace(
            **{option.name: option.check(given.get(option.name, option.default)) for option in self.options}
        )
        self.check_plan(plan)
        return plan

    def check_plan(self, plan: Any) -> None:  # noqa: B027 (a protocol may have nothing to check)
        """Raise ValueError for options that do not go together."""

    def make_cells(self, plan: Any, data_home: str | None = None) -> list[Cell]:
        """Return all cells of a plan, the longest first; by default there are none."""
        return []

    def repeat(self, name: str, settings: Mapping[str, Any], n_units: int) -> list[Cell]:
        """Return a cell for each split, fold or run; ``name`` has a place for its number."""
        return [Cell(self.name, name.format(unit + 1), {**settings, "unit": unit}) for unit in range(n_units)]

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> Any:
        """Compute a cell from its settings alone, in a worker process; the result must be JSON."""
        raise NotImplementedError(f"{type(self).__name__} makes no cells")

    @abstractmethod
    def summarise(
        self, plan: Any, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> Any:
        """Make the :class:`~tamiz.paper.tables.ProtocolSummary` of the finished cells.

        Parameters
        ----------
        plan : SimpleNamespace
            From :meth:`make_plan`.
        cells : sequence of Cell
            From :meth:`make_cells`.
        results : mapping of str to result
            By the key of the cell; failed cells are missing.
        failures : mapping of str to str
            Messages by the name of the cell.
        """

    def draw(self, summary: Any, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Draw pictures into a folder with matplotlib; return their paths by kind."""
        return {}

    def comparisons(self, plan: Any, summary: Any) -> list[Any]:
        """Return keyword arguments of the report pages of the run, see :func:`tamiz.report.report`."""
        return []


#: Name -> "module:class", in the order of the results page. Strings, so that a worker imports only the protocol it runs.
PROTOCOLS: dict[str, str] = {
    "microarray": "tamiz.paper.microarray:Microarray",
    "three-layer": "tamiz.paper.three_layer:ThreeLayer",
    "images": "tamiz.paper.images:Images",
    "ground-truth": "tamiz.paper.ground_truth:GroundTruth",
    "madelon": "tamiz.paper.ground_truth:Madelon",
    "surfaces": "tamiz.paper.surfaces:Surfaces",
}


def load_protocol(name: str) -> Protocol:
    """Return a protocol by its name, or by "module:class".

    Examples
    --------
    >>> load_protocol("surfaces").name
    'surfaces'
    """
    module, _, kind = (name if ":" in name else pick(name, PROTOCOLS, "protocol")).partition(":")
    protocol: Protocol = getattr(import_module(module), kind)()
    return protocol
