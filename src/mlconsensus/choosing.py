"""Which method to use, and why."""

from typing import Any, Literal, NamedTuple, get_args

from .errors import expect, one_of
from .estimators import COMBINERS, Combiner, method_named
from .insight.meetings import MOST_CELLS, sampled
from .insight.referee import referee
from .panel.predictions import as_predictions
from .parameters import Weights

Optimize = Literal["auto", "ranking_loss", "micro_auc", "one_error", "average_precision"]
METRICS = get_args(Optimize)
_LOOKED_AT, _FEWEST = 1000, 100  # instances by which held-out raters judge, at most and at least
DEFAULT = "Filter"  # for every metric: choosing among methods by small differences was worse (decision 22)


class Chosen(NamedTuple):
    """A combiner, and why it is the one to use."""

    combiner: Combiner
    reason: str


def choose(
    panel: Any, optimize: Optimize = "auto", method: str | Combiner | None = None, weights: Weights = None
) -> Chosen:
    """Pick the method for a metric, unless one is given.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> choose(mlc.Predictions([[[1, 0]]]), "ranking_loss").combiner
    RaterFilter()
    """
    if isinstance(method, str):
        return Chosen(COMBINERS[method_named(method)](weights=weights), "it was asked for")
    if method is not None:
        expect(weights is None, "weights", "some beside a combiner, which has its own", "one of the two")
        return Chosen(method, "it was asked for")
    wanted = str(optimize).replace("-", "_")
    one_of(wanted, METRICS, "optimize")
    if against := _against_leaving_voting(as_predictions(panel)):
        return Chosen(COMBINERS["MV"](weights=weights), against)
    reason = "it leaves voting as far as the models' agreement carries"
    if wanted != "auto":
        reason += f", and no method is safer for {wanted.replace('_', ' ')}"
    return Chosen(COMBINERS[DEFAULT](weights=weights), reason)


def _against_leaving_voting(panel: Any) -> str:
    """Say what held-out raters have against the default, where they can tell: that it is not ahead of voting.

    Known answers say more than raters could, and many labels are too many to judge by a sample.
    """
    if panel.many or panel.clusters or panel.gold is not None:
        return ""
    fitting = MOST_CELLS // (len(panel.models) * len(panel.labels))  # instances that are judged in little memory
    if fitting < _FEWEST:
        return ""
    found = referee(sampled(panel, min(_LOOKED_AT, fitting)), methods=[DEFAULT])
    gain = found.gains.get(DEFAULT, {}).get("mean")
    if found.verdict is None or gain is None or gain.error == 0:  # without a signal the default is voting, and says so
        return ""
    ahead = f"{DEFAULT} ahead of it by {gain.expected:+.3f} (standard error {gain.error:.3f})"
    return "" if gain.expected > gain.error else f"raters that were held out do not bear out more than voting: {ahead}"


def with_what_it_saw(reason: str, combiner: Combiner) -> str:
    """Add to a reason what the fitted combiner saw in the panel."""
    saw = combiner.saw(combiner.solution_)
    return f"{reason}: {saw}" if saw else reason
