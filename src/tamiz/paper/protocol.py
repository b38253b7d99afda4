"""Base class and registry of the protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from tamiz._utils.names import pick
from tamiz.baselines.registry import available
from tamiz.evaluation.comparison import Comparison
from tamiz.paper.store import Cell, ProtocolSummary

#: Methods that a table has without being asked for: what chance and no selection give.
REFERENCES = ("random", "all")


@dataclass(frozen=True)
class ProtocolOption:
    """Describe an argument of a protocol's ``make_plan`` as an option of ``tamiz reproduce``.

    Parameters
    ----------
    name : str
        Argument of ``make_plan``.
    flags : tuple of str
        What users type, such as ``("--datasets", "-d")``.
    help : str
        Help text.
    kind : {"text", "integer", "words", "integers"}, default="text"
        One value, or a list separated by commas.
    default : str, int or None, default=None
        Value where nothing is typed; None leaves the argument at its default in ``make_plan``.
    shown_default : str or None, default=None
        Text that the help shows as the default; None shows ``default``.
    minimum, maximum : int or None, default=None
        Limits of an integer.
    """

    name: str
    flags: tuple[str, ...]
    help: str
    kind: Literal["text", "integer", "words", "integers"] = "text"
    default: str | int | None = None
    shown_default: str | None = None
    minimum: int | None = None
    maximum: int | None = None


DATASETS_OPTION = ProtocolOption(
    "datasets", ("--datasets", "-d"), "Separated by commas; see tamiz datasets.", "words", shown_default="the table's"
)
METHODS_OPTION = ProtocolOption(
    "methods",
    ("--methods", "-m"),
    f"Separated by commas: {', '.join(name for name in available() if name not in REFERENCES)}. Rows for random and for "
    "all features are added.",
    "words",
    shown_default="the table's",
)
REPEATS_OPTION = ProtocolOption(
    "n_repeats", ("--repeats",), "Repeats of the splits.", "integer", shown_default="20", minimum=1
)
SEED_OPTION = ProtocolOption(
    "seed", ("--seed",), "The same seed gives the same result.", "integer", 0, minimum=0, maximum=2**31 - 1
)


@dataclass(frozen=True)
class ComparisonPage:
    """Hold a comparison that becomes a report page of its own.

    Parameters
    ----------
    name : str
        The page is written to ``report-NAME.html``.
    title : str
        Heading.
    n_rows, n_features : int
        Shape of the table.
    comparison : Comparison
        Scores by method, M and split.
    notes : tuple of str, default=()
        Shown as they are.
    settings : mapping, default={}
        Shown as a table.
    seed : int or None, default=None
        Seed of the run.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    comparison: Comparison
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None


class Protocol(ABC):
    """Base class of protocols. A new one is a subclass and a line in :mod:`tamiz.paper.protocol`.

    Class attributes: ``name`` (of the command and in every cell), ``headline`` (in the list of commands), ``description``
    (the help of the command), ``example`` (what may follow the name) and ``options``.
    """

    name: ClassVar[str]
    headline: ClassVar[str]
    description: ClassVar[str]
    example: ClassVar[str] = ""
    options: ClassVar[tuple[ProtocolOption, ...]] = ()

    @abstractmethod
    def make_plan(self, *arguments: Any, **options: Any) -> Any:
        """Check the options and return the plan, a frozen record.

        Raises
        ------
        ValueError
            If a name is unknown or a number too small; nothing has been read or written then.
        """

    def make_cells(self, plan: Any, data_home: str | None = None) -> list[Cell]:
        """Return all cells of a plan, the longest first, so that none is left over at the end; by default there are none."""
        return []

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> Any:
        """Compute a cell from its settings alone, in a worker process; the result must be JSON."""
        raise NotImplementedError(f"{type(self).__name__} makes no cells")

    @abstractmethod
    def summarise(
        self, plan: Any, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Make the tables from the finished cells.

        Parameters
        ----------
        plan : object
            From :meth:`make_plan`.
        cells : sequence of Cell
            From :meth:`make_cells`.
        results : mapping of str to result
            By the key of the cell; failed cells are missing.
        failures : mapping of str to str
            Messages by the name of the cell.
        """

    def draw(
        self, summary: ProtocolSummary, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path
    ) -> dict[str, str]:
        """Draw pictures into a folder; return their paths by kind.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return {}

    def comparisons(self, plan: Any, cells: Sequence[Cell], results: Mapping[str, Any]) -> list[ComparisonPage]:
        """Return the comparisons that become report pages."""
        return []


def with_references(methods: Sequence[str], references: Sequence[str] = REFERENCES) -> tuple[str, ...]:
    """Return the methods with those that every table has added, none twice.

    Examples
    --------
    >>> with_references(["fisher", "all"])
    ('fisher', 'all', 'random')
    """
    return tuple(dict.fromkeys([*methods, *references]))


#: Name -> "module:class", in the order of the results page. Strings, so that a worker imports only the protocol it runs.
PROTOCOLS: dict[str, str] = {
    "microarray": "tamiz.paper.microarray:Microarray",
    "three-layer": "tamiz.paper.three_layer:ThreeLayer",
    "images": "tamiz.paper.images:Images",
    "ground-truth": "tamiz.paper.ground_truth:GroundTruth",
    "madelon": "tamiz.paper.madelon:Madelon",
    "surfaces": "tamiz.paper.surfaces:Surfaces",
}


def protocol_names() -> list[str]:
    """Return the names of all protocols.

    Examples
    --------
    >>> protocol_names()[:2]
    ['microarray', 'three-layer']
    """
    return list(PROTOCOLS)


def protocol_path(name: str) -> str:
    """Return "module:class" of a protocol.

    Examples
    --------
    >>> protocol_path("Ground truth")
    'tamiz.paper.ground_truth:GroundTruth'
    """
    return pick(name, PROTOCOLS, "protocol")


def load_protocol(name: str) -> Protocol:
    """Return a protocol by its name, or by "module:class".

    Examples
    --------
    >>> load_protocol("surfaces").name
    'surfaces'
    """
    module, _, kind = (name if ":" in name else protocol_path(name)).partition(":")
    protocol: Protocol = getattr(import_module(module), kind)()
    return protocol
