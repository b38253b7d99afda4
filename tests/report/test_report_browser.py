"""The pages in a real browser: headless Chromium, opened from disk."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamiz import find_pairs
from tamiz.report import report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.browser
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


def hostile_pairs():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, len(HOSTILE))), columns=HOSTILE)
    return find_pairs(X, (X.iloc[:, 0] * X.iloc[:, 1] > 0).astype(int), random_state=0, n_permutations=0)


@pytest.fixture(scope="session")
def path_of(request, tmp_path_factory):
    """Writes the page of a name once, and gives its path."""
    found = {}

    def write(which: str) -> Path:
        get = request.getfixturevalue
        if which not in found:
            make = {
                "pairs": lambda: ((hostile_pairs(),), {"title": "=1+1", "task": "classification"}),
                "comparison": lambda: ((get("comparison"),), get("about")),
                "image": lambda: ((get("selection_factory")(784, 39, shape=(1, 28, 28)), np.eye(50, 784), np.arange(50) % 2), {}),
                "long": lambda: (with_names(60, 8, [f"{'W' * 300}_{i}" for i in range(60)]), {}),
                "hostile": lambda: (with_names(40, 12, [*HOSTILE, *(f"plain {i}" for i in range(28))]), {}),
                "many": lambda: (with_names(6_000, 3_000, [f"gene_{i:05d}_at" for i in range(6_000)]), {}),
            }  # fmt: skip
            source, about = make[which]() if which in make else ((get(which),), {"command": "tamiz select table.csv"})
            found[which] = report(*source, path=tmp_path_factory.mktemp("page") / "page.html", **about)
        return found[which]

    def with_names(n_features, n_kept, names):
        """A selection whose names stand in the order of the ranks, and its table."""
        made = request.getfixturevalue("selection_factory")(n_features, n_kept)
        by_column = np.empty(n_features, dtype=object)
        by_column[np.argsort(made.ranking)] = names
        return made.with_names(by_column), *request.getfixturevalue("table_factory")(made, 40)

    return write


def set_width(browser, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture
def open_page(browser, path_of, tmp_path):
    """Opens a page at a width and theme; afterwards the console must be empty and the network untouched."""

    def open_it(which, width=1200, theme="light"):
        path = path_of(which)
        preferences = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in preferences.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
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
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def requested(browser) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in urls if not url.startswith(("chrome:", "about:"))]  # of the browser, not of the page


def shown_names(browser) -> list[str]:
    script = (
        "return [...document.querySelectorAll('#features tbody tr:not([hidden]) th > bdi')].map(e => e.textContent)"
    )
    return browser.execute_script(script)


def wait_for(browser, condition):
    return WebDriverWait(browser, 300, poll_frequency=0.05).until(lambda _: condition())


def scroll_to(browser, mark) -> None:
    """Scroll, and wait until the page has been told so, which hides values: that is before the next frame is drawn."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
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


def test_page_opens_from_disk_and_asks_for_nothing_else(open_page):
    browser = open_page("genes")
    assert "6 of 120 columns kept" in browser.title
    urls = requested(browser)
    assert any(url.startswith("file:") for url in urls)  # the log does record requests
    browser.execute_script("console.error('probe')")
    assert "probe" in browser.get_log("browser")[0]["message"]  # the log does record errors


def test_search_and_sort(open_page, genes):
    browser = open_page("genes")
    names = genes.selection.names
    assert shown_names(browser) == names
    search = browser.find_element(By.ID, "search")
    search.send_keys(names[3].upper())
    assert shown_names(browser) == [names[3]]
    assert browser.find_element(By.ID, "count").text == "1 of 6 kept columns match"
    search.clear()
    last = genes.selection.name_of(int(np.argmax(genes.selection.ranking)))
    search.send_keys(last)
    assert (shown_names(browser), browser.find_element(By.ID, "others").text) == ([], f"Left out: {last} (rank 120)")
    search.send_keys(Keys.CONTROL, "a")
    search.send_keys(Keys.DELETE)
    effects = {one["column"]: one["effect"] for one in genes.kept}
    button = browser.find_element(By.XPATH, "//table[@id='features']//button[text()='Effect']")
    header = button.find_element(By.XPATH, "..")
    known = sorted((n for n in names if effects[n] is not None), key=effects.get)
    unknown = [n for n in names if effects[n] is None]
    button.send_keys(Keys.ENTER)
    assert (header.get_attribute("aria-sort"), shown_names(browser)) == ("ascending", known + unknown)
    button.send_keys(Keys.SPACE)
    assert (header.get_attribute("aria-sort"), shown_names(browser)) == ("descending", known[::-1] + unknown)
    browser.find_element(By.XPATH, "//table[@id='features']//button[text()='Column']").click()
    assert shown_names(browser) == sorted(names)


