"""Records of annotation tools, and results of batches of language models.

An exported record, called a task or an example, becomes an answer for each annotator or
model that labeled it: a dict with the keys ``model`` (if the record names it),
``instance`` and ``labels`` (``None`` if the annotator skipped it). A consensus becomes
records that the tools import.
"""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..options import ReadOptions
from . import batch_answers
from .json_values import Json

Record = dict[str, Json]  # a parsed JSON object

# From model, instance, all labels, chosen labels, and the expected number of labels
# that are wrong.
MakeRecord = Callable[[str, str, list[str], list[str], float], Record]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """An annotation tool.

    Parameters
    ----------
    matches : callable
        Returns whether a record can only be one of this tool.
    parse : callable
        Returns the answers in a record.
    make_record : callable, default=None
        Returns the record to import. ``None`` if that is not supported.
    has_fixed_labels : bool, default=False
        Whether all annotators choose from the same labels, so that a label that an
        annotator never chooses has the score 0.
    is_split : bool, default=False
        Whether the labels of an instance by one annotator may be in several records.
    """

    matches: Callable[[Record], bool]
    parse: Callable[[Record, ReadOptions], Iterator[Record]]
    make_record: MakeRecord | None = None
    has_fixed_labels: bool = False
    is_split: bool = False


def find_tool(record: object) -> str | None:
    """Return the name of the tool that a record can only be from.

    Parameters
    ----------
    record : parsed JSON
        The record.

    Returns
    -------
    str or None
        ``None`` for other names.

    Examples
    --------
    >>> find_tool({"id": 1, "data": {"text": "…"}, "annotations": []})
    'label-studio'
    >>> find_tool({"id": 1, "labels": ["law"]}) is None
    True
    """
    if not isinstance(record, dict):
        return None

    for name, tool in TOOLS.items():
        if tool.matches(record):
            return name

    return None


def make_list(value: Json) -> list[Json]:
    """Return a list as it is, ``None`` as an empty list, and a value as its only item.

    Parameters
    ----------
    value : object
        The value to check.

    Returns
    -------
    list

    Examples
    --------
    >>> make_list(["law"]), make_list("law"), make_list(None)
    (['law'], ['law'], [])
    """
    if isinstance(value, list):
        return value
    if value is None:
        return []
    return [value]


def _find_instance(record: Record, options: ReadOptions, *default_keys: str) -> Json:
    """Return the name of the instance, which may be in the data of the record."""
    keys = default_keys
    if "instance" in options.columns:
        keys = (options.columns["instance"],)

    places = [record]
    for key in ("data", "meta", "metadata"):
        if isinstance(record.get(key), dict):
            places.append(record[key])

    for key in keys:
        for place in places:
            if place.get(key) is not None:
                return place[key]

    raise LookupError(f"no {' or '.join(keys)}: --columns instance=… names it")


# Label Studio


def _is_label_studio(record: Record) -> bool:
    """Return whether a record is a task of Label Studio."""
    has_data = isinstance(record.get("data"), dict)
    return has_data and ("annotations" in record or "predictions" in record)


def _parse_label_studio(task: Record, options: ReadOptions) -> Iterator[Record]:
    """Iterate over the annotations and predictions of a task."""
    instance = _find_instance(task, options, "id", "text")
    control = options.columns.get("label")
    for annotation in [*task.get("annotations", ()), *task.get("predictions", ())]:
        # A short export lists only the numbers of predictions.
        if not annotation or isinstance(annotation, int):
            continue

        labels: Record | None = _parse_regions(annotation, control)
        if annotation.get("was_cancelled"):
            labels = None

        model = _find_annotator(annotation)
        yield {"instance": instance, "model": model, "labels": labels}


# Keys of the short export of Label Studio, with JSON-MIN and CSV.
_SHORT_KEYS = frozenset({"annotation_id", "annotator", "lead_time", "id"})
_SHORT_DATES = frozenset({"created_at", "updated_at"})


def is_short_label_studio(columns: Iterable[str]) -> bool:
    """Return whether keys or columns are those of Label Studio's JSON-MIN or CSV.

    Parameters
    ----------
    columns : iterable of str
        Keys of a record, or the header of a table.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_short_label_studio(["annotation_id", "annotator", "id", "lead_time", "text"])
    True
    """
    return _SHORT_KEYS.issubset(columns)


