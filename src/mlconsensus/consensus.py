"""`combine`: run the method that is chosen, and say which and why."""

import os
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from . import metrics
from .combiners.base import BaseCombiner
from .combiners.majority_vote import majority_vote
from .combiners.registry import Method, describe_choice, make_combiner
from .combiners.weighted_consensus import WeightedConsensus
from .decision.calibration import calibrate_scores
from .decision.label_sets import Empty, Top, best_f1, cardinalities, top_labels
from .decision.risk_control import RiskControlledSets, decide
from .errors import InputError, InputWarning
from .inspection.diagnostics import Diagnostics, diagnose, leave_one_model_out
from .inspection.explanations import Explanation, explain
from .linalg.sparse_scores import SparseScores
from .metrics.ground_truth import match_truth
from .model_selection.comparison import cross_fit
from .predictions import (
    MAX_DENSE_LABELS,
    FloatArray,
    Names,
    Predictions,
    ScoreTable,
    as_predictions,
    is_frame,
    truth_table,
)
from .predictions.families import FamiliesLike, merge_stated_families
from .predictions.sampling import select_frequent_labels
from .predictions.validation import Weights
from .text import plural, sizes

if TYPE_CHECKING:
    from .report import Report


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """What `combine` found.

    Attributes
    ----------
    scores
        Consensus scores (n, l), higher = more relevant; `SparseScores` of a panel of
        many labels (docs/many-labels.md).
    method, reason
        Name of the method, and why it was chosen.
    combiner
        The fitted estimator, ready for new instances.
    instances, labels
        What rows and columns are called.
    predictions
        What was combined.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions = mlc.Predictions([[[1, 0]], [[1, 1]]], labels=["sport", "news"])
    >>> consensus = mlc.combine(predictions, method="mlcm-r")
    >>> consensus.method, consensus.label_indicator.tolist(), consensus.label_sets()
    ('MLCM-r', [[True, True]], [('sport', 'news')])
    """

    scores: Any
    method: str
    reason: str
    combiner: BaseCombiner
    instances: Names
    labels: tuple[str, ...]
    predictions: Predictions

    @property
    def families(self) -> dict[str, str]:
        """Family of each model, as used; each model is its own without families."""
        if isinstance(self.combiner, WeightedConsensus):
            return self.combiner.families_
        return {model: model for model in self.predictions.models}

    @cached_property
    def gold(self) -> FloatArray | None:
        """The answers that were known (n, l), NaN where none was; ``None``: there were none."""
        unknown = np.full(self.scores.shape, np.nan)
        if self.predictions.gold is None:
            return None
        return self.predictions.answered(unknown)

    @cached_property
    def cardinality(self) -> FloatArray:
        """How many labels the models gave each instance on average (n,)."""
        return cardinalities(self.predictions)

    @cached_property
    def label_indicator(self) -> Any:
        """Label sets (n, l) of bool or CSR that promise the highest F1: the best scores of all instances.

        As many as the votes lead to expect (`insight.totals`), or as known answers say.
        `decisions` has other rules. What labels are called is in `labels`.
        """
        return self.make_label_indicator()

    @cached_property
    def probabilities(self) -> FloatArray:
        """How likely each label is relevant (n, l); docs/gold-figures.md says how far that can be trusted.

        With gold, calibrated by it. Without, as the agreement of the models suggests:
        scores of weighted consensus, cut to [0, 1], are what one more reliable model would
        say; another method's scores are brought to the scale of the vote.
        """
        self._expect_few("probabilities")
        uncalibrated = self._to_probabilities(self.scores)
        gold = self.gold
        if gold is None:
            return uncalibrated

        # Scores that were not fitted to the gold labels they are compared with.
        cross_fitted = cross_fit(self.combiner, self.predictions)
        held_out = self._to_probabilities(cross_fitted)
        return self.predictions.answered(calibrate_scores(uncalibrated, held_out, gold))

    def _to_probabilities(self, scores: FloatArray) -> FloatArray:
        """Return scores on the scale of probabilities, without gold labels."""
        if isinstance(self.combiner, WeightedConsensus):
            return np.clip(scores, 0, 1)
        return calibrate_scores(scores, scores, self.vote)

    @cached_property
    def vote(self) -> FloatArray:
        """Scores (n, l) by majority voting, to compare with."""
        scores: FloatArray = majority_vote(self.predictions.without_clusterings())
        return scores

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether it helps here: who agrees, who looks random or copied, which labels are disputed, what moved."""
        self._expect_few("diagnostics")
        return diagnose(self.predictions, self.scores, self.vote, self.combiner)

    def report(self, truth: Any = None) -> "Report":
        """Show how models and labels agree, what consensus changed and why; a notebook shows it as a page.

        Parameters
        ----------
        truth
            The relevant labels, to judge with: an array (n, l), or a DataFrame that is
            matched by its names.

        Of many labels the 500 named most are combined anew, by the same method, and
        looked at.

        Returns
        -------
        What can be shown in a notebook, saved or printed.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel, truth = mlc.datasets.make_panel(n_instances=100, random_state=0)
        >>> mlc.combine(panel).report(truth)
        <Report: 5 models × 100 instances × 20 labels by Weighted>
        """
        from .report import Report, summarize

        panel, note = select_frequent_labels(self.predictions)
        consensus = self
        if note:
            again = combine(panel, method=clone(self.combiner))
            consensus = replace(again, reason=self.reason)
        truth_values = None
        if truth is not None:
            truth_values = truth_table(truth, "truth", self.instances, self.labels)
        return Report(summarize(consensus, truth_values, note=note))

    def explain(self, instance: int | str, label: int | str) -> Explanation:
        """Say which model's which statement raised or lowered a score, and by how much, against plain voting.

        Parameters
        ----------
        instance, label
            Their names. A label without a name of its own may be given by its position.

        Returns
        -------
        An exact sum over statements, and whether the label is in the instance's label
        set.
        """
        explanation = explain(self.combiner, self.predictions, instance, label)
        row = np.flatnonzero(self.instances == explanation.instance)[0]
        column = self.labels.index(explanation.label)
        is_in_set = bool(self.label_indicator[row, column])
        return replace(explanation, in_label_set=is_in_set)

    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """Find how far any one model could sway the scores.

        Returns
        -------
        The lowest and the highest score (n, l) of each cell when any one model is left
        out.
        """
        self._expect_few("intervals")
        return leave_one_model_out(self.predictions, self.combiner)

    def _expect_few(self, what: str) -> None:
        if isinstance(self.scores, SparseScores):
            raise InputError(
                where=what,
                found=sizes(self.predictions.shape),
                expected=f"at most {MAX_DENSE_LABELS:,} labels: see Predictions.select",
            )

    def top(self, k: int = 10) -> Top:
        """Name the `k` best labels of each instance, best first, with their scores; see `decisions.top_labels`."""
        return top_labels(self.scores, self.labels, k)

    def make_label_indicator(self, empty: Empty = "keep") -> Any:
        """Give the label sets of `labels`; an instance without labels keeps none, or gets its ``"top"`` one."""
        if self.predictions.gold is not None and not isinstance(
            self.scores, SparseScores
        ):
            chosen = best_f1(self.probabilities, empty=empty)
        else:
            chosen = self.combiner.choose_label_sets(
                self.scores, self.predictions, empty
            )

        return self.predictions.answered(chosen)

    def label_sets(self) -> list[tuple[str, ...]]:
        """Name each instance's labels.

        Returns
        -------
        A tuple of names for each instance, from the highest score to the lowest.
        """
        rows, columns = self.label_indicator.nonzero()
        order = np.lexsort((columns, -self.scores[rows, columns], rows))
        names = np.array(self.labels, dtype=object)[columns[order]]
        ends = np.cumsum(np.bincount(rows, minlength=len(self.scores)))
        return [tuple(label_set) for label_set in np.split(names, ends[:-1])]

    def __repr__(self) -> str:
        n, l = self.scores.shape
        return f"<Consensus: {plural(n, 'instance')} × {plural(l, 'label')} by {self.method}>"

    def evaluate(self, truth: Any) -> dict[str, float]:
        """Judge these scores and label sets.

        Parameters
        ----------
        truth
            The relevant labels: an array or sparse matrix (n, l), or a DataFrame that
            is matched by its names.

        Returns
        -------
        The metrics by name.
        """
        if not is_frame(truth):
            return metrics.evaluate(truth, self.scores, self.label_indicator)

        matched = match_truth(truth, self.instances, self.labels)
        if matched.note:
            warnings.warn(matched.note, InputWarning, 2)
        return metrics.evaluate(
            matched.truth,
            matched.select(self.scores),
            matched.select(self.label_indicator),
        )

    def decide(self, gold: Any = None, **promises: float) -> RiskControlledSets:
        """Give label sets that keep promises: ``recall=0.9``, ``precision=0.8`` or ``false_discovery=0.1``.

        Parameters
        ----------
        gold
            Truth of instances that were drawn at random, as `combine` takes it; what
            was combined with unless told.
        promises
            As in `mlc.decide`, which says what each means. The scores are those of a
            fit without the gold.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel, truth = mlc.datasets.make_panel(random_state=0)
        >>> gold = np.where(np.arange(len(truth))[:, None] < 100, truth, np.nan)  # they are in random order
        >>> print(mlc.combine(panel, gold=gold).decide(recall=0.9))
        At least 90% of an instance's relevant labels are kept, on average over instances that have one, ...
        Left to people: 0 of 20,000 cells in 0 of 1,000 instances.
        """
        self._expect_few("decide")
        if gold is None:
            panel = self.predictions
        else:
            panel = self.predictions.with_gold(gold)

        unknown = self.predictions.with_gold(None)
        scores = self.scores
        if self.gold is not None:
            scores = clone(self.combiner).fit(unknown).transform(unknown)
        return decide(scores, panel.answered(np.full(scores.shape, np.nan)), **promises)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the scores as a DataFrame, labels as columns.

        Parameters
        ----------
        library
            ``"pandas"``: instances are the index; ``"polars"``: they are the first
            column.

        Returns
        -------
        A DataFrame of that library.
        """
        return replace(self._table(), scores=self.scores).to_frame(library)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        force: bool = False,
    ) -> None:
        """Write the scores to a file.

        Parameters
        ----------
        path
            Where to; the suffix names the format. It appears whole or not at all.
        format
            The format, where the suffix does not tell, such as ``"label-studio"``.
        force
            Whether to replace a file that exists.
        """
        from .io import write_table

        many = isinstance(self.scores, SparseScores)
        write_table(
            path,
            self._table(),
            format=format,
            layout="ranked" if many else "wide",
            force=force,
        )

    def _table(self) -> ScoreTable:
        if isinstance(self.scores, SparseScores):
            scores = self.scores.cells()
        else:
            scores = self.scores

        return ScoreTable(self.method, scores, self.instances, self.labels)


