import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from mlconsensus.datasets import Dataset
from mlconsensus.experiments.base_models import base_predictions
from mlconsensus.experiments.settings import Settings

pytest_plugins = ["shared_data"]

SMALL = Settings("trees", repeats=2, models=2, folds=3).checked()


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return Dataset(
        "toy",
        sparse.csr_array(rng.random((30, 8)) < 0.4, dtype=float),
        sparse.csr_array(rng.random((30, 20)) < 0.3),
        (),
        (),
    )


def made(data, settings, folder, **options):
    return np.stack(list(base_predictions(data, settings, folder, 1, **options)))


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}


@pytest.mark.parametrize("learner", ["svm", "trees", "labelsets"])
def test_the_same_settings_give_the_same_predictions(data, tmp_path, learner):
    settings = SMALL._replace(learner=learner)
    first = made(data, settings, tmp_path / "a")
    assert first.shape == (2, 2, 30, 20)
    np.testing.assert_array_equal(first, made(data, settings, tmp_path / "b"))
    assert len({model.tobytes() for repeat in first for model in repeat}) == 4  # each from a shuffle of its own


def test_what_is_there_is_not_made_again(data, tmp_path):
    made(data, SMALL, tmp_path)
    before = stamps(tmp_path)
    assert len(before) == 8  # 2 repeats × 2 models × 2 parts of the labels
    made(data, SMALL._replace(repeats=3), tmp_path)
    after = stamps(tmp_path)
    assert len(after) == 12
    assert before.items() <= after.items()


@pytest.mark.parametrize("change", [{"seed": 1}, {"folds": 4}, {"learner": "logistic"}])
def test_other_settings_are_other_files(data, tmp_path, change):
    made(data, SMALL, tmp_path)
    before = stamps(tmp_path)
    made(data, SMALL._replace(**change), tmp_path)
    assert len(stamps(tmp_path)) == 2 * len(before)


def test_other_data_of_the_same_name_are_other_files(data, tmp_path):
    first = made(data, SMALL, tmp_path)
    other = data._replace(labels=data.labels[::-1])
    assert not np.array_equal(first, made(other, SMALL, tmp_path))


@pytest.mark.parametrize("learner", ["svm", "trees"])
def test_a_damaged_file_is_noticed_and_made_anew(data, tmp_path, learner):
    settings = SMALL._replace(learner=learner)
    known = made(data, settings, tmp_path)
    path = sorted(tmp_path.rglob("*.npz"))[1]
    good = path.read_bytes()
    path.write_bytes(good[:-40])
    said = []
    np.testing.assert_array_equal(made(data, settings, tmp_path, say=said.append), known)
    assert said == [f"{path}: found a damaged file of the cache; it is made anew"]
    assert made(data, settings, tmp_path, say=said.append) is not None
    assert len(said) == 1


def test_processes_give_what_one_process_gives(data, tmp_path):
    known = made(data, SMALL, tmp_path / "one")
    several = np.stack(list(base_predictions(data, SMALL, tmp_path / "two", 2)))
    np.testing.assert_array_equal(known, several)


KILLED = """
import sys
from pathlib import Path
from mlconsensus.datasets import load
from mlconsensus.experiments.base_models import base_predictions
from mlconsensus.experiments.settings import Settings
settings = Settings("logistic", repeats=1, models=4, folds=3).checked()
for _ in base_predictions(load("medical"), settings, Path(sys.argv[1]), 1):
    pass
"""


@pytest.mark.slow
def test_killed_and_resumed(data_folder, tmp_path):
    """`kill -9` in the middle, then to the end: the same files as without, and none of them made twice."""
    run = [sys.executable, "-c", KILLED]
    process = subprocess.Popen([*run, str(tmp_path / "killed")])
    while len(stamps(tmp_path / "killed")) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = stamps(tmp_path / "killed")
    assert len(before) < 12
    subprocess.run([*run, str(tmp_path / "killed")], check=True)
    subprocess.run([*run, str(tmp_path / "whole")], check=True)
    assert before.items() <= stamps(tmp_path / "killed").items()
    content = [
        {path.name: path.read_bytes() for path in (tmp_path / kind).rglob("*.npz")} for kind in ("killed", "whole")
    ]
    assert content[0].keys() == content[1].keys()
    for name in content[0]:
        assert np.array_equal(*(np.load(next((tmp_path / kind).rglob(name)))["bits"] for kind in ("killed", "whole")))
