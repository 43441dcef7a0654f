"""The paper's data sets: metadata, download, and reading.

Files are searched for in the user's folder (``MLCONSENSUS_DATA``), then in the cache,
and are downloaded only if they are in neither.
"""

import os
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..errors import InputError, needed, one_of

if TYPE_CHECKING:
    import pandas as pd

# A folder with the files of the data sets; it is searched first.
FOLDER_VARIABLE = "MLCONSENSUS_DATA"
# Folder for downloads and results, in place of the system's folder for caches.
CACHE_VARIABLE = "MLCONSENSUS_CACHE"


@dataclass(frozen=True, kw_only=True)
class File:
    """One file of a data set."""

    file: str  # its name
    sha256: str
    address: str | None = None  # None: the file cannot be downloaded


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Metadata of one data set.

    Examples
    --------
    >>> entry("bibtex").paper, entry("bibtex").instances
    (3701, 7395)
    """

    name: str
    about: str
    instances: int
    paper: int  # number of instances that the paper used
    features: int
    labels: int
    licence: str
    citation: str
    local: tuple[File, ...]  # gzipped Mulan ARFF, in the user's folder only
    public: tuple[File, ...]  # files to download


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Instances with features and labels."""

    name: str
    features: sparse.csr_array  # (n, d) float64
    labels: sparse.csr_array  # (n, l) bool
    feature_names: tuple[str, ...]  # (d,)
    label_names: tuple[str, ...]  # (l,)

    def first(self, n: int) -> "Dataset":
        """Return a data set of the first `n` instances."""
        return replace(self, features=self.features[:n], labels=self.labels[:n])


@cache
def registry() -> dict[str, Entry]:
    """Return the metadata of all data sets by name, in the paper's order.

    Returns
    -------
    dict of str to Entry

    Examples
    --------
    >>> list(registry())
    ['enron', 'medical', 'rcv1subset1', 'rcv1subset2', 'slashdot', 'bibtex']
    """
    path = resources.files(__package__).joinpath("registry.toml")
    entries = {}
    for name, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
        local = tuple(File(**file) for file in fields.pop("local"))
        public = tuple(File(**file) for file in fields.pop("public"))
        entries[name] = Entry(name=name, local=local, public=public, **fields)

    return entries


def entry(name: str) -> Entry:
    """Return the metadata of one data set.

    Parameters
    ----------
    name : str
        A key of `registry`.

    Returns
    -------
    Entry

    Examples
    --------
    >>> entry("medcal")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: data set: found 'medcal', expected one of enron, ...;
    did you mean 'medical'?
    """
    one_of(name, registry(), "data set")
    return registry()[name]


def cache_folder() -> Path:
    """Return the folder for downloads and intermediate results.

    Returns
    -------
    Path

    Examples
    --------
    >>> cache_folder().name
    'mlconsensus'
    """
    import pooch

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("mlconsensus"))


def fetch(name: str) -> tuple[Path, ...]:
    """Return the checked files of a data set, and download them if necessary.

    Files in the folder that the variable ``MLCONSENSUS_DATA`` names are used first,
    then the cache. A download is stored only if it is complete and its hash is right.
    A damaged file in the cache is downloaded again.

    Parameters
    ----------
    name : str
        A key of `registry`.

    Returns
    -------
    tuple of Path

    Examples
    --------
    >>> fetch("emron")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: data set: found 'emron', expected one of enron, ...;
    did you mean 'enron'?
    """
    dataset = entry(name)
    user_files = _find_user_files(dataset)
    if user_files:
        return user_files

    folder = _get_cache_folder(dataset)
    return tuple(_download(file, folder) for file in dataset.public)


def is_here(name: str) -> bool:
    """Check whether a data set can be read without the network.

    Parameters
    ----------
    name : str
        A key of `registry`.

    Returns
    -------
    bool

    Examples
    --------
    >>> isinstance(is_here("enron"), bool)
    True
    """
    dataset = entry(name)
    if _find_user_files(dataset):
        return True

    folder = _get_cache_folder(dataset)
    return all((folder / file.file).is_file() for file in dataset.public)


def _find_user_files(dataset: Entry) -> tuple[Path, ...]:
    """Return the checked files in the user's folder, or () if they are not there."""
    folder_name = os.environ.get(FOLDER_VARIABLE)
    if not folder_name:
        return ()

    folder = Path(folder_name)
    if not folder.is_dir():
        raise InputError(
            where=FOLDER_VARIABLE, found=repr(folder_name), expected="a folder"
        )

    for files in (dataset.local, dataset.public):
        paths = tuple(folder / file.file for file in files)
        if paths and all(path.is_file() for path in paths):
            for path, file in zip(paths, files, strict=True):
                _check_hash(path, file.sha256)

            return paths

    return ()


