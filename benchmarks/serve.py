"""Times of the live page, measured in headless Chromium: from the drop of a table to its first list, and a drag of M.

    python benchmarks/serve.py [NAME]

NAME is a data set (colon by default). Needs Chromium, its driver, selenium and the extra ``serve``. A first run compiles the
engine; the times are those of a warm cache. Targets: 1,500 ms to the first list, 150 ms for a drag (median), and no fit that
runs on after 50 drags in 5 seconds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tamiz.paper import load_dataset
from tamiz.serve.server import LiveServer

N_DRAGS, SECONDS = 50, 5.0
TIME_TO_LIST = """
const done = arguments[arguments.length - 1], input = document.getElementById("file"), table = document.getElementById("kept");
const started = performance.now();
new MutationObserver((_, watcher) => {
  if (table.tBodies[0].rows.length) { watcher.disconnect(); done(performance.now() - started); }
}).observe(table, {childList: true, subtree: true});
input.dispatchEvent(new Event("change"));
"""


def write_table(name: str, folder: Path) -> Path:
    """Write a data set as a CSV file with its target in the last column."""
    data = load_dataset(name, download=False)
    path = folder / f"{name}.csv"
    with path.open("w") as file:
        file.write(",".join([*(f"x{i}" for i in range(data.data.shape[1])), "class"]) + "\n")
        for row, label in zip(np.asarray(data.data), data.target, strict=True):
            file.write(",".join([*(f"{value:.6g}" for value in row), f"c{label}"]) + "\n")
    return path


def open_browser(folder: Path) -> webdriver.Chrome:
    """Open headless Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def measure(name: str, folder: Path) -> None:
    """Print the times of one table."""
    path = write_table(name, folder)
    server = LiveServer()
    thread = threading.Thread(target=server.run)
    thread.start()
    browser = open_browser(folder / "profile")
    try:
        browser.set_script_timeout(120)
        first = []
        for _ in range(4):  # the first of them loads the engine
            browser.get(server.url)
            browser.execute_script("sessionStorage.clear()")
            browser.get(server.url)
            WebDriverWait(browser, 60).until(lambda b: b.find_elements(By.CSS_SELECTOR, "#network option"))
            # The file is set without the page knowing; the clock starts when it is told.
            browser.execute_script(
                "addEventListener('change', (e) => e.stopImmediatePropagation(), {capture: true, once: true})"
            )
            browser.find_element(By.ID, "file").send_keys(str(path))
            first.append(browser.execute_async_script(TIME_TO_LIST))
        server.app.jobs.wait(60)
        print(
            f"{name}: drop to first list, ms: first {first[0]:.0f}, then median {np.median(first[1:]):.0f} (target 1500)"
        )
        browser.execute_script("globalThis.tamizTimings.length = 0")
        began = time.perf_counter()
        for i in range(N_DRAGS):
            browser.execute_script(
                "const s = document.getElementById('slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
                i % 30,
            )
            time.sleep(max(0.0, began + SECONDS * (i + 1) / N_DRAGS - time.perf_counter()))
        ended = time.perf_counter()
        running = not server.app.jobs.wait(30)
        timings = np.array(browser.execute_script("return globalThis.tamizTimings"))
        print(
            f"{name}: {N_DRAGS} drags in {ended - began:.1f} s, {timings.size} answered; wish to list, ms: "
            f"median {np.median(timings):.0f}, 90 % {np.quantile(timings, 0.9):.0f}, largest {timings.max():.0f} (target 150)"
        )
        print(
            f"{name}: fits that still run: {'some' if running else 'none'}, "
            f"{time.perf_counter() - ended:.1f} s after the last drag"
        )
    finally:
        browser.quit()
        server.stop()
        thread.join(20)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        measure(sys.argv[1] if len(sys.argv) > 1 else "colon", Path(place))
