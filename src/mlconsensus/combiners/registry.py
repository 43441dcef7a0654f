"""The table of methods, and how users name them."""

from ..errors import InputError, one_of
from ..execution.local import reduce_blocks
from ..predictions import Predictions, as_predictions, quantile_normalization
from ..predictions.families import FamiliesLike
from ..predictions.validation import Weights
from .base import BaseCombiner, PredictionsLike
from .bgcm import BGCM
from .dawid_skene import DawidSkene
from .majority_vote import MajorityVote
from .mlcm_a import MLCMa
from .mlcm_r import MLCMr
from .names import METHOD_NAMES
from .weighted_consensus import WeightedConsensus

# What users can give as a method.
Method = str | BaseCombiner | None

# Every method by the name that tables, files and the command line use. A new method
# adds one line.
COMBINERS: dict[str, type[BaseCombiner]] = {
    combiner.name: combiner
    for combiner in (
        MajorityVote,
        DawidSkene,
        BGCM,
        MLCMr,
        MLCMa,
        WeightedConsensus,
    )
}


def register(combiner: type[BaseCombiner]) -> type[BaseCombiner]:
    """Add a combiner to `COMBINERS`.

    `combine`, `compare`, files and the report then know it.

    Parameters
    ----------
    combiner : type
        A subclass of `BaseCombiner`.

    Returns
    -------
    type
        The same class, so that this function can be used as a decorator.
    """
    COMBINERS[combiner.name] = combiner
    METHOD_NAMES.append(combiner.name)
    return combiner


def find_method_name(name: str) -> str:
    """Return the name of a method as tables write it.

    Parameters
    ----------
    name : str
        An identifier such as ``"mlcm_r"`` or ``"majority_vote"``, or the short name
        of tables such as ``"mv"``; upper or lower case, hyphens or underscores.

    Returns
    -------
    str

    Examples
    --------
    >>> find_method_name("mlcm_r"), find_method_name("majority-vote")
    ('MLCM-r', 'MV')
    """
    key = name.lower().replace("_", "-")
    for method, combiner in COMBINERS.items():
        if key == combiner.identifier.replace("_", "-"):
            return method

    name_by_key = {method.lower(): method for method in COMBINERS}
    one_of(key, name_by_key, "method")
    return name_by_key[key]


def make_combiner(
    method: Method = None, families: FamiliesLike = None, weights: Weights = None
) -> BaseCombiner:
    """Return the combiner that a user asked for; `WeightedConsensus` by default.

    Parameters
    ----------
    method : str or BaseCombiner, default=None
        Name of a method, or a combiner with its parameters.
    families : None, "independent", "by-name" or mapping, default=None
        Families of models; `WeightedConsensus` estimates the weights of their members.
    weights : sequence or mapping, default=None
        Weight of each model.

    Returns
    -------
    BaseCombiner

    Examples
    --------
    >>> make_combiner(), make_combiner("mlcm-a")
    (WeightedConsensus(), MLCMa())
    """
    if method is None:
        return WeightedConsensus(families=families, weights=weights)
    if isinstance(method, str):
        combiner = COMBINERS[find_method_name(method)](weights=weights)
    elif isinstance(method, BaseCombiner):
        if weights is not None:
            raise InputError(
                where="weights",
                found="weights next to a combiner, which has its own",
                expected="one of the two",
            )
        combiner = method
    else:
        raise InputError(
            where="method",
            found=repr(method),
            expected="a name or a combiner, such as MLCMa()",
        )
    if families is not None and isinstance(combiner, WeightedConsensus):
        combiner.set_params(families=families)
    return combiner


def describe_choice(method: Method, combiner: BaseCombiner) -> str:
    """Return why a method was used, and what its solution shows."""
    reason = "it is the default"
    if method is not None:
        reason = "it was requested"
    description = combiner.describe_solution(combiner.solution_)
    if description:
        return f"{reason}: {description}"
    return reason


def rescale(predictions: PredictionsLike) -> Predictions:
    """Bring the scores of models that live on different scales to one (quantile normalisation), without any truth.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.

    Returns
    -------
    Predictions
        Those whose every model's scores, in their order, are distributed as the models'
        scores are in the middle.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((100, 3))
    >>> one = mlc.rescale([scores, scores, scores / 100]).to_array()
    >>> bool(abs(one[2] - one[0]).max() < 0.01)
    True
    """
    panel = as_predictions(predictions)
    return panel.rescaled(
        quantile_normalization.estimate_scales(
            reduce_blocks(panel, quantile_normalization.count_scores)
        )
    )
