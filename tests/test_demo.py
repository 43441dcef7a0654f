from pathlib import Path

import pytest

import mlconsensus as mlc
from mlconsensus.demo import run


def test_the_demo_writes_a_panel_that_can_be_read_again(tmp_path):
    text = run(tmp_path / "demo")
    names = ["ana", "bert", "carl", "dora", "emil"]
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [*(f"{n}.csv" for n in names), "truth.csv"]
    panel = mlc.read_predictions([tmp_path / "demo" / f"{name}.csv" for name in names])
    assert panel.models == tuple(names)
    assert panel.shape == (5, 2000, 22)
    assert panel.complete
    for method in ("BM", *mlc.COMBINERS):
        assert f"\n{method} " in text


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(mlc.InputError, match="found something there already"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_readme_shows_what_the_demo_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    assert f"```text\n{run('mlconsensus-demo')}\n```" in readme
