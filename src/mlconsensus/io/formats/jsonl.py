"""JSON lines, or a JSON array, of tag lists, as annotators and language models give them.

Each line is one model's judgement of one instance: ``{"instance": "7", "labels": ["a",
"b"]}`` or ``{"instance": "7", "labels": {"a": 0.9}}``, with ``"model"`` where one file
holds several. Unless reading is strict, what language models make of that is read too,
and counted. Records of annotation tools are recognised, and written where one is named.
"""

import ast
import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, repeat
from typing import IO, Any

import numpy as np
import polars as pl
from scipy import sparse

from ...errors import InputError, expect, nearest
from ...predictions import ScoreTable
from .. import layouts
from ..columns import MISSING, ROLES, outside, raise_bad_score
from ..encoding import decoded
from ..files import InputFile, Place, first_line
from ..layouts import Layout
from ..options import ReadOptions
from .annotation_tools import TOOLS, listed, tool_of
from .registry import Keep, NamedFrame

Tags = list[tuple[str, float]]  # labels and their scores
_SHAPE = (
    '{"instance": "7", "labels": ["a", "b"]} or {"instance": "7", "labels": {"a": 0.9}}'
)

# What the parts of a judgement may be called, in the order in which they are looked
# for.
_KEYS = {
    "instance": ("instance", "id", *ROLES["instance"]),
    "labels": ("labels", "tags", "classes", "categories", *ROLES["label"]),
    "model": ROLES["model"][:-1],  # a "source" is that of a document
}
_WORDS = 5  # a tag has no more of them; longer is a sentence
_BRACKETS = 200  # in a text, at which JSON may begin
_THOUGHT = re.compile(r"</think(?:ing)?>", re.I)  # how thoughts end, which come first
_OPENED = re.compile(r"""[\[{]\s*["']""")  # how JSON with text in it begins
_PYTHON = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}")
# What leads to a tag, and a full stop behind it, but for that of "U.S."
_AROUND = re.compile(
    r"^(the )?(labels?|tags?|categor(y|ies)|topics?|answer)( are| is)?\s*:\s*|(?<!\.\w)\.$",
    re.I,
)
_BETWEEN = re.compile(r"[,;|\n]|</?\w+>")
_MARKS = " \t.()*\"'`"
_NUMBER = re.compile(r"\d+[.)]\s+")
_SCORED = re.compile(r"(.*\S)\s*[:=(]\s*([01]|[01]?\.\d+)\)?")
_ABOUT = r"(labels?|tags?|categor|topics?|appl|above|match|these\b|them\b)"
_NOTHING = re.compile(
    rf"nothing\W*$|(there (are|is) )?(no|none|nothing)\b[^,;\n]*\b{_ABOUT}", re.I
)
_REFUSAL = re.compile(
    r"(i['’]m|i (am|can|cannot|could|do|don)|sorry|unfortunately|unable|cannot|as an ai)\b",
    re.I,
)


def read(
    file: InputFile,
    keep: Keep | None = None,
    array: bool = False,
    tool: str | None = None,
) -> NamedFrame:
    r"""Read tag lists, or an export of an annotation tool, as a long frame.

    Examples
    --------
    >>> lines = b'{"instance": 7, "labels": ["a", "b"]}\n{"instance": 8, "labels": {"b": 0.9}}\n'
    >>> read(InputFile("tags.jsonl", "tags", lambda: lines)).rows.rows()
    [('7', 'a', 1.0), ('7', 'b', 1.0), ('8', 'b', 0.9)]
    """
    unit, entries = _entries(decoded(file.read(), file.name), array, file)
    return frame_of(entries, unit, file, tool)


