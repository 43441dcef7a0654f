"""Check that functions have no variables with vague names.

    python tools/check_names.py

The words below do not describe a variable. `ALLOWED` lists names that are part of an
interface.
"""

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "mlconsensus"
VAGUE = frozenset(
    (
        "found",
        "own",
        "at",
        "each",
        "some",
        "given",
        "said",
        "known",
        "told",
        "kept",
        "left",
        "whole",
        "beside",
        "usual",
    )
)
# Path and name. `InputError` takes the value that was ``found``.
ALLOWED = frozenset({("errors.py", "found")})


def find_vague_names(path: Path) -> list[str]:
    """Return the place and the name of each vague variable in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(SOURCE).as_posix()
    places = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            name = ""
            if isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if name in VAGUE and (file, name) not in ALLOWED:
                relative = path.relative_to(SOURCE.parent.parent)
                places.append(f"{relative}:{node.lineno}: {name!r} is a vague name")
    return sorted(set(places))


def main() -> int:
    """Print all vague names; return 1 if there are any."""
    places = []
    for path in sorted(SOURCE.rglob("*.py")):
        places += find_vague_names(path)
    print("\n".join(places))
    return int(bool(places))


if __name__ == "__main__":
    sys.exit(main())
