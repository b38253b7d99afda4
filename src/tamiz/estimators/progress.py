"""Show what an engine reports as a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tamiz._progress import ProgressBar
from tamiz.core import Rule


@contextmanager
def watch_selection(
    verbose: int | bool, rule: Rule, refinement_steps: int
) -> Iterator[Callable[[int, int, int], None] | None]:
    """Yield the ``progress`` argument of an engine: a bar on stderr if ``verbose``, otherwise None.

    Examples
    --------
    >>> with watch_selection(False, Rule(10, 2), 100) as progress:
    ...     progress is None
    True
    """
    if not verbose:
        yield None
        return
    bar = ProgressBar(f"selecting {rule.n_features_to_select} of {rule.n_features}", delay=0.0)

    def progress(step: int, n_alive: int, refined: int) -> None:
        # When the selection will be closed is not known before it is; the end of the ramp is a fair guess.
        before = step - refined if refined else max(step, rule.warmup_steps + rule.ramp_steps)
        bar.update(step, before + refinement_steps, "refining" if refined else f"{n_alive} alive")

    try:
        yield progress
    finally:
        bar.close()
