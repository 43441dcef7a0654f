"""What annotation tools export → judgements as in JSON lines; and a consensus → records that these tools import.

A tool's record, a task or an example, becomes a judgement for each who has said
something about it, with the keys ``model`` (where the record says it), ``instance`` and
``labels`` (``None``: no answer).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..options import ReadOptions

Record = dict[str, Any]


class Tool(NamedTuple):
    """One tool: whether a record can only be its own, what it says, and what is imported, if we write that."""

    fits: Callable[[Record], bool]
    judgements: Callable[[Record, ReadOptions], Iterator[Record]]
    # model, instance, all labels, those chosen, how many are expected to be wrong →
    # record
    written: Callable[[str, str, list[str], list[str], float], Record] | None = None
    # whether all chose from the same labels: who never chose one has said no to it
    one_form: bool = False
    in_pieces: bool = (
        False  # whether what somebody says about an instance may be in several records
    )


def tool_of(found: Any) -> str | None:
    """Return the tool whose record this can only be, if there is one.

    Examples
    --------
    >>> tool_of({"id": 1, "data": {"text": "…"}, "annotations": []}), tool_of({"id": 1, "labels": ["law"]})
    ('label-studio', None)
    """
    return next(
        (
            name
            for name, tool in TOOLS.items()
            if isinstance(found, dict) and tool.fits(found)
        ),
        None,
    )


def _instance(record: Record, rules: ReadOptions, *usual: str) -> Any:
    """Return what an instance is called: as the user says, or as is usual, be it in the record's own data."""
    if "instance" in rules.columns:
        keys = [rules.columns["instance"]]
    else:
        keys = usual

    places = [
        record,
        *(
            own
            for own in map(record.get, ("data", "meta", "metadata"))
            if isinstance(own, dict)
        ),
    ]
    found = next(
        (place[key] for key in keys for place in places if place.get(key) is not None),
        None,
    )
    if found is None:
        raise LookupError(f"no {' or '.join(keys)}: --columns instance=… names it")
    return found


def _label_studio(task: Record, rules: ReadOptions) -> Iterator[Record]:
    said = {"instance": _instance(task, rules, "id", "text")}
    control = rules.columns.get("label")
    for given in [*task.get("annotations", ()), *task.get("predictions", ())]:
        if given and not isinstance(
            given, int
        ):  # a short export lists only the numbers of predictions
            who = given.get("completed_by") or given.get("model_version") or "model"
            if isinstance(who, dict):
                own = who.get("email") or who["id"]
            else:
                own = who

            if given.get("score") is None:
                score = 1.0
            else:
                score = given["score"]

            parts = [
                item
                for item in given["result"]
                if control in (None, item.get("from_name"))
            ]
            labels = {
                name: item.get("score", score)
                for item in parts
                for name in _chosen(item["value"])
            }
            yield said | {
                "model": own,
                "labels": None if given.get("was_cancelled") else labels,
            }


def _chosen(value: Record) -> list[str]:
    return [
        *value.get("choices", ()),
        *map("/".join, value.get("taxonomy", ())),
    ]  # of a taxonomy, the whole path


def _to_label_studio(
    model: str, instance: str, labels: list[str], chosen: list[str], doubt: float
) -> Record:
    choices = {
        "from_name": "choices",
        "to_name": "text",
        "type": "choices",
        "value": {"choices": chosen},
    }
    # Label Studio sorts its queue by this score, the lowest first: what is most in
    # doubt is asked first.
    said = {
        "model_version": model,
        "score": 1 / (1 + doubt),
        "result": [choices] * bool(chosen),
    }
    if instance.isdecimal() and len(instance) < 19:
        task = {"id": int(instance)}
    else:
        task = {}

    return task | {"data": {"text": instance}, "predictions": [said]}


def _prodigy(task: Record, rules: ReadOptions) -> Iterator[Record]:
    who = task.get("_annotator_id") or task.get("_session_id")
    answer = task.get("answer", "accept")
    said = ({} if who is None else {"model": who}) | {
        "instance": _instance(task, rules, "id", "_input_hash", "text")
    }
    if "options" in task:
        options = [str(option["id"]) for option in task["options"]]
        chosen = set(map(str, task.get("accept", ())))
        labels: Any = (
            {option: float(option in chosen) for option in options}
            if answer == "accept"
            else None
        )
    else:
        labels = {
            str(task["label"]): None
            if answer == "ignore"
            else float(answer == "accept")
        }

    yield said | {"labels": labels}


def _to_prodigy(
    model: str, instance: str, labels: list[str], chosen: list[str], doubt: float
) -> Record:
    return {
        "text": instance,
        "options": [{"id": label, "text": label} for label in labels],
        "accept": chosen,
    }


def _argilla(record: Record, rules: ReadOptions) -> Iterator[Record]:
    every = (key.rpartition(".")[0] for key in record if key.endswith(_ARGILLA))
    asked = {
        question
        for question in every
        if rules.columns.get("label", question) == question
    }
    if len(asked) != 1:
        raise LookupError(
            f"the questions {sorted(asked)}: --columns label=… says which counts"
        )

    question = asked.pop()
    said = {"instance": _instance(record, rules, "id")}
    answers, users, states, names, scores, agent = (
        listed(record.get(question + part)) for part in _PARTS
    )
    for value, user, state in zip(answers, users, states, strict=True):
        if state != "draft":
            yield said | {
                "model": user,
                "labels": None if state == "discarded" else listed(value),
            }

    if record.get(question + ".suggestion") is not None:
        labels = dict(zip(names, scores or [1.0] * len(names), strict=True))
        yield said | {"model": (agent or ["suggestion"])[0], "labels": labels}


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as the one thing in a list; of nothing, an empty one.

    Examples
    --------
    >>> listed(["law"]), listed("law"), listed(None)
    (['law'], ['law'], [])
    """
    if isinstance(value, list):
        return value
    if value is None:
        return []
    return [value]


_ARGILLA = (".responses", ".suggestion")
_PARTS = [f".responses{part}" for part in ("", ".users", ".status")]
_PARTS += [f".suggestion{part}" for part in ("", ".score", ".agent")]

TOOLS: Mapping[str, Tool] = {
    "label-studio": Tool(
        lambda found: isinstance(found.get("data"), dict) and bool({"annotations", "predictions"} & found.keys()),
        _label_studio, _to_label_studio, one_form=True),
    "prodigy": Tool(lambda found: "_input_hash" in found or {"options", "accept"} <= found.keys(),
                    _prodigy, _to_prodigy, in_pieces=True),
    "doccano": Tool(
        lambda found: {"id", "text", "label", "Comments"} <= found.keys(),
        lambda found, rules: iter([{"instance": _instance(found, rules, "id", "text"), "labels": found["label"]}]),
        lambda model, instance, labels, chosen, doubt: {"text": instance, "label": chosen}),
    "argilla": Tool(lambda found: any(str(key).endswith(_ARGILLA) for key in found), _argilla, one_form=True),
}  # fmt: skip
