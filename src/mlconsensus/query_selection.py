"""`ask`: combine predictions, and choose which instances a person should label next."""

from dataclasses import dataclass

import numpy as np

from .active_learning.query import Goal, QueryBatch, select_queries
from .combiners.base import PredictionsLike
from .consensus import Consensus, combine
from .model_selection.comparison import find_inclusion_probabilities
from .predictions import CHANCE, FloatArray, Gold, Predictions, ScoreTable
from .predictions.families import FamiliesLike


@dataclass(frozen=True, kw_only=True)
class QueryTable(QueryBatch):
    """Instances that a person should label next, with a table to fill in."""

    # These instances, without labels, and then those with gold labels. The first column
    # has their inclusion probabilities.
    table: ScoreTable


def ask(
    predictions: PredictionsLike,
    budget: int,
    goal: Goal = "consensus",
    *,
    gold: object = None,
    families: FamiliesLike = None,
    seed: int = 0,
) -> QueryTable:
    """Choose which instances a person should label next.

    Parameters
    ----------
    predictions : Predictions
        `Predictions`, or anything that its constructor accepts.
    budget : int
        Number of instances to choose.
    goal : {"consensus", "figures"}, default="consensus"
        ``"consensus"``: for a better consensus; ``"figures"``: for metrics with
        narrower intervals.
    gold : array-like of shape (n, l), DataFrame or ScoreTable, default=None
        Gold labels so far, as in `combine`. A table of an earlier call of `ask` can be
        used as it is, once it is filled in.
    families : None, "independent", "by-name" or mapping, default=None
        Families of related models, as in `combine`.
    seed : int, default=0
        Seed of the random draw.

    Returns
    -------
    QueryTable
        ``at`` has the positions of the instances, ``table`` is to be filled in.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> queries = mlc.ask(panel, 50)
    >>> labels = queries.table.scores.copy()
    >>> labels[:, 1:] = truth[queries.at]  # column 0 is the inclusion probability
    >>> from dataclasses import replace
    >>> mlc.combine(panel, gold=replace(queries.table, scores=labels)).gold.shape
    (1000, 20)
    """
    consensus = combine(predictions, gold=gold, families=families)
    panel = consensus.predictions
    n_labels = len(panel.labels)
    gold_labels = panel.gold
    if gold_labels is None:
        gold_labels = Gold(np.empty(0, dtype=np.int64), np.empty((0, n_labels)))

    # Draw from the instances without gold labels.
    has_gold = np.isin(np.arange(len(panel)), gold_labels.at)
    batch = select_queries(
        consensus.scores, consensus.probabilities, has_gold, budget, goal, seed=seed
    )

    # Calls are averaged: the earlier ones drew from all instances, this one from those
    # that had no gold labels by then.
    n_gold = len(gold_labels.at)
    earlier_share = 0.0
    gold_chance = np.ones(n_gold)
    earlier_chance = _find_earlier_chances(consensus, panel, gold)
    if earlier_chance is not None:
        earlier_share = n_gold / (n_gold + budget)
        weight = earlier_share / earlier_chance[gold_labels.at] + 1 - earlier_share
        gold_chance = np.minimum(1 / weight, 1.0)

    # The table: the new instances, then those with gold labels.
    new_chance = np.minimum(batch.chance / (1 - earlier_share), 1.0)
    no_labels = np.full((len(batch.at), n_labels), np.nan)
    new_rows = np.column_stack([new_chance, no_labels])
    gold_rows = np.column_stack([gold_chance, gold_labels.answers])
    table = ScoreTable(
        "questions",
        np.concatenate([new_rows, gold_rows]),
        panel.instances[np.concatenate([batch.at, gold_labels.at])],
        (CHANCE, *panel.labels),
    )
    return QueryTable(at=batch.at, chance=batch.chance, table=table)


def _find_earlier_chances(
    consensus: Consensus, panel: Predictions, gold: object
) -> FloatArray | None:
    """Return the inclusion probabilities (n,) of earlier calls, if gold has them."""
    if gold is None or consensus.gold is None:
        return None
    chances, _ = find_inclusion_probabilities(
        gold, None, consensus.gold, panel.instances
    )
    return chances