def frame_of(
    entries: Iterable[tuple[int, Any]],
    unit: str,
    file: InputFile,
    named: str | None = None,
) -> NamedFrame:
    """Make a long frame of numbered entries: parsed JSON, or its text where each is a line.

    Examples
    --------
    >>> frame_of(enumerate([{"instance": 7, "labels": {"a": 0.5}}]), "row", InputFile("a", "a", bytes)).rows.rows()
    [('7', 'a', 0.5)]
    """
    said: list[tuple[str, str | None, float, str | None, int]] = []  # the last is where
    seen: dict[tuple[str | None, str], int] = {}
    bad: list[str] = []
    model: str | None = None
    tool: str | None = None
    own_keys = set(file.rules.columns.values())
    told = (
        unit == "document" or not own_keys
    )  # whether any entry has a key that the user names; Annif's have none
    for number, entry in entries:
        where = f"{file.name}, {unit} {number}"
        try:
            if unit == "line":
                entry = _parsed(entry, where)

            tool = named or tool_of(entry)
            told = (
                told
                or tool is not None
                or (isinstance(entry, dict) and not own_keys.isdisjoint(entry))
            )
            for answer in (
                [entry] if tool is None else TOOLS[tool].judgements(entry, file.rules)
            ):
                own, instance, tags = _judgement(
                    answer, where, file.rules, tool is None
                )
                if seen and (own is None) != (model is None):
                    found, other = (
                        ("no model", "one") if own is None else ("a model", "none")
                    )
                    raise InputError(
                        f"{where}: found {found}, expected {other}, as in the {unit}s before"
                    )

                if (own, instance) in seen and not (tool and TOOLS[tool].in_pieces):
                    again = f"the instance {instance!r} again (first in {unit} {seen[own, instance]})"
                    raise InputError(
                        f"{where}: found {again}, expected each once from a model"
                    )

                if tags is None:
                    file.rules.note("answers without labels read as silence")
                else:
                    model = own
                    seen[own, instance] = number

                every: Sequence[tuple[str | None, float]] = tags or [
                    (None, math.nan if tags is None else 0.0)
                ]
                said += [
                    (instance, label, score, own, number) for label, score in every
                ]
        except (
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as fault:
            other = f"{where}: found no {tool or 'answer'} ({fault}), expected it"
            bad.append(str(fault) if isinstance(fault, InputError) else other)
            if file.rules.strict:
                raise InputError(bad[0]) from None

    _report(bad, file, bool(seen))
    if not told:
        file.rules.unnamed.add(file.name)
    if tool is not None and TOOLS[tool].one_form:
        given = dict.fromkeys(
            (label, own) for _, label, _, own, _ in said if label is not None
        )
        labels = dict.fromkeys(label for label, _ in given)
        one_of = dict(seen.keys())
        # One "no" tells that a label was there to choose.
        said += [
            (one_of[own], label, 0.0, own, 0)
            for own in one_of
            for label in labels
            if (label, own) not in given
        ]

    done = file.rules.summary()
    if not (bool(seen)):
        raise InputError(
            where=file.name,
            found="no answer that can be read",
            expected="at least one" + f" ({done})" * bool(done),
        )

    columns = ["instance", "label", "score", *["model"] * (model is not None)]
    try:
        kinds = {
            "0": pl.String,
            "1": pl.String,
            "2": pl.Float64,
            "3": pl.String,
            "4": pl.Int64,
        }
        rows = pl.DataFrame(said, schema=kinds, orient="row")
    except UnicodeEncodeError:
        raise InputError(
            f"{file.name}: found half a surrogate pair in a name, expected Unicode text"
        ) from None

    return NamedFrame(
        rows[:, : len(columns)],
        columns,
        Place(file.name, unit, rows["4"].__getitem__),
        bare=True,
    )


def write(
    file: IO[bytes],
    table: ScoreTable,
    layout: Layout,
    array: bool = False,
    tool: str | None = None,
) -> None:
    r"""Write one table as tag lists: labels alone where scores are bool, else labels with scores, ``null`` if missing.

    For a tool, what it imports: the labels of scores of at least 0.5.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> write(file, ScoreTable("a", np.array([[True, False]]), ["7"], ["x", "y"]), "wide")
    >>> write(file, ScoreTable("a", np.array([[0.25, np.nan]]), ["7"], ["x", "y"]), "wide")
    >>> print(file.getvalue().decode(), end="")
    {"instance": "7", "labels": ["x"]}
    {"instance": "7", "labels": {"x": 0.25, "y": null}}
    """
    if tool is None:
        record = None
    else:
        record = TOOLS[tool].written

    instances, labels = (
        [str(name) for name in names] for names in layouts.named(table)
    )
    rows = zip(
        repeat(range(len(labels))), table.scores
    )  # of each, columns and what stands in them
    if sparse.issparse(table.scores):
        whole = layouts.listed(table.scores)
        each, cells = (
            np.split(part, whole.indptr[1:-1]) for part in (whole.indices, whole.data)
        )
        rows = zip(map(np.ndarray.tolist, each), cells, strict=True)

    for at_row, (instance, (columns, values)) in enumerate(
        zip(instances, rows, strict=True)
    ):
        named = zip(columns, values.tolist(), strict=True)
        said = {labels[at]: None if value != value else value for at, value in named}
        chosen = [
            label for label, value in said.items() if value is not None and value >= 0.5
        ]
        entry = {
            "instance": instance,
            "labels": chosen if table.scores.dtype.kind == "b" else said,
        }
        if record is not None:
            doubt = sum(
                max(min(value, 1 - value), 0.0)
                for value in said.values()
                if value is not None
            )
            entry = record(table.model, instance, labels, chosen, doubt)

        line = json.dumps(entry, ensure_ascii=False)
        file.write((("," if at_row else "[") * array + line).encode() + b"\n")

    file.write(b"]\n" * array)


def named_row(row: Any, at: int, named: dict[str, Any], rules: ReadOptions) -> Any:
    """Return a row of a dataset with names in place of the numbers of classes, and its number if it has no instance.

    Examples
    --------
    >>> named_row({"labels": [1]}, 5, {"labels": ["law", "war"]}, ReadOptions())
    {'instance': 5, 'labels': ['war']}
    """
    if not isinstance(row, dict) or tool_of(row):
        return row

    names = {
        key: [own[at] for at in listed(row[key])]
        for key, own in named.items()
        if own and row.get(key) is not None
    }
    known = {rules.columns.get("instance"), *_KEYS["instance"]} & row.keys()
    return ({} if known else {"instance": at}) | row | names


def _entries(
    text: str, array: bool, file: InputFile
) -> tuple[str, Iterable[tuple[int, Any]]]:
    """Take a file apart: numbered lines that are not empty, or the entries of an array or of an object by instance."""
    rules = file.rules
    if array or (not rules.strict and text.lstrip().startswith("[")):
        try:
            found = _parsed(text, file.name)
            if isinstance(found, dict) and not (
                tool_of(found) or any(key in found for key in _KEYS["labels"])
            ):
                found = [
                    {"instance": instance, "labels": tags}
                    for instance, tags in found.items()
                ]

            return "entry", enumerate(found if isinstance(found, list) else [found], 1)
        except InputError:
            if rules.strict or "\n" not in text.strip():
                raise  # else JSON lines may have any suffix

    return "line", (
        (number, line)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    )


def _report(bad: list[str], file: InputFile, some: bool) -> None:
    """Refuse what could not be read, all at once, unless it is to be left out and there is some that could."""
    if bad and not some:
        raise InputError(f"{bad[0]}; there is no answer that can be read")
    if bad and file.rules.skip_bad:
        if len(bad) > 1:
            several = f"{len(bad):,} from "
        else:
            several = ""

        file.rules.note(
            "bad answers left out", several + bad[0].split(":")[0], len(bad)
        )
    elif bad:
        told = "; ".join(
            fault.removeprefix(f"{file.name}, ").split(", expected")[0]
            for fault in bad[:3]
        )
        several = f"{file.name}: found {len(bad)} bad answers ({told}{'; …' * (len(bad) > 3)}), expected none"
        raise InputError(
            f"{bad[0] if len(bad) == 1 else several} (--skip-bad leaves them out)"
        )


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except InputError as fault:
        raise InputError(f"{where}: {fault}") from None
    except (ValueError, RecursionError) as fault:
        raise InputError(
            f"{where}: found no JSON ({first_line(fault)}), expected {_SHAPE}"
        ) from None


def _judgement(
    found: Any, where: str, rules: ReadOptions, as_it_is: bool
) -> tuple[str | None, str, Tags | None]:
    """Return the model, if it is named, the instance and its tags; ``None``: there is no answer.

    What a tool's record was turned into has our own keys, whatever the user calls them
    in the record.
    """
    if not isinstance(found, dict):
        raise InputError(f"{where}: found {_kind(found)}, expected {_SHAPE}")

    parts: dict[str, Any] = {}
    for part, usual in _KEYS.items():
        if as_it_is:
            own = rules.columns.get(part.removesuffix("s"), part)
        else:
            own = part

        parts[part] = next(
            (
                key
                for key in (own, *usual[: 0 if rules.strict else None])
                if key in found
            ),
            None,
        )

    for key in [key for key in found if key not in parts.values()]:
        hint = nearest(key, _KEYS)
        known = f"the key {key!r}", f"instance, labels and perhaps model{hint}"
        expect(not rules.strict, where, *known)
        rules.note("keys left out", key)

    for part in ("instance", "labels"):
        keys = ", ".join(map(repr, list(found)[:5]))
        role = part.removesuffix("s")
        lacking = (
            f"no key {part!r} among {keys or 'none'}",
            f"{_SHAPE}, or --columns {role}=… to name it",
        )
        expect(parts[part] is not None, where, *lacking)

    if parts["model"] is not None:
        model = _name(found[parts["model"]], f"{where}, model")
    else:
        model = None

    instance = _name(found[parts["instance"]], f"{where}, instance")
    tags = found[parts["labels"]]
    strictly = rules.strict and tags is not None
    return (
        model,
        instance,
        _strict_tags(tags, where) if strictly else _tags(tags, where, rules),
    )


def _strict_tags(tags: Any, where: str) -> Tags:
    if not (isinstance(tags, list | dict)):
        raise InputError(
            where=f"{where}, labels",
            found=_kind(tags),
            expected="a list or an object of scores",
        )
    if isinstance(tags, dict):
        scores = tags.items()
    else:
        scores = [(label, 1.0) for label in tags]

    return [
        (_name(label, f"{where}, labels"), _score(score, f"{where}, label {label!r}"))
        for label, score in scores
    ]


def _tags(found: Any, where: str, rules: ReadOptions) -> Tags | None:
    """Return tags as language models give them, each once, with the highest score that it is given."""
    pairs = _pairs(found, where, rules)
    out = dict[str, float]()
    for label, score in pairs or ():
        if label is None or (isinstance(label, str) and not label.strip()):
            rules.note("empty tags left out")
            continue

        with contextlib.suppress(ValueError):
            if isinstance(score, str):
                score = float(score)

        name = _name(label, f"{where}, labels")
        value = _score(score, f"{where}, label {label!r}")
        if name in out:
            rules.note("duplicate tags read once", name)

        out[name] = float(np.fmax(out[name], value)) if name in out else value

    if pairs is None:
        return None
    return list(out.items())


def _pairs(
    found: Any, where: str, rules: ReadOptions, in_text: bool = False
) -> list[tuple[Any, Any]] | None:
    """Take texts, lists and objects within one another apart, into labels and their scores; ``None``: no answer."""
    if isinstance(found, str):
        found = _from_text(found, where, rules)
        in_text = True

    if isinstance(found, dict):
        # A number is the score of a label that is called so; and so is null, unless a
        # language model writes it.
        told = (
            key
            for key in (*_KEYS["labels"], "choices")
            if isinstance(found.get(key), str | list | dict)
        )
        key = next(
            told,
            next(
                (
                    key
                    for key in _KEYS["labels"]
                    if in_text and found.get(key, 0) is None
                ),
                None,
            ),
        )
        scored = (
            key in ROLES["label"]
            and isinstance(found[key], str)
            and not found.keys().isdisjoint(ROLES["score"])
        )
        if key is not None and not scored:
            for other in (own for own in found if own != key):
                rules.note("keys left out", str(other))

            return _pairs(found[key], where, rules, in_text)

        if scored:
            found = [found]
        else:
            found = list(found.items())

    only: Any = found[0] if isinstance(found, list) and len(found) == 1 else None
    none = isinstance(only, str) and only.strip(_MARKS).lower() in ("none", "n/a")
    if found is None or (none and not (rules.vocabulary and rules.name_of(only))):
        return None
    if not (isinstance(found, list)):
        raise InputError(
            where=f"{where}, labels",
            found=_kind(found),
            expected="a list or an object of scores",
        )

    out: list[tuple[Any, Any]] = []
    for tag in found:
        name = next(
            (
                key
                for key in (*ROLES["label"], "name")
                if isinstance(tag, dict) and key in tag
            ),
            None,
        )
        if name is not None:
            out.append(
                (
                    tag[name],
                    next((tag[key] for key in ROLES["score"] if key in tag), 1.0),
                )
            )
        elif isinstance(tag, dict):
            out += _pairs(tag, where, rules, in_text) or []
        else:
            out.append(
                tuple(tag)
                if isinstance(tag, tuple | list) and len(tag) == 2
                else (tag, 1.0)
            )

    return out


def _from_text(text: str, where: str, rules: ReadOptions) -> Any:
    """Take a text for JSON, perhaps among prose, for tags with commas between them, or for no answer."""
    text = _THOUGHT.split(text)[-1].strip().strip("`").removeprefix("json").strip()
    found, end = _json_in(text)
    broken = (text if found is None else "").startswith(("[", "{")) or _OPENED.search(
        text, end
    )
    if broken:
        raise InputError(
            where=f"{where}, labels",
            found="JSON that is broken or cut off",
            expected="whole JSON, or tags",
        )
    if found is not None or _NOTHING.match(text):
        return found or []

    parts = [
        _AROUND.sub("", part.strip(" \t\r-*•\"'`")) for part in _BETWEEN.split(text)
    ]
    parts = [
        part for part in parts if part and not part.endswith((":", "!", "?"))
    ]  # what leads to tags, or follows
    if all(map(_NUMBER.match, parts)):
        parts = [_NUMBER.sub("", part) for part in parts]

    longest = max((len(part.split()) for part in parts), default=9)
    if (
        longest > _WORDS
        or text.strip(_MARKS).lower() in MISSING
        or _REFUSAL.match(text)
    ):
        return None

    scored = [match for match in map(_SCORED.fullmatch, parts) if match]
    if len(scored) != len(parts):
        scored = []

    names = [match[1] for match in scored] or parts
    if rules.vocabulary and not any(map(rules.name_of, names)):
        hint = " but for case (--ignore-case reads them)" * any(
            map(rules.but_for_case, names)
        )
        rules.note("texts without a label of the vocabulary" + hint, text[:40])
        return None

    rules.note("texts read as tags")
    return [match.groups() for match in scored] or parts


def _json_in(text: str) -> tuple[Any, int]:
    """Find the last list or object in a text, of those that hold more than numbers, and where it ends."""
    found = None
    end = 0
    after = 0
    for start in (
        match.start() for match in islice(re.finditer(r"[\[{]", text), _BRACKETS)
    ):
        if start >= after:
            with contextlib.suppress(
                ValueError, TypeError, SyntaxError, RecursionError, MemoryError
            ):
                own, after = _decoded(text, start)
                telling = not own or any(
                    isinstance(part, str | list | dict) for part in own
                )
                if own is not None and (telling or after - start == len(text)):
                    found = own
                    end = after

    return found, end


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """Read JSON, or what Python writes in its place."""
    with contextlib.suppress(ValueError):
        return json.JSONDecoder().raw_decode(text, start)

    python = _PYTHON.match(text, start)
    if python:
        return (ast.literal_eval(python[0]), python.end())
    return (None, start)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise InputError(f"found the key {twice!r} twice, expected each once")

    return found


def _name(found: Any, where: str) -> str:
    """Return a name as text; whole numbers are names too, since many annotators number instances."""
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise InputError(
            f"{where}: found {_kind(found)}, expected text or a whole number"
        )
    if not str(found).strip():
        raise InputError(f"{where}: found an empty text, expected a name")
    return str(found)


def _score(found: Any, where: str) -> float:
    if found is None:
        return float("nan")
    if not isinstance(found, int | float) or outside(found):
        raise_bad_score(
            where, found if isinstance(found, str | int | float) else _kind(found)
        )

    return float(found)


def _kind(found: Any) -> str:
    if found is None:
        return "null"

    names = {
        bool: "a truth value",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
    }
    return names.get(type(found), "an object")
