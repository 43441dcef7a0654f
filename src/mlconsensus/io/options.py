"""Options for reading files, and a log of what was read differently from the file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from unicodedata import normalize

import numpy as np

ValueRange = tuple[float, float]  # lowest and highest score

_LARGEST = float(np.finfo(np.float64).max)

UNIT_RANGE: ValueRange = (0.0, 1.0)  # of predictions
FINITE_RANGE: ValueRange = (-_LARGEST, _LARGEST)  # of the truth or a consensus


# Scores of confidences in words.
CONFIDENCES: Mapping[str, float] = {
    "high": 0.95,
    "medium": 0.75,
    "low": 0.55,
    "yes": 1.0,
    "no": 0.0,
}


@dataclass
class ReadLog:
    """Counts of what was changed or left out while files were read.

    Examples
    --------
    >>> log = ReadLog()
    >>> log.add("keys left out", "reason", 2)
    >>> log.add("duplicate tags read once")
    >>> log.summarize()
    "keys left out: 2 ('reason'); duplicate tags read once: 1"
    """

    files_without_named_columns: set[str] = field(default_factory=set)
    # How often each event occurred, by the name that it was done to.
    _counts: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, event: str, name: str = "", times: int = 1) -> None:
        """Count an event.

        Parameters
        ----------
        event : str
            What was done, such as "keys left out".
        name : str, default=""
            The key, label or model that it was done to.
        times : int, default=1
            How often it was done.
        """
        names = self._counts.setdefault(event, Counter())
        names[name] += times

    def summarize(self) -> str:
        """Return all events in one line, empty if there is none."""
        descriptions = []
        for event, names in self._counts.items():
            examples = _list_examples(names)
            descriptions.append(f"{event}: {names.total():,}{examples}")

        return "; ".join(descriptions)


def _list_examples(names: Counter[str]) -> str:
    """Return the first three names in parentheses, empty if there is none."""
    examples = [repr(name) for name in list(names)[:3] if name]
    if len(names) > 3:
        examples.append("…")
    if not examples:
        return ""
    return f" ({', '.join(examples)})"


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading files.

    Parameters
    ----------
    strict : bool, default=False
        Whether to refuse files that are not exactly as documented.
    skip_bad : bool, default=False
        Whether to leave out answers that cannot be read.
    columns : mapping of str to str, default={}
        Name of the column for a role of a long table.
    aliases : mapping of str to str, default={}
        Label for each key of an alternative name.
    vocabulary : mapping of str to str, default={}
        Spelling for each key of an allowed label. If empty, all labels are allowed.
    confidences : mapping of str to float, default=CONFIDENCES
        Score for each word in lower case, in answers of language models.
    ignore_case : bool, default=False
        Whether labels that differ in case are the same.
    all_know_labels : bool, default=False
        Whether all models chose from the same labels.
    partial : bool, default=False
        Whether pairs that a long table with scores does not list are missing, not 0.
    is_truth : bool, default=False
        Whether the file holds the truth or a consensus. Their scores may be any finite
        numbers, and the truth in an NPZ archive is read before its predictions.
    log : ReadLog
        Receives what was read differently from the file.

    Examples
    --------
    >>> options = ReadOptions(
    ...     aliases={"pol": "politics"},
    ...     vocabulary={"politics": "Politics"},
    ...     ignore_case=True,
    ... )
    >>> options.resolve_label(" Pol"), options.resolve_label("sports")
    ('Politics', None)
    """

    strict: bool = False
    skip_bad: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    vocabulary: Mapping[str, str] = field(default_factory=dict)
    confidences: Mapping[str, float] = field(default_factory=lambda: CONFIDENCES)
    ignore_case: bool = False
    all_know_labels: bool = False
    partial: bool = False
    is_truth: bool = False
    log: ReadLog = field(default_factory=ReadLog, compare=False)

    @property
    def value_range(self) -> ValueRange:
        """Lowest and highest number that is a score."""
        if self.is_truth:
            return FINITE_RANGE
        return UNIT_RANGE

    def make_key(self, label: str) -> str:
        """Return the key by which a label is looked up.

        Parameters
        ----------
        label : str
            Name of the label.

        Returns
        -------
        str
        """
        # An accented letter is one character or a letter and a combining mark.
        key = normalize("NFC", label).strip()
        if self.ignore_case:
            return key.lower()
        return key

    def resolve_label(self, label: str) -> str | None:
        """Return the name of a label after aliases and vocabulary are applied.

        Parameters
        ----------
        label : str
            Name of the label in the file.

        Returns
        -------
        str or None
            ``None`` if the label is not in the vocabulary.
        """
        if not (self.aliases or self.vocabulary or self.ignore_case):
            return normalize("NFC", label)

        target = self.aliases.get(self.make_key(label), label)
        key = self.make_key(target)
        if self.vocabulary:
            return self.vocabulary.get(key)
        return key

    def matches_ignoring_case(self, label: str) -> bool:
        """Return whether a label is in the vocabulary if case is ignored.

        Parameters
        ----------
        label : str
            Name of the label.

        Returns
        -------
        bool
        """
        return self.make_key(label).lower() in self._lowercase_vocabulary

    @cached_property
    def _lowercase_vocabulary(self) -> set[str]:
        """The keys of the vocabulary in lower case."""
        return set(map(str.lower, self.vocabulary))


DEFAULT_OPTIONS = ReadOptions(strict=True)
