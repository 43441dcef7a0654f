"""JSON lines, or a JSON array, of the labels that annotators and models give.

Each line has the predictions of one model for one instance::

    {"instance": "7", "labels": ["a", "b"]}
    {"instance": "7", "labels": {"a": 0.9}}

A key ``"model"`` is needed if the file holds several models. By default, other shapes
that language models produce are read, too, and counted in the log; strict reading
refuses them. Records of annotation tools are recognized.
"""

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, NoReturn

import numpy as np
import polars as pl
from scipy import sparse

from ...errors import EmptyFileError, InputError, nearest
from ...predictions import Matrix, ScoreTable
from .. import layouts
from ..columns import ROLES
from ..encoding import decode_text
from ..files import InputFile, Place, get_first_line
from ..layouts import Layout
from ..options import ReadOptions
from .annotation_tools import TOOLS, Record, find_tool, make_list
from .json_values import (
    LABEL_KEYS,
    Json,
    ScoreParser,
    Tags,
    check_name,
    check_score,
    describe_kind,
    get_by_path,
)
from .llm_answers import parse_answer
from .registry import Collect, NamedFrame

_SHAPE = (
    '{"instance": "7", "labels": ["a", "b"]} or {"instance": "7", "labels": {"a": 0.9}}'
)

# Keys of the parts of an answer, in the order in which they are tried.
_KEYS = {
    "instance": ("instance", "id", *ROLES["instance"]),
    "labels": LABEL_KEYS,
    "model": ROLES["model"][:-1],  # a "source" is that of a document
}

# Instance, label, score, model and the number of the entry.
_ROW_SCHEMA = {
    "0": pl.String,
    "1": pl.String,
    "2": pl.Float64,
    "3": pl.String,
    "4": pl.Int64,
}
_Row = tuple[str, str | None, float, str | None, int]

# Errors that records of an unexpected shape raise.
_SHAPE_ERRORS = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


def read(
    file: InputFile,
    collect: Collect | None = None,
    array: bool = False,
    tool: str | None = None,
) -> NamedFrame:
    r"""Read labels, or an export of an annotation tool.

    Parameters
    ----------
    file : InputFile
        The file.
    collect : callable, default=None
        Ignored: the labels are in memory.
    array : bool, default=False
        Whether the file is one JSON array, not JSON lines.
    tool : str, default=None
        Name of the annotation tool. By default it is recognized.

    Returns
    -------
    NamedFrame
        A long table.

    Examples
    --------
    >>> line = b'{"instance": 7, "labels": ["a", "b"]}\n'
    >>> read(InputFile(name="a.jsonl", model="a", read=lambda: line)).rows.rows()
    [('7', 'a', 1.0), ('7', 'b', 1.0)]
    """
    text = decode_text(file.read(), file.name)
    unit, entries = _split_entries(text, array, file)
    is_text = unit == "line"
    return make_long_frame(entries, unit, file, tool=tool, is_text=is_text)


def make_long_frame(
    entries: Iterable[tuple[int, Json]],
    unit: str,
    file: InputFile,
    *,
    tool: str | None = None,
    is_text: bool = False,
) -> NamedFrame:
    """Make a long table of numbered entries.

    Parameters
    ----------
    entries : iterable of (int, parsed JSON or str)
        Number and content of each entry.
    unit : str
        Name of an entry in messages: "line", "entry", "row" or "document".
    file : InputFile
        Its name and options are used.
    tool : str, default=None
        Name of the annotation tool. By default it is recognized.
    is_text : bool, default=False
        Whether the content of each entry is text that has to be parsed as JSON.

    Returns
    -------
    NamedFrame
        A long table. An instance without labels has one row with the label null.

    Examples
    --------
    >>> entries = enumerate([{"instance": 7, "labels": {"a": 0.5}}])
    >>> file = InputFile(name="a", model="a", read=bytes)
    >>> make_long_frame(entries, "row", file).rows.rows()
    [('7', 'a', 0.5)]
    """
    collector = _AnswerCollector(file, unit, tool, is_text)
    for number, entry in entries:
        collector.add_entry(number, entry)

    return collector.make_frame()


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """The labels that a model gives to an instance; ``None``: it abstains."""

    model: str | None
    instance: str
    tags: Tags | None


