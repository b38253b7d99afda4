"""Compile before the workers start, and open browsers."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Fits whose kernels many tests need, in two parts that take about as long to compile.
WARM_UP = (
    """
for table in (X, csr_matrix(X)):
    compare(["e2efs-soft", "fisher", "relieff", "mim"], table, y, k=1, cv=2)
    compare(["e2efs-soft", "relieff", "mrmr"], table, X[:, 0], k=1, cv=2)
""",
    """
for network in ("mlp", "pairs", "additive"):
    compare(["e2efs-soft"], X, y, k=1, cv=2, network=network)
compare(["pair-search"], X, y, k=1, cv=2)
""",
)


def pytest_configure(config):
    """Give compiled code a folder of its own, before numba is loaded; subprocesses inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell ignores SIGINT for its background jobs, and children inherit that: tests of interrupts would wait for ever.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / "numba"))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Compile before the workers of a whole run start: each would compile the same at the same time."""
    config = session.config
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and config.getoption("numprocesses", None)
    if hasattr(config, "workerinput") or not whole:
        return
    imports = (
        "import numpy as np\nfrom scipy.sparse import csr_matrix\nfrom tamiz import compare\n"
        "X, y = np.random.default_rng(0).normal(size=(48, 12)).astype(np.float32), np.resize([0, 1], 48)\n"
    )
    parts = [subprocess.Popen([sys.executable, "-c", imports + code], stderr=subprocess.DEVNULL) for code in WARM_UP]
    for part in parts:
        part.wait()


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
def browser(open_browser):
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


@pytest.fixture(scope="session")
def check_page(axe):
    """Runs axe-core on the open page in both themes and at three widths, at which it must not scroll sideways."""

    def check(browser):
        browser.execute_script(axe)
        script = (
            "const done = arguments[0], say = v => [v.impact, v.id, v.nodes[0].html];"
            "axe.run().then(r => done([r.passes.length, r.violations.map(say)]))"
        )
        try:
            for theme in ("light", "dark"):
                preferences = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
                features = [{"name": name, "value": value} for name, value in preferences.items()]
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                for width in (360, 768, 1280):
                    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                    assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
                    passed, found = browser.execute_async_script(script)
                    assert passed > 25  # it did look
                    assert found == [], (theme, width)
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    return check