def test_levels_fold_out_below_their_column(open_page):
    browser = open_page("houses")
    levels = browser.find_element(By.CSS_SELECTOR, "#features details.levels")
    listed = levels.find_element(By.CSS_SELECTOR, "ul")
    assert not listed.is_displayed()
    levels.find_element(By.CSS_SELECTOR, "summary").send_keys(Keys.ENTER)
    assert listed.is_displayed()
    assert len(listed.find_elements(By.CSS_SELECTOR, "li")) == 11


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_theme_follows_the_system_and_the_switch(open_page, theme):
    browser = open_page("genes", theme=theme)
    grounds = {"light": "rgb(251, 250, 248)", "dark": "rgb(18, 22, 27)"}
    other = {"light": "dark", "dark": "light"}[theme]
    button = browser.find_element(By.ID, "theme")
    for wanted in (theme, other, theme):
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == grounds[wanted]
        button.click()
    assert button.get_attribute("aria-label") == f"Switch to the {theme} theme"


def test_legend_hides_series_everywhere(open_page):
    browser = open_page("comparison")
    item = browser.find_element(By.CSS_SELECTOR, "#method-legend li:nth-child(3)")
    key = item.get_attribute("data-key")
    count = f"return [...document.querySelectorAll('[data-series=\"{key}\"]')].filter(e => e.getClientRects().length).length"
    button = item.find_element(By.CSS_SELECTOR, "button")
    for pressed, shown in (("true", 1), ("false", 0), ("true", 1)):
        assert (button.get_attribute("aria-pressed"), browser.execute_script(count)) == (pressed, shown)
        button.click()


def test_values_show_under_the_pointer_and_by_arrow_keys(open_page, genes):
    browser = open_page("genes")
    plot, tip = browser.find_element(By.CSS_SELECTOR, "#curve .wide-only"), browser.find_element(By.ID, "tip")
    assert not tip.is_displayed()
    mark = plot.find_elements(By.CSS_SELECTOR, "[data-tip]")[2]
    scroll_to(browser, mark)
    webdriver.ActionChains(browser).move_to_element(mark).perform()
    sizes = [m for m, _ in genes.curve]
    assert tip.text.startswith(f"M = {sizes[2]}: ")
    plot.send_keys(Keys.ARROW_RIGHT)
    assert tip.text.startswith(f"M = {sizes[0]}: ")
    assert browser.find_element(By.ID, "said").get_attribute("textContent") == tip.text
    heat = browser.find_element(By.CSS_SELECTOR, "#heat .wide-only")
    scroll_to(browser, heat)
    heat.send_keys(Keys.ARROW_RIGHT)
    assert re.match(r"gene_\d+, row \d+, (healthy|tumour).*: z = -?\d\.\d\d$", tip.text)
    cells = browser.find_element(By.CSS_SELECTOR, "#together .cells")
    scroll_to(browser, cells)
    webdriver.ActionChains(browser).move_to_element(cells).perform()
    assert re.search(r" with gene_\d+: r = ", tip.text)


def test_download_and_copy(open_page, genes, tmp_path):
    browser = open_page("genes")
    names = genes.selection.names
    browser.find_element(By.ID, "download").click()
    rows = downloaded(browser, tmp_path, "selected.csv")
    assert rows[0] == ["rank", "name", "column", "kept", "effect", "fold_share", "same_information"]
    assert [row[1] for row in rows[1:]] == names
    effects = ["" if one["effect"] is None else pytest.approx(one["effect"], rel=1e-5) for one in genes.kept]
    assert [row[4] and float(row[4]) for row in rows[1:]] == effects
    browser.find_element(By.ID, "download-all").click()
    assert len(downloaded(browser, tmp_path, "ranking.csv")) == 121
    button = browser.find_element(By.ID, "copy-names")
    button.click()
    wait_for(browser, lambda: button.text == "Copied")
    browser.execute_script("const t = document.createElement('textarea'); t.id = 'paste'; document.body.append(t)")
    area = browser.find_element(By.ID, "paste")
    area.send_keys(Keys.CONTROL, "v")
    assert area.get_property("value").split("\n") == names
    wait_for(browser, lambda: button.text == "Copy names")


def test_hostile_names_stay_text(open_page, tmp_path):
    browser = open_page("hostile")
    assert shown_names(browser) == HOSTILE
    assert "owned" not in browser.title
    assert len(browser.find_elements(By.CSS_SELECTOR, "script")) == 2
    assert browser.find_elements(By.CSS_SELECTOR, "img") == []
    safe = [f"'{name}" if name[0] in "=+@" else name for name in HOSTILE]
    for wanted in (safe, HOSTILE):
        browser.find_element(By.ID, "download").click()
        assert [row[1] for row in downloaded(browser, tmp_path, "selected.csv")[1:]] == wanted
        (tmp_path / "selected.csv").unlink()
        browser.find_element(By.ID, "safe").click()


