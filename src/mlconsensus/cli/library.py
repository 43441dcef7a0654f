"""Functions and classes of the library that commands use.

They are listed in ``library.pyi``. Each is imported when it is first used, so that the
help of a command stays fast.
"""

import ast
from pathlib import Path

import lazy_loader


def _read_stub() -> dict[str, list[str]]:
    """Return the names that the stub imports from each module of the package."""
    stub = Path(__file__).with_suffix(".pyi")
    names_by_module: dict[str, list[str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            module = str(node.module)
            if node.level == 1:
                module = f"cli.{module}"
            names_by_module[module] = [alias.name for alias in node.names]

    return names_by_module


__getattr__, __dir__, __all__ = lazy_loader.attach(
    "mlconsensus", submod_attrs=_read_stub()
)
