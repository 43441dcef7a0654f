"""From a name to files on this machine: the user's own folder, the cache, and only then the network."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..errors import InputError
from .catalogue import Entry, File, entry

FOLDER_VARIABLE = "MLCONSENSUS_DATA"  # a folder with the data sets' files, looked at first
CACHE_VARIABLE = "MLCONSENSUS_CACHE"  # where downloads and results go instead of the system's place for caches


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

    Files in the folder that the variable ``MLCONSENSUS_DATA`` names are used first, then the cache. A download
    takes its place only when it is whole and its hash is right.

    Examples
    --------
    >>> fetch("emron")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: data set: found 'emron', expected one of enron, ...; did you mean 'enron'?
    """
    wanted = entry(name)
    return _own_files(wanted) or tuple(_cached(file, wanted.name) for file in wanted.public)


def is_here(name: str) -> bool:
    """Tell whether a data set can be read without the network.

    Examples
    --------
    >>> isinstance(is_here("enron"), bool)
    True
    """
    wanted = entry(name)
    return bool(_own_files(wanted)) or all(_target(file, wanted.name).is_file() for file in wanted.public)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     sha256(Path(file.name))[:8]
    'e3b0c442'
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        raise InputError(f"{path}: found {fault.strerror!r}, expected a file to read") from None


def _own_files(wanted: Entry) -> tuple[Path, ...]:
    """Return the files in the user's own folder, in either of the two forms, or nothing."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return ()
    folder = Path(named)
    if not folder.is_dir():
        raise InputError(f"{FOLDER_VARIABLE}: found {named!r}, expected a folder")
    for files in (wanted.local, wanted.public):
        paths = tuple(folder / file.file for file in files)
        if paths and all(path.is_file() for path in paths):
            for file, path in zip(files, paths, strict=True):
                _check(path, file)
            return paths
    return ()


def _target(file: File, name: str) -> Path:
    return cache_folder() / "datasets" / name / file.file


def _cached(file: File, name: str) -> Path:
    target = _target(file, name)
    if target.is_file():
        _check(target, file)
    else:
        _download(file, target)
    return target


def _check(path: Path, file: File) -> None:
    found = sha256(path)
    if found != file.sha256:
        raise InputError(
            f"{path}: found SHA-256 {found[:12]}…, expected {file.sha256[:12]}…: "
            "the file is damaged or another version; remove it to have it fetched anew"
        )


def _download(file: File, target: Path) -> None:
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # the command line says what is fetched, once
    try:
        pooch.retrieve(
            file.address,
            known_hash=f"sha256:{file.sha256}",
            fname=target.name,
            path=target.parent,
            downloader=pooch.HTTPDownloader(timeout=30),
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
    except ValueError:
        # pooch has deleted what it got.
        raise InputError(
            f"{file.address}: found a file with another hash, expected SHA-256 {file.sha256[:12]}…; nothing was kept"
        ) from None
    except OSError as fault:
        raise InputError(
            f"{target}: found {str(fault.strerror or fault).lower()!r}, expected a place to write to"
        ) from None
