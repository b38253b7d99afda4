"""The parts of an answer, in the order in which a page gets them."""

from __future__ import annotations

import pytest

from tamiz.serve.fits import Wish
from tamiz.serve.jobs import LiveJob
from tamiz.serve.run import run_wish
from tamiz.serve.session import LiveTable


@pytest.fixture(scope="module")
def data(small_file):
    return LiveTable(small_file).with_target("ill")


def answer(data, wish):
    events = []
    LiveJob(lambda job: run_wish(data, wish, job), events.append).run()
    assert events.pop() is None
    return events


def test_list_heat_map_folds_and_end(data):
    events = answer(data, Wish(2, "ill"))
    assert [kind for kind, _ in events] == ["fit", "heat", *["fold"] * len(data.folds), "done"]
    assert sorted(row["name"] for row in events[0][1]["kept"]) == ["gene 2", "gene 5"]
    assert 0.8 < events[-2][1]["mean"] <= 1


def test_what_is_chosen_comes_first(data):
    events = answer(data, Wish("auto", "ill"))
    assert [kind for kind, _ in events[:2]] == ["chosen", "fit"]
    assert len(events[1][1]["kept"]) == events[0][1]["m"]


def test_nothing_is_sent_for_a_job_that_is_no_longer_wanted(data):
    events = []
    job = LiveJob(lambda job: run_wish(data, Wish(2, "ill"), job), events.append)
    job.cancel()
    job.run()
    assert events == [None]
