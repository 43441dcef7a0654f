"""Count lines of code in src: no blank lines, comments or docstrings. `make test` prints the sum."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """Count the lines of one file that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def main(source: Path) -> None:
    """Print the lines of code of each room, the sum, and files that have grown long."""
    rooms: Counter[str] = Counter()
    long_files = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        inside = path.relative_to(source).parts
        rooms[inside[1] if len(inside) > 2 else "(top)"] += code_lines(text)
        if (length := text.count("\n")) > 400:
            long_files.append(f"{path}: {length} lines in all, expected at most 400")
    print("lines of code:", ", ".join(f"{room} {count:,}" for room, count in rooms.most_common()))
    print(f"lines of code in all: {rooms.total():,}")
    if long_files:
        sys.exit("\n".join(long_files))


if __name__ == "__main__":
    main(Path(__file__).parent.parent / "src")
