"""Families of related models, as users give them."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import InputError
from .array_types import FloatArray, IntArray
from .predictions import Predictions

# What users can say about families.
FamiliesLike = str | Mapping[str, str] | None

# What a name ends with that tells members of a family apart: a separator and a
# version, a size, a temperature or a number.
_SUFFIX = re.compile(r"[-_ .:@/]+[a-z]*\d[\w.]*$", re.IGNORECASE)


def number_families(families: FamiliesLike, models: Sequence[str]) -> IntArray | None:
    """Return the family of each model as a number, or None if they have to be found.

    Parameters
    ----------
    families : None, "independent", "by-name" or mapping
        A mapping gives the family of each model by name. A model that it does not
        contain is a family of its own.
    models : sequence of str
        Names of the models.

    Returns
    -------
    ndarray of shape (m,) of int, or None

    Examples
    --------
    >>> models = ["gpt-4o-t0", "gpt-4o-t1", "human"]
    >>> number_families("by-name", models).tolist()
    [0, 0, 1]
    >>> number_families({"gpt-4o-t0": "gpt", "human": "gpt"}, models).tolist()
    [0, 1, 0]
    """
    if families is None:
        return None
    if isinstance(families, str):
        if families == "independent":
            return np.arange(len(models))
        if families == "by-name":
            return _number([get_stem(model) for model in models])
    if not isinstance(families, Mapping):
        description = type(families).__name__
        if isinstance(families, str):
            description = repr(families)
        raise InputError(
            where="families",
            found=description,
            expected='"independent", "by-name", or the family of each model',
        )
    unknown = sorted(set(map(str, families)) - set(models))
    if unknown:
        raise InputError(
            where="families",
            found=f"model {unknown[0]!r}",
            expected=f"one of the {len(models):,} models: {_list(models)}",
        )

    # Names of families and of models that have none must not be mixed up.
    names = []
    for model in models:
        if model in families:
            names.append(f"family {families[model]}")
        else:
            names.append(f"model {model}")
    return _number(names)


def average_families(predictions: Predictions, shares: FloatArray) -> Predictions:
    """Return predictions in which families take the place of their members.

    Parameters
    ----------
    predictions : Predictions
        The predictions of the members, in memory.
    shares : ndarray of shape (g, m)
        Share of each model in each family, negative for an inverted member.

    Returns
    -------
    Predictions
        Means of the members that made a prediction, weighted by their shares. A family
        is named after its members.

    Examples
    --------
    >>> predictions = Predictions([[[1, 0]], [[0, np.nan]]], models=["a", "b"])
    >>> average_families(predictions, np.array([[0.5, 0.5]])).to_array()
    array([[[0.5, 0. ]]])
    """
    scores = predictions.to_array()
    is_present = ~np.isnan(scores)
    names = []
    merged = []
    for family_shares in shares:
        members = np.flatnonzero(family_shares)
        total = np.zeros(scores.shape[1:])
        present_share = np.zeros(scores.shape[1:])
        for member in members:
            values = scores[member]
            if family_shares[member] < 0:
                values = 1 - values
            share = abs(family_shares[member])
            total += share * np.where(is_present[member], values, 0.0)
            present_share += share * is_present[member]
        unknown = np.full(total.shape, np.nan)
        mean = np.divide(total, present_share, out=unknown, where=present_share > 0)
        merged.append(mean)
        names.append(" + ".join(predictions.models[member] for member in members))
    averaged = Predictions(
        np.array(merged),
        models=names,
        labels=predictions.labels,
        instances=predictions.instances,
    )
    return averaged.with_gold_at(predictions.gold)


def merge_stated_families(
    predictions: Predictions, families: FamiliesLike
) -> Predictions:
    """Return predictions in which each stated family is one model.

    Parameters
    ----------
    predictions : Predictions
        The predictions of the members, in memory.
    families : None, "independent", "by-name" or mapping
        The families. None and ``"independent"`` change nothing.

    Returns
    -------
    Predictions
        The mean of each family's members.
    """
    numbers = number_families(families, predictions.models)
    if numbers is None or len(np.unique(numbers)) == len(numbers):
        return predictions
    is_member = numbers == np.unique(numbers)[:, np.newaxis]
    shares = is_member / is_member.sum(axis=1, keepdims=True)
    return average_families(predictions, shares)


def get_stem(name: str) -> str:
    """Return a name without its last version, size, temperature or number.

    Examples
    --------
    >>> get_stem("gpt-4o-t0"), get_stem("human")
    ('gpt-4o', 'human')
    """
    stem = _SUFFIX.sub("", name)
    return stem or name


def _list(names: Sequence[str]) -> str:
    """Return at most five names, separated by commas."""
    listed = ", ".join(repr(name) for name in names[:5])
    if len(names) > 5:
        listed += ", …"
    return listed


def _number(names: Sequence[str]) -> IntArray:
    """Return equal numbers for equal names, in the order of their first use."""
    numbers: dict[str, int] = {}
    for name in names:
        numbers.setdefault(name, len(numbers))
    return np.array([numbers[name] for name in names])