def combine(
    predictions: Any,
    method: Method = None,
    *,
    families: FamiliesLike = None,
    gold: Any = None,
    weights: Weights = None,
) -> Consensus:
    """Combine predictions into consensus scores and label sets.

    Parameters
    ----------
    predictions : Predictions or object
        `Predictions`, or anything that its constructor takes.
    method : str or BaseCombiner, default=None
        Name of a method, or a combiner. By default `WeightedConsensus`.
    families : None, "independent", "by-name" or mapping, default=None
        Which models are related. By default, `WeightedConsensus` finds families.
        ``"independent"`` ignores relations, ``"by-name"`` groups names that share a
        stem, and a mapping gives the family of each model. For other methods, a family
        is one model: the mean of its members.
    gold : array-like of shape (n, l) or DataFrame, default=None
        Gold labels of some instances or pairs: 1, 0, or NaN if unknown; a DataFrame is
        matched by its names (docs/gold.md). Scores and label sets contain them as they
        are.
    weights : sequence or mapping, default=None
        Weight of each model, in their order or by name. By default all are equal.

    Returns
    -------
    Scores (n, l), label sets, the method and why it was chosen; it can explain and
    report itself.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> consensus.method, consensus.scores.shape
    ('Weighted', (1000, 20))
    >>> vote = mlc.majority_vote(panel)
    >>> mlc.metrics.ranking_loss(truth, consensus.scores) < mlc.metrics.ranking_loss(truth, vote)
    True
    """
    panel = as_predictions(predictions)
    if gold is not None:
        panel = panel.with_gold(gold)

    combiner = make_combiner(method, families, weights)
    if not isinstance(combiner, WeightedConsensus):
        panel = merge_stated_families(panel, families)
    scores = combiner.fit(panel).transform(panel)
    return Consensus(
        scores=scores,
        method=combiner.name,
        reason=describe_choice(method, combiner),
        combiner=combiner,
        instances=panel.instances,
        labels=panel.labels,
        predictions=panel,
    )
