"""`ask`: combine what there is, and choose what a person should answer next."""

from typing import Any

import numpy as np

from .active_learning.query import Goal, QueryBatch, select_queries
from .consensus import combine
from .model_selection.comparison import find_inclusion_probabilities
from .predictions import CHANCE, Gold, ScoreTable


def ask(
    predictions: Any,
    budget: int,
    goal: Goal = "consensus",
    *,
    gold: Any = None,
    seed: int = 0,
) -> QueryBatch:
    """Choose which instances a person should answer next.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.
    budget
        How many instances to ask about.
    goal
        ``"consensus"``: for a better consensus; ``"figures"``: for figures with
        narrower intervals.
    gold
        Answers so far, as `combine` takes them; a table that `ask` wrote before, filled
        in, as it is.
    seed
        Instances are drawn by it.

    Returns
    -------
    QueryBatch
        ``at`` are the positions of the instances, ``table`` what to fill in.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> found = mlc.ask(panel, 50)
    >>> answers = found.table.scores.copy()
    >>> answers[:, 1:] = truth[found.at]  # the first column is the inclusion probability
    >>> from dataclasses import replace
    >>> mlc.combine(panel, gold=replace(found.table, scores=answers)).gold.shape
    (1000, 20)
    """
    found = combine(predictions, gold=gold)
    panel = found.predictions
    known = panel.gold or Gold(
        np.empty(0, dtype=np.int64), np.empty((0, panel.shape[2]))
    )
    answered = np.isin(np.arange(len(panel)), known.at)
    mixed = 0.0
    earlier = np.ones(len(known.at))
    if gold is None:
        given = None
    else:
        given = found.gold

    if (
        given is not None
        and (
            chance := find_inclusion_probabilities(gold, None, given, panel.instances)[
                0
            ]
        )
        is not None
    ):
        # Rounds are averaged: the first, for all instances, and the second, for those
        # that had no answer by then.
        mixed = len(known.at) / (len(known.at) + budget)
        earlier = np.minimum(1 / (mixed / chance[known.at] + 1 - mixed), 1.0)

    asked = select_queries(
        found.scores, found.probabilities, answered, budget, goal, seed
    )
    new = np.column_stack(
        [
            np.minimum(asked.chance / (1 - mixed), 1.0),
            np.full((len(asked.at), panel.shape[2]), np.nan),
        ]
    )
    cells = np.concatenate([new, np.column_stack([earlier, known.answers])])
    names = panel.instances[np.concatenate([asked.at, known.at])]
    return asked._replace(
        table=ScoreTable("questions", cells, names, (CHANCE, *panel.labels))
    )
