r"""Labels in the answers of language models: JSON of many shapes, or prose.

=======================================================  ===========================
answer                                                   labels
=======================================================  ===========================
``["law", "war"]``                                       law, war
``{"law": 0.9}``, ``[["law", 0.9]]``                     law with the score 0.9
``[{"label": "law", "score": 0.9}]``                     law with the score 0.9
``{"labels": …}``, ``{"tags": …}``, ``{"choices": …}``   those of the value
text with JSON in it, or a Python list                   those of the last JSON
``{"law": "85%"}``, ``law: high``                        law with the score 0.85; 0.95
``{"result": {"labels": …}, "usage": {…}}``              those of the nested object
``law, war``, ``- law\n- war``, ``1. law\n2. war``         law, war
``law: 0.9, war (0.2)``                                  law and war with scores
``no labels apply``                                      an empty set
``none``, ``n/a``, a refusal, a sentence                 no answer
=======================================================  ===========================
"""

import ast
import contextlib
import json
import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from ...errors import InputError
from ..columns import MISSING, ROLES
from ..options import ReadOptions
from .json_values import (
    LABEL_KEYS,
    Json,
    ScoreParser,
    Tags,
    check_name,
    describe_kind,
)

RawTags = list[tuple[Json, Json]]  # labels and scores that are not checked yet

_MAX_WORDS = 5  # of a label; a longer text is a sentence
_MAX_BRACKETS = 200  # in a text, at which JSON may begin

# The end of a model's reasoning, which precedes its answer.
_END_OF_REASONING = re.compile(r"</think(?:ing)?>", re.I)
_JSON_START = re.compile(r"""[\[{]\s*["']""")
_PYTHON_LITERAL = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}")

# Words before labels, and a full stop after them unless it is that of "U.S.".
_AROUND_LABELS = re.compile(
    r"^(the )?(labels?|tags?|categor(y|ies)|topics?|answer)( are| is)?\s*:\s*"
    r"|(?<!\.\w)\.$",
    re.I,
)
_BETWEEN_LABELS = re.compile(r"[,;|\n]|</?\w+>")
_LIST_MARKS = " \t\r-*•\"'`"
_MARKS = " \t.()*\"'`"
_NUMBERING = re.compile(r"\d+[.)]\s+")
_LABEL_WITH_SCORE = re.compile(r"(.*\S)\s*[:=(]\s*([^:=()]+)\)?")
_NUMBER = re.compile(r"[01]|[01]?\.\d+")
_EMPTY_SET = re.compile(
    r"nothing\W*$|(there (are|is) )?(no|none|nothing)\b[^,;\n]*\b"
    r"(labels?|tags?|categor|topics?|appl|above|match|these\b|them\b)",
    re.I,
)
_REFUSAL = re.compile(
    r"(i['’]m|i (am|can|cannot|could|do|don)|sorry|unfortunately|unable|cannot"
    r"|as an ai)\b",
    re.I,
)


def parse_answer(
    answer: Json,
    where: str,
    options: ReadOptions,
    scores: ScoreParser | None = None,
) -> Tags | None:
    """Return the labels in the answer of a language model.

    Parameters
    ----------
    answer : parsed JSON
        Text, list or object.
    where : str
        Location of the answer, for messages.
    options : ReadOptions
        What is read differently from the file is added to its log.
    scores : ScoreParser, default=None
        Parses the scores of the file. By default, this answer is a file of its own.

    Returns
    -------
    list of (str, float) or None
        Each label once, with its highest score; NaN is missing. ``None`` without an
        answer.

    Examples
    --------
    >>> parse_answer("Labels: law, war.", "line 1", ReadOptions())
    [('law', 1.0), ('war', 1.0)]
    """
    if scores is None:
        scores = ScoreParser(options)

    raw_tags = _find_tags(answer, where, options, scores)
    if raw_tags is None:
        return None

    score_by_label: dict[str, float] = {}
    for label, score in raw_tags:
        if label is None or (isinstance(label, str) and not label.strip()):
            options.log.add("empty tags left out")
            continue

        name = check_name(label, f"{where}, labels")
        value = scores.parse(score, f"{where}, label {label!r}")
        if name in score_by_label:
            options.log.add("duplicate tags read once", name)
            value = float(np.fmax(score_by_label[name], value))

        score_by_label[name] = value

    return list(score_by_label.items())


