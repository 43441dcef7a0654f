"""The tables of docs/quality.md are those that the committed results give."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def quality():
    spec = importlib.util.spec_from_file_location("quality_tables", DOCS / "quality" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_what_the_results_give(quality):
    page = (DOCS / "quality.md").read_text()
    for name, table in quality.tables().items():
        assert f"<!-- {name} -->\n{table}\n<!-- end {name} -->" in page


def test_all_data_sets_and_enough_repeats(quality):
    for kind in quality.KINDS:
        cells = quality.cells(kind)
        assert len(cells) == 24
        for cell in cells:
            rcv1 = cell.dataset.startswith("rcv1")
            least = {"svm": 10, "trees": 1 if rcv1 else 5}.get(kind, 3 if rcv1 else 5)
            assert {len(runs) for runs in cell.runs.values()} == {least}


def test_differences_are_signed_so_that_better_is_positive(quality):
    cell = quality.Cell("toy", "ranking_loss", {"Filter": -np.array([0.1, 0.2]), "MV": -np.array([0.3, 0.3])})
    apart, p = cell.difference("MV")
    assert apart == pytest.approx(0.15)
    assert 0 < p < 1
    assert cell.rival() == "MV"