def _parse_short_label_studio(record: Record, options: ReadOptions) -> Iterator[Record]:
    """Iterate over the one annotation in a record of the short export.

    A control in which nothing was chosen has no key, or an empty cell.
    """
    control = options.columns.get("label")
    if control is None:
        keys = sorted(record.keys() - _SHORT_KEYS - _SHORT_DATES)
        raise LookupError(
            f"the keys {', '.join(keys)}: --columns label=… says which has the labels"
        )

    labels = _parse_choices_of_control(record.get(control))
    instance = _find_instance(record, options, "id")
    yield {"instance": instance, "model": record["annotator"], "labels": labels}


def _parse_choices_of_control(value: Json) -> list[Json]:
    """Return the labels that the short export lists for a control."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with contextlib.suppress(ValueError):
            value = json.loads(value)

    if isinstance(value, dict):
        value = value.get("choices") or value.get("taxonomy")

    labels = []
    for item in make_list(value):
        # A label of a taxonomy is the path to it.
        if isinstance(item, list):
            labels.append("/".join(item))
        elif item != "":
            labels.append(item)
    return labels


def _find_annotator(annotation: Record) -> Json:
    """Return who made an annotation of Label Studio."""
    annotator = (
        annotation.get("completed_by") or annotation.get("model_version") or "model"
    )
    if isinstance(annotator, dict):
        return annotator.get("email") or annotator["id"]
    return annotator


def _parse_regions(annotation: Record, control: str | None) -> Record:
    """Return the labels of an annotation of Label Studio with their scores."""
    default_score = annotation.get("score")
    if default_score is None:
        default_score = 1.0

    labels = {}
    for region in annotation["result"]:
        if control not in (None, region.get("from_name")):
            continue

        value = region["value"]
        # A label of a taxonomy is the path to it.
        paths = map("/".join, value.get("taxonomy", ()))
        for name in [*value.get("choices", ()), *paths]:
            labels[name] = region.get("score", default_score)

    return labels


def _make_label_studio(
    model: str,
    instance: str,
    labels: list[str],
    chosen: list[str],
    uncertainty: float,
) -> Record:
    """Return a task of Label Studio with a prediction."""
    result = []
    if chosen:
        result.append(
            {
                "from_name": "choices",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": chosen},
            }
        )

    # Label Studio sorts its queue by this score, the lowest first, so that annotators
    # see the most uncertain tasks first.
    prediction = {
        "model_version": model,
        "score": 1 / (1 + uncertainty),
        "result": result,
    }
    task: Record = {}
    if instance.isdecimal() and len(instance) < 19:
        task["id"] = int(instance)

    return task | {"data": {"text": instance}, "predictions": [prediction]}


# Prodigy


def _is_prodigy(record: Record) -> bool:
    """Return whether a record is a task of Prodigy."""
    return "_input_hash" in record or {"options", "accept"} <= record.keys()


def _parse_prodigy(task: Record, options: ReadOptions) -> Iterator[Record]:
    """Iterate over the one answer in a task of Prodigy."""
    record: Record = {}
    annotator = task.get("_annotator_id") or task.get("_session_id")
    if annotator is not None:
        record["model"] = annotator

    answer = task.get("answer", "accept")
    record["instance"] = _find_instance(task, options, "id", "_input_hash", "text")
    record["labels"] = None
    if "options" in task:
        scores = _parse_choices(task)
        if answer == "accept":
            record["labels"] = scores
    else:
        score = None
        if answer != "ignore":
            score = float(answer == "accept")

        record["labels"] = {str(task["label"]): score}

    yield record


def _parse_choices(task: Record) -> dict[str, float]:
    """Return 1 for each option of Prodigy's choice interface that is chosen, else 0."""
    scores = {}
    for option in task["options"]:
        scores[str(option["id"])] = 0.0

    chosen = set(map(str, task.get("accept", ())))
    for label in chosen.intersection(scores):
        scores[label] = 1.0

    return scores


def _make_prodigy(
    model: str,
    instance: str,
    labels: list[str],
    chosen: list[str],
    uncertainty: float,
) -> Record:
    """Return a task of Prodigy's choice interface."""
    return {
        "text": instance,
        "options": [{"id": label, "text": label} for label in labels],
        "accept": chosen,
    }


# doccano


