"""One summary of a consensus, typed and complete; HTML, text and JSON are renderings of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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

# instances that a report suggests to ask about, at most; and at most a quarter of all
_BUDGET = 100


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What to ask people next."""

    budget: int  # instances
    instances: tuple[str, ...]  # the first of them, most worth asking about first


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a report says."""

    panel: PanelSummary
    models: ModelsSummary
    agreement: Agreement | None  # None: there is one model
    labels: LabelsSummary
    changes: ChangesSummary
    judged: JudgedSummary | None  # None: there was no truth
    asking: Asking
    origin: Origin
    note: str = ""  # what of the panel is looked at, where it is not all


def summarize(
    consensus: "Consensus",
    truth: Any = None,
    *,
    command: str = "",
    inputs: tuple[Input, ...] = (),
    note: str = "",
) -> Summary:
    """Gather all that a report says.

    Parameters
    ----------
    consensus
        What `combine` found.
    truth
        The relevant labels: an array (n, l), a DataFrame, which is matched by its
        names, or what `match_truth_table` found.
    command
        The line that made it, if it was made on the command line.
    inputs
        The files it was made from; without, the predictions are hashed.
    note
        What of the panel is looked at, where it is not all.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> summary = summarize(mlc.combine(panel), truth)
    >>> summary.panel.n_models, summary.judged.results[0].name
    (5, 'Filter')
    """
    # Before the work: a truth that does not fit is refused at once.
    if truth is None:
        matched = None
    else:
        matched = match_truth(truth, consensus.instances, consensus.labels)

    changes = compare_with_vote(consensus.vote, consensus.label_indicator)
    examined = consensus.diagnostics.panel
    return Summary(
        panel=summarize_panel(consensus.predictions, consensus.cardinality),
        models=summarize_models(examined, consensus.combiner),
        agreement=_measure_agreement(consensus),
        labels=summarize_labels(
            consensus.labels,
            consensus.label_indicator,
            changes.added,
            changes.dropped,
            examined.dispute,
        ),
        changes=summarize_changes(consensus, changes),
        judged=None if matched is None else judge(consensus, matched),
        asking=_asking(consensus),
        origin=summarize_origin(consensus, command, inputs),
        note=note,
    )


def _measure_agreement(consensus: "Consensus") -> Agreement | None:
    """Measure the agreement of the models; None if there is one."""
    if len(consensus.predictions.models) == 1:
        return None
    return agreement(consensus.predictions)


def _asking(consensus: "Consensus") -> Asking:
    """Choose what would be asked next, of an even sample where there are very many instances."""
    n, l = consensus.scores.shape
    rows = evenly(n, max(1, MOST_CELLS // l))
    gold = consensus.gold
    if gold is None:
        known = np.zeros(len(rows), dtype=np.bool_)
    else:
        known = ~np.asarray(np.isnan(gold[rows]).all(axis=1))

    budget = min(_BUDGET, max(len(rows) // 4, 1), int((~known).sum()))
    if not budget:
        return Asking(budget=0, instances=())

    found = select_queries(
        consensus.scores[rows],
        consensus.probabilities[rows],
        known,
        budget,
        "consensus",
    )
    names = tuple(
        str(name) for name in consensus.instances[rows[found.at[:12]]].tolist()
    )
    return Asking(budget=budget, instances=names)
