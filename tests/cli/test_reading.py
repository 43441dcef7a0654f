"""Long tables, language models' answers and labels of many names, on the command line."""

import shutil
from pathlib import Path

import polars as pl
import pytest

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def data(tmp_path):
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_columns(data, run):
    done = run("combine", "export.csv", "--columns", "model=who,instance=text_id", "--method", "mv", "-o", "out.csv")
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == "columns left out: 2 ('when', 'comment')"
    out = pl.read_csv("out.csv")
    assert out.columns == ["instance", "sports", "politics", "weather"]
    assert out.rows() == [("d1", 1.0, 0.0, 0.0), ("d2", 0.0, 1.0, 1.0)]
    for given, word in [("who", "such as label=tag"), ("model=who,model=x", "'model' twice"), ("x=who", "'x'")]:
        refused = run("combine", "export.csv", "--columns", given)
        assert refused.code == 2
        assert word in refused.err
