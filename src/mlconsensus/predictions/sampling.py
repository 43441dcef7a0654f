"""Samples of instances, and the labels that are named most."""

import numpy as np

from .predictions import Predictions
from .source import BasePredictions

MOST_CELLS = 2**24  # of larger predictions every second, third, … instance is used
_STRETCHES = 10  # of neighbouring instances that a sample is made of


def select_frequent_labels(
    source: Predictions, most: int = 500
) -> tuple[Predictions, str]:
    """Restrict large label spaces to the labels that models name most often.

    Parameters
    ----------
    source : Predictions
        Predictions in memory. Others, and small label spaces, are returned unchanged.
    most : int, default=500
        Number of labels in the result.

    Returns
    -------
    predictions : Predictions
    note : str
        A sentence about the restriction; empty if there is none.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions = mlc.Predictions([[[0, 1, 0]], [[0, 1, 1]]])
    >>> large = predictions.as_block(many=True)
    >>> restricted, note = select_frequent_labels(large, 2)
    >>> restricted.labels, note
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
    """Return the instances from which diagnostics are computed.

    Parameters
    ----------
    source : BasePredictions
        Predictions in memory, in files or on a cluster.

    Returns
    -------
    Predictions
        All instances, those at even distances, or the first block of files.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions = mlc.Predictions(np.zeros((2, 1000, 3), dtype=bool))
    >>> len(subsample_for_diagnostics(predictions))
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