class _AnswerCollector:
    """Collects the rows of a long table from entries that may be broken."""

    def __init__(
        self, file: InputFile, unit: str, tool: str | None, is_text: bool
    ) -> None:
        self._file = file
        self._options = file.options
        self._unit = unit
        self._expected_tool = tool
        self._is_text = is_text
        self._tool: str | None = None  # of the last entry
        self._rows: list[_Row] = []
        self._first_numbers: dict[tuple[str | None, str], int] = {}
        self._has_models = False  # whether answers name their model
        self._errors: list[str] = []
        self._scores = ScoreParser(file.options)
        self._n_missing = 0  # number of answers in which the model abstains

        # Whether any entry has a key that the user names; documents of Annif have none.
        self._user_keys = set(file.options.columns.values())
        self._has_user_key = unit == "document" or not self._user_keys

    def add_entry(self, number: int, entry: Json) -> None:
        """Add the answers of one entry, or the reason why it cannot be read."""
        where = f"{self._file.name}, {self._unit} {number}"
        try:
            if self._is_text:
                entry = _parse_json(entry, where)

            for answer in self._parse_entry(entry, where):
                self._add_answer(answer, number, where)
        except InputError as error:
            self._add_error(str(error))
        except _SHAPE_ERRORS as error:
            expected_thing = self._tool or "answer"
            self._add_error(
                f"{where}: found no {expected_thing} ({error}), expected it"
            )

    def make_frame(self) -> NamedFrame:
        """Return the long table of all answers."""
        self._convert_percentages()
        self._report_errors()
        if not self._has_user_key:
            self._options.log.files_without_named_columns.add(self._file.name)
        if self._tool is not None and TOOLS[self._tool].has_fixed_labels:
            self._add_labels_never_chosen()

        if not self._first_numbers:
            summary = self._options.log.summarize()
            expected = "at least one"
            if summary:
                expected += f" ({summary})"

            raise EmptyFileError(
                where=self._file.name,
                found="no answer that can be read",
                expected=expected,
            )

        try:
            rows = pl.DataFrame(self._rows, schema=_ROW_SCHEMA, orient="row")
        except UnicodeEncodeError:
            raise InputError(
                where=self._file.name,
                found="half a surrogate pair in a name",
                expected="Unicode text",
            ) from None

        columns = ["instance", "label", "score"]
        if self._has_models:
            columns.append("model")

        numbers = rows["4"]
        return NamedFrame(
            rows=rows[:, : len(columns)],
            columns=columns,
            place=Place(
                file=self._file.name, unit=self._unit, number=numbers.__getitem__
            ),
            allows_missing_label=True,
        )

    def _parse_entry(self, entry: Json, where: str) -> Iterator[_Answer]:
        """Iterate over the answers in an entry."""
        self._tool = self._expected_tool or find_tool(entry)
        if self._tool is not None:
            self._has_user_key = True
            for record in TOOLS[self._tool].parse(entry, self._options):
                yield self._parse_record(record, where, _TOOL_KEYS)
            return

        if isinstance(entry, dict):
            entry = _resolve_paths(entry, self._user_keys)
            if not self._user_keys.isdisjoint(entry):
                self._has_user_key = True

        yield self._parse_record(entry, where, _list_keys(self._options))

    def _parse_record(
        self, record: Json, where: str, keys: Mapping[str, tuple[str, ...]]
    ) -> _Answer:
        """Return the model, the instance and the labels of a record."""
        options = self._options
        if not isinstance(record, dict):
            raise InputError(where=where, found=describe_kind(record), expected=_SHAPE)

        key_by_part: dict[str, str | None] = {}
        for part, candidates in keys.items():
            key_by_part[part] = next(filter(record.__contains__, candidates), None)

        _check_unused_keys(record, set(key_by_part.values()), where, options)

        model_key = key_by_part["model"]
        instance_key = key_by_part["instance"]
        labels_key = key_by_part["labels"]
        if instance_key is None:
            _raise_missing_key(record, "instance", where, options)
        if labels_key is None:
            _raise_missing_key(record, "labels", where, options)

        model = None
        if model_key is not None:
            model = check_name(record[model_key], f"{where}, model")

        instance = check_name(record[instance_key], f"{where}, instance")
        labels = record[labels_key]
        tags: Tags | None
        if options.strict and labels is not None:
            tags = _check_tags(labels, where, options)
        else:
            tags = parse_answer(labels, where, options, self._scores)

        return _Answer(model=model, instance=instance, tags=tags)

    def _add_answer(self, answer: _Answer, number: int, where: str) -> None:
        """Add the rows of one answer."""
        has_model = answer.model is not None
        if self._first_numbers and has_model != self._has_models:
            before = f"as in the {self._unit}s before"
            if has_model:
                raise InputError(
                    where=where, found="a model", expected=f"none, {before}"
                )
            raise InputError(where=where, found="no model", expected=f"one, {before}")

        key = (answer.model, answer.instance)
        is_split = self._tool is not None and TOOLS[self._tool].is_split
        if key in self._first_numbers and not is_split:
            first = f"{self._unit} {self._first_numbers[key]}"
            raise InputError(
                where=where,
                found=f"the instance {answer.instance!r} again (first in {first})",
                expected="each once from a model",
            )

        if answer.tags is None:
            self._options.log.add("answers without labels read as missing")
            self._n_missing += 1
            self._add_row(answer, None, math.nan, number)
            return

        self._has_models = has_model
        self._first_numbers[key] = number
        for label, score in answer.tags:
            self._add_row(answer, label, score, number)

        if not answer.tags:
            self._add_row(answer, None, 0.0, number)

    def _add_row(
        self, answer: _Answer, label: str | None, score: float, number: int
    ) -> None:
        """Add one row of the long table."""
        self._rows.append((answer.instance, label, score, answer.model, number))

    def _add_labels_never_chosen(self) -> None:
        """Add one score of 0 for each label that a model could choose and never did."""
        labels: dict[str, None] = {}  # in the order of the file
        pairs = set()
        for _, label, _, model, _ in self._rows:
            if label is not None:
                labels[label] = None
                pairs.add((label, model))

        # Each model has the score in the last of its instances.
        instance_by_model = dict(self._first_numbers.keys())
        for model, instance in instance_by_model.items():
            for label in labels:
                if (label, model) not in pairs:
                    self._rows.append((instance, label, 0.0, model, 0))

    def _convert_percentages(self) -> None:
        """Divide numbers above 1 by 100 if they are percentages, else refuse them."""
        if not self._scores.has_large_numbers:
            return

        log = self._options.log
        is_percentage = self._scores.is_percentage_file([row[2] for row in self._rows])
        rows = []
        bad_answers = set()
        for row in self._rows:
            instance, label, score, model, number = row
            if score > 1 and is_percentage:
                log.add("percentages read as scores")
                row = (instance, label, score / 100, model, number)
            elif score > 1:
                where = f"{self._file.name}, {self._unit} {number}, label {label!r}"
                self._refuse_score(score, where)
                bad_answers.add((model, instance))
            rows.append(row)

        # The other labels of a bad answer are left out, too.
        self._rows = [row for row in rows if (row[3], row[0]) not in bad_answers]
        for key in bad_answers:
            del self._first_numbers[key]

    def _refuse_score(self, score: float, where: str) -> None:
        """Record the error for a number that is neither a score nor a percentage."""
        try:
            check_score(score, where, self._options.value_range)
        except InputError as error:
            self._add_error(str(error))

    def _add_error(self, message: str) -> None:
        """Record an entry that cannot be read, or raise if reading is strict."""
        self._errors.append(message)
        if self._options.strict:
            raise InputError(message) from None

    def _check_most_are_good(self) -> None:
        """Check that at most half of the answers are left out."""
        n_bad = len(self._errors)
        n_answers = n_bad + self._n_missing + len(self._first_numbers)
        if n_bad > n_answers / 2:
            raise InputError(
                where=self._file.name,
                found=f"{n_bad:,} of {n_answers:,} answers that cannot be read, such "
                f"as {self._errors[0]}",
                expected="at most half of them to be left out by --skip-bad",
            )

    def _report_errors(self) -> None:
        """Raise one error for all entries that cannot be read, or log them."""
        errors = self._errors
        if not errors:
            return
        if not self._first_numbers:
            raise InputError(f"{errors[0]}; none of the answers can be read")

        if self._options.skip_bad:
            self._check_most_are_good()
            example = errors[0].split(":")[0]
            if len(errors) > 1:
                example = f"{len(errors):,} from {example}"

            self._options.log.add("bad answers left out", example, len(errors))
            return

        message = errors[0]
        if len(errors) > 1:
            examples = []
            for error in errors[:3]:
                problem, _, _ = error.partition(", expected")
                examples.append(problem.removeprefix(f"{self._file.name}, "))
            if len(errors) > 3:
                examples.append("…")

            _, _, expected = errors[0].partition(", expected ")
            message = (
                f"{self._file.name}: found {len(errors)} bad answers"
                f" ({'; '.join(examples)}), expected {expected or 'none'}"
            )

        raise InputError(f"{message} (--skip-bad leaves them out)")


