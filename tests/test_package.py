"""The package: its public names, the cost of importing it, and its docs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mlconsensus as mlc

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", mlc.__all__)
def test_every_name_is_there(name):
    assert name in dir(mlc)
    assert getattr(mlc, name) is not None


def test_unknown_names():
    with pytest.raises(AttributeError, match="mlcm_x"):
        mlc.mlcm_x  # noqa: B018


def test_importing_stays_light():
    """No large library is imported before it is used, not even for --help."""
    code = "import sys, mlconsensus, mlconsensus.cli; print(*sys.modules)"
    _check_light(code)


def test_the_list_of_methods_stays_light():
    """The help of a command names every method without importing scikit-learn."""
    code = (
        "import sys; from click.testing import CliRunner; from "
        "mlconsensus.cli.main import cli; "
        "assert 'mlcm-r' in CliRunner().invoke(cli, ['combine', "
        "'--help']).output; print(*sys.modules)"
    )
    _check_light(code)


def _check_light(code):
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {
        "dask",
        "jinja2",
        "opendp",
        "pandas",
        "polars",
        "rich",
        "sklearn",
    } & set(loaded)


def test_combining_loads_no_table_library():
    """Pandas is not in the list, because scikit-learn imports it."""
    code = "import sys, mlconsensus as mlc; mlc.mlcm_r([[[1, 0]]]); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"dask", "jinja2", "polars", "rich"} & set(loaded)


PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/decisions/*.md"),
    *ROOT.glob("examples/**/*.md"),
]


def test_lines_of_pages_are_short():
    without_code = {
        page: re.sub(r"(?ms)^```.*?^```", "", page.read_text()) for page in PAGES
    }
    lines = (
        (page.name, line)
        for page, text in without_code.items()
        for line in text.splitlines()
    )
    assert not [
        one
        for one in lines
        if len(one[1]) > 120
        and not one[1].lstrip().startswith("|")
        and one[1][:4].strip()
    ]
