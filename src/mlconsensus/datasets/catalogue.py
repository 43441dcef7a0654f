"""What is known of each data set, before any of it is read."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple

from ..errors import one_of


class File(NamedTuple):
    """One file, what it must hold, and where it can be had."""

    file: str
    sha256: str
    address: str = ""  # empty: only ever local


class Entry(NamedTuple):
    """One data set of the registry.

    Examples
    --------
    >>> entry("bibtex").paper, entry("bibtex").instances
    (3701, 7395)
    """

    name: str
    about: str
    instances: int
    paper: int  # how many of them the paper used
    features: int
    labels: int
    licence: str
    citation: str
    local: tuple[File, ...]  # as a folder of gzipped Mulan ARFF holds it
    public: tuple[File, ...]  # what is downloaded


@cache
def registry() -> dict[str, Entry]:
    """Return all data sets by name, in the paper's order.

    Examples
    --------
    >>> list(registry())
    ['enron', 'medical', 'rcv1subset1', 'rcv1subset2', 'slashdot', 'bibtex']
    """
    text = resources.files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    entries = {}
    for name, row in tomllib.loads(text).items():
        local, public = (tuple(File(**file) for file in row.pop(kind)) for kind in ("local", "public"))
        entries[name] = Entry(name=name, local=local, public=public, **row)
    return entries


def entry(name: str) -> Entry:
    """Return what is known of one data set.

    Examples
    --------
    >>> entry("medcal")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: data set: found 'medcal', expected one of enron, ...; did you mean 'medical'?
    """
    one_of(name, registry(), "data set")
    return registry()[name]
