"""Record of a run, ``run.json``: the command that made it, the version and the day. Results are kept without them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tamiz._files import write_atomic
from tamiz._version import __version__
from tamiz.reproduce.protocol import Protocol
from tamiz.reproduce.store import store_error

_FILE = "run.json"


@dataclass(frozen=True)
class RunRecord:
    """Hold what a run was made by.

    Parameters
    ----------
    command : str or None
        Command of ``tamiz reproduce``, without the folder and the number of processes; None if it was run from Python.
    version : str
        Version of tamiz.
    date : str
        Day on which the tables were written, as YYYY-MM-DD, UTC.

    Examples
    --------
    >>> RunRecord("tamiz reproduce surfaces", "1.0", "2026-01-31").sentence
    'Made by `tamiz reproduce surfaces`, tamiz 1.0, on 2026-01-31.'
    """

    command: str | None
    version: str
    date: str

    @property
    def sentence(self) -> str:
        """Sentence that a page says of the run."""
        made_by = "from Python" if self.command is None else f"by `{self.command}`"
        return f"Made {made_by}, tamiz {self.version}, on {self.date}."


def command_of(protocol: Protocol, options: Mapping[str, Any]) -> str:
    """Return the command that makes a plan of these options; those at their default are left out.

    Parameters
    ----------
    protocol : Protocol
        Protocol of the run.
    options : mapping
        Arguments of its ``make_plan``.

    Examples
    --------
    >>> from tamiz.reproduce.registry import load_protocol
    >>> command_of(load_protocol("madelon"), {"methods": ["fisher", "mim"], "n_runs": 2, "seed": 0})
    'tamiz reproduce madelon --methods fisher,mim --runs 2'
    """
    words = ["tamiz", "reproduce", protocol.name]
    for option in protocol.options:
        value = options.get(option.name)
        if value is not None and value != option.default:
            typed = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words += [option.flags[0], typed]
    return shlex.join(words)


def write_run_record(folder: Path, command: str | None) -> Path:
    """Write ``run.json`` for a run that ends now; return its path."""
    record = RunRecord(command, __version__, datetime.now(UTC).date().isoformat())
    path = folder / _FILE
    try:
        write_atomic(path, json.dumps(asdict(record), ensure_ascii=False, indent=1) + "\n")
    except OSError as fault:
        raise store_error(fault, folder) from None
    return path


def read_run_record(folder: Path) -> RunRecord | None:
    """Return the record of a run; None if it has none that can be read.

    Examples
    --------
    >>> read_run_record(Path("no-such-folder")) is None
    True
    """
    try:
        content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return RunRecord(content["command"], str(content["version"]), str(content["date"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