def _find_tags(
    answer: Json,
    where: str,
    options: ReadOptions,
    scores: ScoreParser,
    is_in_text: bool = False,
) -> RawTags | None:
    """Return the labels and scores in nested texts, lists and objects."""
    if isinstance(answer, str):
        answer = _parse_text(answer, where, options, scores)
        is_in_text = True

    if isinstance(answer, dict):
        answer = _unwrap_object(answer, is_in_text, options)
        key = _find_labels_key(answer, is_in_text)
        has_score = key is not None and _is_label_with_score(answer, key)
        if key is not None and not has_score:
            for other_key in answer:
                if other_key != key:
                    options.log.add("keys left out", str(other_key))

            return _find_tags(answer[key], where, options, scores, is_in_text)

        if has_score:
            answer = [answer]
        else:
            answer = list(answer.items())

    if answer is None or _is_single_none(answer, options):
        return None
    if not isinstance(answer, list):
        raise InputError(
            where=f"{where}, labels",
            found=describe_kind(answer),
            expected="a list or an object of scores",
        )

    tags: RawTags = []
    for item in answer:
        if isinstance(item, dict) and not _has_label(item):
            tags += _find_tags(item, where, options, scores, is_in_text) or []
        else:
            tags.append(_split_item(item))

    return tags


def _unwrap_object(
    answer: dict[str, Json], is_in_text: bool, options: ReadOptions
) -> dict[str, Json]:
    """Return the only object inside an object that has a key for labels.

    An object that has such a key itself, or that has none inside, is returned as it is.
    """
    if _find_labels_key(answer, is_in_text) is not None:
        return answer

    objects = _list_objects_with_labels(answer, is_in_text)
    if len(objects) != 1:
        return answer

    for key, value in answer.items():
        if not _list_objects_with_labels(value, is_in_text):
            options.log.add("keys left out", str(key))
    return objects[0]


def _list_objects_with_labels(value: Json, is_in_text: bool) -> list[dict[str, Json]]:
    """Return the objects inside a value that have a key for labels."""
    if not isinstance(value, dict):
        return []
    if _find_labels_key(value, is_in_text) is not None:
        return [value]

    objects = []
    for item in value.values():
        objects += _list_objects_with_labels(item, is_in_text)
    return objects


def _find_labels_key(answer: dict[str, Json], is_in_text: bool) -> str | None:
    """Return the key of an object under which the labels are, if there is one.

    A number is the score of a label with that name. So is null, unless a language model
    wrote the object in a text.
    """
    for key in (*LABEL_KEYS, "choices"):
        if isinstance(answer.get(key), str | list | dict):
            return key

    if is_in_text:
        for key in LABEL_KEYS:
            if key in answer and answer[key] is None:
                return key

    return None


def _is_label_with_score(answer: dict[str, Json], key: str) -> bool:
    """Return whether an object is one label with its score."""
    return (
        key in ROLES["label"]
        and isinstance(answer[key], str)
        and not answer.keys().isdisjoint(ROLES["score"])
    )


def _is_single_none(answer: Json, options: ReadOptions) -> bool:
    """Return whether a list has the only item "none", and this is not a label."""
    if not isinstance(answer, list) or len(answer) != 1:
        return False

    text = answer[0]
    if not isinstance(text, str) or text.strip(_MARKS).lower() not in ("none", "n/a"):
        return False
    return not (options.vocabulary and options.resolve_label(text))


def _has_label(item: dict[str, Json]) -> bool:
    """Return whether an object in a list names one label."""
    return not item.keys().isdisjoint((*ROLES["label"], "name"))


def _split_item(item: Json) -> tuple[Json, Json]:
    """Return the label and the score of an item of a list."""
    if isinstance(item, dict):
        label_key = next(filter(item.__contains__, (*ROLES["label"], "name")))
        score_key = next(filter(item.__contains__, ROLES["score"]), None)
        if score_key is None:
            return item[label_key], 1.0
        return item[label_key], item[score_key]

    if isinstance(item, tuple | list) and len(item) == 2:
        label, score = item
        return label, score

    return item, 1.0


