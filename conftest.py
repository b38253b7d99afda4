"""Skip what needs PyTorch, or a framework built on it, where that is not installed."""

import re
from importlib.util import find_spec

import pytest

OPTIONAL = [name for name in ("torch", "lightning", "skorch", "transformers") if find_spec(name) is None]
_LACKING = re.compile(
    rf"No module named '(?:{'|'.join(OPTIONAL)})|needs (?:{'|'.join(OPTIONAL)})\. |from 'tamiz\.torch"
)

#: Its conftest imports torch.
collect_ignore = ["tests/torch"] if "torch" in OPTIONAL else []


def pytest_report_header():
    """Say at the top what is not tested."""
    return f"not installed, hence not tested: {', '.join(OPTIONAL)}" if OPTIONAL else None


def _lacks(text: object) -> str | None:
    found = _LACKING.search(str(text)) if OPTIONAL else None
    return None if found is None else f"not installed: {', '.join(OPTIONAL)}"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Turn an import that fails for want of an optional package into a skip."""
    report = yield
    if report.failed and (reason := _lacks(report.longrepr)):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Turn a test that fails for want of an optional package into a skip."""
    report = yield
    if report.failed and (reason := _lacks(report.longrepr)):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {reason}")
    return report
