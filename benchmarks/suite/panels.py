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
# Related models: range of hit rates of the first family and of the others, the rate of
# false alarms, and the share of pairs on which a member votes for itself.
HIT_RATES = ((0.55, 0.65), (0.7, 0.9))
FALSE_ALARM_RATE = 0.005
OWN_VOTES = 0.15
_AT_ONCE = 20_000


def load(shape, kind="independent"):
    """Return votes, bool (m, n, l), and truth, bool (n, l); made on first use and kept."""
    paths = files(shape, kind)
    if not all(path.exists() for path in paths):
        DATA.mkdir(exist_ok=True)
        for path, array in zip(paths, MAKERS[kind](*shape), strict=True):
            part = path.with_suffix(".part.npy")
            np.save(part, array)
            part.rename(path)
    votes, truth = (np.load(path) for path in paths)
    return votes, truth


def files(shape, kind="independent"):
    name = "x".join(map(str, shape))
    if kind != "independent":
        name = f"{name}-{kind}"
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


def make_related(m, n, l, seed=0):
    """Return votes of models in families, and the truth.

    The first model of a family finds labels with its own rates. Each other member
    repeats it, except for a share of the pairs on which it votes for itself. The first
    family has half of the models and is the worst.
    """
    rng = np.random.default_rng(seed)
    frequency = 1 / (rng.permutation(l) + 1 + l / 20)
    truth = rng.random((n, l)) < FILL * l * frequency / frequency.sum()
    family = np.maximum(np.arange(m) - m // 2, -1) // 2
    votes = np.empty((m, n, l), dtype=bool)
    for number in np.unique(family):
        hit_rate = rng.uniform(*HIT_RATES[int(number >= 0)])
        members = np.flatnonzero(family == number)
        votes[members[0]] = _vote(rng, truth, hit_rate)
        for member in members[1:]:
            is_own = rng.random((n, l), dtype=np.float32) < OWN_VOTES
            own_votes = _vote(rng, truth, hit_rate)
            votes[member] = np.where(is_own, own_votes, votes[members[0]])
    return votes, truth


def _vote(rng, truth, hit_rate):
    """Return one model's votes, bool (n, l)."""
    chance = rng.random(truth.shape, dtype=np.float32)
    return np.where(truth, chance < hit_rate, chance < FALSE_ALARM_RATE)


MAKERS = {"independent": make, "related": make_related}


def as_form(votes, form):
    """Turn votes to what users may have instead: ``"bool"``, ``"float32"`` or ``"csr"``."""
    if form == "csr":
        return [sparse.csr_array(matrix) for matrix in votes]
    return votes.astype(form, copy=False)
