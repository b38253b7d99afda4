"""The progress line about compiling: shown when something is compiled, not when it comes from the cache."""

import importlib.util
import signal
import sys
import threading

import pytest
from numba.core import event

from tamiz.engines.compilation import announce_compilation, call_loop


def load(path, name):
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def test_a_compilation_is_announced_and_a_cached_one_is_not(tmp_path, capsys):
    source = tmp_path / "small_kernel.py"
    source.write_text("from numba import njit\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n")
    first = load(source, "small_kernel")
    announce_compilation(first.twice)
    announce_compilation(first.twice)
    assert first.twice(3) == 6
    assert capsys.readouterr().err.count("compiling the engine for this machine") == 1
    assert first.twice(4) == 8
    again = load(source, "small_kernel")
    announce_compilation(again.twice)
    assert again.twice(3) == 6
    assert sum(again.twice.stats.cache_hits.values()) == 1
    assert capsys.readouterr().err == ""


class PressCtrlC(event.Listener):
    """Sends the signal when a function of this name begins to be compiled."""

    def __init__(self, name, times=1):
        self.name, self.times = name, times

    def on_start(self, event):
        if event.data["dispatcher"].py_func.__name__ == self.name:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)

    def on_end(self, event):
        pass


@pytest.fixture
def kernels(tmp_path):
    """A compiled function that calls another, in a module that counts as ours."""
    source = tmp_path / "nested.py"
    source.write_text(
        "from numba import njit\n\n@njit\ndef inner(x):\n    return 2 * x\n\n@njit\ndef outer(x):\n    return inner(x) + 1\n"
    )
    yield load(source, "tamiz.nested_for_a_test")
    del sys.modules["tamiz.nested_for_a_test"]


@pytest.mark.parametrize("name", ["outer", "inner"])
def test_an_interrupt_waits_until_the_function_is_compiled(kernels, name):
    before = signal.getsignal(signal.SIGINT)
    with event.install_listener("numba:compile", PressCtrlC(name)), pytest.raises(KeyboardInterrupt):
        kernels.outer(3)
    assert len(kernels.outer.signatures) == len(kernels.inner.signatures) == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert kernels.outer(3) == 7


def test_a_second_interrupt_does_not_wait(kernels):
    before = signal.getsignal(signal.SIGINT)
    with event.install_listener("numba:compile", PressCtrlC("inner", times=2)), pytest.raises(KeyboardInterrupt):
        kernels.outer(3)
    assert kernels.outer.signatures == []
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_and_an_ignored_signal_are_left_alone(kernels):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with event.install_listener("numba:compile", PressCtrlC("inner")):
            assert kernels.outer(3) == 7
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    thread = threading.Thread(target=kernels.outer, args=(3.5,))
    thread.start()
    thread.join()
    assert len(kernels.outer.signatures) == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_a_loop_whose_functions_could_not_be_read_was_interrupted():
    def numba_on_ctrl_c(*arguments):
        raise TypeError("_get_wrapper_address() missing 1 required positional argument: 'sig'")

    def wrong_arguments(*arguments):
        raise TypeError("too many arguments")

    assert call_loop(max, 1, 2) == 2
    with pytest.raises(KeyboardInterrupt):
        call_loop(numba_on_ctrl_c, 1)
    with pytest.raises(TypeError, match="too many"):
        call_loop(wrong_arguments, 1)
