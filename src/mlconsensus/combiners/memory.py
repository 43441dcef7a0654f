"""The memory that a method needs in a large label space, checked before the work."""

from typing import TYPE_CHECKING

from ..errors import InputError
from ..execution.memory import available_memory
from ..linalg.head_tail_map import choose_head_size
from ..linalg.sparse_scores import KEPT
from ..predictions import Predictions
from ..text import sizes

if TYPE_CHECKING:
    from .base import BaseCombiner

# Bytes for each model and label, for each stored score, and for each of the best
# labels of an instance.
_BYTES_PER_VOTER = 250
_BYTES_PER_PAIR_OF_MODELS = 60
_BYTES_PER_SCORE = 60
_BYTES_PER_BEST_LABEL = 24
# Share of the available memory that may be used.
_USABLE = 0.8


def check_fits_memory(
    combiner: "BaseCombiner", predictions: Predictions
) -> Predictions:
    """Return predictions of a large label space in the form that a method can use.

    Parameters
    ----------
    combiner : BaseCombiner
        The method.
    predictions : Predictions
        Predictions of a large label space.

    Returns
    -------
    Predictions
        The same, or with blocks that contain all pairs if the method, gold labels or
        clusterings need these.

    Raises
    ------
    InputError
        If the memory is not sufficient.
    """
    is_sparse = (
        combiner.takes_many and predictions.gold is None and not predictions.clusters
    )
    needed = _estimate_memory(combiner, predictions, is_sparse)
    if needed >= _USABLE * available_memory():
        expected = "gold and clusterings to have fewer labels"
        if is_sparse:
            expected = "majority_vote or dawid_skene"
        size = f"{needed / 2**30:,.0f} GiB"
        raise InputError(
            where=combiner.identifier,
            found=f"{sizes(predictions.shape)}, which would take {size}",
            expected=expected,
        )

    if is_sparse:
        return predictions
    return predictions.as_block(False)


def _estimate_memory(
    combiner: "BaseCombiner", predictions: Predictions, is_sparse: bool
) -> int:
    """Return the number of bytes that a method needs."""
    n_models, n_instances, n_labels = (int(size) for size in predictions.shape)
    if not is_sparse:
        return 8 * n_labels * (n_instances + 3 * n_models * n_labels)

    bytes_per_voter = _BYTES_PER_VOTER
    if combiner.pairs_models:
        bytes_per_voter += _BYTES_PER_PAIR_OF_MODELS * n_models
    needed = bytes_per_voter * n_models * n_labels
    needed += _BYTES_PER_SCORE * predictions.n_stored
    needed += _BYTES_PER_BEST_LABEL * KEPT * n_instances

    if combiner.pairs_labels:
        # Products of the most frequent labels with all that are named.
        n_named = min(n_labels, predictions.n_stored)
        needed += choose_head_size(n_named) * n_named * max(20, 5 * n_models)
    return needed
