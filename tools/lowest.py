"""Print the lowest version of each dependency, as constraints for pip."""

import sys
import tomllib
from pathlib import Path


def list_constraints(text: str) -> list[str]:
    """Return ``name==version`` for each ``name>=version`` in a pyproject.toml."""
    project = tomllib.loads(text)["project"]
    requirements = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        requirements += extra

    constraints = set()
    for requirement in requirements:
        name, operator, version = requirement.partition(">=")
        name = name.partition("[")[0]
        if name == project["name"]:
            # The extra that installs other extras
            continue
        if not operator:
            sys.exit(
                f"pyproject.toml: found {requirement!r}, expected a lowest version"
            )
        constraints.add(f"{name}=={version}")

    return sorted(constraints)


if __name__ == "__main__":
    path = Path(__file__).parent.parent / "pyproject.toml"
    print("\n".join(list_constraints(path.read_text(encoding="utf-8"))))