def _check_hash(path: Path, sha256: str) -> None:
    """Check that a file can be read and has this hash."""
    import pooch

    try:
        actual = pooch.file_hash(path)
    except OSError as error:
        raise InputError(
            where=str(path), found=repr(error.strerror), expected="a file to read"
        ) from None

    if actual != sha256:
        raise InputError(
            where=str(path),
            found=f"SHA-256 {actual[:12]}…",
            expected=f"{sha256[:12]}…: the file is damaged or another version",
        )


def _get_cache_folder(dataset: Entry) -> Path:
    """Return the folder of the cache for one data set."""
    return cache_folder() / "datasets" / dataset.name


def _download(file: File, folder: Path) -> Path:
    """Return the file in the folder, and download it if it is not there."""
    import pooch
    import requests

    # The command line prints one line for each data set.
    pooch.get_logger().setLevel("WARNING")
    try:
        path = pooch.retrieve(
            file.address,
            f"sha256:{file.sha256}",
            file.file,
            folder,
            downloader=pooch.HTTPDownloader(timeout=30),
        )
    except requests.exceptions.RequestException as error:
        response = error.response
        if response is None:
            problem = "no connection"
        else:
            response.close()
            problem = f"the answer {response.status_code}"

        raise InputError(
            where=file.address,
            found=problem,
            expected=f"the file {file.file}; without a network, put the data set's "
            f"files into a folder and name it in {FOLDER_VARIABLE}",
        ) from None
    except ValueError:  # pooch has deleted the download
        raise InputError(
            where=file.address,
            found="a file with another hash",
            expected=f"SHA-256 {file.sha256[:12]}…; nothing was kept",
        ) from None
    except OSError as error:
        reason = str(error.strerror or error).lower()
        raise InputError(
            where=str(folder / file.file),
            found=repr(reason),
            expected="a place to write to",
        ) from None

    return Path(path)


def load(name: str) -> Dataset:
    """Load one of the paper's six data sets.

    Parameters
    ----------
    name : str
        ``"enron"``, ``"medical"``, ``"rcv1subset1"``, ``"rcv1subset2"``, ``"slashdot"``
        or ``"bibtex"``.

    Returns
    -------
    Dataset
        Sparse features, sparse labels and their names, with all instances in the order
        of the files.

    Notes
    -----
    Files in the folder that the variable ``MLCONSENSUS_DATA`` names are used first;
    otherwise they are downloaded once into the user's cache.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> medical = mlc.datasets.load("medical")  # doctest: +SKIP
    >>> medical.features.shape, medical.labels.shape  # doctest: +SKIP
    ((978, 1449), (978, 45))
    """
    # Imports Polars, which synthetic predictions do not need.
    from ..io.formats import arff

    path = fetch(name)[0]
    if path.suffix == ".rda":
        features, labels, feature_names, label_names = _read_rda(path)
    else:
        data = arff.load(path)
        features = data.features
        labels = data.labels
        feature_names = data.feature_names
        label_names = data.label_names

    metadata = entry(name)
    shape = (*features.shape, labels.shape[1])
    expected_shape = (metadata.instances, metadata.features, metadata.labels)
    if shape != expected_shape:
        raise InputError(
            where=str(path),
            found=f"{shape} instances, features and labels",
            expected=str(expected_shape),
        )

    return Dataset(
        name=name,
        features=features,
        labels=labels.astype(np.bool_),
        feature_names=tuple(feature_names),
        label_names=tuple(label_names),
    )


def _read_rda(
    path: Path,
) -> tuple[sparse.csr_array, sparse.csr_array, list[str], list[str]]:
    """Read an R data file of the package mldr.datasets (slashdot and rcv1)."""
    rdata = needed("rdata", "datasets", str(path))
    try:
        with warnings.catch_warnings():
            # rdata does not know the class mldr and reads it as a list, which is fine.
            warnings.simplefilter("ignore")
            content = next(iter(rdata.read_rda(path).values()))

        table = content["dataset"]
        features = _select_columns(table, content["attributesIndexes"])
        labels = _select_columns(table, content["labels"]["index"])
    except Exception as error:  # readers of damaged files raise exceptions of any kind
        raise InputError(
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            expected="an R data file of mldr",
        ) from None

    return features[0], labels[0], features[1], labels[1]


def _select_columns(
    table: "pd.DataFrame", positions: Sequence[float]
) -> tuple[sparse.csr_array, list[str]]:
    """Return columns of a table as a sparse matrix, with their names."""
    columns = []
    names = []
    for position in np.asarray(positions, np.intp) - 1:  # R counts from 1
        # One column at a time, so that no second dense copy of the table is made.
        column = table.iloc[:, [position]].to_numpy(np.float64)
        columns.append(sparse.csc_array(column))
        names.append(str(table.columns[position]))

    return sparse.hstack(columns, format="csr"), names
