"""Checks of names and scores in parsed JSON."""

from typing import Any

from ...errors import InputError
from ..columns import ROLES, is_outside, raise_bad_score
from ..options import ValueRange

Json = Any  # parsed JSON, which has no static type
Tags = list[tuple[str, float]]  # labels and their scores

LABEL_KEYS = ("labels", "tags", "classes", "categories", *ROLES["label"])

_KINDS: dict[type, str] = {
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
}


def check_name(value: Json, where: str) -> str:
    """Return a name as text. Integers are names, too: many tools number instances.

    Parameters
    ----------
    value : parsed JSON
        The value to check.
    where : str
        Location of the name, for messages.

    Returns
    -------
    str

    Examples
    --------
    >>> check_name(7, "a.jsonl, line 1")
    '7'
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(
            where=where,
            found=describe_kind(value),
            expected="text or a whole number",
        )
    if not str(value).strip():
        raise InputError(where=where, found="an empty text", expected="a name")
    return str(value)


def check_score(value: Json, where: str, value_range: ValueRange) -> float:
    """Return a score as float, NaN if it is null.

    Parameters
    ----------
    value : parsed JSON
        The value to check.
    where : str
        Location of the score, for messages.
    value_range : (float, float)
        Lowest and highest score.

    Returns
    -------
    float

    Examples
    --------
    >>> check_score(None, "a.jsonl, line 1", (0.0, 1.0))
    nan
    """
    if value is None:
        return float("nan")
    if isinstance(value, str):
        raise_bad_score(where, value)
    if not isinstance(value, int | float):
        raise_bad_score(where, describe_kind(value))
    if is_outside(value, value_range):
        raise_bad_score(where, value)
    return float(value)


def describe_kind(value: Json) -> str:
    """Return the kind of a JSON value for messages.

    Parameters
    ----------
    value : parsed JSON
        The value to check.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_kind([]), describe_kind(None), describe_kind({})
    ('a list', 'null', 'an object')
    """
    if value is None:
        return "null"
    return _KINDS.get(type(value), "an object")
