"""While numba compiles: a progress line, not where the cache has it, and signals that are neither lost nor raised inside."""

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
    announce_compilation(first.twice, 1)
    assert first.twice(3) == 6
    assert capsys.readouterr().err.count("compiling the engine for this machine") == 1
    assert first.twice(4) == 8
    again = load(source, "small_kernel")
    announce_compilation(again.twice, 1)
    assert again.twice(3) == 6
    assert sum(again.twice.stats.cache_hits.values()) == 1
    assert capsys.readouterr().err == ""


class Press(event.Listener):
    """Sends a signal when a function of this name begins to be compiled."""

    def __init__(self, name, which=signal.SIGINT, times=1):
        self.name, self.which, self.times = name, which, times

    def on_start(self, event):
        if event.data["dispatcher"].py_func.__name__ == self.name:
            for _ in range(self.times):
                signal.raise_signal(self.which)

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
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_the_function_is_compiled(kernels, name, which):
    def handler(number, frame):
        assert len(kernels.outer.signatures) == len(kernels.inner.signatures) == 1
        raise KeyboardInterrupt

    before = signal.signal(which, handler)
    try:
        with event.install_listener("numba:compile", Press(name, which)), pytest.raises(KeyboardInterrupt):
            kernels.outer(3)
        assert signal.getsignal(which) is handler
    finally:
        signal.signal(which, before)
    assert kernels.outer(3) == 7


def test_a_second_interrupt_does_not_wait(kernels):
    before = signal.getsignal(signal.SIGINT)
    with event.install_listener("numba:compile", Press("inner", times=2)), pytest.raises(KeyboardInterrupt):
        kernels.outer(3)
    assert kernels.outer.signatures == []
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_and_an_ignored_signal_are_left_alone(kernels):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with event.install_listener("numba:compile", Press("inner")):
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
    def failing(message):
        def function(*arguments):
            raise TypeError(message)

        return function

    assert call_loop(max, 1, 2) == 2
    with pytest.raises(KeyboardInterrupt):
        call_loop(failing("_get_wrapper_address() missing 1 required positional argument: 'sig'"), 1)
    with pytest.raises(TypeError, match="too many"):
        call_loop(failing("too many arguments"), 1)
