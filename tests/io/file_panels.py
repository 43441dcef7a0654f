"""Small panels for files: gaps, odd names, and models with different labels."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from mlconsensus.predictions.score_tables import ScoreTable

LABELS = ["sports", "law, order", 'the "arts"', "énergie", "war"]


def scored_panel() -> list[ScoreTable]:
    """Return three models with float scores, gaps, and different names."""
    rng = np.random.default_rng(7)
    tables = []
    sizes = [(12, LABELS), (10, LABELS[1:]), (11, LABELS[:4])]
    for k, (n_instances, labels) in enumerate(sizes):
        scores = rng.random((n_instances, len(labels)))
        scores[rng.random(scores.shape) < 0.1] = np.nan
        scores[0, 0] = 0.0
        scores[1, 1] = 1.0
        scores[2, 0] = 5e-324  # the smallest number above 0
        names = [f"{position + k:03d}" for position in range(n_instances)]
        tables.append(ScoreTable(f"tagger{k}", scores, names, labels))

    return tables


def voted_panel(dtype: type[np.generic] = np.bool_) -> list[ScoreTable]:
    """Return three models with label sets; each model predicts every label."""
    rng = np.random.default_rng(8)
    names = [f"{position:03d}" for position in range(12)]
    tables = []
    for k in range(3):
        votes = rng.random((12, 5)) < 0.4
        votes[5] = False
        votes[0] = True
        tables.append(ScoreTable(f"tagger{k}", votes.astype(dtype), names, LABELS))

    return tables


def as_sparse(tables: list[ScoreTable]) -> list[ScoreTable]:
    """Return the same tables with sparse scores."""
    return [replace(table, scores=sparse.csr_array(table.scores)) for table in tables]
