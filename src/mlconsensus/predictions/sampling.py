"""Samples of instances, and the labels that are named most."""

import numpy as np

from .predictions import Predictions
from .source import BasePredictions

MOST_CELLS = 2**24  # of larger predictions every second, third, … instance is used
_STRETCHES = 10  # of neighbouring instances that a sample is made of


def select_frequent_labels(
    source: Predictions, most: int = 500
) -> tuple[Predictions, str]:
    """Take of many labels as many as can be looked at, those that are named most, and say so.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, note = select_frequent_labels(mlc.Predictions([[[0, 1, 0]], [[0, 1, 1]]]).as_block(many=True), 2)
    >>> panel.labels, note
    (('label_1', 'label_2'), 'Of 3 labels, the 2 named most are looked at ...')
    """
    if not (isinstance(source, Predictions) and source.many):
        return source, ""

    named = np.sum([scores.sum(axis=0) for scores, _, _ in source.apart()], axis=0)
    frequent = np.sort(np.argsort(-named, kind="stable")[:most]).tolist()
    n_labels = len(source.labels)
    note = (
        f"Of {n_labels:,} labels, the {most:,} named most are looked at "
        "(--vocabulary and Predictions.select choose others)."
    )
    return source.select(labels=[source.labels[label] for label in frequent]), note


def subsample_for_diagnostics(source: BasePredictions) -> Predictions:
    """Take what diagnostics look at: all of it, instances at even distances, or a file's first block.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> len(subsample_for_diagnostics(mlc.Predictions(np.zeros((2, 1000, 3), dtype=bool))))
    1000
    """
    if not isinstance(source, Predictions):
        source = next(iter(source.blocks()))
        if not source.many:
            return source

    cells = sum(len(seen) for seen in source.seen()) * len(source.labels)
    if cells > MOST_CELLS:
        return source[:: -(-cells // MOST_CELLS)]
    return source
