"""A picture of a command and what it prints, for the README and the docs.

Usage::

    python docs/terminal_picture.py docs/images/terminal.png tamiz demo --force

Runs the command in colour, draws the output with rich and takes a picture of the drawing with headless Chromium.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text
from screenshots import take

_COLUMNS = 92


def _without_erased_lines(output: str) -> str:
    """The output as it stands when the command is done: progress bars are drawn again and again, then erased."""
    last = [re.sub(r"\x1b\[\??\d*[A-DGHJKhl]", "", line.rpartition("\x1b[2K")[2]) for line in output.splitlines()]
    kept = [line.rstrip() for line in last if not re.search(r"\d+[/%].*[-\d]:[-\d]{2}:", line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def without_fonts(drawing: str) -> str:
    """The drawing of rich with a font of this machine: rich names one on a web server."""
    drawing = re.sub(r"@font-face\s*{.*?}", "", drawing, flags=re.DOTALL)
    return drawing.replace("Fira Code", "DejaVu Sans Mono")


def draw(command: list[str]) -> str:
    """The command and its output as SVG that asks nobody for a font."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(_COLUMNS)}
    run = subprocess.run(
        command, env=environment, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text("$ " + shlex.join(command), style="bold"))
        console.print(Text.from_ansi(_without_erased_lines(run.stdout)))
    return without_fonts(console.export_svg(title="tamiz"))


def main() -> None:
    """Read the command line and take one picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path, help="the PNG to write")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command to show")
    chosen = parser.parse_args()
    drawing = draw(chosen.command)
    width, height = (round(float(size)) for size in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)[0])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "terminal.html"
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><body style="margin:0;width:{width}px">{drawing}</body>',
            encoding="utf-8",
        )
        take(str(page), chosen.picture, width=width, height=height, dark=False, full=False, scale=1.0, pdf=False)


if __name__ == "__main__":
    main()