def _resolve_paths(entry: Record, paths: set[str]) -> Record:
    """Add the values at paths such as ``"a.b[0]"`` to an object, under these names.

    The objects in which they are found are removed.
    """
    resolved = dict(entry)
    for path in paths.difference(entry):
        if "." not in path and "[" not in path:
            continue

        with contextlib.suppress(LookupError):
            resolved[path] = get_by_path(entry, path)
            resolved.pop(re.split(r"[.\[]", path)[0], None)

    return resolved


def _list_keys(options: ReadOptions) -> Mapping[str, tuple[str, ...]]:
    """Return the keys that are tried for each part of an answer."""
    keys: dict[str, tuple[str, ...]] = {}
    for part, recognized_keys in _KEYS.items():
        role = part.removesuffix("s")
        user_key = options.columns.get(role, part)
        if options.strict:
            keys[part] = (user_key,)
        else:
            keys[part] = (user_key, *recognized_keys)

    return keys


# Keys of the records that `annotation_tools` makes.
_TOOL_KEYS = {part: (part,) for part in _KEYS}


def _check_unused_keys(
    record: Record, used_keys: set[str | None], where: str, options: ReadOptions
) -> None:
    """Refuse keys that are not used if reading is strict, else log them."""
    for key in record:
        if key in used_keys:
            continue
        if options.strict:
            raise InputError(
                where=where,
                found=f"the key {key!r}",
                expected=f"instance, labels and perhaps model{nearest(key, _KEYS)}",
            )

        options.log.add("keys left out", key)


