"""The instances of which answers are known, brought together from wherever a panel is."""

from typing import NamedTuple

import numpy as np

from ..execution.local import reduce_blocks
from ..predictions import BasePredictions, Gold, Predictions, joined


class _Known(NamedTuple):
    blocks: tuple[Predictions, ...]


def collect_gold_instances(panel: BasePredictions) -> Predictions:
    """Return the instances of which answers are known, in one pass; there must be some.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> collect_gold_instances(mlc.Predictions([[[1, 0], [1, 1]]]).with_gold([[np.nan, np.nan], [0, 1]]))
    <Predictions: 1 model × 1 instance × 2 labels>
    """
    blocks = reduce_blocks(panel, _of_block).blocks
    whole = joined(blocks)
    answers = [block.gold.answers for block in blocks if block.gold]
    return whole.with_gold_at(Gold(np.arange(len(whole)), np.concatenate(answers)))


def _of_block(block: Predictions) -> _Known:
    return _Known(() if (gold := block.gold) is None else (block[gold.at],))
