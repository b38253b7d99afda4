"""Base class and registry of the protocols, and the cells that they consist of."""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, dataclass_transform

from tamiz._utils.text import pick, pick_name
from tamiz._version import __version__
from tamiz.evaluation.comparison import pick_methods
from tamiz.paper.datasets import find_entry

#: Methods that a table always has: what chance and no selection give.
REFERENCES = ("random", "all")


def canonical_json(value: Any) -> str:
    """Write JSON that is the same for equal values, to be hashed.

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


def flag_of(option: str) -> str:
    """Spell an option as it is typed.

    Examples
    --------
    >>> flag_of("batch_size"), flag_of("k")
    ('--batch-size', '-k')
    """
    return f"-{option}" if len(option) == 1 else "--" + option.replace("_", "-")


@dataclass_transform(eq_default=False, kw_only_default=True)
@dataclass(eq=False, kw_only=True)
class Protocol(ABC):
    """Base class of protocols: a protocol with its options is the plan of a run.

    A new protocol is a subclass and a line in :data:`PROTOCOLS`. It lists its options as annotated class attributes with their
    defaults; ``__init__`` is made from them, as for a dataclass, and checks them. Other class attributes describe its tables.

    Raises
    ------
    ValueError
        If a name is unknown or a number too small; nothing has been read or written then.
    """

    name: ClassVar[str]
    #: Allowed words of an option (case and punctuation do not matter), and smallest numbers other than 1.
    choices: ClassVar[Mapping[str, Sequence[str]]] = {}
    least: ClassVar[Mapping[str, int]] = {"seed": 0}
    #: Methods that are always added.
    references: ClassVar[Sequence[str]] = REFERENCES
    #: What is scored, what is repeated, how often it was for the published numbers, digits of scores, and the detail of the
    #: rows on the results page (None: all).
    measure: ClassVar[str] = ""
    unit: ClassVar[str] = "split"
    n_published: ClassVar[int | None] = None
    digits: ClassVar[int] = 3
    headline_detail: ClassVar[str | None] = None
    #: Share of the rows that a split tests on; None: units are independent.
    test_share: ClassVar[float | None] = None

    seed: int = 0

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, kw_only=True)(cls)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            several = isinstance(value, (list, tuple))
            values: Any = tuple(value) if several else (value,)
            least = self.least.get(name, 1)
            if not values or (isinstance(values[0], int) and min(values) < least):
                raise ValueError(f"{flag_of(name)} must be at least {least}, got {value}.")
            if name in self.choices:
                values = dict.fromkeys(pick_name(word, self.choices[name], name.rstrip("s")) for word in values)
            elif name == "datasets":
                values = dict.fromkeys(find_entry(word).name for word in values)
            elif name == "methods":
                values = dict.fromkeys([*pick_methods(values), *self.references])
            elif several:
                values = sorted(set(values))
            setattr(self, name, tuple(values) if several else next(iter(values)))

    @property
    def command(self) -> str:
        """Command that makes this plan; options at their default are left out.

        Examples
        --------
        >>> load_protocol("images")(methods=["dfs", "sfs"], runs=2).command
        'tamiz reproduce images --methods dfs,sfs,random,all --runs 2'
        """
        words, default = ["tamiz", "reproduce", self.name], vars(type(self)())
        for name, value in vars(self).items():
            if value != default[name]:
                words += [flag_of(name), ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
        return shlex.join(words)

    def make_cells(self, data_home: str | None = None) -> list[Cell]:
        """List all cells of the plan, the longest first; by default there are none."""
        return []

    def repeat(self, name: str, settings: Mapping[str, Any], n_units: int) -> list[Cell]:
        """Make a cell for each split, fold or run, with the seed of the plan; ``name`` has a place for its number."""
        shared = {**settings, "seed": self.seed}
        return [Cell(self.name, name.format(unit + 1), {**shared, "unit": unit}) for unit in range(n_units)]

    @classmethod
    def run_cell(cls, settings: Mapping[str, Any], data_home: str | None) -> Any:
        """Compute a cell from its settings alone, in a worker process; the result must be JSON."""
        raise NotImplementedError("this protocol makes no cells")

    @abstractmethod
    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title, introduction, and over what a score of the results page is a mean."""

    def published(self, row: Any) -> tuple[Sequence[float | None], float | None]:
        """Published numbers of a row for each size, and their mean."""
        return (), None

    def reasons(self, row: Any) -> list[str]:
        """Tell what is known to differ from the published number of a row, as clauses."""
        return []

    def sections(self, rows: Sequence[Any]) -> list[str]:
        """Further parts of the page."""
        return []

    def summarise(self, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]) -> Any:
        """Make the :class:`~tamiz.paper.tables.ProtocolSummary` of the finished cells.

        Parameters
        ----------
        cells : sequence of Cell
            From :meth:`make_cells`.
        results : mapping of str to result
            By the key of the cell; failed cells are missing.
        failures : mapping of str to str
            Messages by the name of the cell.
        """
        from tamiz.paper.tables import summarise

        return summarise(self, cells, results, failures)

    def draw(self, summary: Any, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Draw pictures into a folder with matplotlib; return their paths by kind."""
        return {}


#: Name -> "module:class", in the order of the results page. Strings, so that a worker imports only the protocol it runs.
PROTOCOLS: dict[str, str] = {
    "microarray": "tamiz.paper.microarray:Microarray",
    "three-layer": "tamiz.paper.figures:ThreeLayer",
    "images": "tamiz.paper.images:Images",
    "ground-truth": "tamiz.paper.ground_truth:GroundTruth",
    "surfaces": "tamiz.paper.figures:Surfaces",
}


def load_protocol(name: str) -> type[Protocol]:
    """Import the class of a protocol by its name, or by "module:class".

    Examples
    --------
    >>> load_protocol("surfaces").name
    'surfaces'
    """
    protocol: type[Protocol] = resolve_name(name if ":" in name else pick(name, PROTOCOLS, "protocol"))
    return protocol
