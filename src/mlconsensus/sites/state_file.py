"""Statistics and model files: safetensors, whose metadata say what they hold and have a checksum of it.

Nothing in such a file is ever executed: JSON is parsed, numbers are copied. docs/state-files.md describes the format
for other programs.
"""

from __future__ import annotations

import hashlib
import json
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io.files import AnyPath, display, first_line, raw_bytes

VERSION = 2  # raised when older programs would misread what newer ones write

_KEY = "mlconsensus"
_TYPES = {"F64": np.float64, "I64": np.int64, "U8": np.uint8}
_PROLOGUE = 8  # bytes that say how long the header is

Arrays = dict[str, NDArray[Any]]


def write_state(file: IO[bytes], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a header and named arrays; the same content gives the same bytes on every machine.

    Parameters
    ----------
    file
        Open for writing bytes.
    header
        What JSON can hold.
    arrays
        Of float64, int64 or uint8; others become float64.
    """
    from safetensors.numpy import save

    plain = {name: np.array(array, _numpy_type(array), order="C") for name, array in sorted(arrays.items())}
    text = json.dumps(header | {"version": VERSION}, ensure_ascii=False, allow_nan=False)
    # The library's own order of metadata is not fixed, so all of it is one entry.
    file.write(save(plain, metadata={_KEY: json.dumps({"header": text, "sha256": _digest(text, plain)})}))


def read_state(path: AnyPath) -> tuple[dict[str, Any], Arrays]:
    """Read a file that `write_state` wrote: its header and the arrays.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.stats"
    >>> with path.open("wb") as file:
    ...     write_state(file, {"kind": "statistics"}, {"total": np.array([1.0, 2.0])})
    >>> read_state(path)
    ({'kind': 'statistics'}, {'total': array([1., 2.])})
    """
    from safetensors import SafetensorError, deserialize

    name, data = display(path), raw_bytes(path)
    outside = _entry(data)
    if not isinstance(outside, dict) or not isinstance(outside.get("header"), str):
        raise InputError(
            f"{name}: found no statistics or model file of mlconsensus, expected what "
            "'mlconsensus statistics' or 'mlconsensus solve' writes"
        )
    header = _header(outside["header"], name)
    version = header.pop("version", None)
    if version != VERSION:
        raise InputError(
            f"{name}: found version {version!r} of the format, expected {VERSION}: "
            "read it with a newer mlconsensus, or write it anew with this one"
        )
    try:
        listed = deserialize(data)  # type: ignore[no-untyped-call]  # checks sizes before it allocates anything
    except SafetensorError as fault:
        raise InputError(f"{name}: found a broken file ({first_line(fault)}), expected a whole one") from None
    arrays: Arrays = {}
    for own, tensor in sorted(listed):
        if tensor["dtype"] not in _TYPES:
            raise InputError(f"{name}, {own}: found {tensor['dtype']} values, expected one of {', '.join(_TYPES)}")
        arrays[own] = np.frombuffer(tensor["data"], _TYPES[tensor["dtype"]]).reshape(tensor["shape"])
    if _digest(outside["header"], arrays) != outside.get("sha256"):
        raise InputError(
            f"{name}: found content that does not fit its checksum, expected a whole file: it was changed or cut off"
        )
    return header, arrays


def _entry(data: bytes) -> Any:
    """Find our entry in the metadata, or nothing."""
    try:
        length = int.from_bytes(data[:_PROLOGUE], "little")
        outer = json.loads(data[_PROLOGUE : _PROLOGUE + length])
        return json.loads(outer["__metadata__"][_KEY])
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        return None


def _header(text: str, name: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"found {constant}")

    try:
        header = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as fault:
        raise InputError(f"{name}: found a broken header ({first_line(fault)}), expected JSON") from None
    if not isinstance(header, dict):
        raise InputError(f"{name}: found a header that is no JSON object, expected one")
    return header


def _digest(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _numpy_type(array: NDArray[Any]) -> Any:
    return {"u": np.uint8, "i": np.int64}.get(array.dtype.kind, np.float64)
