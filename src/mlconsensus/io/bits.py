"""Columns of bits as Arrow keeps them → a matrix of bools, dense or sparse, through Arrow's C stream interface.

The table library hands out a column of bools bit by bit, which takes most of the time of reading a Parquet file of
decisions. Its memory is laid open by Arrow's C data interface, two structures of a fixed shape, and NumPy unpacks bits
seven times as fast (docs/decisions/0008).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ..arithmetic.products import SPARSE_FILL


class _Array(ctypes.Structure):
    """``struct ArrowArray``."""


_Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    """``struct ArrowArrayStream``."""


_Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.c_void_p),
    ("release", ctypes.c_void_p),  # the capsule's own destructor calls it
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def few(frame: pl.DataFrame) -> bool:
    """Tell whether all columns are bools without a null, and so few true that sparse arithmetic is cheaper.

    Examples
    --------
    >>> few(pl.DataFrame({"x": [True, False]})), few(pl.DataFrame({"x": [False, False]}))
    (False, True)
    """
    if set(frame.dtypes) != {pl.Boolean} or any(frame.null_count().row(0)):
        return False
    return bool(sum(frame.sum().row(0)) < SPARSE_FILL * frame.height * frame.width)


def unpacked(frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Return columns of bools, none of them null, as a matrix whose columns are contiguous.

    Examples
    --------
    >>> unpacked(pl.DataFrame({"x": [True, False], "y": [True, True]}))
    array([[ True,  True],
           [False,  True]])
    """
    parts = [np.unpackbits(bits, axis=1, count=n, bitorder="little") for bits, n in _chunks(frame)]
    columns = parts[0] if len(parts) == 1 else np.concatenate([np.empty((frame.width, 0), np.uint8), *parts], axis=1)
    return columns.view(np.bool_).T


def entries(frame: pl.DataFrame) -> Any:
    """Return the same as a CSR matrix; only bytes in which any bit is set are looked into.

    Examples
    --------
    >>> entries(pl.DataFrame({"x": [True, False], "y": [True, True]})).toarray()
    array([[ True,  True],
           [False,  True]])
    """
    parts = []
    for bits, n in _chunks(frame):
        width, size = bits.shape
        filled = np.flatnonzero(bits.ravel() != 0)
        some = bits.ravel()[filled]
        found = np.flatnonzero(np.unpackbits(some, bitorder="little").view(np.bool_))
        at = np.repeat(filled, np.bitwise_count(some))
        starts = np.searchsorted(at, np.arange(width + 1) * size)
        rows = (at - np.repeat(np.arange(width) * size, np.diff(starts))) * 8 + (found & 7)
        ones = np.ones(len(rows), dtype=np.bool_)
        columns = sparse.csc_array((ones, rows.astype(np.int32), starts.astype(np.int32)), shape=(n, width))
        parts.append(columns.tocsr())
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def _chunks(frame: pl.DataFrame) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Walk the frame's chunks: the bits of each column, eight to a byte, and how many there are."""
    capsule = frame.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
    while not stream.get_next(ctypes.byref(stream), ctypes.byref(chunk := _Array())) and chunk.release:
        out = np.empty((frame.width, (chunk.length + 7) // 8), dtype=np.uint8)
        for at in range(frame.width):
            column = chunk.children[at].contents
            first, rest = divmod(chunk.offset + column.offset, 8)
            size = (rest + chunk.length + 7) // 8
            address = ctypes.cast(column.buffers[1] + first, ctypes.POINTER(ctypes.c_uint8))
            bits = np.ctypeslib.as_array(address, (size,))
            if rest:  # a slice that begins within a byte
                whole = np.unpackbits(bits, count=rest + chunk.length, bitorder="little")[rest:]
                bits = np.packbits(whole, bitorder="little")
            out[at] = bits
        if chunk.length % 8:
            out[:, -1] &= (1 << chunk.length % 8) - 1  # what stands behind the last is not ours
        length = chunk.length
        chunk.release(ctypes.byref(chunk))
        yield out, length
