r"""The bytes of statistics and model files: a line that says what it is, a line of JSON, arrays, a checksum.

Nothing in such a file is ever executed: JSON is parsed, numbers are copied. docs/state-files.md describes the format
for other programs.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io.files import AnyPath, display, first_line, raw_bytes

VERSION = 1  # raised when older programs would misread what newer ones write

_MAGIC = b"mlconsensus state "
_TYPES = {"float64": "<f8", "int64": "<i8", "uint8": "|u1"}
_CHECKSUM = 32  # bytes of a SHA-256

Arrays = dict[str, NDArray[Any]]


def write_state(file: IO[bytes], header: dict[str, Any], arrays: Arrays) -> None:
    r"""Write a header and named arrays; the same content gives the same bytes on every machine.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_state(file, {"kind": "model"}, {"prior": np.array([0.5])})
    >>> file.getvalue().split(b"\n")[1]
    b'{"kind": "model", "arrays": [{"name": "prior", "type": "float64", "shape": [1]}]}'
    """
    listed = [{"name": name, "type": _type(array), "shape": list(array.shape)} for name, array in arrays.items()]
    text = json.dumps(header | {"arrays": listed}, ensure_ascii=False, allow_nan=False)
    digest = hashlib.sha256()
    parts = [_MAGIC + b"%d\n" % VERSION, text.encode() + b"\n"]
    for part in [*parts, *(np.ascontiguousarray(array, _TYPES[_type(array)]).tobytes() for array in arrays.values())]:
        digest.update(part)
        file.write(part)
    file.write(digest.digest())


def read_state(path: AnyPath) -> tuple[dict[str, Any], Arrays]:
    """Read a file that `write_state` wrote: its header, without the list of arrays, and the arrays.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.stats"
    >>> with path.open("wb") as file:
    ...     write_state(file, {"kind": "statistics"}, {"total": np.array([1.0, 2.0])})
    >>> read_state(path)
    ({'kind': 'statistics'}, {'total': array([1., 2.])})
    """
    name, data = display(path), raw_bytes(path)
    _check_version(data, name)
    content = memoryview(data)[:-_CHECKSUM]
    if hashlib.sha256(content).digest() != data[-_CHECKSUM:]:
        raise InputError(
            f"{name}: found content that does not fit its checksum, expected a whole file: it was changed or cut off"
        )
    start = data.index(b"\n") + 1
    end = data.find(b"\n", start, len(content))
    header = _header(data[start : max(end, start)], name)
    return header, _arrays(header.pop("arrays", None), content[end + 1 :], name)


def _check_version(data: bytes, name: str) -> None:
    line, newline, _ = data[:64].partition(b"\n")
    version = line.removeprefix(_MAGIC)
    if not line.startswith(_MAGIC) or not newline or not version.isdigit():
        raise InputError(
            f"{name}: found no statistics or model file of mlconsensus, expected what "
            "'mlconsensus statistics' or 'mlconsensus solve' writes"
        )
    if int(version) != VERSION:
        raise InputError(
            f"{name}: found version {int(version)} of the format, expected {VERSION}: "
            "read it with a newer mlconsensus, or write it anew with this one"
        )


def _header(text: bytes, name: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"found {constant}")

    try:
        header = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as fault:
        raise InputError(f"{name}: found a broken header ({first_line(fault)}), expected a line of JSON") from None
    if not isinstance(header, dict):
        raise InputError(f"{name}: found a header that is no JSON object, expected one")
    return header


def _arrays(listed: Any, content: memoryview, name: str) -> Arrays:
    """Cut the content into the arrays that the header lists; nothing is allocated before the sizes add up."""
    if not isinstance(listed, list) or not all(_is_entry(entry) for entry in listed):
        raise InputError(f"{name}: found a broken list of arrays, expected name, type and shape of each")
    kinds = [np.dtype(_TYPES[entry["type"]]) for entry in listed]
    sizes = [math.prod(entry["shape"]) * kind.itemsize for entry, kind in zip(listed, kinds, strict=True)]
    if sum(sizes) != len(content):
        raise InputError(f"{name}: found {len(content):,} bytes of arrays, expected {sum(sizes):,} as its header says")
    arrays: Arrays = {}
    start = 0
    for entry, kind, size in zip(listed, kinds, sizes, strict=True):
        if entry["name"] in arrays:
            raise InputError(f"{name}: found the array {entry['name']!r} twice, expected each once")
        flat = np.frombuffer(content[start : start + size], kind).astype(kind.newbyteorder("="))
        try:
            arrays[entry["name"]] = flat.reshape(entry["shape"])
        except ValueError:  # sizes beside a 0 that no array can have
            raise InputError(f"{name}: found the shape {entry['shape']}, expected one that arrays can have") from None
        start += size
    return arrays


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not {"name", "type", "shape"} <= set(entry):
        return False
    name, kind, shape = entry["name"], entry["type"], entry["shape"]
    if not isinstance(name, str) or not isinstance(kind, str) or kind not in _TYPES or not isinstance(shape, list):
        return False
    return len(shape) <= 8 and all(type(size) is int and 0 <= size < 2**31 for size in shape)


def _type(array: NDArray[Any]) -> str:
    return {"u": "uint8", "i": "int64"}.get(array.dtype.kind, "float64")
