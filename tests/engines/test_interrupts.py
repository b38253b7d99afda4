"""Signals that arrive while numba compiles are neither lost nor raised inside of it."""

import signal

import numba
import pytest
from numba.core import event

from tamiz.engines.compilation import InterruptGuard


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_the_function_is_compiled(which):
    delivered, during = [], []

    class Sender(event.Listener):
        def on_start(self, event):
            signal.raise_signal(which)
            during.append(len(delivered))

        def on_end(self, event):
            pass

    function = numba.njit(lambda x: x + 1)
    function.py_func.__module__ = "probe"
    before = signal.signal(which, lambda number, frame: delivered.append(number))
    try:
        with (
            event.install_listener("numba:compile", InterruptGuard("probe")),
            event.install_listener("numba:compile", Sender()),
        ):
            assert function(1) == 2
        assert during == [0]
        assert delivered == [which]
        assert signal.getsignal(which).__name__ == "<lambda>"
    finally:
        signal.signal(which, before)