def _parse_text(
    text: str, where: str, options: ReadOptions, scores: ScoreParser
) -> Json:
    """Return the JSON in a text, or its labels; ``None`` without an answer."""
    text = _END_OF_REASONING.split(text)[-1].strip()
    text = text.strip("`").removeprefix("json").strip()

    # JSON, maybe between sentences.
    answer, end = _find_json(text)
    begins_like_json = answer is None and text.startswith(("[", "{"))
    if begins_like_json or _JSON_START.search(text, end):
        raise InputError(
            where=f"{where}, labels",
            found="JSON that is broken or cut off",
            expected="whole JSON, or tags",
        )
    if answer:
        return answer
    if answer is not None or _EMPTY_SET.match(text):
        return []

    # Labels with commas or line ends between them, or an answer that has none.
    parts = _split_labels(text)
    n_words = max((len(part.split()) for part in parts), default=9)
    is_missing = text.strip(_MARKS).lower() in MISSING
    if n_words > _MAX_WORDS or is_missing or _REFUSAL.match(text):
        return None

    tags = _split_scores(parts, scores)
    names = [label for label, _ in tags]
    if options.vocabulary and not any(map(options.resolve_label, names)):
        event = "texts without a label of the vocabulary"
        if any(map(options.matches_ignoring_case, names)):
            event += " but for case (--ignore-case reads them)"

        options.log.add(event, text[:40])
        return None

    options.log.add("texts read as tags")
    if tags[0][1] is None:
        return names
    return tags


def _split_labels(text: str) -> list[str]:
    """Return the parts of a text between separators, without list marks."""
    parts = []
    for part in _BETWEEN_LABELS.split(text):
        part = _AROUND_LABELS.sub("", part.strip(_LIST_MARKS))

        # Parts with such an end are sentences before or after the labels.
        if part and not part.endswith((":", "!", "?")):
            parts.append(part)

    if all(map(_NUMBERING.match, parts)):
        return [_NUMBERING.sub("", part) for part in parts]
    return parts


def _split_scores(
    parts: list[str], scores: ScoreParser
) -> list[tuple[str, str | None]]:
    """Return labels with the text of their scores, ``None`` unless all have one."""
    tags: list[tuple[str, str | None]] = []
    for part in parts:
        match = _LABEL_WITH_SCORE.fullmatch(part)
        if match is None or not _is_score(match[2], scores):
            return [(label, None) for label in parts]

        tags.append((match[1], match[2]))

    return tags


def _is_score(text: str, scores: ScoreParser) -> bool:
    """Return whether the text after a label is its score."""
    return _NUMBER.fullmatch(text) is not None or scores.is_score_text(text)


def _find_json(text: str) -> tuple[Json, int]:
    """Return the last list or object in a text, and where it ends.

    Lists of numbers are not an answer, unless they are the entire text.
    """
    answer = None
    answer_end = 0
    end = 0
    for start in _find_brackets(text):
        if start < end:
            continue

        with contextlib.suppress(
            ValueError, TypeError, SyntaxError, RecursionError, MemoryError
        ):
            value, end = _parse_json_or_python(text, start)
            is_entire_text = end - start == len(text)
            if value is not None and (is_entire_text or _may_hold_labels(value)):
                answer = value
                answer_end = end

    return answer, answer_end


def _find_brackets(text: str) -> Iterator[int]:
    """Iterate over the positions at which JSON may begin."""
    for match in islice(re.finditer(r"[\[{]", text), _MAX_BRACKETS):
        yield match.start()


def _may_hold_labels(value: Json) -> bool:
    """Return whether a list or object is empty or holds more than numbers."""
    return not value or any(isinstance(item, str | list | dict) for item in value)


def _parse_json_or_python(text: str, start: int) -> tuple[Json, int]:
    """Return the JSON or the Python literal at a position, and where it ends."""
    with contextlib.suppress(ValueError):
        return json.JSONDecoder().raw_decode(text, start)

    literal = _PYTHON_LITERAL.match(text, start)
    if literal is None:
        return None, start
    return ast.literal_eval(literal[0]), literal.end()
