"""Options of the commands that write a consensus, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import mlconsensus as mlc

from ..errors import InputError
from . import library
from .options import (
    CombineSettings,
    force_option,
    format_option,
    json_option,
    option_group,
    output_option,
    print_done,
    print_missing,
)

if TYPE_CHECKING:
    from ..combiners.base import BaseCombiner
    from ..consensus import Consensus
    from ..decision.label_sets import Empty
    from ..io.layouts import Layout
    from ..linalg.sparse_scores import Cells, SparseScores
    from ..predictions import FloatArray, Matrix
    from ..predictions.source import BasePredictions
    from ..streamed import Written

_OUTPUT = (
    "Where to write the consensus; - for standard output, as CSV unless "
    "--output-format says else."
)
_DECIDE = (
    "Write label sets (0/1) instead of scores: as many labels for each instance as the "
    "models gave on average; those of the highest F1 to be expected; or all scores of "
    "at least --threshold."
)
_EMPTY = "With --decide: leave an instance without labels, or give it the top one."
_LAYOUT = (
    "One column a label; one row a score; or one row a score from best to worst, with "
    "its rank."
)
_DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Values of `output_options`."""

    output: str  # "-": standard output
    output_format: str | None
    decide: str | None  # None: scores are written
    threshold: float | None
    empty: Empty
    top_k: int | None
    layout: Layout
    force: bool
    as_json: bool

    @property
    def format(self) -> str | None:
        """The format to write; None: it follows from the suffix."""
        if self.output == "-" and self.output_format is None:
            return "csv"
        return self.output_format

    def check(self) -> None:
        """Check options that depend on each other."""
        if self.as_json and self.output == "-":
            raise InputError(
                where="--json",
                found="no --output",
                expected="a file for the consensus, as JSON goes to standard output",
            )
        if self.threshold is not None and self.decide != "threshold":
            raise InputError(
                where="--threshold", found="no --decide threshold", expected="both"
            )
        if self.empty != "keep" and self.decide is None:
            raise InputError(where="--empty", found="no --decide", expected="both")

        output_format = mlc.io.format_of(self.output, self.format, written=True)
        library.check_layout(output_format, self.layout)

    def check_streaming(self, *in_memory: str) -> None:
        """Check that the consensus can be written block by block.

        Parameters
        ----------
        *in_memory : str
            Other options of the command that need all predictions in memory.
        """
        library.streamed_format(self.output, self.format)
        options = list(in_memory)
        if self.decide == "f1":  # it depends on all instances
            options.insert(0, "--decide f1")

        if options:
            raise InputError(
                where=options[0],
                found="with a panel to be streamed",
                expected="one that fits into memory",
            )

    def check_size(self, predictions: BasePredictions) -> None:
        """Check that a wide table of a large label space fits into memory."""
        _, n, l = predictions.shape
        if not predictions.many or self.layout != "wide":
            return
        if 16 * n * l >= library.available_memory() / 2:
            raise InputError(
                where="--layout wide",
                found=f"{n:,} × {l:,} scores",
                expected="--layout ranked or long, for example with --top-k 10",
            )

    def select_values(
        self,
        scores: FloatArray | SparseScores,
        predictions: BasePredictions,
        decide_f1: Callable[..., Matrix] | None = None,
    ) -> Matrix:
        """Return the values to write: scores or label sets.

        Parameters
        ----------
        scores : ndarray or SparseScores of shape (n, l)
            The consensus scores.
        predictions : Predictions
            The predictions that were combined.
        decide_f1 : callable, default=None
            Returns the label sets of the highest expected F1, for ``--decide f1``.

        Returns
        -------
        ndarray, sparse matrix or Cells of shape (n, l)
        """
        import numpy as np

        if self.decide == "instances":
            most = self.top_k or len(predictions.labels)
            counts = np.minimum(mlc.decision.cardinalities(predictions), most)
            return mlc.decision.match_instances(scores, counts, empty=self.empty)

        if self.decide is None:
            if isinstance(scores, library.SparseScores):
                return self._select_sparse_scores(scores)
            return self._select_scores(scores)

        # Label sets, by expected F1 or by the threshold.
        if decide_f1 is not None:
            label_sets = decide_f1(empty=self.empty)
        else:
            threshold = self.threshold
            if threshold is None:
                threshold = _DEFAULT_THRESHOLD
            label_sets = mlc.decision.threshold(scores, threshold, empty=self.empty)

        if self.top_k is None:
            return label_sets
        if isinstance(scores, library.SparseScores):
            counts = np.diff(label_sets.indptr).clip(max=self.top_k)
            return mlc.decision.match_instances(scores, counts)
        return label_sets & mlc.decision.top_k(scores, self.top_k)

    def _select_sparse_scores(self, scores: SparseScores) -> Cells:
        """Return the stored scores, or the `top_k` of each instance."""
        import numpy as np

        if self.top_k is None:
            return scores.cells()
        return scores.cells(np.full(len(scores), self.top_k))

    def _select_scores(self, scores: FloatArray) -> FloatArray | Cells:
        """Return the scores, or the `top_k` of each instance."""
        import numpy as np

        if self.top_k is None:
            return scores

        is_top = mlc.decision.top_k(scores, self.top_k)
        if self.layout != "long":
            return np.where(is_top, scores, np.nan)

        # A long table has rows for the selected scores only.
        columns = np.nonzero(is_top)[1]
        row_starts = np.append(0, np.cumsum(is_top.sum(axis=1)))
        return library.Cells((scores[is_top], columns, row_starts), shape=is_top.shape)

    def combine(
        self, predictions: BasePredictions, settings: CombineSettings
    ) -> Written:
        """Combine predictions, and write the consensus.

        Parameters
        ----------
        predictions : Predictions
            In memory or on disk.
        settings : dict
            Keyword arguments of `mlc.combine`.

        Returns
        -------
        Written
        """
        self.check_size(predictions)
        if isinstance(predictions, mlc.Predictions):
            return self._write(mlc.combine(predictions, **settings), predictions)

        written = mlc.write_consensus(
            predictions,
            self.output,
            values=self._get_value_function(),
            format=self.format,
            layout=self.layout,
            force=self.force,
            **settings,
        )
        print_missing(written.n_missing, predictions.shape)
        return written

    def apply(self, predictions: BasePredictions, combiner: BaseCombiner) -> Written:
        """Apply a fitted combiner, and write the consensus.

        Parameters
        ----------
        predictions : Predictions
            In memory or on disk.
        combiner : BaseCombiner
            For example loaded from a file.

        Returns
        -------
        Written
        """
        self.check_size(predictions)
        if isinstance(predictions, mlc.Predictions):
            consensus = library.Consensus(
                combiner.transform(predictions),
                combiner.identifier,
                combiner,
                predictions.instances,
                predictions.labels,
                # The combiner has learned from the gold labels already.
                predictions.with_gold(None),
            )
            return self._write(consensus, predictions)

        written = mlc.write_consensus(
            predictions,
            self.output,
            method=combiner,
            values=self._get_value_function(),
            format=self.format,
            layout=self.layout,
            force=self.force,
            solved=True,
        )
        print_missing(written.n_missing, predictions.shape)
        return written

    def _get_value_function(self) -> Callable[..., Matrix] | None:
        """Return the function that selects a block's values; None: all scores."""
        if self.decide is None and self.top_k is None:
            return None
        return self.select_values

    def _write(self, consensus: Consensus, predictions: mlc.Predictions) -> Written:
        """Write a consensus that is in memory."""
        decide_f1 = None
        if self.decide == "f1":
            decide_f1 = consensus.make_label_indicator

        values = self.select_values(consensus.scores, predictions, decide_f1)
        table = library.ScoreTable(
            consensus.method, values, consensus.instances, consensus.labels
        )
        mlc.io.write_table(
            self.output,
            table,
            format=self.format,
            layout=self.layout,
            force=self.force,
        )
        return library.Written(
            method=consensus.method,
            reason=consensus.reason,
            combiner=consensus.combiner,
            n_missing=predictions.n_missing,
        )

    def print_done(
        self, line: str, predictions: BasePredictions, **facts: object
    ) -> None:
        """Print what was done, as one line or as JSON."""
        _, n, l = predictions.shape
        if self.output != "-":
            line = f"{line} → {self.output}"

        facts = {"models": predictions.models, "instances": n, "labels": l} | facts
        print_done(self.as_json, line, **facts, output=self.output)


done_option = json_option(help="Print what was done as JSON on standard output.")

output_options = option_group(
    "writing",
    OutputOptions,
    output_option(default="-", help=_OUTPUT),
    format_option(
        "--output-format", help="Its format, where the suffix does not tell."
    ),
    click.option(
        "--decide", type=click.Choice(["instances", "f1", "threshold"]), help=_DECIDE
    ),
    click.option(
        "--threshold",
        type=click.FloatRange(0, 1),
        help="For --decide threshold: 0.5 by default.",
    ),
    click.option(
        "--empty", type=click.Choice(["keep", "top"]), default="keep", help=_EMPTY
    ),
    click.option(
        "--top-k",
        type=click.IntRange(1),
        metavar="K",
        help="Keep only the K best labels of an instance.",
    ),
    click.option(
        "--layout",
        type=click.Choice(["wide", "long", "ranked"]),
        default="wide",
        help=_LAYOUT,
    ),
    force_option,
    done_option,
)
