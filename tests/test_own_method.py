"""A method is one file and one line: a small one is added and used."""

import importlib.util
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import mlconsensus as mlc
from mlconsensus.combiners.registry import unregister

TOY = '''
"""A small method: votes times the frequency of a label."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from mlconsensus.combiners.base import BaseCombiner
from mlconsensus.combiners.contributions import Contributions, of_label
from mlconsensus.execution.statistics import Axes
from mlconsensus.predictions import FloatArray


@dataclass(frozen=True, kw_only=True)
class ToyStatistics:
    """Sums over instances."""

    score_sum: Annotated[FloatArray, Axes("l", least=0)]
    n_instances: Annotated[float, Axes("", least=0)]


@dataclass(frozen=True, kw_only=True)
class ToySolution:
    """The factor of each label."""

    rate: Annotated[FloatArray, Axes("l")]


class ToyMethod(BaseCombiner):
    """Votes times the frequency of the label.

    Parameters
    ----------
    boost : float, default=1.0
        A factor.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.
    """

    Statistics = ToyStatistics
    Solution = ToySolution
    identifier = "toy"
    name = "Toy"

    def __init__(self, boost=1.0, weights=None):
        self.boost = boost
        self.weights = weights

    def _compute_statistics(self, block):
        return ToyStatistics(
            score_sum=block.sum_scores().sum_over_instances(),
            n_instances=block.n_instances,
        )

    def _solve(self, statistics):
        mean = statistics.score_sum / statistics.n_instances
        return ToySolution(rate=self.boost * mean)

    @staticmethod
    def _apply(block, solution):
        return block.sum_scores().map(np.multiply, solution.rate).to_array()

    @staticmethod
    def _contributions(block, solution, label):
        scores, _ = block.get_instance(0)
        values = scores[:, label] * solution.rate[label]
        return Contributions(
            baseline=0.0, predictions=of_label(values, label, scores.shape)
        )
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    path = tmp_path / "toy_method.py"
    path.write_text(TOY)
    spec = importlib.util.spec_from_file_location("toy_method", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "toy_method", module)
    spec.loader.exec_module(module)
    kind = mlc.register(module.ToyMethod)
    yield kind
    unregister(kind.identifier)


@pytest.fixture
def files(tmp_path):
    panel, truth = mlc.datasets.make_panel(60, 5, 3, random_state=0)
    names = []
    for model, scores in zip(panel.models, panel.to_array(), strict=True):
        names.append(str(tmp_path / f"{model}.csv"))
        rows = "\n".join(
            f"i{i}," + ",".join(str(int(x)) for x in row)
            for i, row in enumerate(scores)
        )
        (tmp_path / f"{model}.csv").write_text(
            "id," + ",".join(panel.labels) + "\n" + rows + "\n"
        )
    rows = "\n".join(
        f"i{i}," + ",".join(str(int(x)) for x in row) for i, row in enumerate(truth)
    )
    (tmp_path / "truth.csv").write_text(
        "id," + ",".join(panel.labels) + "\n" + rows + "\n"
    )
    return tmp_path, names, panel


def run(*arguments):
    from mlconsensus.cli.main import cli

    ran = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert ran.exit_code == 0, ran.output + repr(ran.exception)
    return ran.output


def test_in_python(toy, files):
    _, _, panel = files
    votes = np.nansum(panel.to_array(), axis=0)
    expected = votes * votes.sum(axis=0) / len(panel)
    np.testing.assert_allclose(toy().fit_transform(panel), expected)
    result = mlc.combine(panel, method="toy")
    np.testing.assert_allclose(result.scores, expected)
    assert result.method == "toy"
    np.testing.assert_allclose(toy(boost=2.0).fit_transform(panel), 2 * expected)


def test_every_command_knows_it(toy, files):
    folder, names, panel = files
    expected = toy().fit_transform(panel)
    run("combine", *names, "--method", "toy", "--output", folder / "consensus.csv")
    written = np.loadtxt(
        folder / "consensus.csv", delimiter=",", skiprows=1, usecols=range(1, 6)
    )
    np.testing.assert_allclose(written, expected)
    compared = json.loads(
        run("compare", *names, "--truth", folder / "truth.csv", "--json")
    )
    assert "Toy" in json.dumps(compared)
    explained = run("explain", *names, "--method", "toy", "--instance", "i3", "--json")
    assert "toy" in explained
    run("report", *names, "--method", "toy", "--output", folder / "report.html")
    assert "toy" in (folder / "report.html").read_text()
    run("statistics", *names, "--method", "toy", "--output", folder / "a.stats")
    run("solve", folder / "a.stats", "--output", folder / "a.model")
    run("apply", folder / "a.model", *names, "--output", folder / "applied.csv")
    assert (folder / "applied.csv").read_text() == (
        folder / "consensus.csv"
    ).read_text()
    helped = run("combine", "--help")
    assert "toy" in helped
