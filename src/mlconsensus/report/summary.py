"""One summary of a consensus, typed and complete; HTML, text and JSON are renderings of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..evaluation.truth import as_matched
from ..insight.agreement import Agreement, agreement
from .changes import ChangesSummary, departure, summarise_changes
from .judged import JudgedSummary, judge
from .labels import LabelsSummary, summarise_labels
from .models import ModelsSummary, summarise_models
from .origin import Input, Origin, summarise_origin
from .panel import PanelSummary, summarise_panel

if TYPE_CHECKING:
    from ..consensus import Consensus


class Summary(NamedTuple):
    """What a report says."""

    panel: PanelSummary
    models: ModelsSummary
    agreement: Agreement | None  # None: there is one model
    labels: LabelsSummary
    changes: ChangesSummary
    judged: JudgedSummary | None  # None: there was no truth
    origin: Origin


def summarise(consensus: Consensus, truth: Any = None, *, command: str = "", inputs: tuple[Input, ...] = ()) -> Summary:
    """Gather all that a report says.

    Parameters
    ----------
    consensus
        What `combine` found.
    truth
        The relevant labels: an array (n, l), a DataFrame, which is matched by its names, or what `match_truth` found.
    command
        The line that made it, if it was made on the command line.
    inputs
        The files it was made from; without, the predictions are hashed.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, truth = mlc.datasets.make_panel(n_instances=100, random_state=0)
    >>> found = summarise(mlc.combine(panel), truth)
    >>> found.panel.n_models, found.judged.results[0].name
    (5, 'Filter')
    """
    # Before the work: a truth that does not fit is refused at once.
    matched = None if truth is None else as_matched(truth, consensus.instances, consensus.label_names)
    found = departure(consensus.vote, consensus.labels)
    examined = consensus.diagnostics.panel
    return Summary(
        summarise_panel(consensus.predictions, consensus.cardinality),
        summarise_models(examined, consensus.combiner),
        agreement(consensus.predictions) if len(consensus.predictions.models) > 1 else None,
        summarise_labels(consensus.label_names, consensus.labels, found.added, found.dropped, examined.dispute),
        summarise_changes(consensus, found),
        None if matched is None else judge(consensus, matched),
        summarise_origin(consensus, command, inputs),
    )
