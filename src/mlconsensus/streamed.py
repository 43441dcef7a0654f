"""`write_consensus`: combine predictions that are not in memory, block by block."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from .combiners.base import BaseCombiner
from .combiners.registry import Method, describe_choice, make_combiner
from .linalg.sparse_scores import SparseScores
from .predictions import Array, BasePredictions, FloatArray, Predictions
from .predictions.families import FamiliesLike
from .predictions.validation import Weights

if TYPE_CHECKING:
    from .io.layouts import Layout
    from .io.write import ClusterBlocks, LocalBlocks

# Turns the scores of a block and its predictions into the values to be written.
ValueFunction = Callable[[FloatArray | SparseScores, Predictions], Array]


@dataclass(frozen=True, kw_only=True)
class Written:
    """The combiner that made a consensus that was written to a file."""

    method: str  # its name
    reason: str  # why this method was used
    combiner: BaseCombiner  # fitted
    n_missing: int  # missing predictions


def write_consensus(
    panel: BasePredictions,
    path: str | os.PathLike[str],
    *,
    method: Method = None,
    families: FamiliesLike = None,
    weights: Weights = None,
    format: str | None = None,
    layout: "Layout" = "wide",
    values: ValueFunction | None = None,
    force: bool = False,
    solved: bool = False,
) -> Written:
    r"""Combine predictions that are not in memory, and write the consensus to a file.

    Predictions are read, combined and written block by block.

    Parameters
    ----------
    panel : BasePredictions
        Result of `scan_predictions` or `from_dask`.
    path : str or path-like
        The output: Parquet, CSV or TSV. It appears only when it is complete. Workers of
        Dask write Parquet as a folder.
    method, families, weights
        As in `combine`.
    format : str, default=None
        Format of the output, if its suffix is not that of the format.
    layout : {"wide", "long", "ranked"}, default="wide"
        As in `io.write_table`.
    values : callable, default=None
        Called with the scores of a block (n, l) and its predictions; returns the values
        to be written. By default these are the scores.
    force : bool, default=False
        Whether to replace a file that exists.
    solved : bool, default=False
        Whether `method` is a combiner that was fitted or loaded before, and is only
        applied.

    Returns
    -------
    Written
        The method, the reason for it, the fitted combiner, and the number of missing
        predictions.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,0,1\n")
    >>> panel = mlc.scan_predictions(folder / "ann.csv")
    >>> mlc.write_consensus(panel, folder / "consensus.csv", method="mv").method
    'majority_vote'
    >>> print((folder / "consensus.csv").read_text(), end="")
    instance,law,war
    7,1.0,0.0
    8,0.0,1.0
    """
    from .io.files import check_output
    from .io.write import streamed_format, write_blocks

    # Check the output before the work, not after it.
    streamed_format(path, format)
    check_output(path, force)

    combiner = make_combiner(method, families, weights)
    if solved:
        panel = combiner.in_fitted_order(panel)
    else:
        combiner.fit(panel)

    compute = partial(_compute_values, combiner.applying(), values)
    blocks = cast("LocalBlocks | ClusterBlocks", panel)
    n_missing = write_blocks(
        path, blocks, compute, format=format, layout=layout, force=force
    )
    return Written(
        method=combiner.identifier,
        reason=describe_choice(combiner, is_default=method is None),
        combiner=combiner,
        n_missing=n_missing,
    )


def _compute_values(
    apply: Callable[[Predictions], FloatArray | SparseScores],
    values: ValueFunction | None,
    block: Predictions,
) -> Array:
    """Return the values of a block that are written."""
    scores = apply(block)
    if values is not None:
        return values(scores, block)
    if isinstance(scores, SparseScores):
        return scores.cells()
    return scores
