"""The live page in a real browser: headless Chromium talks to a real server."""

from __future__ import annotations

import json

import pytest

By = pytest.importorskip("selenium.webdriver.common.by", reason="selenium is not installed").By
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.browser
ROWS = "return [...document.querySelectorAll('#kept tbody tr')].map(e => e.dataset.name)"


def wait_for(browser, condition, seconds=300):
    return WebDriverWait(browser, seconds, poll_frequency=0.05).until(lambda _: condition())


def text_of(browser, name):
    return browser.find_element(By.ID, name).text


def kept(browser):
    return browser.execute_script(ROWS)


def is_done(browser, m):
    """Whether the list holds M columns and all folds are scored."""
    table = browser.find_element(By.ID, "kept")
    return table.get_attribute("data-m") == str(m) and table.get_attribute("data-done") == "yes"


def set_slider(browser, place):
    """Drag the slider to a place, as the browser reports it."""
    browser.execute_script(
        "const s = document.getElementById('slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
        place,
    )


@pytest.fixture
def page(browser, server):
    """Opens the page without a table; afterwards the console must be empty and nothing outside was asked for."""
    browser.get_log("browser"), browser.get_log("performance")  # reading empties them
    browser.get("about:blank")  # leaves a page whose address differs by its fragment only
    browser.get(server.url)
    wait_for(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#network option"))
    yield browser
    browser.execute_script("sessionStorage.clear()")
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert urls
    ours = (server.url, "data:", "blob:", "chrome:", "about:")
    assert [url for url in urls if not url.startswith(ours)] == []
    # A message of the server is an answer with the status 422, which the console lists.
    assert [entry for entry in browser.get_log("browser") if "422" not in entry["message"]] == []


@pytest.fixture
def opened(page, small_file):
    page.find_element(By.ID, "file").send_keys(str(small_file))
    wait_for(page, lambda: is_done(page, 10))
    return page


def test_a_chosen_file_is_listed_and_scored(opened):
    assert text_of(opened, "title") == "small.csv"
    assert opened.find_element(By.ID, "target").get_attribute("value") == "ill"
    assert len(kept(opened)) == 10
    assert set(kept(opened)[:2]) == {"gene 2", "gene 5"}
    assert float(text_of(opened, "score")) > 0.8
    assert "balanced accuracy on held-out rows" in text_of(opened, "score-words")
    assert opened.find_element(By.CSS_SELECTOR, "tr[data-name='gene 2'] td.num").text == "5/5"
    assert "columns" in text_of(opened, "verdict")
    curve = opened.find_element(By.CSS_SELECTOR, "#curve .wide-only svg").get_attribute("outerHTML")
    assert all(words in curve for words in ("chance 0.5", "all 0.", "random 0.", "M = 10"))
    assert not opened.find_element(By.ID, "status").is_displayed()
    assert "higher → yes" in opened.find_element(By.CSS_SELECTOR, "tr[data-name='gene 2']").text
    heat = opened.find_element(By.CSS_SELECTOR, "#heat .wide-only svg").get_attribute("aria-label")
    assert heat == "z scores of 10 kept columns in 60 rows, clustered"
    assert "balanced accuracy" in opened.find_element(By.ID, "said").get_attribute("textContent")
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = opened.execute_script(colour)
    opened.find_element(By.ID, "theme").click()
    assert opened.execute_script(colour) != before
    assert opened.find_element(By.ID, "theme").get_attribute("aria-label").startswith("Switch to the")


def test_a_dropped_file_is_opened(page):
    script = """
        const rows = ["a,b,ill"];
        for (let i = 0; i < 30; i++) rows.push(`${i % 2 + i / 100},${(i * 7) % 5},${i % 2 ? "yes" : "no"}`);
        const data = new DataTransfer(); data.items.add(new File([rows.join("\\n")], "dropped.csv"));
        document.body.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: data}))"""
    page.execute_script(script)
    wait_for(page, lambda: is_done(page, 2))
    assert text_of(page, "title") == "dropped.csv"
    assert kept(page)[0] == "a"


def test_a_drag_of_m_is_followed(opened):
    slider = opened.find_element(By.ID, "slider")
    slider.send_keys(Keys.HOME)
    wait_for(opened, lambda: is_done(opened, 1))
    assert kept(opened)[0] in ("gene 2", "gene 5")
    assert slider.get_attribute("aria-valuetext") == "1 column"
    slider.send_keys(Keys.ARROW_RIGHT)
    wait_for(opened, lambda: is_done(opened, 2))
    assert set(kept(opened)) == {"gene 2", "gene 5"}
    number = opened.find_element(By.ID, "m")
    number.send_keys(Keys.CONTROL, "a")
    number.send_keys("4", Keys.ENTER)
    wait_for(opened, lambda: is_done(opened, 4))
    assert len(kept(opened)) == 4


def test_a_column_is_forced_in_and_out_and_the_focus_stays(opened):
    """Also with the keyboard alone: the list is made anew, and the pressed button of the columns next in rank is gone."""

    def css(selector):
        return opened.find_element(By.CSS_SELECTOR, selector)

    set_slider(opened, 1)
    wait_for(opened, lambda: is_done(opened, 2))
    css("[aria-label='Force gene 2 out']").click()
    wait_for(opened, lambda: is_done(opened, 2) and "gene 2" not in kept(opened))
    css("#force").send_keys("gene 9")
    css("#force-in").click()
    wait_for(opened, lambda: set(kept(opened)) == {"gene 9", "gene 5"} and is_done(opened, 2))
    assert css("[aria-label='Force gene 9 in']").get_attribute("aria-pressed") == "true"
    for name in ("gene 9, forced in: set free", "gene 2, forced out: set free"):
        css(f"[aria-label='{name}']").click()
        wait_for(opened, lambda: is_done(opened, 2))
    assert set(kept(opened)) == {"gene 2", "gene 5"}
    focused = "return document.activeElement.getAttribute('aria-label') || document.activeElement.id"
    name = css("#next button").text
    css("#next button").send_keys(Keys.ENTER)
    wait_for(opened, lambda: name in kept(opened) and is_done(opened, 2))
    assert opened.execute_script(focused) == f"Force {name} in"
    opened.switch_to.active_element.send_keys(Keys.SPACE)
    wait_for(opened, lambda: name not in kept(opened) and is_done(opened, 2))
    assert opened.execute_script(focused) == "force"


def test_network_and_target_can_be_changed(opened):
    from selenium.webdriver.support.ui import Select

    set_slider(opened, 1)
    Select(opened.find_element(By.ID, "network")).select_by_value("additive")
    wait_for(opened, lambda: is_done(opened, 2))
    wait_for(
        opened, lambda: "–" in opened.find_element(By.CSS_SELECTOR, "#kept tbody tr").text
    )  # curves have no direction
    target = opened.find_element(By.ID, "target")
    target.clear()
    target.send_keys("gene 5", Keys.TAB)
    wait_for(opened, lambda: "gene 5" in text_of(opened, "headline") and is_done(opened, 2))
    assert "R²" in text_of(opened, "score-words")


def test_report_and_code_are_exported(opened, tmp_path):
    set_slider(opened, 2)
    wait_for(opened, lambda: is_done(opened, 3))
    following = opened.find_element(By.CSS_SELECTOR, "#next button")
    forced = following.text
    following.click()
    wait_for(opened, lambda: opened.find_elements(By.CSS_SELECTOR, "#forced li") and is_done(opened, 3))
    shown = kept(opened)
    opened.find_element(By.ID, "code").click()
    code = wait_for(opened, lambda: text_of(opened, "code-text"))
    assert all(words in code for words in ("tamiz.select(", "'small.csv'", "k=3", f"keep=['{forced}']"))
    folder = tmp_path / "downloads"
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    opened.find_element(By.ID, "report").click()
    path = folder / "report.html"
    wait_for(opened, path.exists)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "small.csv" in text
    assert all(name in text for name in shown)
    assert "balanced accuracy" in text.lower()


def test_a_broken_table_gives_a_message(page, tmp_path):
    broken = (
        ("a,b,c\n1,2\n3,4,5,6,7\n", ""),
        ("a,b,ill\n1,2,yes\n2,3,yes\n", "constant"),
        ("", "is empty"),
        ("\0\1\2", ""),
    )
    for number, (content, words) in enumerate(broken):
        path = tmp_path / f"broken {number}.csv"
        path.write_text(content)
        page.find_element(By.ID, "file").send_keys(str(path))
        wait_for(page, lambda name=path.name: text_of(page, "title") == name)
        message = wait_for(
            page, lambda: page.find_element(By.ID, "problem").is_displayed() and text_of(page, "problem")
        )
        assert words in message
        for secret in ("Traceback", "tamiz-serve-", "/tmp", "Error:"):
            assert secret not in message


def test_axe_finds_no_violation_and_nothing_scrolls_sideways(opened, check_page):
    set_slider(opened, 3)
    wait_for(opened, lambda: is_done(opened, 4))
    opened.find_element(By.CSS_SELECTOR, "#next button").click()
    wait_for(opened, lambda: opened.find_elements(By.CSS_SELECTOR, "#forced li") and is_done(opened, 4))
    opened.find_element(By.ID, "code").click()
    opened.find_element(By.CSS_SELECTOR, "summary").click()
    wait_for(opened, lambda: text_of(opened, "code-text"))
    check_page(opened)


def test_a_new_table_clears_the_old_one_at_once_and_a_link_brings_it_back(opened, csv_of):
    """The upload is held back by the page's own network, so that what stands there meanwhile can be read."""
    opened.execute_cdp_cmd("Network.enable", {})
    slow = {"offline": False, "latency": 3000, "downloadThroughput": -1, "uploadThroughput": -1}
    opened.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    try:
        opened.find_element(By.ID, "file").send_keys(str(csv_of(40, 7, "new.csv")))
        wait_for(opened, lambda: text_of(opened, "title") == "new.csv")
        assert not opened.find_element(By.ID, "work").is_displayed()
        assert "Reading new.csv" in text_of(opened, "status-words")
        assert kept(opened) == []
    finally:
        opened.execute_cdp_cmd("Network.emulateNetworkConditions", {**slow, "latency": 0})
    wait_for(opened, lambda: is_done(opened, 7))
    # A link reproduces the state.
    opened.find_element(By.CSS_SELECTOR, "[aria-label='Force gene 2 out']").click()
    wait_for(opened, lambda: is_done(opened, 6) and "gene 2" not in kept(opened))
    before, link = kept(opened), opened.current_url
    assert "drop=gene+2" in link
    opened.get("about:blank")
    opened.get(link)
    wait_for(opened, lambda: is_done(opened, 6))
    assert (kept(opened), text_of(opened, "title")) == (before, "new.csv")


def test_m_follows_the_columns_that_there_are(page, tmp_path):
    """Of four columns one is text without end and one is empty: two are left to select from."""
    path = tmp_path / "few.csv"
    lines = [f"{i % 2 + i / 50},{i % 3},word{i},,{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["a,b,name,empty,ill", *lines]))
    page.find_element(By.ID, "file").send_keys(str(path))
    wait_for(page, lambda: is_done(page, 2))
    assert page.find_element(By.ID, "m").get_attribute("value") == "2"
    assert page.find_element(By.ID, "slider").get_attribute("max") == "1"


def test_m_and_network_are_chosen_by_the_page(opened):
    opened.find_element(By.ID, "choose-m").click()
    wait_for(opened, lambda: "the fewest within one standard error" in text_of(opened, "chosen"))
    m = int(opened.find_element(By.ID, "m").get_attribute("value"))
    wait_for(opened, lambda: is_done(opened, m))
    assert 1 <= m < 10
    opened.find_element(By.CSS_SELECTOR, "#network option[value=auto]").click()
    wait_for(opened, lambda: "does not clearly beat" in text_of(opened, "chosen"))
    wait_for(opened, lambda: is_done(opened, m))
    assert opened.find_element(By.ID, "network").get_attribute("value") == "linear"
    set_slider(opened, 4)
    wait_for(opened, lambda: is_done(opened, 5))
    assert text_of(opened, "chosen") == ""


def test_a_file_is_read_again_with_other_options(page, tmp_path):
    """First with an upload that cannot be used as it is, then with an open table."""
    path = tmp_path / "german.csv"
    rows = "".join(f"{i % 7},5;{i % 2},25;{'ja' if i % 2 else 'nein'}\n" for i in range(40))
    path.write_text("Messung vom Montag\n" + "gen;masse;ill\n" + rows)
    page.find_element(By.ID, "file").send_keys(str(path))
    wait_for(page, lambda: page.find_element(By.ID, "reading-part").is_displayed())
    page.find_element(By.CSS_SELECTOR, "#reading-part summary").click()
    for name, value in (("delimiter", ";"), ("decimal", ",")):
        page.find_element(By.CSS_SELECTOR, f"#{name} option[value='{value}']").click()
    skip = page.find_element(By.ID, "skip-rows")
    skip.clear()
    skip.send_keys("1", Keys.ENTER)
    wait_for(page, lambda: is_done(page, 2))
    assert set(kept(page)) == {"gen", "masse"}
    assert page.find_element(By.ID, "target").get_attribute("value") == "ill"
    assert page.find_element(By.ID, "skip-rows").get_attribute("value") == "1"
