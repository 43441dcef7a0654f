"""Base predictions on disk: found again by what they were made from, and never believed when damaged."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..io import whole_file
from .learners.base import BoolArray


class DamagedError(Exception):
    """A file of the cache does not hold what was written."""


def key(made_from: Mapping[str, Any]) -> str:
    """Return the name of what is made from these settings: equal settings, equal names.

    Examples
    --------
    >>> key({"a": 1, "b": 2}) == key({"b": 2, "a": 1}), len(key({}))
    (True, 32)
    """
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:32]


def write(path: Path, predictions: BoolArray) -> None:
    """Write predictions as bits, with their checksum; the file appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "deep" / "er" / "a.npz"
    >>> write(path, np.eye(3, dtype=bool))
    >>> read(path).sum()
    np.int64(3)
    """
    bits = np.packbits(predictions)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise InputError(
            f"{path.parent}: found {str(fault.strerror).lower()!r}, expected a folder to write to"
        ) from None
    with whole_file(path, force=True) as file:
        np.savez(file, bits=bits, shape=np.array(predictions.shape), checksum=_checksum(bits, predictions.shape))


def read(path: Path) -> BoolArray | None:
    """Return the predictions, or None where there is no file; raise `DamagedError` where it is not as was written.

    Examples
    --------
    >>> read(Path("no-such-file.npz")) is None
    True
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            bits, shape = found["bits"], tuple(int(size) for size in found["shape"])
            good = np.array_equal(found["checksum"], _checksum(bits, shape))
            predictions = np.unpackbits(bits, count=int(np.prod(shape))).astype(np.bool_).reshape(shape)
    except Exception:  # whatever an archive with wrong bytes makes its readers raise
        raise DamagedError(path) from None
    if not good:
        raise DamagedError(path)
    return predictions


def discard(path: Path) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _checksum(bits: np.ndarray[Any, np.dtype[np.uint8]], shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    digest = hashlib.sha256(repr(shape).encode() + bits.tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)
