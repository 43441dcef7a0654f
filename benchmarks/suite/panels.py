"""Panels to measure on: votes of models of different quality on labels that go together, 2.5 % filled, and the truth.

The model is that of `mlconsensus.datasets.make_panel`, made a block of instances at a
time so that large panels fit.
"""

from pathlib import Path

import numpy as np
from scipy import sparse, special

DATA = Path(__file__).parents[1] / ".data"
FILL = 0.025
CORRELATION = 0.8
SHARED_ERRORS = 0.5
# quality of the models
WORST = 0.4
BEST = 0.8
_AT_ONCE = 20_000


def load(shape):
    """Return votes, bool (m, n, l), and truth, bool (n, l); made on first use and kept."""
    paths = files(shape)
    if not all(path.exists() for path in paths):
        DATA.mkdir(exist_ok=True)
        for path, array in zip(paths, make(*shape), strict=True):
            part = path.with_suffix(".part.npy")
            np.save(part, array)
            part.rename(path)
    votes, truth = (np.load(path) for path in paths)
    return votes, truth


def files(shape):
    name = "x".join(map(str, shape))
    return DATA / f"{name}-votes.npy", DATA / f"{name}-truth.npy"


def make(m, n, l, seed=0):
    rng = np.random.default_rng(seed)
    n_topics = max(1, round(np.sqrt(l)))
    weights = rng.standard_normal((n_topics, l), dtype=np.float32) ** 3
    weights *= np.sqrt(CORRELATION) / np.linalg.norm(weights, axis=0)
    frequency = 1 / (rng.permutation(l) + 1 + l / 20)
    threshold = special.ndtri(1 - frequency * FILL / frequency.mean()).astype(
        np.float32
    )
    votes = np.empty((m, n, l), dtype=bool)
    truth = np.empty((n, l), dtype=bool)
    for first in range(0, n, _AT_ONCE):
        rows = slice(first, min(first + _AT_ONCE, n))
        size = (rows.stop - first, l)
        relevance = rng.standard_normal((size[0], n_topics), dtype=np.float32) @ weights
        relevance += np.sqrt(1 - CORRELATION, dtype=np.float32) * rng.standard_normal(
            size, dtype=np.float32
        )
        truth[rows] = relevance >= threshold
        in_common = np.sqrt(SHARED_ERRORS, dtype=np.float32) * rng.standard_normal(
            size, dtype=np.float32
        )
        for k, quality in enumerate(np.linspace(WORST, BEST, m, dtype=np.float32)):
            own = np.sqrt(1 - SHARED_ERRORS, dtype=np.float32) * rng.standard_normal(
                size, dtype=np.float32
            )
            votes[k, rows] = (
                np.sqrt(quality) * relevance + np.sqrt(1 - quality) * (in_common + own)
                >= threshold
            )
    return votes, truth


def as_form(votes, form):
    """Turn votes to what users may have instead: ``"bool"``, ``"float32"`` or ``"csr"``."""
    if form == "csr":
        return [sparse.csr_array(matrix) for matrix in votes]
    return votes.astype(form, copy=False)
