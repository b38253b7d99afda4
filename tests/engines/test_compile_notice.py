"""The progress line about compiling: shown when something is compiled, not when it comes from the cache."""

import importlib.util
import sys

from tamiz.engines._compile_notice import announce_compilation


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