def _is_doccano(record: Record) -> bool:
    """Return whether a record is an example of doccano."""
    return {"id", "text", "label", "Comments"} <= record.keys()


def _parse_doccano(record: Record, options: ReadOptions) -> Iterator[Record]:
    """Iterate over the one answer in an example of doccano."""
    instance = _find_instance(record, options, "id", "text")
    yield {"instance": instance, "labels": record["label"]}


def _make_doccano(
    model: str,
    instance: str,
    labels: list[str],
    chosen: list[str],
    uncertainty: float,
) -> Record:
    """Return an example of doccano."""
    return {"text": instance, "label": chosen}


# Argilla

_ARGILLA_SUFFIXES = (".responses", ".suggestion")


def _is_argilla(record: Record) -> bool:
    """Return whether a record is one of Argilla."""
    return bool(_list_questions(record))


def _list_questions(record: Record) -> set[str]:
    """Return the questions that have responses or suggestions in a record."""
    questions = set()
    for key in record:
        question, dot, suffix = str(key).rpartition(".")
        if f"{dot}{suffix}" in _ARGILLA_SUFFIXES:
            questions.add(question)

    return questions


def _parse_argilla(record: Record, options: ReadOptions) -> Iterator[Record]:
    """Iterate over the responses and the suggestion in a record of Argilla."""
    question = _find_question(record, options)
    instance = _find_instance(record, options, "id")

    responses = make_list(record.get(f"{question}.responses"))
    users = make_list(record.get(f"{question}.responses.users"))
    states = make_list(record.get(f"{question}.responses.status"))
    for response, user, state in zip(responses, users, states, strict=True):
        if state == "draft":
            continue

        labels: list[Json] | None = make_list(response)
        if state == "discarded":
            labels = None

        yield {"instance": instance, "model": user, "labels": labels}

    suggestion = record.get(f"{question}.suggestion")
    if suggestion is not None:
        names = make_list(suggestion)
        scores = make_list(record.get(f"{question}.suggestion.score"))
        if not scores:
            scores = [1.0] * len(names)

        agents = make_list(record.get(f"{question}.suggestion.agent"))
        model = "suggestion"
        if agents:
            model = agents[0]

        labels_with_scores = dict(zip(names, scores, strict=True))
        yield {"instance": instance, "model": model, "labels": labels_with_scores}


def _find_question(record: Record, options: ReadOptions) -> str:
    """Return the one question in a record of Argilla, or the one that is named."""
    questions = _list_questions(record)
    if "label" in options.columns:
        questions &= {options.columns["label"]}
    if len(questions) != 1:
        raise LookupError(
            f"the questions {sorted(questions)}: --columns label=… says which counts"
        )

    return questions.pop()


# Batches of language models


def _parse_openai(record: Record, options: ReadOptions) -> Iterator[Record]:
    """Iterate over the one answer in a result of OpenAI."""
    instance = _find_instance(record, options, batch_answers.INSTANCE_KEY)
    yield {"instance": instance, "labels": batch_answers.get_openai_answer(record)}


def _parse_anthropic(record: Record, options: ReadOptions) -> Iterator[Record]:
    """Iterate over the one answer in a result of Anthropic."""
    instance = _find_instance(record, options, batch_answers.INSTANCE_KEY)
    yield {"instance": instance, "labels": batch_answers.get_anthropic_answer(record)}


TOOLS: Mapping[str, Tool] = {
    "label-studio": Tool(
        matches=_is_label_studio,
        parse=_parse_label_studio,
        make_record=_make_label_studio,
        has_fixed_labels=True,
    ),
    "label-studio-short": Tool(
        matches=is_short_label_studio,
        parse=_parse_short_label_studio,
        has_fixed_labels=True,
    ),
    "prodigy": Tool(
        matches=_is_prodigy,
        parse=_parse_prodigy,
        make_record=_make_prodigy,
        is_split=True,
    ),
    "doccano": Tool(
        matches=_is_doccano, parse=_parse_doccano, make_record=_make_doccano
    ),
    "argilla": Tool(matches=_is_argilla, parse=_parse_argilla, has_fixed_labels=True),
    "openai-batch": Tool(matches=batch_answers.is_openai, parse=_parse_openai),
    "anthropic-batch": Tool(matches=batch_answers.is_anthropic, parse=_parse_anthropic),
}
