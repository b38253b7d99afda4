"""A running server and a real browser for the tests of the live page."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")


@pytest.fixture(scope="session")
def csv_of(tmp_path_factory):
    """Writes a table of two classes, two columns of which tell them apart, and gives its path."""

    def write(n_rows: int = 60, n_columns: int = 12, name: str = "small.csv", extra: bool = False) -> Path:
        generator = np.random.default_rng(0)
        y = np.arange(n_rows) % 2
        X = generator.normal(size=(n_rows, n_columns))
        X[:, 2] += 2.5 * y
        X[:, 5] -= 2.5 * y
        names = [f"gene {i}" for i in range(n_columns)] + (["colour"] if extra else []) + ["ill"]
        lines = [",".join(names)]
        for i, row in enumerate(X):
            colour = [["red", "blue", "green"][i % 3]] if extra else []
            lines.append(",".join([*(f"{value:.4g}" for value in row), *colour, "yes" if y[i] else "no"]))
        path = tmp_path_factory.mktemp("tables") / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture(scope="session")
def small_file(csv_of) -> Path:
    """60 rows, 12 genes; 2 and 5 tell the classes of ``ill`` apart."""
    return csv_of()


@pytest.fixture(scope="session")
def server():
    """A server on a free port of this machine, without a table, with an upload limit of 20 MB."""
    from tamiz.serve.server import LiveServer

    running = LiveServer(upload_limit=20_000_000)
    thread = threading.Thread(target=running.run)
    thread.start()
    yield running
    running.stop()
    thread.join(300)
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def open_browser(tmp_path_factory):
    """Opens headless Chromium with a profile of its own, as another person would."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs chromium and chromedriver on the path")
    opened = []

    def open_one():
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"),
            "--force-prefers-reduced-motion",  # a smooth scroll would move what is clicked
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
            f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        ):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        opened.append(webdriver.Chrome(options=options, service=Service(driver)))
        opened[-1].get("about:blank")  # leaves the browser's own start page, which loads resources of its own
        opened[-1].set_window_size(1200, 900)
        return opened[-1]

    yield open_one
    for one in opened:
        one.quit()


@pytest.fixture(scope="session")
def first_browser(open_browser):
    """A browser that the tests share."""
    return open_browser()


@pytest.fixture(scope="session")
def axe(tmp_path_factory) -> str:
    """The text of axe-core: the file that TAMIZ_AXE names, or fetched with npm."""
    given = os.environ.get("TAMIZ_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs axe-core: set TAMIZ_AXE to axe.min.js, or install npm")
    folder = tmp_path_factory.mktemp("axe")
    try:
        command = [npm, "pack", "--silent", "axe-core@4.10.3"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=90)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm could not fetch axe-core: {error}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode("utf-8")
