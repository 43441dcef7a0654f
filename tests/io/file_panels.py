"""A small panel with all that files must carry: gaps, odd names, models that know different things."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from mlconsensus.predictions.score_tables import ScoreTable

LABELS = ["sports", "law, order", 'the "arts"', "énergie", "war"]


def scored_panel() -> list[ScoreTable]:
    """Three models with float scores, single missing cells, and their own instances and labels."""
    rng = np.random.default_rng(7)
    tables = []
    for k, (n, labels) in enumerate([(12, LABELS), (10, LABELS[1:]), (11, LABELS[:4])]):
        scores = rng.random((n, len(labels)))
        scores[rng.random(scores.shape) < 0.1] = np.nan
        scores[0, 0], scores[1, 1], scores[2, 0] = 0.0, 1.0, 5e-324
        ids = [f"{position + k:03d}" for position in range(n)]
        tables.append(ScoreTable(f"tagger{k}", scores, ids, labels))
    return tables


def voted_panel(dtype: type[np.generic] = np.bool_) -> list[ScoreTable]:
    """Three models of yes and no; each uses every label that it knows."""
    rng = np.random.default_rng(8)
    tables = []
    for k in range(3):
        votes = rng.random((12, 5)) < 0.4
        votes[5] = False
        votes[0] = True
        tables.append(
            ScoreTable(
                f"tagger{k}",
                votes.astype(dtype),
                [f"{position:03d}" for position in range(12)],
                LABELS,
            )
        )
    return tables


def as_sparse(tables: list[ScoreTable]) -> list[ScoreTable]:
    return [replace(table, scores=sparse.csr_array(table.scores)) for table in tables]
