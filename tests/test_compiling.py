"""While numba compiles: a progress line, not where the cache has it, and signals that are neither lost nor raised inside."""

import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from numba.core import event

from tamiz._utils import compiling
from tamiz._utils.compiling import announce_compilation, call_loop


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


KERNEL = "from tamiz._utils.compiling import njit\n\n@njit(nogil=True)\ndef half(x):\n    return x / 2\n"


def test_compiled_code_is_not_used_after_a_change_of_any_source(tmp_path, monkeypatch):
    (tmp_path / "kernel.py").write_text(KERNEL)
    for stamp, hits in (("a", 0), ("a", 1), ("b", 0), ("b", 1)):
        monkeypatch.setattr(compiling, "source_stamp", lambda stamp=stamp: stamp)
        half = load(tmp_path / "kernel.py", "kernel").half
        assert half(3.0) == 1.5
        assert sum(half.stats.cache_hits.values()) == hits


def test_every_source_of_compiled_code_counts():
    with_kernels = {
        path.parent.name for path in compiling.PACKAGE.rglob("*.py") if b"register_jitable" in path.read_bytes()
    }
    assert {"core", "engines"} <= with_kernels <= set(compiling.ROOMS)


@pytest.mark.skipif(platform.machine() not in compiling.PROCESSORS, reason="no prebuilt code for this architecture")
def test_code_compiled_beforehand_is_read_where_it_runs(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    code = (
        "import sys, kernel; from pathlib import Path; from tamiz._utils import compiling; "
        f"compiling.PREBUILT = Path({str(tmp_path / 'prebuilt')!r}); "
        "kernel.half._cache = compiling.SourceCache(kernel.half.py_func); "
        "print(kernel.half(3.0), sum(kernel.half.stats.cache_hits.values()))"
    )

    def run(cache, **variables):
        path = os.pathsep.join([str(tmp_path), str(compiling.PACKAGE.parent)])
        environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / cache), **variables}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    processor = compiling.PROCESSORS[platform.machine()][0]
    assert run("build", NUMBA_CPU_NAME=processor, NUMBA_CPU_FEATURES="") == ["1.5", "0"]
    (built,) = (tmp_path / "build").iterdir()
    shutil.copytree(built, tmp_path / "prebuilt" / platform.machine())
    assert run("other") == ["1.5", "1"]
    assert run("other", TAMIZ_PREBUILT="0") == ["1.5", "0"]
    shutil.rmtree(tmp_path / "other")
    (tmp_path / "kernel.py").write_text(KERNEL.replace("x / 2", "x / 3"))
    assert run("other") == ["1.0", "0"]


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
