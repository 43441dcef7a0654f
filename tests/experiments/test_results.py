"""The results that are in the repository: whole, as the command writes them, and as the page says."""

import json
from pathlib import Path

import pytest

from mlconsensus.evaluation.metrics import RANKING_METRICS, is_better
from mlconsensus.experiments import Settings, as_json, judge_claims
from mlconsensus.experiments.paper import tables
from mlconsensus.experiments.protocol import Figure, Results

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"


def read(path):
    found = json.loads(path.read_text())
    chosen = {name: found["settings"][name] for name in Settings._fields}
    rows = {name: found[name] for name in found if name in tables()}
    made = {
        name: {m: {metric: Figure(**figure) for metric, figure in row.items()} for m, row in table.items()}
        for name, table in rows.items()
    }
    return Results(Settings(**chosen), found["settings"]["instances"], made)


@pytest.fixture
def results():
    return read(FOLDER / "results.json")


def test_ten_repeats_of_all_six_with_svms(results):
    assert results.settings == Settings().checked()
    assert set(results.tables) == set(tables())
    for name, table in results.tables.items():
        assert {"BM", "MV", "BGCM", "MLCM-r", "MLCM-a"} <= set(table)
        for method, row in table.items():
            assert tuple(row) == RANKING_METRICS
            for metric, figure in row.items():
                assert 0 < figure.mean < 1
                assert 0 < figure.std < 0.02
                assert figure.paper == tables()[name].figure(method, metric)


@pytest.mark.parametrize("metric", RANKING_METRICS)
def test_majority_voting_is_ahead_of_the_base_models(results, metric):
    for table in results.tables.values():
        assert is_better(metric, table["MV"][metric].mean, table["BM"][metric].mean)


@pytest.mark.parametrize("metric", ["micro_auc", "ranking_loss"])
@pytest.mark.parametrize("method", ["MLCM-r", "MLCM-a"])
def test_both_algorithms_are_ahead_of_majority_voting(results, metric, method):
    for table in results.tables.values():
        assert is_better(metric, table[method][metric].mean, table["MV"][metric].mean)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_files_are_what_the_command_wrote(path):
    assert as_json(read(path)) == path.read_text()


def test_the_page_tells_the_verdicts(results):
    page = (FOLDER / "tables.md").read_text()
    for judged in judge_claims(results):
        assert f"| {judged.claim} | {judged.verdict} | {judged.ours} |" in page
