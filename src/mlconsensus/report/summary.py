"""The summary of a consensus; HTML, text and JSON are renderings of it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..active_learning.query import select_queries
from ..combiners.registry import COMBINERS
from ..inspection.agreement import Agreement, agreement
from ..metrics.estimate import Estimate
from ..metrics.ground_truth import match_truth
from ..metrics.intervals import evaluate_on_gold
from ..model_selection.comparison import cross_fit
from .changes import ChangesSummary, compare_with_vote, evenly, summarize_changes
from .evaluation import MOST_CELLS, JudgedSummary, judge
from .labels import LabelsSummary, summarize_labels
from .models import ModelsSummary, PanelSummary, summarize_models, summarize_panel
from .provenance import Input, Origin, summarize_origin

if TYPE_CHECKING:
    from ..consensus import Consensus

# The number of suggested queries shows the share of wrong first labels to within this
# margin, at 95 %.
_MARGIN = 0.05
_Z = 1.96
_MIN_QUERIES = 20
_MAX_NAMED_QUERIES = 12


@dataclass(frozen=True, kw_only=True)
class Asking:
    """The instances that a person should label next."""

    budget: int  # number of instances
    # Share of wrong first labels, as the probabilities of the consensus predict it.
    expected_error: float
    instances: tuple[str, ...]  # the most informative of them, best first


@dataclass(frozen=True, kw_only=True)
class GoldEvidence:
    """Quality of the consensus on the instances with gold labels.

    Each instance is evaluated by a fit without its gold labels.
    """

    n_instances: int
    metric: str
    value: Estimate
    gain: Estimate | None  # difference to voting; None if voting is the method


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The contents of a report."""

    panel: PanelSummary
    models: ModelsSummary
    agreement: Agreement | None  # None: there is one model
    labels: LabelsSummary
    changes: ChangesSummary
    judged: JudgedSummary | None  # None without ground truth
    gold_evidence: GoldEvidence | None  # None without gold labels, or with ground truth
    asking: Asking
    origin: Origin
    note: str = ""  # which part of the predictions is summarized, if not all


def summarize(
    consensus: "Consensus",
    truth: object = None,
    *,
    command: str = "",
    inputs: tuple[Input, ...] = (),
    note: str = "",
) -> Summary:
    """Summarize a consensus for a report.

    Parameters
    ----------
    consensus : Consensus
        The result of `combine`.
    truth : array-like of shape (n, l), DataFrame or MatchedTruth, default=None
        The relevant labels. A DataFrame is matched by its names.
    command : str, default=""
        The command line, if the consensus was computed by it.
    inputs : tuple of Input, default=()
        The files with the predictions. Without files, the predictions are hashed.
    note : str, default=""
        Which part of the predictions is summarized, if not all.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> summary = summarize(mlc.combine(panel), truth)
    >>> summary.panel.n_models, summary.judged.results[0].name
    (5, 'Weighted')
    """
    # A truth that does not fit is refused before the work
    matched = None
    if truth is not None:
        matched = match_truth(truth, consensus.instances, consensus.labels)

    changes = compare_with_vote(consensus.vote, consensus.label_indicator)
    diagnostics = consensus.diagnostics.panel
    judged = None
    if matched is not None:
        judged = judge(consensus, matched)

    return Summary(
        panel=summarize_panel(consensus.predictions, consensus.cardinality),
        models=summarize_models(diagnostics, consensus.combiner),
        agreement=_measure_agreement(consensus),
        labels=summarize_labels(
            consensus.labels,
            consensus.label_indicator,
            changes.added,
            changes.dropped,
            diagnostics.dispute,
        ),
        changes=summarize_changes(consensus, changes),
        judged=judged,
        gold_evidence=None if judged is not None else _evaluate_on_gold(consensus),
        asking=_suggest_queries(consensus),
        origin=summarize_origin(consensus, command, inputs),
        note=note,
    )


def _measure_agreement(consensus: "Consensus") -> Agreement | None:
    """Measure the agreement of the models; None if there is one."""
    if len(consensus.predictions.models) == 1:
        return None
    return agreement(consensus.predictions)


def _evaluate_on_gold(consensus: "Consensus") -> GoldEvidence | None:
    """Compare the consensus with voting on the gold labels; None without any."""
    gold = consensus.gold
    if gold is None:
        return None

    metric = "average_precision" if len(consensus.labels) > 1 else "micro_auc"
    scores = cross_fit(consensus.combiner, consensus.predictions)
    evaluation = evaluate_on_gold(gold, scores)
    value = evaluation.compute_estimates()[metric]
    if np.isnan(value.value):
        return None

    gain = None
    if consensus.method != "majority_vote":
        unlabeled = consensus.predictions.with_gold(None).without_clusterings()
        vote = COMBINERS["majority_vote"]().fit_transform(unlabeled)
        voting = evaluate_on_gold(gold, vote)
        gain = evaluation.subtract(voting).compute_estimates()[metric]
    n_gold = int((~np.isnan(gold)).any(axis=1).sum())
    return GoldEvidence(n_instances=n_gold, metric=metric, value=value, gain=gain)


def _suggest_queries(consensus: "Consensus") -> Asking:
    """Select the next queries, from an even sample of very many instances."""
    n, l = consensus.scores.shape
    rows = evenly(n, max(1, MOST_CELLS // l))
    gold = consensus.gold
    if gold is None:
        is_labeled = np.zeros(len(rows), dtype=np.bool_)
    else:
        is_labeled = ~np.asarray(np.isnan(gold[rows]).all(axis=1))

    n_unlabeled = int((~is_labeled).sum())
    if n_unlabeled == 0:
        return Asking(budget=0, expected_error=0.0, instances=())

    # As many as show the share of wrong first labels precisely enough
    first_labels = consensus.scores[rows].argmax(axis=1)
    probability = consensus.probabilities[rows, first_labels][~is_labeled]
    expected_error = float(1 - probability.mean())
    variance = expected_error * (1 - expected_error)
    n_large = _Z**2 * variance / _MARGIN**2
    n_needed = math.ceil(n_large / (1 + n_large / n_unlabeled))
    budget = min(max(n_needed, _MIN_QUERIES), n_unlabeled)

    queries = select_queries(
        consensus.scores[rows],
        consensus.probabilities[rows],
        is_labeled,
        budget,
        "consensus",
    )
    named_rows = rows[queries.at[:_MAX_NAMED_QUERIES]]
    names = tuple(map(str, consensus.instances[named_rows].tolist()))
    return Asking(budget=budget, expected_error=expected_error, instances=names)
