"""Which method to use, and why."""

from typing import Any, Literal, NamedTuple, get_args

from .combiners.base import BaseCombiner
from .combiners.gold_instances import collect_gold_instances
from .combiners.registry import COMBINERS, find_method_name
from .errors import expect, one_of
from .metrics.ranking import RANKING_METRICS
from .model_selection.comparison import compare
from .model_selection.held_out_models import compare_on_held_out_models
from .predictions import as_predictions, joined
from .predictions.sampling import MOST_CELLS, subsample_instances
from .predictions.validation import Weights

Optimize = Literal[
    "auto", "ranking_loss", "micro_auc", "one_error", "average_precision"
]
METRICS = get_args(Optimize)
Method = (
    str | BaseCombiner | None
)  # a name, a combiner with its settings, or whichever is best
_LOOKED_AT, _FEWEST = (
    600,
    100,
)  # instances by which held-out raters judge, at most and at least
DEFAULT = "Filter"  # for every metric: choosing among methods by small differences was worse (decision 22)
_RIVAL, _CLEARLY = (
    "MLCM-a",
    2.0,
)  # what else is tried, and by how many standard errors it must be ahead everywhere


class Chosen(NamedTuple):
    """A combiner, and why it is the one to use."""

    combiner: BaseCombiner
    reason: str
    panel: Any  # to fit it to


def choose(
    panel: Any,
    optimize: Optimize = "auto",
    method: Method = None,
    weights: Weights = None,
) -> Chosen:
    """Pick the method for a metric, unless one is given.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> choose(mlc.Predictions([[[1, 0]]]), "ranking_loss").combiner
    WeightedConsensus()
    """
    if isinstance(method, str):
        return Chosen(
            COMBINERS[find_method_name(method)](weights=weights),
            "it was asked for",
            panel,
        )
    if method is not None:
        expect(
            isinstance(method, BaseCombiner),
            "method",
            repr(method),
            "a name or a combiner, such as MLCMa()",
        )
        expect(
            weights is None,
            "weights",
            "some beside a combiner, which has its own",
            "one of the two",
        )
        return Chosen(method, "it was asked for", panel)
    wanted = str(optimize).replace("-", "_")
    one_of(wanted, METRICS, "optimize")
    panel = as_predictions(panel)
    name, reason = _by_held_out_raters(
        panel.with_gold(None)
    )  # a few answers would sway them by chance
    if (
        panel.gold is not None
        and name != DEFAULT
        and _known_answers_prefer_the_default(panel, name, weights)
    ):
        name, reason = (
            DEFAULT,
            f"known answers, from which it learns, bear it out more than {name}",
        )
    if wanted != "auto":
        reason += (
            f" (whatever the metric: none is safer for {wanted.replace('_', ' ')})"
        )
    # Known answers stand in any case; the default learns from them only where they show that it gains, others blindly.
    return Chosen(
        COMBINERS[name](weights=weights),
        reason,
        panel if name == DEFAULT else panel.with_gold(None),
    )


def _by_held_out_raters(panel: Any) -> tuple[str, str]:
    """Name the method that raters who are held out bear out, and say why; the default where they cannot tell.

    Many labels are too many to judge by a sample.
    """
    default = DEFAULT, "it leaves voting only as far as the models' agreement carries"
    fitting = MOST_CELLS // (
        len(panel.models) * len(panel.labels)
    )  # instances that are judged in little memory
    if panel.many or panel.clusters or fitting < _FEWEST:
        return default
    found = compare_on_held_out_models(
        subsample_instances(panel, min(_LOOKED_AT, fitting)),
        methods=[DEFAULT, _RIVAL],
        even_in_doubt=False,
    )
    if (
        found.verdict is None or found.gains[DEFAULT]["mean"].standard_error == 0
    ):  # without a signal the default is voting
        return default
    over_both = [
        over[_RIVAL][metric]
        for over in (found.gains, found.beyond)
        for metric in RANKING_METRICS
    ]
    if all(gain.value > _CLEARLY * gain.standard_error for gain in over_both):
        return (
            _RIVAL,
            f"raters that were held out bear it out more than voting and {DEFAULT}, in every metric",
        )
    gain = found.gains[DEFAULT]["mean"]
    if gain.value > gain.standard_error:
        return default
    ahead = f"{DEFAULT} ahead of it by {gain.value:+.3f} (standard error {gain.standard_error:.3f})"
    return "MV", f"raters that were held out do not bear out more than voting: {ahead}"


def _known_answers_prefer_the_default(panel: Any, name: str, weights: Weights) -> bool:
    """Tell whether the default, which learns from known answers, ranks others of them better than what raters chose."""
    known, others = (
        collect_gold_instances(panel),
        subsample_instances(panel.with_gold(None), _LOOKED_AT),
    )
    judged = joined([known.with_gold(None), others]).with_gold_at(known.gold)
    methods = {each: COMBINERS[each](weights=weights) for each in (name, DEFAULT)}
    gains = compare(judged, methods=methods).gains[DEFAULT].values()
    return all(gain.value >= 0 for gain in gains) and any(
        gain.is_significant for gain in gains
    )


def describe_choice(reason: str, combiner: BaseCombiner) -> str:
    """Add to a reason what the fitted combiner saw in the panel."""
    saw = combiner.describe_solution(combiner.solution_)
    return f"{reason}: {saw}" if saw else reason
