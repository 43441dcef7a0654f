"""Support tickets, and the answers of six simulated LLM taggers.

``tools/make_demo_files.py`` makes the files: the texts are put together from sentences,
and no language model was asked.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ..io import read_predictions, read_table
from ..metrics.ground_truth import match_truth_table
from ..predictions import BoolArray, Predictions

FOLDER = Path(__file__).with_name("support-tickets")
ANSWERS = "answers.jsonl"
TICKETS = "tickets.csv"
TRUTH = "truth.jsonl"


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportTickets:
    """Support tickets with labels by six taggers.

    Attributes
    ----------
    predictions : Predictions
        The labels that each tagger gave; an answer in fifty is missing.
    truth : ndarray of shape (n, l) of bool
        The relevant labels.
    texts : tuple of str
        The text of each ticket (n).
    """

    predictions: Predictions
    truth: BoolArray
    texts: tuple[str, ...]


def load_support_tickets() -> SupportTickets:
    """Return 300 support tickets with the labels of six simulated LLM taggers.

    The taggers are three families: `aurora` is one model at two temperatures, `birch`
    two versions of one model, and `cobalt-mini` is the small model next to `cobalt`.

    Returns
    -------
    SupportTickets

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> tickets = mlc.datasets.load_support_tickets()
    >>> tickets.predictions.shape
    (6, 300, 12)
    >>> tickets.texts[3]
    'I want my money back. Please cancel our subscription.'
    """
    predictions = read_predictions(FOLDER / ANSWERS)
    matched = match_truth_table(
        read_table(FOLDER / TRUTH), predictions.instances, predictions.labels
    )
    texts = pl.read_csv(FOLDER / TICKETS)
    text_of_instance = dict(zip(texts["instance"], texts["text"], strict=True))
    return SupportTickets(
        predictions=predictions,
        truth=np.asarray(matched.truth, dtype=np.bool_),
        texts=tuple(text_of_instance[name] for name in predictions.instances),
    )
