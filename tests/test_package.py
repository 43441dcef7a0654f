"""The package: its public names, the cost of importing it, and its docs."""

import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import jedi
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


@pytest.mark.parametrize("name", mlc.__all__)
def test_every_name_has_source_code_and_can_be_pickled(name):
    value = getattr(mlc, name)
    if name == "COMBINERS":
        assert pickle.loads(pickle.dumps(value)) == value
    else:
        assert inspect.getsource(value)
    if not inspect.ismodule(value) and name != "COMBINERS":
        assert pickle.loads(pickle.dumps(value)) is value


@pytest.mark.parametrize("name", mlc.__all__)
def test_editors_go_to_the_definition_of_every_name(name):
    program = f"import mlconsensus as mlc\nmlc.{name}\n"
    project = jedi.Project(ROOT / "tests", added_sys_path=[str(ROOT / "src")])
    script = jedi.Script(program, path=ROOT / "tests" / "user.py", project=project)
    definitions = script.goto(2, len(f"mlc.{name}"), follow_imports=True)
    assert len(definitions) == 1
    value = getattr(mlc, name)
    if name != "COMBINERS":
        assert str(definitions[0].module_path) == inspect.getsourcefile(value)
    if inspect.isfunction(value) or inspect.isclass(value):
        assert (
            definitions[0].get_line_code().strip().startswith(("def ", "class ", "@"))
        )


USER_PROGRAM = """
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import mlconsensus as mlc


def evaluate_files(paths: list[Path], truth: NDArray[np.bool_]) -> float:
    predictions: mlc.Predictions = mlc.read_predictions(paths)
    consensus: mlc.Consensus = mlc.combine(predictions)
    combiner: mlc.MLCMr = mlc.MLCMr(alpha=2.0).fit(predictions)
    votes: NDArray[np.float64] = mlc.majority_vote(predictions)
    metrics: dict[str, float] = mlc.metrics.evaluate(truth, votes)
    print(consensus.method, combiner.transform(predictions).shape)
    return metrics["micro_auc"]


mlc.MLCMr(alhpa=2.0)
"""


@pytest.mark.slow
def test_type_checkers_see_every_name(tmp_path):
    """The program has one error; no public name has the type Any."""
    lines = [f"reveal_type(mlc.{name})" for name in mlc.__all__]
    program = tmp_path / "user.py"
    program.write_text(USER_PROGRAM + "\n".join(lines) + "\n")
    output = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", program.name],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    errors = [line for line in output if ": error:" in line]
    assert len(errors) == 1
    assert 'Unexpected keyword argument "alhpa" for "MLCMr"' in errors[0]
    types = [line.partition("Revealed type is ")[2] for line in output]
    types = [text for text in types if text]
    assert len(types) == len(mlc.__all__)
    assert '"Any"' not in types


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
