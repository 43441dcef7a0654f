"""Missing cells are counted in one walk over the data, however often somebody asks."""

import numpy as np

import mlconsensus as mlc
from mlconsensus.predictions.model_scores import AlignedScores


def test_missing_cells_are_counted_once(monkeypatch):
    scores = np.random.default_rng(0).random((3, 20, 4))
    scores[0, :5, 1] = np.nan
    panel = mlc.Predictions(scores)
    walked = []
    cells = AlignedScores.cells
    monkeypatch.setattr(
        AlignedScores, "cells", lambda self: walked.append(1) or cells(self)
    )
    assert [panel.n_missing, panel.n_missing] == [5, 5]
    assert "5 cells missing" in repr(panel)
    assert len(walked) == 3  # each model once
