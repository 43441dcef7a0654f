"""The instances with gold labels, collected from all blocks of predictions."""

from typing import NamedTuple

import numpy as np

from ..execution.local import reduce_blocks
from ..predictions import BasePredictions, Gold, Predictions, joined


class _GoldBlocks(NamedTuple):
    """Blocks of instances with gold labels; merging joins the tuples."""

    blocks: tuple[Predictions, ...]


def collect_gold_instances(predictions: BasePredictions) -> Predictions:
    """Return the instances with gold labels, in one pass over the blocks.

    Parameters
    ----------
    predictions : BasePredictions
        Predictions with gold labels of at least one instance.

    Returns
    -------
    Predictions
        In memory, with their gold labels.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> gold = [[np.nan, np.nan], [0, 1]]
    >>> collect_gold_instances(mlc.Predictions([[[1, 0], [1, 1]]]).with_gold(gold))
    <Predictions: 1 model × 1 instance × 2 labels>
    """
    blocks = reduce_blocks(predictions, _select_gold_instances).blocks
    gold_instances = joined(blocks)
    gold_labels = [block.gold.answers for block in blocks if block.gold]
    gold = Gold(np.arange(len(gold_instances)), np.concatenate(gold_labels))
    return gold_instances.with_gold_at(gold)


def _select_gold_instances(block: Predictions) -> _GoldBlocks:
    """Return the instances of a block that have gold labels."""
    gold = block.gold
    if gold is None:
        return _GoldBlocks(())
    return _GoldBlocks((block[gold.at],))
