"""`combine`: run the method that is chosen, and say which and why."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import decision, inspection, io, metrics, model_selection, report
from .combiners.base import BaseCombiner, PredictionsLike
from .combiners.registry import COMBINERS, Method, describe_choice, make_combiner
from .combiners.weighted_consensus import WeightedConsensus
from .errors import InputError, InputWarning
from .linalg.sparse_scores import SparseScores
from .predictions import (
    MAX_DENSE_LABELS,
    FloatArray,
    Matrix,
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
    from .decision import Empty, RiskControlledSets, Top
    from .inspection import Diagnostics, Explanation
    from .io.layouts import Layout
    from .report import Report


# Scores: ndarray of shape (n, l), or `SparseScores` in large label spaces.
Scores = Any

# Ground truth or gold labels: an array, a sparse matrix or a DataFrame.
Truth = Any


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """Consensus scores and label sets, as `combine` returns them.

    Attributes
    ----------
    scores : ndarray or SparseScores of shape (n, l)
        Consensus scores; higher scores are more relevant. `SparseScores` in large label
        spaces (docs/many-labels.md).
    method : str
        Identifier of the method.
    combiner : BaseCombiner
        The fitted combiner, which can be applied to new instances.
    instances : ndarray of shape (n,)
        Names of the instances.
    labels : tuple of str
        Names of the labels (l).
    predictions : Predictions
        The predictions that were combined.
    is_default : bool
        Whether the method was used because the user did not choose one.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions = mlc.Predictions([[[1, 0]], [[1, 1]]], labels=["sport", "news"])
    >>> consensus = mlc.combine(predictions, method="mlcm-r")
    >>> consensus.method, consensus.label_indicator.tolist(), consensus.label_sets()
    ('mlcm_r', [[True, True]], [('sport', 'news')])
    """

    scores: Scores
    method: str
    combiner: BaseCombiner
    instances: Names
    labels: tuple[str, ...]
    predictions: Predictions
    is_default: bool = False

    @cached_property
    def reason(self) -> str:
        """Why this method was used, and what its solution shows."""
        return describe_choice(self.combiner, self.is_default)

    @property
    def families(self) -> dict[str, str]:
        """Family of each model, as used; each model is its own without families."""
        if isinstance(self.combiner, WeightedConsensus):
            return self.combiner.families_
        return {model: model for model in self.predictions.models}

    @cached_property
    def gold(self) -> FloatArray | None:
        """Gold labels (n, l), NaN where they are unknown; None without gold labels."""
        if self.predictions.gold is None:
            return None
        unknown = np.full(self.scores.shape, np.nan)
        return np.asarray(self.predictions.answered(unknown))

    @cached_property
    def cardinality(self) -> FloatArray:
        """Mean number of labels that the models predicted for each instance (n,)."""
        return decision.cardinalities(self.predictions)

    @cached_property
    def label_indicator(self) -> Matrix:
        """Label sets with the highest expected F1, (n, l) of bool; CSR if sparse.

        The best scores of all instances are chosen. Their number is estimated from the
        predictions, or from gold labels. `mlc.decision` has other rules.
        """
        return self.make_label_indicator()

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability that each label is relevant (n, l).

        They are calibrated by gold labels if there are any; docs/gold-figures.md shows
        how accurate they are. Without gold labels, they follow from the agreement of
        the models: the scores of weighted consensus are cut to [0, 1], and those of
        other methods are brought to the scale of the vote.
        """
        self._expect_few("probabilities")
        uncalibrated = self._to_probabilities(self.scores)
        gold = self.gold
        if gold is None:
            return uncalibrated

        # Scores that were not fitted to the gold labels they are compared with.
        cross_fitted = model_selection.cross_fit(self.combiner, self.predictions)
        held_out = self._to_probabilities(cross_fitted)
        calibrated = decision.calibrate_scores(uncalibrated, held_out, gold)
        return np.asarray(self.predictions.answered(calibrated))

    def _to_probabilities(self, scores: FloatArray) -> FloatArray:
        """Return scores on the scale of probabilities, without gold labels."""
        if isinstance(self.combiner, WeightedConsensus):
            return np.clip(scores, 0, 1)
        return decision.calibrate_scores(scores, scores, self.vote)

    @cached_property
    def vote(self) -> FloatArray:
        """Scores (n, l) by majority voting, to compare with."""
        predictions = self.predictions.without_clusterings()
        scores: FloatArray = COMBINERS["majority_vote"]().fit_transform(predictions)
        return scores

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Agreement and quality of the models, disputed and changed labels."""
        self._expect_few("diagnostics")
        return inspection.diagnose(
            self.predictions, self.scores, self.vote, self.combiner
        )

    def report(self, truth: Truth = None) -> Report:
        """Return a report about models, labels, and what consensus changed and why.

        Parameters
        ----------
        truth : array-like of shape (n, l) or DataFrame, default=None
            The relevant labels, to evaluate with. A DataFrame is matched by its names.

        Returns
        -------
        Report
            A notebook shows it as a page; it can be saved or printed. In large label
            spaces it covers the 500 most frequent labels, which are combined again by
            the same method.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel, truth = mlc.datasets.make_panel(n_instances=100, random_state=0)
        >>> mlc.combine(panel).report(truth)
        <Report: 5 models × 100 instances × 20 labels by weighted_consensus>
        """
        panel, note = select_frequent_labels(self.predictions)
        consensus = self
        if note:
            again = combine(panel, method=self.combiner.make_unfitted_copy())
            consensus = replace(again, is_default=self.is_default)
        truth_values = None
        if truth is not None:
            truth_values = truth_table(truth, "truth", self.instances, self.labels)
        return report.Report(report.summarize(consensus, truth_values, note=note))

    def explain(self, instance: int | str, label: int | str) -> Explanation:
        """Explain one score: what each prediction adds to it, compared with voting.

        Parameters
        ----------
        instance : int or str
            Name of the instance.
        label : int or str
            Name of the label, or its position if it has no name.

        Returns
        -------
        Explanation
            The contributions, which add up to the score, and whether the label is in
            the instance's label set.
        """
        explanation = inspection.explain(
            self.combiner, self.predictions, instance, label
        )
        row = np.flatnonzero(self.instances == explanation.instance)[0]
        column = self.labels.index(explanation.label)
        is_in_set = bool(self.label_indicator[row, column])
        return replace(explanation, in_label_set=is_in_set)

    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """Compute how much the scores depend on any one model.

        Returns
        -------
        low, high : ndarray of shape (n, l)
            Lowest and highest score of each pair if one of the models is left out.
        """
        self._expect_few("intervals")
        return inspection.leave_one_model_out(self.predictions, self.combiner)

    def _expect_few(self, what: str) -> None:
        """Raise an `InputError` in large label spaces."""
        if isinstance(self.scores, SparseScores):
            raise InputError(
                where=what,
                found=sizes(self.predictions.shape),
                expected=f"at most {MAX_DENSE_LABELS:,} labels: see Predictions.select",
            )

    def top(self, k: int = 10) -> Top:
        """Return the `k` best labels of each instance and their scores.

        Parameters
        ----------
        k : int, default=10
            Number of labels.

        Returns
        -------
        Top
            The best label first; see `mlc.decision.top_labels`.
        """
        return decision.top_labels(self.scores, self.labels, k)

    def make_label_indicator(self, empty: Empty = "keep") -> Matrix:
        """Return the label sets of `label_indicator`.

        Parameters
        ----------
        empty : {"keep", "top"}, default="keep"
            Whether an instance without labels keeps none or gets its best label.

        Returns
        -------
        ndarray of shape (n, l) of bool
            CSR in large label spaces.
        """
        if self.predictions.gold is not None and not isinstance(
            self.scores, SparseScores
        ):
            chosen = decision.best_f1(self.probabilities, empty=empty)
        else:
            chosen = self.combiner.choose_label_sets(
                self.scores, self.predictions, empty
            )

        return self.predictions.answered(chosen)

    def label_sets(self) -> list[tuple[str, ...]]:
        """Return the names of each instance's labels.

        Returns
        -------
        list of tuple of str
            The label with the highest score first.
        """
        rows, columns = self.label_indicator.nonzero()
        order = np.lexsort((columns, -self.scores[rows, columns], rows))
        names = np.array(self.labels, dtype=object)[columns[order]]
        ends = np.cumsum(np.bincount(rows, minlength=len(self.scores)))
        return [tuple(label_set) for label_set in np.split(names, ends[:-1])]

    def __repr__(self) -> str:
        n, l = self.scores.shape
        shape = f"{plural(n, 'instance')} × {plural(l, 'label')}"
        return f"<Consensus: {shape} by {self.method}>"

    def evaluate(self, truth: Truth) -> dict[str, float]:
        """Compute the metrics of these scores and label sets.

        Parameters
        ----------
        truth : array-like or sparse matrix of shape (n, l), or DataFrame
            The relevant labels. A DataFrame is matched by its names.

        Returns
        -------
        dict of str to float
            The metrics by name.
        """
        if not is_frame(truth):
            return metrics.evaluate(truth, self.scores, self.label_indicator)

        matched = metrics.match_truth(truth, self.instances, self.labels)
        if matched.note:
            warnings.warn(matched.note, InputWarning, 2)
        return metrics.evaluate(
            matched.truth,
            matched.select(self.scores),
            matched.select(self.label_indicator),
        )

    def decide(self, gold: Truth = None, **guarantees: float) -> RiskControlledSets:
        """Return label sets with a guaranteed recall, precision or false discovery.

        Parameters
        ----------
        gold : array-like of shape (n, l) or DataFrame, default=None
            Gold labels of instances that were drawn at random, as in `combine`. By
            default those that were combined.
        **guarantees : float
            ``recall=0.9``, ``precision=0.8`` or ``false_discovery=0.1``, as explained
            in `mlc.decide`.

        Returns
        -------
        RiskControlledSets
            The scores are those of a fit without the gold labels.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel, truth = mlc.datasets.make_panel(random_state=0)
        >>> is_gold = np.arange(len(truth)) < 100  # they are in random order
        >>> gold = np.where(is_gold[:, np.newaxis], truth, np.nan)
        >>> print(mlc.combine(panel, gold=gold).decide(recall=0.9))
        At least 90% of an instance's relevant labels are kept, on average over ...
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
            scores = self.combiner.make_unfitted_copy().fit(unknown).transform(unknown)
        return decision.decide(
            scores, panel.answered(np.full(scores.shape, np.nan)), **guarantees
        )

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the scores as a DataFrame, labels as columns.

        Parameters
        ----------
        library : {"pandas", "polars"}, default="pandas"
            In pandas, instances are the index; in Polars, they are the first column.

        Returns
        -------
        DataFrame
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
        path : str or path-like
            The file; its suffix selects the format. It is written completely or not at
            all.
        format : str, default=None
            The format, if the suffix does not show it, such as ``"label-studio"``.
        force : bool, default=False
            Whether to replace a file that exists.
        """
        layout: Layout = "wide"
        if isinstance(self.scores, SparseScores):
            layout = "ranked"

        io.write_table(
            path,
            self._table(),
            format=format,
            layout=layout,
            force=force,
        )

    def _table(self) -> ScoreTable:
        """Return the scores with the names of instances and labels."""
        if isinstance(self.scores, SparseScores):
            scores = self.scores.cells()
        else:
            scores = self.scores

        return ScoreTable(self.method, scores, self.instances, self.labels)


def combine(
    predictions: PredictionsLike,
    method: Method = None,
    *,
    families: FamiliesLike = None,
    gold: Truth = None,
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
    Consensus
        Scores (n, l), label sets, the method, and methods that explain and report them.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(random_state=0)
    >>> consensus = mlc.combine(panel)
    >>> consensus.method, consensus.scores.shape
    ('weighted_consensus', (1000, 20))
    >>> vote = mlc.majority_vote(panel)
    >>> loss = mlc.metrics.ranking_loss(truth, consensus.scores)
    >>> loss < mlc.metrics.ranking_loss(truth, vote)
    True
    """
    panel = as_predictions(predictions)
    if gold is not None:
        panel = panel.with_gold(gold)

    combiner = make_combiner(method, families, weights)
    if families is not None and not isinstance(combiner, WeightedConsensus):
        panel = merge_stated_families(panel, families)
    scores = combiner.fit(panel).transform(panel)
    return Consensus(
        scores=scores,
        method=combiner.identifier,
        combiner=combiner,
        instances=panel.instances,
        labels=panel.labels,
        predictions=panel,
        is_default=method is None,
    )