def _raise_missing_key(
    record: Record, part: str, where: str, options: ReadOptions
) -> NoReturn:
    """Raise the error for a record without instance or labels."""
    keys = ", ".join(map(repr, list(record)[:5])) or "none"
    role = part.removesuffix("s")
    key = options.columns.get(role, part)
    raise InputError(
        where=where,
        found=f"no key {key!r} among {keys}",
        expected=f"{_SHAPE}, or --columns {role}=… to name it",
    )


def _check_tags(labels: Json, where: str, options: ReadOptions) -> Tags:
    """Return the labels of an answer that is exactly as documented."""
    pairs: Iterable[tuple[Json, Json]]
    if isinstance(labels, dict):
        pairs = labels.items()
    elif isinstance(labels, list):
        pairs = [(label, 1.0) for label in labels]
    else:
        raise InputError(
            where=f"{where}, labels",
            found=describe_kind(labels),
            expected="a list or an object of scores",
        )

    tags = []
    for label, score in pairs:
        name = check_name(label, f"{where}, labels")
        value = check_score(score, f"{where}, label {label!r}", options.value_range)
        tags.append((name, value))

    return tags


def write(
    file: IO[bytes],
    table: ScoreTable,
    layout: Layout,
    array: bool = False,
    tool: str | None = None,
) -> None:
    r"""Write a table as labels of each instance.

    If scores are Boolean, the chosen labels are listed; else all labels with their
    scores, ``null`` if missing. For an annotation tool, the labels with scores of at
    least 0.5 are written as records that the tool imports.

    Parameters
    ----------
    file : binary file
        The file.
    table : ScoreTable
        The scores of one model.
    layout : str
        Ignored: there is only one layout.
    array : bool, default=False
        Whether to write one JSON array, not JSON lines.
    tool : str, default=None
        Name of the annotation tool.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> scores = np.array([[0.25, np.nan]])
    >>> write(file, ScoreTable("a", scores, ["7"], ["x", "y"]), "wide")
    >>> write(file, ScoreTable("a", scores > 0, ["7"], ["x", "y"]), "wide")
    >>> print(file.getvalue().decode(), end="")
    {"instance": "7", "labels": {"x": 0.25, "y": null}}
    {"instance": "7", "labels": ["x"]}
    """
    instance_names, label_names = layouts.get_names(table)
    labels = list(map(str, label_names))
    is_boolean = table.scores.dtype.kind == "b"
    make_record = None
    if tool is not None:
        make_record = TOOLS[tool].make_record

    separator = "["
    for instance_name, (columns, values) in zip(
        instance_names, _iterate_rows(table.scores), strict=True
    ):
        instance = str(instance_name)
        scores: dict[str, float | None] = {}
        chosen = []
        for column, value in zip(columns, values, strict=True):
            label = labels[column]
            scores[label] = _replace_nan(value)
            if value >= 0.5:
                chosen.append(label)

        entry: Record = {"instance": instance, "labels": scores}
        if make_record is not None:
            uncertainty = _compute_uncertainty(scores.values())
            entry = make_record(table.model, instance, labels, chosen, uncertainty)
        elif is_boolean:
            entry = {"instance": instance, "labels": chosen}

        line = json.dumps(entry, ensure_ascii=False) + "\n"
        if array:
            line = separator + line
            separator = ","

        file.write(line.encode())

    if array:
        file.write(b"]\n")


