"""How files are read: which columns are which, how strictly, what labels are called; and what was done so."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from unicodedata import normalize


@dataclass(frozen=True)
class ReadOptions:
    """How to read files, as `Reading` says, with the names that its files hold.

    Examples
    --------
    >>> rules = ReadOptions(aliases={"pol": "politics"}, vocabulary={"politics": "Politics"}, ignore_case=True)
    >>> rules.name_of(" Pol"), rules.name_of("sports")
    ('Politics', None)
    """

    strict: bool = False
    skip_bad: bool = False
    columns: Mapping[str, str] = field(
        default_factory=dict
    )  # role → what the files call it
    aliases: Mapping[str, str] = field(default_factory=dict)
    vocabulary: Mapping[str, str] = field(
        default_factory=dict
    )  # key → how it is spelled
    ignore_case: bool = False
    partial: bool = (
        False  # whether what a long table with scores leaves out is missing, not 0
    )
    unnamed: set[str] = field(
        default_factory=set
    )  # tables that have none of the columns
    notes: dict[str, Counter[str]] = field(
        default_factory=dict
    )  # what was done → to what, how often

    def key(self, label: str) -> str:
        """Return what a label is looked up by."""
        label = normalize(
            "NFC", label
        ).strip()  # an accent may be a letter's own or a mark behind it
        if self.ignore_case:
            return label.lower()
        return label

    def name_of(self, label: str) -> str | None:
        """Return what a label is to be called, ``None`` if it is to be left out."""
        if not (self.aliases or self.vocabulary or self.ignore_case):
            return normalize("NFC", label)

        key = self.key(self.aliases.get(self.key(label), label))
        if self.vocabulary:
            return self.vocabulary.get(key)
        return key

    def but_for_case(self, label: str) -> bool:
        """Tell whether a label is in the vocabulary but for case."""
        return self.key(label).lower() in self._lower

    @cached_property
    def _lower(self) -> set[str]:
        return {word.lower() for word in self.vocabulary}

    def note(self, what: str, name: str = "", times: int = 1) -> None:
        """Remember that something was done."""
        self.notes.setdefault(what, Counter())[name] += times

    def summary(self) -> str:
        """Say in one line what was done, nothing where files were read as they are.

        Examples
        --------
        >>> rules = ReadOptions()
        >>> rules.note("keys left out", "reason", 2)
        >>> rules.note("duplicate tags read once")
        >>> rules.summary()
        "keys left out: 2 ('reason'); duplicate tags read once: 1"
        """
        said = []
        for what, names in self.notes.items():
            told = [repr(name) for name in list(names)[:3] if name] + ["…"] * (
                len(names) > 3
            )
            said.append(
                f"{what}: {names.total():,}" + (f" ({', '.join(told)})" if told else "")
            )

        return "; ".join(said)


DEFAULT_OPTIONS = ReadOptions(strict=True)
