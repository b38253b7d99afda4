"""Keep compiled code apart for each state of the sources: numba checks the file of a function, not the files of its callees."""

import hashlib
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]


def digest_of_compiled_sources() -> str:
    """Return a digest of every module whose text may end up in compiled code."""
    package = ROOT / "src" / "tamiz"
    texts = {path.relative_to(package): path.read_bytes() for path in sorted(package.rglob("*.py"))}
    return hashlib.sha256(
        b"".join(text for path, text in texts.items() if path.parts[0] in ("core", "engines") or b"numba" in text)
    ).hexdigest()[:16]


def pytest_configure(config):
    """Choose the folder before numba is loaded; subprocesses inherit it."""
    folder = ROOT / ".pytest_cache" / "numba"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder / digest_of_compiled_sources()))
    for old in folder.glob("*"):
        if str(old) != os.environ["NUMBA_CACHE_DIR"]:
            shutil.rmtree(old, ignore_errors=True)