def _iterate_rows(scores: Matrix) -> Iterator[tuple[Iterable[int], list[float]]]:
    """Iterate over the rows of a matrix (n, l): columns, and the scores in them."""
    if not sparse.issparse(scores):
        all_columns = range(scores.shape[1])
        for row in scores:
            yield all_columns, row.tolist()
        return

    stored = layouts.store_explicit_zeros(scores)
    row_ends = stored.indptr[1:-1]
    for columns, values in zip(
        np.split(stored.indices, row_ends), np.split(stored.data, row_ends), strict=True
    ):
        yield columns.tolist(), values.tolist()


def _replace_nan(value: float) -> float | None:
    """Return ``None`` for NaN."""
    if value != value:
        return None
    return value


def _compute_uncertainty(scores: Iterable[float | None]) -> float:
    """Return the expected number of wrong labels if scores are probabilities."""
    uncertainty = 0.0
    for score in scores:
        if score is not None:
            uncertainty += max(min(score, 1 - score), 0.0)

    return uncertainty


def name_classes(
    row: Json,
    position: int,
    class_names: Mapping[str, list[str] | None],
    options: ReadOptions,
) -> Json:
    """Replace the numbers of classes in a row of a dataset by their names.

    Parameters
    ----------
    row : dict
        Anything else is returned as it is.
    position : int
        Position of the row, which is its name if it has none.
    class_names : mapping of str to list of str or None
        Names of the classes for each key.
    options : ReadOptions
        Options for reading.

    Returns
    -------
    dict

    Examples
    --------
    >>> name_classes({"labels": [1]}, 5, {"labels": ["law", "war"]}, ReadOptions())
    {'instance': 5, 'labels': ['war']}
    """
    if not isinstance(row, dict) or find_tool(row):
        return row

    named_row: Record = {}
    instance_keys = {options.columns.get("instance"), *_KEYS["instance"]}
    if instance_keys.isdisjoint(row):
        named_row["instance"] = position

    named_row |= row
    for key, names in class_names.items():
        if names and row.get(key) is not None:
            named_row[key] = [names[number] for number in make_list(row[key])]

    return named_row


def _split_entries(
    text: str, is_array: bool, file: InputFile
) -> tuple[str, Iterable[tuple[int, Json]]]:
    """Return the unit and the numbered entries: lines, or those of an array."""
    options = file.options
    if is_array or (not options.strict and text.lstrip().startswith("[")):
        try:
            return "entry", enumerate(_parse_array(text, file.name), 1)
        except InputError:
            # JSON lines may have any suffix.
            may_be_lines = not options.strict and "\n" in text.strip()
            if not may_be_lines:
                raise

    lines = enumerate(text.split("\n"), 1)
    return "line", ((number, line) for number, line in lines if line.strip())


def _parse_array(text: str, name: str) -> list[Json]:
    """Return the entries of a JSON array, or of an object with a key per instance."""
    content = _parse_json(text, name)
    if isinstance(content, list):
        return content

    if isinstance(content, dict):
        is_record = find_tool(content) or any(key in content for key in LABEL_KEYS)
        if not is_record:
            return [
                {"instance": instance, "labels": labels}
                for instance, labels in content.items()
            ]

    return [content]


def _parse_json(text: str, where: str) -> Json:
    """Parse JSON; no object may have a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_make_object)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            where=where, found=f"no JSON ({get_first_line(error)})", expected=_SHAPE
        ) from None


def _make_object(pairs: list[tuple[str, Json]]) -> Record:
    """Make a dict of the pairs in a JSON object."""
    record = dict(pairs)
    if len(record) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        key, _ = counts.most_common(1)[0]
        raise InputError(f"found the key {key!r} twice, expected each once")

    return record
