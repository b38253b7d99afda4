"""An animated picture for the README: a real run of ``tamiz select`` in a terminal, then the report that it wrote.

Usage::

    python docs/animation.py docs/images/select.webp colon.csv --target tissue -k 20

Runs the command in a pseudo-terminal and records what it prints and when; long waits are shortened. Then opens the report in
headless Chromium, scrolls through it and drags the slider of M. Needs what ``docs/screenshots.py`` needs, and Pillow.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.text import Text
from screenshots import open_browser
from terminal_picture import without_fonts

#: Size of the picture in pixels, and columns of the terminal; letters are 14 pixels high where GitHub shows it 830 pixels wide.
WIDTH, HEIGHT, COLUMNS = 960, 600, 78
#: Milliseconds that a state of the terminal is shown at least and at most, whatever it took.
SHORTEST, LONGEST = 120, 700
#: Parts of the report that are shown, and for how many milliseconds.
STOPS = {"top": 2600, "kept": 2600, "heat": 2600, "together": 2200, "folds": 1800, "predict": 2600, "curve": 1800}
#: Pixels that a part stands below the upper edge, and steps of the slider at the end.
MARGIN, SLIDER_STEPS = 12, 3

_CONTROL = re.compile(r"\x1b\[\??\d*(?:;\d+)*[A-DGHJKhlST]")
_BAR = re.compile(r"elapsed|\d+%|left")


def record(command: list[str]) -> list[tuple[float, str]]:
    """Run a command in a pseudo-terminal; return what it had printed at each moment at which that changed."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=terminal, stderr=terminal, stdin=terminal, env=environment)
    os.close(terminal)
    found, output = [(0.0, "")], b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        output += part
        found.append((time.perf_counter() - started, output.decode("utf-8", "replace")))
    if process.wait():
        raise SystemExit(f"{shlex.join(command)} ended with {process.returncode}:\n{output.decode('utf-8', 'replace')}")
    return found


def screen(output: str) -> str:
    """Return the lines that stand on the screen: of a line that is drawn again the last state, of bars the present one."""
    lines = []
    for line in output.replace("\r\n", "\n").split("\n"):
        last = _CONTROL.sub("", re.split(r"\r|\x1b\[2K", line)[-1])
        lines.append(last.rstrip())
    while lines and not re.sub(r"\x1b\[[\d;]*m", "", lines[-1]).strip():
        lines.pop()
    shown = [line for i, line in enumerate(lines) if i == len(lines) - 1 or not _BAR.search(line) or "%" not in line]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(shown))


def draw_terminal(command: str, output: str) -> str:
    """Return the command and its output as SVG."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text("$ " + command, style="bold"))
        console.print(Text.from_ansi(output))
    return without_fonts(console.export_svg(title="tamiz"))


class Film:
    """Collect pictures of pages and how long each is shown."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.browser, self.folder = browser, folder
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []
        metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def take(self, milliseconds: int) -> None:
        """Add a picture of what the browser shows; one that changes nothing prolongs the one before."""
        data = base64.b64decode(self.browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"])
        frame = Image.open(io.BytesIO(data)).convert("RGB")
        if self.frames and frame.tobytes() == self.frames[-1].tobytes():
            self.durations[-1] += milliseconds
            return
        self.frames.append(frame)
        self.durations.append(milliseconds)

    def terminal(self, command: str, output: str, milliseconds: int, *, at_end: bool = True) -> None:
        """Add a picture of the terminal, scrolled to the end of its output."""
        page = self.folder / "terminal.html"
        style = f"body{{margin:0;background:#292929}}svg{{display:block;width:{WIDTH}px}}"
        text = f'<!doctype html><meta charset="utf-8"><style>{style}</style>{draw_terminal(command, output)}'
        page.write_text(text, encoding="utf-8")
        self.browser.get(page.as_uri())
        if at_end:
            self.browser.execute_script("scrollTo(0, document.documentElement.scrollHeight)")
        self.take(milliseconds)

    def report(self, path: Path) -> None:
        """Add the parts of a report, and what follows when M is dragged."""
        self.browser.get(path.resolve().as_uri())
        self.browser.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
        for name, milliseconds in STOPS.items():
            self.show(f"#{name}" if name != "top" else "body", milliseconds)
        slider = self.browser.find_elements("id", "m-slider")
        if not slider:
            return
        self.show(".slider", 900, HEIGHT // 2)
        for _ in range(SLIDER_STEPS):
            slider[0].send_keys("\ue012")  # the arrow to the left
            self.show(".slider", 800, HEIGHT // 2)
        self.show("#heat", 2200)

    def show(self, selector: str, milliseconds: int, below: int = MARGIN) -> None:
        """Add a picture of a part of the page, which stands ``below`` pixels under the upper edge; nothing if there is none."""
        script = "const part = document.querySelector(arguments[0]); if (!part) return false;"
        script += "scrollTo(0, part.getBoundingClientRect().top + scrollY - arguments[1]); return true;"
        if self.browser.execute_script(script, selector, below):
            self.take(milliseconds)

    def write(self, picture: Path, quality: int) -> None:
        """Write the animation."""
        first, *rest = self.frames
        options = {"quality": quality, "method": 6, "minimize_size": True}
        first.save(picture, save_all=True, append_images=rest, duration=self.durations, loop=0, **options)


def main() -> None:
    """Read the command line and make the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", type=int, default=70, help="quality of the pictures, to 100")
    parser.add_argument("picture", type=Path, help="the WebP file to write")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="file and options of tamiz select")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results"
        program = [str(Path(sys.executable).with_name("tamiz")), "select"]
        states = record([*program, *chosen.arguments, "--out", str(out)])
        shown = "tamiz select " + shlex.join([Path(chosen.arguments[0]).name, *chosen.arguments[1:]])
        browser = open_browser(profile, dark=False, scale=1.0)
        try:
            film = Film(browser, Path(folder))
            ends = [moment for moment, _ in states[1:]] + [states[-1][0] + 1]
            states = [
                (moment, output.replace(str(out), f"tamiz-{Path(chosen.arguments[0]).stem}"))
                for moment, output in states
            ]
            for (moment, output), end in zip(states, ends, strict=True):
                length = int(1000 * (end - moment))
                if length >= SHORTEST / 4:
                    film.terminal(shown, screen(output), max(SHORTEST, min(LONGEST, length)))
            film.terminal(shown, screen(states[-1][1]), 2600, at_end=False)
            film.terminal(shown, screen(states[-1][1]), 2200)
            film.report(out / "report.html")
            film.write(chosen.picture, chosen.quality)
        finally:
            browser.quit()
    size = chosen.picture.stat().st_size
    print(
        json.dumps(
            {"frames": len(film.frames), "seconds": sum(film.durations) / 1000, "run": states[-1][0], "bytes": size}
        )
    )


if __name__ == "__main__":
    main()
