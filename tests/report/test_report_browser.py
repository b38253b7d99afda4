"""The pages in a real browser: headless Chromium, opened from disk."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tamiz import find_pairs
from tamiz.report import pairs_report, report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
AXE_VERSION = "4.10.3"
FONTS = ("DejaVu Sans", "Liberation Sans", "DejaVu Sans Mono")  # the last is wider than any font for text
WIDTHS = (320, 360, 768, 1280)
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("http://example.invalid")',
    "+1-555",
    "-1.5",
    "@cmd",
    "{{ 7 * 7 }}",
    "línea\u2028separada",
    "\u202eright-to-left",
    'comma, "quote"\nnewline',
    "日本語 🧬",
]


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs chromium and chromedriver on the path")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    opened.get("about:blank")  # leaves the browser's own start page, which loads resources of its own
    yield opened
    opened.quit()


def set_theme(browser, theme: str) -> None:
    preferences = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in preferences.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """Writes the page of a record, once for all tests that open it."""
    pages = {}

    def write(data) -> Path:
        if id(data) not in pages:  # the record is kept too: its id is then not used again
            pages[id(data)] = data, report(data, path=tmp_path_factory.mktemp("page") / "page.html")
        return pages[id(data)][1]

    return write


@pytest.fixture
def open_page(browser, page_of, tmp_path):
    """Opens a record as a page at a width and theme; afterwards the console must be empty and the network untouched."""

    def open_it(data, width=1200, theme="light"):
        path = page_of(data)
        set_theme(browser, theme)
        set_width(browser, width)
        folder = {"behavior": "allow", "downloadPath": str(tmp_path)}
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", folder)
        browser.get_log("browser"), browser.get_log("performance")  # reading empties them
        browser.get(path.as_uri())
        return browser

    yield open_it
    browser.execute_script("try { localStorage.clear() } catch {}")
    assert browser.get_log("browser") == []
    assert [url for url in requested(browser) if not url.startswith(("file:", "data:", "blob:"))] == []


def requested(browser) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in urls if not url.startswith(("chrome:", "about:"))]  # of the browser, not of the page


def shown_names(browser) -> list[str]:
    script = "return [...document.querySelectorAll('#features tbody tr:not([hidden]) th')].map(e => e.textContent)"
    return browser.execute_script(script)


def wait_for(browser, condition):
    return WebDriverWait(browser, 300, poll_frequency=0.05).until(lambda _: condition())


def wait_for_scroll(browser):
    """Wait until the page has been told that it scrolled, which hides values: that is before the next frame is drawn."""
    browser.execute_async_script(
        "const done = arguments[arguments.length - 1]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )


def downloaded(browser, folder: Path, name: str) -> list[list[str]]:
    path = wait_for(browser, lambda: (folder / name).exists() and folder / name)
    wait_for(browser, lambda: path.stat().st_size > 0)
    text = path.read_bytes().decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def overflow(browser) -> int:
    return browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_page_opens_from_disk_and_asks_for_nothing_else(open_page, select_data):
    browser = open_page(select_data)
    assert "12 of 400 features kept" in browser.title
    urls = requested(browser)
    assert any(url.startswith("file:") for url in urls)  # the log does record requests
    assert all(url.startswith(("file:", "data:")) for url in urls)
    assert browser.get_log("browser") == []
    browser.execute_script("console.error('probe')")
    assert "probe" in browser.get_log("browser")[0]["message"]  # the log does record errors


def test_search_narrows_the_table_and_names_features_left_out(open_page, select_data):
    browser = open_page(select_data)
    names = select_data.selection.names
    assert shown_names(browser) == names
    search = browser.find_element(By.ID, "search")
    search.send_keys(names[3].upper())
    assert shown_names(browser) == [names[3]]
    assert browser.find_element(By.ID, "count").text == "1 of 12 kept features match"
    search.clear()
    last = select_data.selection.name_of(int(np.argmax(select_data.selection.ranking)))
    search.send_keys(last)
    assert shown_names(browser) == []
    assert browser.find_element(By.ID, "others").text == f"Left out: {last} (rank 400)"


def test_sort_by_effect_and_by_name(open_page, select_data):
    browser = open_page(select_data)
    effect = browser.find_element(By.XPATH, "//table[@id='features']//button[text()='Effect']")
    header = effect.find_element(By.XPATH, "..")
    by_effect = [k.name for k in sorted(select_data.kept, key=lambda k: k.effect)]
    effect.send_keys(Keys.ENTER)
    assert (header.get_attribute("aria-sort"), shown_names(browser)) == ("ascending", by_effect)
    effect.send_keys(Keys.SPACE)
    assert (header.get_attribute("aria-sort"), shown_names(browser)) == ("descending", by_effect[::-1])
    browser.find_element(By.XPATH, "//table[@id='features']//button[text()='Feature']").click()
    assert shown_names(browser) == sorted(k.name for k in select_data.kept)
    assert header.get_attribute("aria-sort") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_theme_follows_the_system_and_the_switch(open_page, select_data, theme):
    browser = open_page(select_data, theme=theme)
    ground = lambda: browser.execute_script("return getComputedStyle(document.body).backgroundColor")  # noqa: E731
    grounds = {"light": "rgb(251, 250, 248)", "dark": "rgb(18, 22, 27)"}
    other = {"light": "dark", "dark": "light"}[theme]
    assert ground() == grounds[theme]
    button = browser.find_element(By.ID, "theme")
    assert button.get_attribute("aria-label") == f"Switch to the {other} theme"
    button.click()
    assert ground() == grounds[other]
    button.click()
    assert ground() == grounds[theme]


def test_legend_hides_series_everywhere(open_page, compare_data):
    browser = open_page(compare_data)
    item = browser.find_element(By.CSS_SELECTOR, "#method-legend li:nth-child(3)")
    key = item.get_attribute("data-key")
    count = f"return [...document.querySelectorAll('[data-series=\"{key}\"]')].filter(e => e.getClientRects().length).length"
    button = item.find_element(By.CSS_SELECTOR, "button")
    assert browser.execute_script(count) == 3  # the curve, the time and the rank of the third method
    button.click()
    assert (button.get_attribute("aria-pressed"), browser.execute_script(count)) == ("false", 0)
    button.click()
    assert (button.get_attribute("aria-pressed"), browser.execute_script(count)) == ("true", 3)


def test_values_show_under_the_pointer_and_by_arrow_keys(open_page, select_data):
    browser = open_page(select_data)
    plot = browser.find_element(By.CSS_SELECTOR, "#curve .wide-only")
    tip = browser.find_element(By.ID, "tip")
    assert not tip.is_displayed()
    mark = plot.find_elements(By.CSS_SELECTOR, "[data-tip]")[2]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
    wait_for_scroll(browser)
    webdriver.ActionChains(browser).move_to_element(mark).perform()
    assert tip.text.startswith("M = 4: 0.8")
    plot.send_keys(Keys.ARROW_RIGHT)
    assert tip.text.startswith("M = 1: 0.7")
    assert browser.find_element(By.ID, "said").get_attribute("textContent") == tip.text


def test_download_and_copy(open_page, select_data, tmp_path):
    browser = open_page(select_data)
    browser.find_element(By.ID, "download").click()
    rows = downloaded(browser, tmp_path, "selected.csv")
    assert rows[0] == ["rank", "name", "column", "kept", "effect", "fold_share", "stand_ins"]
    assert [row[1] for row in rows[1:]] == select_data.selection.names
    assert [float(row[4]) for row in rows[1:]] == pytest.approx([k.effect for k in select_data.kept], rel=1e-5)
    browser.find_element(By.ID, "download-all").click()
    assert len(downloaded(browser, tmp_path, "ranking.csv")) == 401
    button = browser.find_element(By.ID, "copy-names")
    button.click()
    wait_for(browser, lambda: button.text == "Copied")
    browser.execute_script("const t = document.createElement('textarea'); t.id = 'paste'; document.body.append(t)")
    area = browser.find_element(By.ID, "paste")
    area.send_keys(Keys.CONTROL, "v")
    assert area.get_property("value").split("\n") == select_data.selection.names
    wait_for(browser, lambda: button.text == "Copy names")


def test_hostile_names_stay_text(open_page, selection_factory, report_factory, tmp_path):
    names = [*HOSTILE, *(f"plain {i}" for i in range(28))]
    ranked = selection_factory(40, 12, seed=5)
    order = np.argsort(ranked.ranking)
    by_column = np.empty(40, dtype=object)
    by_column[order] = names  # the hostile names are the twelve that are kept
    browser = open_page(report_factory(ranked.with_names(by_column)))
    assert shown_names(browser) == HOSTILE
    assert "owned" not in browser.title
    assert len(browser.find_elements(By.CSS_SELECTOR, "script")) == 2
    assert browser.find_elements(By.CSS_SELECTOR, "img") == []
    browser.find_element(By.ID, "download").click()
    safe = [row[1] for row in downloaded(browser, tmp_path, "selected.csv")[1:]]
    expected = [f"'{name}" if name[0] in "=+@" and name != "-1.5" else name for name in HOSTILE]
    assert safe == expected
    browser.find_element(By.ID, "safe").click()
    (tmp_path / "selected.csv").unlink()
    browser.find_element(By.ID, "download").click()
    assert [row[1] for row in downloaded(browser, tmp_path, "selected.csv")[1:]] == HOSTILE


@pytest.fixture(scope="session", params=FONTS)
def font(request) -> str:
    """A font family that this machine has."""
    if shutil.which("fc-list") is None:
        pytest.skip("needs fc-list (fontconfig) to know which fonts there are")
    command = ["fc-list", "--format", "%{family}\n", request.param]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    if request.param not in listed:
        pytest.skip(f"the font {request.param} is not installed (Debian: fonts-dejavu, fonts-liberation)")
    return request.param


def set_font(browser, family: str) -> None:
    """Override every font of the page, by a style sheet that its content security policy allows."""
    browser.execute_script(
        "const sheet = new CSSStyleSheet(); sheet.replaceSync(`* { font-family: '${arguments[0]}' !important }`);"
        "document.adoptedStyleSheets = [sheet]",
        family,
    )


def set_width(browser, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.mark.parametrize("which", ["select_data", "compare_data", "regression_data", "image_data"])
def test_no_sideways_scrolling_whatever_the_font(open_page, request, which, font):
    browser = open_page(request.getfixturevalue(which))
    set_font(browser, font)
    assert font in browser.execute_script("return getComputedStyle(document.querySelector('h1')).fontFamily")
    found = {}
    for opened in (False, True):
        if opened:
            for detail in browser.find_elements(By.CSS_SELECTOR, "summary"):
                browser.execute_script("arguments[0].click()", detail)
        for width in WIDTHS:
            set_width(browser, width)
            assert browser.execute_script("return innerWidth") == width
            found[width, opened] = overflow(browser)
    assert found == dict.fromkeys(found, 0)


def test_long_names_do_not_break_the_layout(open_page, selection_factory, report_factory):
    names = [f"{'W' * 300}_{i}" for i in range(60)]
    browser = open_page(report_factory(selection_factory(60, 8, names=names)))
    for width in WIDTHS:
        set_width(browser, width)
        assert overflow(browser) == 0


def test_thousands_of_kept_features_are_found_by_search(open_page, selection_factory, report_factory):
    big = selection_factory(6_000, 3_000, names=[f"gene_{i:05d}_at" for i in range(6_000)])
    browser = open_page(report_factory(big, n_rows=30))
    assert len(shown_names(browser)) == 200
    browser.find_element(By.ID, "more").click()
    assert len(shown_names(browser)) == 400
    browser.find_element(By.ID, "search").send_keys(big.names[-1])
    assert shown_names(browser) == [big.names[-1]]


def test_without_scripts_the_tables_and_charts_are_there(browser, select_data, page_of):
    path = page_of(select_data)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})  # whatever width the test before left behind
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(path.as_uri())
        assert [
            e.text for e in browser.find_elements(By.CSS_SELECTOR, "#features tbody th")
        ] == select_data.selection.names
        assert all(not e.is_displayed() for e in browser.find_elements(By.CSS_SELECTOR, "button"))
        assert browser.find_element(By.CSS_SELECTOR, "#curve .wide-only svg").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_print_is_light_and_leaves_out_the_controls(open_page, select_data):
    browser = open_page(select_data, theme="dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.find_element(By.ID, "search").is_displayed()
    assert not browser.find_element(By.CSS_SELECTOR, "nav").is_displayed()
    assert browser.find_element(By.CSS_SELECTOR, "#features thead .for-print").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


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
    command = [npm, "pack", "--silent", f"axe-core@{AXE_VERSION}"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=90)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm could not fetch axe-core: {error}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode("utf-8")


@pytest.fixture(scope="session")
def pairs_data():
    X = np.random.default_rng(0).normal(size=(200, 12))
    found = find_pairs(X, (X[:, 0] * X[:, 1] > 0).astype(int), random_state=0, n_permutations=0)
    return pairs_report(found, title="Pairs", command="tamiz pairs table.csv")


@pytest.mark.parametrize("which", ["select_data", "compare_data", "pairs_data", "regression_data", "image_data"])
def test_axe_finds_no_violation(open_page, request, axe, which):
    """In both themes and at three widths: the page is opened once, and resized."""
    browser = open_page(request.getfixturevalue(which))
    browser.execute_script(axe)
    for detail in browser.find_elements(By.CSS_SELECTOR, "summary"):
        browser.execute_script("arguments[0].click()", detail)
    if which == "select_data":  # with the notes and the heat map of another M
        browser.find_element(By.ID, "m-slider").send_keys(Keys.ARROW_RIGHT)
    for theme, width in itertools.product(("light", "dark"), (360, 768, 1280)):
        set_theme(browser, theme)
        set_width(browser, width)
        passed, found = browser.execute_async_script(
            "const done = arguments[0], say = v => [v.impact, v.id, v.nodes[0].html];"
            "axe.run().then(r => done([r.passes.length, r.violations.map(say)]))"
        )
        assert passed > 25  # it did look
        assert found == [], (theme, width)


@pytest.mark.parametrize("width", [360, 1280])
def test_page_of_pairs_fits_and_its_table_can_be_downloaded(open_page, tmp_path, width):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, len(HOSTILE)))
    found = find_pairs(X, (X[:, 0] * X[:, 1] > 0).astype(int), random_state=0, n_permutations=0).with_names(HOSTILE)
    browser = open_page(pairs_report(found, title="=1+1", command="tamiz pairs table.csv"), width)
    assert overflow(browser) <= 0
    assert len(browser.find_elements(By.CSS_SELECTOR, "#pictures svg.chart")) == 4
    browser.find_element(By.ID, "download").click()
    rows = downloaded(browser, tmp_path, "pairs.csv")
    assert rows[0] == ["first", "second", "strength", "p_value", "shape"]
    assert rows[1][:2] == HOSTILE[:2]


def test_the_slider_shows_the_set_of_every_number_of_features(open_page, select_data):
    browser = open_page(select_data)
    before = shown_names(browser)
    slider = browser.find_element(By.ID, "m-slider")
    sizes = [int(m) for m in slider.get_attribute("data-sizes").split(",")]
    assert sizes == [1, 2, 4, 8, 12, 20, 40, 80]
    slider.send_keys(Keys.ARROW_RIGHT)
    by_rank = [select_data.selection.name_of(int(i)) for i in np.argsort(select_data.selection.ranking)]
    assert shown_names(browser) == by_rank[:20]
    assert browser.find_element(By.ID, "m-value").text == "20"
    assert browser.find_element(By.ID, "count").text == "20 kept features"
    chips = browser.find_elements(By.CSS_SELECTOR, "#m-list li")
    assert ([c.text for c in chips], sum(c.get_attribute("class") == "new" for c in chips)) == (by_rank[:20], 8)
    ringed = browser.find_elements(By.CSS_SELECTOR, "#curve .wide-only .ring")
    assert [mark.get_attribute("data-m") for mark in ringed] == ["20"]
    slider.send_keys(Keys.HOME)
    assert shown_names(browser) == by_rank[:1]
    assert "without" in browser.find_element(By.ID, "m-said").text
    browser.find_element(By.ID, "back-to-m").click()
    assert shown_names(browser) == before
    assert not browser.find_element(By.ID, "other-m").is_displayed()


def test_cells_are_named_under_the_pointer_and_by_arrow_keys(open_page, select_data):
    browser = open_page(select_data)
    tip = browser.find_element(By.ID, "tip")
    plot = browser.find_element(By.CSS_SELECTOR, "#heat .wide-only")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    wait_for_scroll(browser)
    plot.send_keys(Keys.ARROW_RIGHT)
    heat = select_data.heat_map
    row, label = heat.rows[0] + 1, heat.labels[heat.groups[0]]
    assert tip.text.startswith(f"{heat.names[0]}, row {row}, {label}")
    shown = float(tip.text.split("z = ")[1].replace("−", "-"))
    assert shown == pytest.approx(np.clip(heat.z[0, 0], -3, 3), abs=0.02)
    assert browser.find_element(By.ID, "said").get_attribute("textContent") == tip.text
    cells = browser.find_element(By.CSS_SELECTOR, "#together .cells")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", cells)
    wait_for_scroll(browser)
    webdriver.ActionChains(browser).move_to_element(cells).perform()
    assert " with gene_" in tip.text
    assert "r = " in tip.text


def test_the_page_of_twenty_thousand_columns_opens_at_once(open_page, selection_factory, report_factory):
    big = selection_factory(20_000, 50, names=[f"ENSG{i:011d}" for i in range(20_000)])
    browser = open_page(report_factory(big, n_rows=300))
    browser.find_element(By.ID, "search").send_keys(big.names[7])
    assert shown_names(browser) == [big.names[7]]


def printed_headings(browser) -> tuple[int, list[tuple[str, list[int]]]]:
    """The number of printed pages, and for each heading the pages of it and of what follows, up to the first picture or table.

    A tagged PDF holds the elements of the page as a tree, in their order, and says on which page each piece stands.
    """
    options = {"generateTaggedPDF": True, "generateDocumentOutline": True}
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", options)["data"])
    objects = {int(n): body for n, body in re.findall(rb"\n(\d+) 0 obj\n(<<.*?)endobj", printed, re.DOTALL)}
    numbers = [int(n) for n in re.findall(rb"\d+", re.search(rb"/Kids \[([^\]]*)\]", printed)[1])[::2]]

    def parts(n: int) -> tuple[str, bytes, list[int]]:
        body = objects[n]
        children = re.search(rb"/K (\[.*?\]>>|\d+ 0 R|\d+)", body, re.DOTALL)
        kids = re.sub(rb"<<.*?>>", b"", children[1], flags=re.DOTALL) if children else b""
        kind = re.search(rb"/S /(\w+)", body)
        return kind[1].decode() if kind else "", body, [int(kid) for kid in re.findall(rb"(\d+) 0 R", kids)]

    def pages(n: int) -> list[int]:
        _, body, kids = parts(n)
        own = [int(page) for page in re.findall(rb"/Pg (\d+) 0 R", body)]
        return own + [page for kid in kids for page in pages(kid)]

    found = []
    for n in objects:
        kind, body, _ = parts(n)
        if kind not in ("H1", "H2", "H3"):
            continue
        parent = int(re.search(rb"/P (\d+) 0 R", body)[1])
        siblings = parts(parent)[2]
        seen = pages(n)
        for other in siblings[siblings.index(n) + 1 :]:
            its = pages(other)
            text = parts(other)[0] in ("P", "L")
            seen += its if text else its[:1]
            if its and not text:
                break
        found.append((f"{kind} {n}", seen))
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)), found if numbers else []


@pytest.mark.parametrize("n_rows", [40, 120, 200])
def test_print_takes_few_pages_and_strands_no_heading(open_page, report_factory, selection_factory, n_rows):
    """Tables of other lengths put other headings near the foot of a page."""
    for n_kept in (12, 20) if n_rows == 120 else (5 + n_rows // 10,):
        browser = open_page(report_factory(selection_factory(400, n_kept), n_rows=n_rows))
        n_pages, headings = printed_headings(browser)
        assert n_pages <= 6
        assert len(headings) >= 8
        stranded = {name: pages for name, pages in headings if len(set(pages)) > 1}
        assert stranded == {}


def heat_state(browser):
    """Names, picture, height and spoken name of the wide heat map."""
    return browser.execute_script("""
      const svg = document.querySelector("#heat .wide-only svg");
      const names = [...svg.querySelectorAll(".cell-name")].map((name) => name.textContent);
      const height = Number(svg.querySelector(".cells").getAttribute("height"));
      const href = svg.querySelector("image").getAttribute("href");
      return [names, href, svg.getAttribute("viewBox"), svg.getAttribute("aria-label"), height];
    """)


def test_heat_map_and_downloads_follow_the_slider(open_page, select_data, tmp_path):
    browser = open_page(select_data)
    before = heat_state(browser)
    slider = browser.find_element(By.ID, "m-slider")
    by_rank = [select_data.selection.name_of(int(i)) for i in np.argsort(select_data.selection.ranking)]
    slider.send_keys(Keys.ARROW_RIGHT)  # 20 instead of 12
    names, href, _, label, height = heat_state(browser)
    assert sorted(names) == sorted(by_rank[:20])
    assert (label, height) == ("z scores of 20 kept columns in 120 rows, clustered", 360)
    assert href != before[1]
    colours = browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        Promise.all([...arguments[0]].map((href) => new Promise((ready) => {
          const image = new Image();
          image.onload = () => {
            const canvas = document.createElement("canvas");
            canvas.width = image.width; canvas.height = image.height;
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            ready([image.width, image.height, [...context.getImageData(0, 0, image.width, image.height).data]]);
          };
          image.src = href;
        }))).then(done);
        """,
        [before[1], href],
    )
    pictures = [np.array(data).reshape(high, wide, 4) for wide, high, data in colours]
    assert [picture.shape for picture in pictures] == [(12, 120, 4), (20, 120, 4)]
    common = before[0][0]  # a column of both sets has the same cells, whoever drew them
    first, second = pictures[0][0], pictures[1][names.index(common)]
    assert np.abs(first.astype(int) - second).max() <= 1

    plot = browser.find_element(By.CSS_SELECTOR, "#heat .wide-only")
    for _ in range(20):
        plot.send_keys(Keys.ARROW_DOWN)
    assert names[-1] in browser.find_element(By.ID, "tip").text
    browser.find_element(By.ID, "download").click()
    rows = downloaded(browser, tmp_path, "selected-20.csv")
    assert [row[1] for row in rows[1:]] == by_rank[:20]
    notes = [note for note in browser.find_elements(By.CSS_SELECTOR, ".of-selection") if note.is_displayed()]
    assert {note.text for note in notes} == {"Shown here: the selection, M = 12."}
    assert "heat" not in {note.find_element(By.XPATH, "..").get_attribute("id") for note in notes}
    browser.find_element(By.ID, "back-to-m").click()
    assert heat_state(browser) == before
    assert not any(note.is_displayed() for note in browser.find_elements(By.CSS_SELECTOR, ".of-selection"))
