"""Print the lowest version of everything that pyproject.toml declares, as constraints for pip (`make test-lowest`)."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def lowest(project: dict[str, object]) -> list[str]:
    """Turn what a project asks for, extras included, from "at least" to "just"."""
    extras = project["optional-dependencies"]
    asked = [
        *project["dependencies"],
        *(each for extra in extras.values() for each in extra),
    ]  # type: ignore[misc,attr-defined]
    others = [each for each in asked if not each.startswith(f"{project['name']}[")]
    unbound = [each for each in others if ">=" not in each]
    if unbound:
        sys.exit(f"pyproject.toml: found {unbound[0]!r}, expected a lowest version")
    bounds = (each.partition(">=") for each in others)
    return sorted({f"{name.partition('[')[0]}=={least}" for name, _, least in bounds})


if __name__ == "__main__":
    path = Path(__file__).parent.parent / "pyproject.toml"
    print("\n".join(lowest(tomllib.loads(path.read_text(encoding="utf-8"))["project"])))
