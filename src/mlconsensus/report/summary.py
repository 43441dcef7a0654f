"""The summary of a consensus; HTML, text and JSON are renderings of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..active_learning.query import select_queries
from ..inspection.agreement import Agreement, agreement
from ..metrics.ground_truth import match_truth
from .changes import ChangesSummary, compare_with_vote, evenly, summarize_changes
from .evaluation import MOST_CELLS, JudgedSummary, judge
from .labels import LabelsSummary, summarize_labels
from .models import ModelsSummary, PanelSummary, summarize_models, summarize_panel
from .provenance import Input, Origin, summarize_origin

if TYPE_CHECKING:
    from ..consensus import Consensus

# Largest number of instances that a report suggests as queries; also at most a quarter
# of all instances.
_MAX_QUERIES = 100
_MAX_NAMED_QUERIES = 12


@dataclass(frozen=True, kw_only=True)
class Asking:
    """The instances that a person should label next."""

    budget: int  # number of instances
    instances: tuple[str, ...]  # the most informative of them, best first


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The contents of a report."""

    panel: PanelSummary
    models: ModelsSummary
    agreement: Agreement | None  # None: there is one model
    labels: LabelsSummary
    changes: ChangesSummary
    judged: JudgedSummary | None  # None: there was no truth
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
        asking=_suggest_queries(consensus),
        origin=summarize_origin(consensus, command, inputs),
        note=note,
    )


def _measure_agreement(consensus: "Consensus") -> Agreement | None:
    """Measure the agreement of the models; None if there is one."""
    if len(consensus.predictions.models) == 1:
        return None
    return agreement(consensus.predictions)


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
    budget = min(_MAX_QUERIES, max(len(rows) // 4, 1), n_unlabeled)
    if budget == 0:
        return Asking(budget=0, instances=())

    queries = select_queries(
        consensus.scores[rows],
        consensus.probabilities[rows],
        is_labeled,
        budget,
        "consensus",
    )
    named_rows = rows[queries.at[:_MAX_NAMED_QUERIES]]
    names = tuple(map(str, consensus.instances[named_rows].tolist()))
    return Asking(budget=budget, instances=names)
