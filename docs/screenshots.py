"""Pictures of report pages and of the live page, taken with headless Chromium, for the README and the docs.

Usage::

    python docs/screenshots.py select.html docs/images/report-select.png
    python docs/screenshots.py --width 360 --dark --full compare.html compare-phone.png
    python docs/screenshots.py --pdf select.html select.pdf
    python docs/screenshots.py "$ADDRESS" docs/images/serve.png  # the address that tamiz serve FILE printed

Needs selenium, and ``chromium`` and ``chromedriver`` on the path.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait


def open_browser(profile: str, dark: bool, scale: float) -> webdriver.Chrome:
    """A headless Chromium that talks to nobody."""
    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        f"--force-device-scale-factor={scale}",
    ):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    return browser


def take(page: str, picture: Path, *, width: int, height: int, dark: bool, full: bool, scale: float, pdf: bool) -> None:
    """Open one page, from disk or from ``tamiz serve``, and write one picture (or PDF) of it."""
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile, dark, scale)
        try:
            metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            live = page.startswith("http://127.0.0.1:")
            browser.get(page if live else Path(page).resolve().as_uri())
            if live:  # until all folds are scored
                WebDriverWait(browser, 60).until(lambda b: b.find_elements("css selector", "#kept[data-done=yes]"))
            if pdf:
                printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": False})
            else:
                clip = {}
                if full:
                    tall = browser.execute_script("return document.documentElement.scrollHeight")
                    clip = {"clip": {"x": 0, "y": 0, "width": width, "height": tall, "scale": 1}}
                whole = {"captureBeyondViewport": full, **clip}
                printed = browser.execute_cdp_cmd("Page.captureScreenshot", whole)
            picture.write_bytes(base64.b64decode(printed["data"]))
        finally:
            browser.quit()


def main() -> None:
    """Read the command line and take one picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", help="a report, as tamiz wrote it, or the address of a live page")
    parser.add_argument("picture", type=Path, help="the PNG (or, with --pdf, the PDF) to write")
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--scale", type=float, default=1.0, help="device pixels for each CSS pixel")
    parser.add_argument("--dark", action="store_true", help="the dark theme")
    parser.add_argument("--full", action="store_true", help="the whole page instead of the first screen")
    parser.add_argument("--pdf", action="store_true", help="print instead of taking a picture")
    chosen = vars(parser.parse_args())
    take(chosen.pop("page"), chosen.pop("picture"), **chosen)


if __name__ == "__main__":
    main()