@pytest.mark.parametrize("which", ["genes", "houses", "comparison", "image", "long"])
def test_no_sideways_scrolling_whatever_the_font(open_page, which):
    browser = open_page(which)
    listed = ""
    if shutil.which("fc-list"):
        listed = subprocess.run(["fc-list"], capture_output=True, text=True, check=True, timeout=60).stdout
    for font in [font for font in FONTS if font in listed] or ["sans-serif"]:
        # By a style sheet that the content security policy of the page allows.
        browser.execute_script(
            "const sheet = new CSSStyleSheet(); sheet.replaceSync(`* { font-family: '${arguments[0]}' !important }`);"
            "document.adoptedStyleSheets = [sheet]",
            font,
        )
        for opened in (False, True):
            script = "for (const d of document.querySelectorAll('details')) d.open = arguments[0]"
            browser.execute_script(script, opened)
            for width in WIDTHS:
                set_width(browser, width)
                assert overflow(browser) == 0, (font, opened, width)


def test_thousands_of_kept_columns_are_found_by_search(open_page):
    browser = open_page("many")
    assert len(shown_names(browser)) == 200
    browser.find_element(By.ID, "more").click()
    assert len(shown_names(browser)) == 400
    browser.find_element(By.ID, "search").send_keys("gene_02999_at")
    assert shown_names(browser) == ["gene_02999_at"]


def test_without_scripts_the_tables_and_charts_are_there(browser, path_of, genes):
    path = path_of("genes")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(path.as_uri())
        listed = browser.find_elements(By.CSS_SELECTOR, "#features tbody th")
        assert [one.text for one in listed] == genes.selection.names
        assert all(not one.is_displayed() for one in browser.find_elements(By.CSS_SELECTOR, "button"))
        assert browser.find_element(By.CSS_SELECTOR, "#curve .wide-only svg").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("which", ["genes", "houses", "comparison", "pairs", "image"])
def test_axe_finds_no_violation(open_page, check_page, which):
    browser = open_page(which)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    if which == "genes":  # with the notes of another M
        browser.find_element(By.ID, "m-slider").send_keys(Keys.ARROW_RIGHT)
    check_page(browser)


def test_the_table_of_pairs_can_be_downloaded(open_page, tmp_path):
    browser = open_page("pairs")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#pictures svg.chart")) == 4
    browser.find_element(By.ID, "download").click()
    rows = downloaded(browser, tmp_path, "pairs.csv")
    assert rows[0] == ["first", "second", "strength", "p_value", "shape"]
    assert rows[1][:2] == HOSTILE[:2]


def test_the_slider_shows_the_set_of_every_number_of_columns(open_page, genes, tmp_path):
    browser = open_page("genes")
    before = shown_names(browser)
    slider = browser.find_element(By.ID, "m-slider")
    sizes = [int(m) for m in slider.get_attribute("data-sizes").split(",")]
    assert sizes == sorted({6, *genes.models})
    following = sizes[sizes.index(6) + 1]
    wanted = genes.selection_of(genes.models[following]).names
    slider.send_keys(Keys.ARROW_RIGHT)
    assert shown_names(browser) == wanted
    assert browser.find_element(By.ID, "count").text == f"{following} kept columns"
    chips = browser.find_elements(By.CSS_SELECTOR, "#m-list li")
    assert [chip.text for chip in chips] == wanted
    assert sum(chip.get_attribute("class") == "new" for chip in chips) == len(set(wanted) - set(before))
    ringed = browser.find_elements(By.CSS_SELECTOR, "#curve .wide-only .ring")
    assert [mark.get_attribute("data-m") for mark in ringed] == [str(following)]
    browser.find_element(By.ID, "download").click()
    assert [row[1] for row in downloaded(browser, tmp_path, f"selected-{following}.csv")[1:]] == wanted
    notes = [note for note in browser.find_elements(By.CSS_SELECTOR, ".of-selection") if note.is_displayed()]
    assert {note.text for note in notes} == {"Shown here: the selection, M = 6."}
    slider.send_keys(Keys.HOME)
    assert "without" in browser.find_element(By.ID, "m-said").text
    browser.find_element(By.ID, "back-to-m").click()
    assert shown_names(browser) == before
    assert not browser.find_element(By.ID, "other-m").is_displayed()


@pytest.mark.parametrize("which", ["genes", "houses"])
def test_print_is_light_and_takes_few_pages(open_page, which):
    browser = open_page(which, theme="dark")
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) <= 6
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for hidden in ("#search", "nav"):
            assert not browser.find_element(By.CSS_SELECTOR, hidden).is_displayed()
        assert browser.find_element(By.CSS_SELECTOR, "#features thead .for-print").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
