"""Count lines of code by room: blank lines, comments and docstrings are not counted.

python benchmarks/lines.py [src/tamiz | tests | ...] [--modules]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

LAYOUT = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_code(text: str) -> int:
    """Count the lines of a module that hold code.

    >>> count_code('"Docstring."\\n\\n# comment\\nx = (\\n    1\\n)\\n')
    3
    """
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def main(folder: Path, show_modules: bool) -> None:
    """Print modules and lines of each room, and their sums."""
    rooms: dict[str, dict[Path, int]] = defaultdict(dict)
    for path in sorted(folder.rglob("*.py")):
        inner = path.relative_to(folder)
        rooms[inner.parts[0]][inner] = count_code(path.read_text(encoding="utf-8"))
    for room, modules in rooms.items():
        print(f"{room:24} {len(modules):4} modules {sum(modules.values()):7,} lines")
        for path, lines in modules.items() if show_modules and len(modules) > 1 else ():
            print(f"    {path!s:40} {lines:7,}")
    total = [lines for modules in rooms.values() for lines in modules.values()]
    print(f"{'all':24} {len(total):4} modules {sum(total):7,} lines")


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    main(Path(folders[0] if folders else "src/tamiz"), "--modules" in sys.argv)
