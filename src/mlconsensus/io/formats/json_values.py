"""Checks of names and scores in parsed JSON."""

import contextlib
import re
from typing import Any

from ...errors import InputError
from ..columns import ROLES, is_outside, raise_bad_score
from ..options import UNIT_RANGE, ReadOptions, ValueRange

Json = Any  # parsed JSON, which has no static type
Tags = list[tuple[str, float]]  # labels and their scores

LABEL_KEYS = ("labels", "tags", "classes", "categories", *ROLES["label"])

# A key, or a position in brackets.
_PATH_STEP = re.compile(r"([^.\[\]]+)(?![^\[]*\])|\[(\d+)\]")

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


def get_by_path(record: Json, path: str) -> Json:
    """Return the value at a path of keys and positions.

    Parameters
    ----------
    record : parsed JSON
        An object.
    path : str
        Keys with points between them, and positions of lists in brackets.

    Returns
    -------
    parsed JSON

    Raises
    ------
    LookupError
        If the value does not exist.

    Examples
    --------
    >>> get_by_path({"choices": [{"text": "law"}]}, "choices[0].text")
    'law'
    """
    value = record
    for key, position in _PATH_STEP.findall(path):
        if position and isinstance(value, list):
            value = value[int(position)]
        elif key and isinstance(value, dict):
            value = value[key]
        else:
            raise LookupError(path)

    return value


class ScoreParser:
    """Parses the scores in one file: numbers, percentages, and confidences in words.

    A number above 1 may be a percentage without a sign. That depends on the other
    scores of the file, so such numbers are returned as they are, and
    `is_percentage_file` says at the end how to read them.

    Parameters
    ----------
    options : ReadOptions
        Options for reading. Their log receives what was converted.

    Examples
    --------
    >>> parser = ScoreParser(ReadOptions())
    >>> parser.parse("85%", "line 1"), parser.parse("High", "line 1")
    (0.85, 0.95)
    >>> parser.parse(70, "line 2"), parser.is_percentage_file([70, 0.93])
    (70.0, True)
    """

    # Scores on a scale from 1 to 10 are not percentages.
    _SMALLEST_TOP = 10

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._has_percent_signs = False
        self.has_large_numbers = False

    def parse(self, score: Json, where: str) -> float:
        """Return a score, or a number from 1 to 100 that may be a percentage.

        Parameters
        ----------
        score : parsed JSON
            A number, a text or null.
        where : str
            Location of the score, for messages.

        Returns
        -------
        float
        """
        if isinstance(score, str):
            score = self._parse_text(score)

        value_range = self._options.value_range
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        if value_range == UNIT_RANGE and is_number and 1 < score <= 100:
            self.has_large_numbers = True
            return float(score)
        return check_score(score, where, value_range)

    def is_score_text(self, text: str) -> bool:
        """Return whether a text is a percentage or a confidence in words.

        Parameters
        ----------
        text : str
            Text next to a label.

        Returns
        -------
        bool
        """
        word = text.strip().lower()
        is_percentage = word.endswith("%") and _parse_percentage(word) is not None
        return is_percentage or word in self._options.confidences

    def is_percentage_file(self, scores: list[float]) -> bool:
        """Return whether the numbers above 1 in a file are percentages.

        They are if other scores of the file have percent signs, or if no positive score
        is at most 1 and the highest is above 10.

        Parameters
        ----------
        scores : list of float
            All scores of the file.

        Returns
        -------
        bool
        """
        if self._has_percent_signs:
            return True

        positive_scores = [score for score in scores if score > 0]
        if not positive_scores:
            return False
        return min(positive_scores) > 1 and max(positive_scores) > self._SMALLEST_TOP

    def _parse_text(self, text: str) -> str | float:
        """Return the number in a text, or the text itself."""
        word = text.strip().lower()
        log = self._options.log
        if word in self._options.confidences:
            value = self._options.confidences[word]
            log.add("confidences in words read as numbers", f"{word} = {value:g}")
            return value

        percentage = _parse_percentage(word)
        if word.endswith("%") and percentage is not None:
            self._has_percent_signs = True
            log.add("percentages read as scores")
            return percentage

        with contextlib.suppress(ValueError):
            return float(text)
        return text


def _parse_percentage(text: str) -> float | None:
    """Return the share that a percentage is, None if it is not from 0 to 100."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return None

    if 0 <= number <= 100:
        return number / 100
    return None


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
