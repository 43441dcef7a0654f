"""`write_consensus`: combine predictions that are not in memory, block by block."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .choosing import Method, Optimize, choose, describe_choice
from .combiners.base import BaseCombiner
from .linalg.sparse_scores import SparseScores
from .predictions import Array, FloatArray, Predictions
from .predictions.validation import Weights


class Written(NamedTuple):
    """What `write_consensus` did."""

    method: str
    reason: str  # why that method
    combiner: BaseCombiner  # fitted
    n_missing: int  # of all predictions


def write_consensus(
    panel: Any,
    path: str | os.PathLike[str],
    optimize: Optimize = "auto",
    *,
    method: Method = None,
    weights: Weights = None,
    format: str | None = None,
    layout: Any = "wide",
    values: Callable[[FloatArray, Predictions], Array] | None = None,
    force: bool = False,
    solved: bool = False,
) -> Written:
    r"""Combine predictions that are not in memory and write the consensus to a file, block by block.

    Parameters
    ----------
    panel
        What `scan_predictions` or `from_dask` gives.
    path
        Where to write: Parquet, CSV or TSV. It appears when it is whole. Dask's workers
        write Parquet as a folder.
    optimize, method, weights
        As in `combine`.
    format
        The format, where the suffix does not tell.
    layout
        As in `io.write_table`.
    values
        Turns the scores of a block into what is to be written; by default the scores
        themselves.
    force
        Whether to replace a file that exists.
    solved
        Whether `method` is a combiner that was fitted or loaded before, and is only to
        be applied.

    Returns
    -------
    Written
        ``(method, reason, combiner, n_missing)``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ann.csv").write_text("id,law,war\n7,1,0\n8,0,1\n")
    >>> panel = mlc.scan_predictions(folder / "ann.csv")
    >>> mlc.write_consensus(panel, folder / "consensus.csv", method="mv").method
    'MV'
    >>> print((folder / "consensus.csv").read_text(), end="")
    instance,law,war
    7,1.0,0.0
    8,0.0,1.0
    """
    from .io.files import check_output
    from .io.write import streamed_format, write_blocks

    streamed_format(path, format)  # before the work, not after
    check_output(path, force)
    combiner, reason, fitted = choose(panel, optimize, method, weights)
    if solved:
        panel = combiner.in_fitted_order(panel)
    if not solved:
        combiner.fit(fitted)

    made = partial(_written, combiner.applying(), values)
    missing = write_blocks(path, panel, made, format=format, layout=layout, force=force)
    return Written(combiner.name, describe_choice(reason, combiner), combiner, missing)


def _written(apply: Any, values: Any, block: Predictions) -> Any:
    scores = apply(block)
    if values is None:
        if isinstance(scores, SparseScores):
            return scores.cells()
        return scores

    return values(scores, block)
