"""Skip what needs PyTorch, or a framework built on it, where that is not installed; distribute tests over workers."""

import re
from importlib.util import find_spec

import pytest

OPTIONAL = [name for name in ("torch", "lightning", "skorch", "transformers") if find_spec(name) is None]
_LACKING = re.compile(
    rf"No module named '(?:{'|'.join(OPTIONAL)})|needs (?:{'|'.join(OPTIONAL)})\. |from 'tamiz\.torch"
)

#: Modules whose tests run in one worker, by the name of their group.
TOGETHER = {
    "tests/report/test_report_browser.py": "browser",
    "tests/serve/test_page.py": "browser",
    "tests/torch/test_distributed.py": "distributed",
}
#: Its conftest imports torch.
collect_ignore = ["tests/torch"] if "torch" in OPTIONAL else []


def pytest_report_header():
    """Say at the top what is not tested."""
    return f"not installed, hence not tested: {', '.join(OPTIONAL)}" if OPTIONAL else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run modules that start browsers or processes in one worker each, which does that once.

    The groups of xdist 3.8 are without effect since pytest 9.2, where names of tests cannot be extended.
    """
    from xdist.scheduler import LoadGroupScheduling

    class ByModule(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            module = nodeid.partition("::")[0]
            return TOGETHER.get(module, nodeid)

    return ByModule(config, log)


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
