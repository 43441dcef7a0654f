"""The paper's data sets: what is known of each, how its files get onto this machine, and the matrices in them.

They are looked for in the user's own folder, then in the cache, and only then on the
network.
"""

import os
import tomllib
import warnings
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from ..errors import InputError, needed, one_of

FOLDER_VARIABLE = (
    "MLCONSENSUS_DATA"  # a folder with the data sets' files, looked at first
)
# where downloads and results go instead of the system's place for caches
CACHE_VARIABLE = "MLCONSENSUS_CACHE"


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


class Dataset(NamedTuple):
    """Instances with features and labels."""

    name: str
    features: sparse.csr_array  # (n, d) float64
    labels: sparse.csr_array  # (n, l) bool
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]

    def first(self, n: int) -> Self:
        """Keep the first `n` instances only."""
        return self._replace(features=self.features[:n], labels=self.labels[:n])


@cache
def registry() -> dict[str, Entry]:
    """Return all data sets by name, in the paper's order.

    Examples
    --------
    >>> list(registry())
    ['enron', 'medical', 'rcv1subset1', 'rcv1subset2', 'slashdot', 'bibtex']
    """
    text = (
        resources.files(__package__)
        .joinpath("registry.toml")
        .read_text(encoding="utf-8")
    )
    entries = {}
    for name, row in tomllib.loads(text).items():
        local, public = (
            tuple(File(**file) for file in row.pop(kind))
            for kind in ("local", "public")
        )
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


def cache_folder() -> Path:
    """Return the folder that downloads and intermediate results are kept in.

    Examples
    --------
    >>> cache_folder().name
    'mlconsensus'
    """
    import pooch

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("mlconsensus"))


def fetch(name: str) -> tuple[Path, ...]:
    """Return the files of a data set, checked; download them where they are not on this machine yet.

    Files in the folder that the variable ``MLCONSENSUS_DATA`` names are used first,
    then the cache. A download takes its place only when it is whole and its hash is
    right; a file of the cache that is damaged is fetched anew.

    Parameters
    ----------
    name
        One of those in `registry`.

    Returns
    -------
    Where its files are.

    Examples
    --------
    >>> fetch("emron")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: data set: found 'emron', expected one of enron, ...; did you mean 'enron'?
    """
    wanted = entry(name)
    return _own_files(wanted) or tuple(
        _downloaded(file, _place(wanted)) for file in wanted.public
    )


def is_here(name: str) -> bool:
    """Tell whether a data set can be read without the network.

    Examples
    --------
    >>> isinstance(is_here("enron"), bool)
    True
    """
    wanted = entry(name)
    return bool(_own_files(wanted)) or all(
        (_place(wanted) / file.file).is_file() for file in wanted.public
    )


def _own_files(wanted: Entry) -> tuple[Path, ...]:
    """Return the files in the user's own folder, in either of the two forms, or nothing."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return ()

    folder = Path(named)
    if not (folder.is_dir()):
        raise InputError(where=FOLDER_VARIABLE, found=repr(named), expected="a folder")

    for files in (wanted.local, wanted.public):
        hashes = {folder / file.file: file.sha256 for file in files}
        if hashes and all(path.is_file() for path in hashes):
            for path, expected in hashes.items():
                _check(path, expected)

            return tuple(hashes)

    return ()


def _check(path: Path, expected: str) -> None:
    import pooch

    try:
        found = pooch.file_hash(path)
    except OSError as fault:
        raise InputError(
            f"{path}: found {fault.strerror!r}, expected a file to read"
        ) from None

    wanted = f"{expected[:12]}…: the file is damaged or another version"
    if found != expected:
        raise InputError(
            where=str(path), found=f"SHA-256 {found[:12]}…", expected=wanted
        )


def _place(wanted: Entry) -> Path:
    return cache_folder() / "datasets" / wanted.name


def _downloaded(file: File, folder: Path) -> Path:
    import pooch
    import requests

    pooch.get_logger().setLevel(
        "WARNING"
    )  # the command line says what is fetched, once
    downloader = pooch.HTTPDownloader(timeout=30)
    try:
        return Path(
            pooch.retrieve(
                file.address,
                f"sha256:{file.sha256}",
                file.file,
                folder,
                downloader=downloader,
            )
        )
    except requests.exceptions.RequestException as fault:
        found = "no connection"
        if fault.response is not None:
            fault.response.close()
            found = f"the answer {fault.response.status_code}"

        raise InputError(
            f"{file.address}: found {found}, expected the file {file.file}; "
            f"without a network, put the data set's files into a folder and name it in {FOLDER_VARIABLE}"
        ) from None
    except ValueError:  # pooch has deleted what it got
        wrong = f"a file with another hash, expected SHA-256 {file.sha256[:12]}…"
        raise InputError(f"{file.address}: found {wrong}; nothing was kept") from None
    except OSError as fault:
        reason = str(fault.strerror or fault).lower()
        raise InputError(
            f"{folder / file.file}: found {reason!r}, expected a place to write to"
        ) from None


def load(name: str) -> Dataset:
    """Load one of the paper's six data sets: sparse features, sparse labels, and their names.

    Parameters
    ----------
    name
        ``"enron"``, ``"medical"``, ``"rcv1subset1"``, ``"rcv1subset2"``, ``"slashdot"``
        or ``"bibtex"``.

    Returns
    -------
    Dataset
        ``(name, features, labels, feature_names, label_names)``, all instances in the
        files' order.

    Notes
    -----
    Files in the folder that the variable ``MLCONSENSUS_DATA`` names are used first;
    else they are downloaded once into the user's cache.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> medical = mlc.datasets.load("medical")  # doctest: +SKIP
    >>> medical.features.shape, medical.labels.shape  # doctest: +SKIP
    ((978, 1449), (978, 45))
    """
    from ..io.formats import (
        arff,
    )  # brings the table library, which synthetic panels do without

    known = entry(name)
    path = fetch(name)[0]
    features, labels, feature_names, label_names = (
        _read_rda(path) if path.suffix == ".rda" else arff.load(path)
    )
    found = (*features.shape, labels.shape[1])
    expected = (known.instances, known.features, known.labels)
    if found != expected:
        raise InputError(
            where=str(path),
            found=f"{found} instances, features and labels",
            expected=str(expected),
        )

    return Dataset(
        name,
        features,
        labels.astype(np.bool_),
        tuple(feature_names),
        tuple(label_names),
    )


def _read_rda(
    path: Path,
) -> tuple[sparse.csr_array, sparse.csr_array, list[str], list[str]]:
    """Read an R data file of the package mldr.datasets, as which slashdot and rcv1 are published."""
    rdata = needed("rdata", "datasets", str(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # rdata does not know the class mldr, which is a list to it all the same
            content: Any = next(iter(rdata.read_rda(path).values()))

        table = content["dataset"]
        # R counts from 1.
        chosen = [
            np.asarray(at, np.intp) - 1
            for at in (content["attributesIndexes"], content["labels"]["index"])
        ]
        # Column by column, so that no second dense copy of the table is made.
        columns = [
            [sparse.csc_array(table.iloc[:, [at]].to_numpy(np.float64)) for at in part]
            for part in chosen
        ]
        features, labels = (sparse.hstack(part, format="csr") for part in columns)
        feature_names, label_names = (
            [str(table.columns[at]) for at in part] for part in chosen
        )
    except Exception as fault:  # whatever a damaged file makes its reader raise
        raise InputError(
            f"{path}: found {type(fault).__name__}: {fault}, expected an R data file of mldr"
        ) from None

    return features, labels, feature_names, label_names
