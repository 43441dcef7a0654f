"""The table of methods, and how users name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from ..errors import InputError, one_of
from ..execution.local import reduce_blocks
from ..predictions import Predictions, as_predictions, quantile_normalization
from ..predictions.families import FamiliesLike
from ..predictions.validation import Weights
from .base import BaseCombiner, PredictionsLike

# What users can give as a method.
Method = str | BaseCombiner | None

# Class of each method. Its module has the name of the method's identifier. A new method
# adds one line.
_CLASS_NAMES = {
    "majority_vote": "MajorityVote",
    "dawid_skene": "DawidSkene",
    "bgcm": "BGCM",
    "mlcm_r": "MLCMr",
    "mlcm_a": "MLCMa",
    "weighted_consensus": "WeightedConsensus",
}
# Short names that users can give as well.
_SHORT_NAMES = {
    "mv": "majority_vote",
    "ds": "dawid_skene",
    "weighted": "weighted_consensus",
}


class CombinerTable(Mapping[str, type[BaseCombiner]]):
    """The class of each method by its identifier.

    The module of a method is imported when its class is first used, so that a program
    imports only the methods that it runs.

    Examples
    --------
    >>> list(COMBINERS)[:3]
    ['majority_vote', 'dawid_skene', 'bgcm']
    >>> COMBINERS["mlcm_a"].__name__
    'MLCMa'
    """

    def __init__(self) -> None:
        self._registered: dict[str, type[BaseCombiner]] = {}

    def __getitem__(self, identifier: str) -> type[BaseCombiner]:
        if identifier in self._registered:
            return self._registered[identifier]

        class_name = _CLASS_NAMES[identifier]
        module = import_module(f".{identifier}", __package__)
        combiner_class: type[BaseCombiner] = getattr(module, class_name)
        return combiner_class

    def __iter__(self) -> Iterator[str]:
        yield from _CLASS_NAMES
        yield from self._registered

    def __len__(self) -> int:
        return len(_CLASS_NAMES) + len(self._registered)

    def __contains__(self, identifier: object) -> bool:
        return identifier in _CLASS_NAMES or identifier in self._registered

    def __repr__(self) -> str:
        return f"<COMBINERS: {', '.join(self)}>"


COMBINERS = CombinerTable()


def list_by_name() -> dict[str, type[BaseCombiner]]:
    """Return the class of each method by its short name, for rows of tables.

    Examples
    --------
    >>> list(list_by_name())
    ['MV', 'DS', 'BGCM', 'MLCM-r', 'MLCM-a', 'Weighted']
    """
    return {combiner.name: combiner for combiner in COMBINERS.values()}


def register(combiner: type[BaseCombiner]) -> type[BaseCombiner]:
    """Add a combiner to `COMBINERS`.

    `combine`, `compare`, files and the report then know it.

    Parameters
    ----------
    combiner : type
        A subclass of `BaseCombiner`, with an identifier of its own.

    Returns
    -------
    type
        The same class, so that this function can be used as a decorator.
    """
    if combiner.identifier in _CLASS_NAMES:
        raise InputError(
            where="register",
            found=f"the identifier {combiner.identifier!r}, which exists",
            expected="another one",
        )
    COMBINERS._registered[combiner.identifier] = combiner
    return combiner


def unregister(identifier: str) -> None:
    """Remove a combiner that was added by `register`.

    Parameters
    ----------
    identifier : str
        Identifier of the combiner.
    """
    del COMBINERS._registered[identifier]


def find_identifier(name: str) -> str:
    """Return the identifier of a method, which is the name of its function.

    Parameters
    ----------
    name : str
        The identifier or the short name ``"mv"`` or ``"ds"``; upper or lower case,
        hyphens or underscores.

    Returns
    -------
    str

    Examples
    --------
    >>> find_identifier("MLCM-r"), find_identifier("mv")
    ('mlcm_r', 'majority_vote')
    """
    key = name.lower().replace("-", "_")
    if key in _SHORT_NAMES:
        return _SHORT_NAMES[key]
    if key not in _CLASS_NAMES:
        one_of(key, COMBINERS, "method")
    return key


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
        method = "weighted_consensus"
    if isinstance(method, str):
        combiner = COMBINERS[find_identifier(method)]()
        if weights is not None:
            combiner.set_params(weights=weights)
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

    # Other methods get the mean of each family's members (`merge_stated_families`).
    if families is not None and "families" in combiner.get_params():
        combiner.set_params(families=families)
    return combiner


def describe_choice(combiner: BaseCombiner, is_default: bool) -> str:
    """Return why a method was used, and what its solution shows.

    Parameters
    ----------
    combiner : BaseCombiner
        The fitted combiner.
    is_default : bool
        Whether the user did not choose a method.

    Returns
    -------
    str
    """
    reason = "it was requested"
    if is_default:
        reason = "it is the default"
    description = combiner.describe_solution(combiner.solution_)
    if description:
        return f"{reason}: {description}"
    return reason


def rescale(predictions: PredictionsLike) -> Predictions:
    """Bring scores on different scales to one scale, by quantile normalization.

    Parameters
    ----------
    predictions : Predictions or array-like of shape (m, n, l)
        `Predictions`, or anything that its constructor takes.

    Returns
    -------
    Predictions
        The order of each model's scores is unchanged. Their distribution is that of
        the median model.

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
    unscaled = as_predictions(predictions)
    statistics = reduce_blocks(unscaled, quantile_normalization.count_scores)
    return unscaled.rescaled(quantile_normalization.estimate_scales(statistics))
