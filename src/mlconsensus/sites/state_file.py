"""Statistics and solutions as files: named arrays in safetensors, checked against the axes that methods declare.

Nothing in such a file is ever executed: JSON is parsed, numbers are copied. docs/state-files.md describes the format
for other programs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import IO, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..combiners.method import Axes
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

    kinds = {"u": np.uint8, "i": np.int64}
    plain = {
        name: np.array(array, kinds.get(array.dtype.kind, np.float64), order="C")
        for name, array in sorted(arrays.items())
    }
    text = json.dumps(header | {"version": VERSION}, ensure_ascii=False, allow_nan=False)
    # The library's own order of metadata is not fixed, so all of it is one entry.
    file.write(save(plain, metadata={_KEY: json.dumps({"header": text, "sha256": _checksum(text, plain)})}))


def read_state(path: AnyPath) -> tuple[dict[str, Any], Arrays]:
    """Read a file that `write_state` wrote.

    Parameters
    ----------
    path
        Where it is.

    Returns
    -------
    header
        As it was given to `write_state`.
    arrays
        By name, in alphabetical order.

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
    try:
        length = int.from_bytes(data[:_PROLOGUE], "little")
        entry = json.loads(json.loads(data[_PROLOGUE : _PROLOGUE + length])["__metadata__"][_KEY])
        header = json.loads(entry["header"])
        version = header.pop("version", None)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
        raise InputError(
            f"{name}: found no statistics or model file of mlconsensus, expected what "
            "'mlconsensus statistics' or 'mlconsensus solve' writes"
        ) from None
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
    if _checksum(entry["header"], arrays) != entry.get("sha256"):
        raise InputError(
            f"{name}: found content that does not fit its checksum, expected a whole file: it was changed or cut off"
        )
    return header, arrays


def _checksum(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@cache
def declared(kind: Any) -> Mapping[str, Any]:
    """Read what stands beside each field of a NamedTuple: its `Axes`, or its own class if it is no array.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_r import Statistics
    >>> declared(Statistics)["walk"].names
    'm l m l'
    """
    hints = get_type_hints(kind, include_extras=True)
    for name in kind._fields:
        if not hasattr(hints[name], "__metadata__"):
            raise TypeError(f"{kind.__module__}.{kind.__name__}.{name} declares no Axes, which files need")
    return {name: hints[name].__metadata__[0] for name in kind._fields}


def to_arrays(value: Any) -> Arrays:
    """Take statistics or a solution apart into named arrays.

    Parameters
    ----------
    value
        A method's `Statistics` or `Solution`.

    Returns
    -------
    Arrays by the names of the fields; a field that is no array has several, as ``patterns.counts``.

    Examples
    --------
    >>> from mlconsensus.combiners.majority_vote import Statistics
    >>> to_arrays(Statistics(np.array([2.0]), 3))
    {'total': array([2.]), 'heard': array(3)}
    """
    arrays: Arrays = {}
    for name, part in value._asdict().items():
        if hasattr(part, "arrays"):
            arrays |= {f"{name}.{own}": array for own, array in part.arrays().items()}
        elif part is not None:
            arrays[name] = np.asarray(part)
    return arrays


def from_arrays(arrays: Arrays, kind: Any, sizes: Mapping[str, int], where: str, noisy: bool = False) -> Any:
    """Put statistics or a solution together from named arrays, after checking names, shapes and numbers.

    Parameters
    ----------
    arrays
        What `to_arrays` gave.
    kind
        The NamedTuple they belong to.
    sizes
        How many models ``m``, labels ``l``, (model, label) pairs ``ml`` and clusters ``c`` there are.
    where
        Says in error messages where the arrays come from.
    noisy
        Whether noise was added, which may bring numbers out of their range.

    Returns
    -------
    The NamedTuple.
    """
    fields = declared(kind)
    own: dict[str, Arrays] = {}
    for key, array in arrays.items():
        name, _, part = key.partition(".")
        if name not in fields:
            raise InputError(f"{where}: found the array {key!r}, expected {', '.join(fields)}")
        if not np.isfinite(array).all():
            raise InputError(f"{where}, {name}: found NaN or infinite values, expected finite numbers")
        own.setdefault(name, {})[part] = array
    found = {}
    for name, axes in fields.items():
        optional, here = name in kind._field_defaults, f"{where}, {name}"
        if name not in own:
            if not optional:
                raise InputError(f"{where}: found no array {name!r}, expected one")
            continue
        if not isinstance(axes, Axes):
            found[name] = axes.from_arrays(own[name], (sizes["m"], sizes["l"]), here)
            continue
        numbers = own[name].get("")
        if numbers is None or numbers.dtype.kind == "u":
            raise InputError(f"{here}: found no numbers that fit, expected float64 or int64 of its own name")
        if optional and numbers.shape == () and numbers == 0:  # in place of an array: nothing was added up
            found[name] = 0
        else:
            _check_numbers(numbers, axes._replace(least=-np.inf, most=np.inf) if noisy else axes, sizes, here)
            found[name] = numbers.astype(np.float64, copy=False) if axes.names else numbers.item()
    return kind(**found)


def _check_numbers(array: NDArray[Any], axes: Axes, sizes: Mapping[str, int], where: str) -> None:
    """Refuse numbers that the method cannot have written."""
    names = axes.names.split()
    if array.ndim != len(names) or any(
        sizes.get(name, size) != size for name, size in zip(names, array.shape, strict=True)
    ):
        raise InputError(f"{where}: found the shape {array.shape}, expected {' × '.join(names) or 'a single number'}")
    if not array.size:
        return
    if array.min() < axes.least:
        raise InputError(f"{where}: found {array.min():g}, expected no number below {axes.least:g}")
    if array.max() > axes.most:
        raise InputError(f"{where}: found {array.max():g}, expected no number above {axes.most:g}")
    if axes.distribution and np.abs(array.sum(axis=-1) - 1).max() > 1e-6:
        raise InputError(f"{where}: found shares that do not add up to 1, expected distributions over labels")
    if axes.symmetric:
        half = array.ndim // 2  # (r, r) and (m, l, m, l) as one matrix, (l, r, r) as a matrix for each label
        order = (0, 2, 1) if array.ndim == 3 else (*range(half, array.ndim), *range(half))
        if np.abs(array - array.transpose(order)).max() > 1e-8 * np.abs(array).max():
            raise InputError(f"{where}: found a matrix that is not symmetric, expected a symmetric one")


def reordered(value: Any, orders: Mapping[str, NDArray[np.intp]]) -> Any:
    """Put models, labels and clusters of statistics into another order.

    Parameters
    ----------
    value
        A method's `Statistics`.
    orders
        For ``m``, ``l`` and ``c``, which old position each new one is taken from.

    Returns
    -------
    The statistics in the new order; the same object where nothing changes its place.
    """
    if all((order == np.arange(len(order))).all() for order in orders.values()):
        return value
    orders = {**orders, "ml": (orders["m"][:, None] * len(orders["l"]) + orders["l"]).ravel()}
    parts = value._asdict()
    for name, axes in declared(value.__class__).items():
        if not isinstance(axes, Axes):
            parts[name] = parts[name].reordered(orders["m"], orders["l"])
        elif np.ndim(parts[name]):
            for axis, runs_over in enumerate(axes.names.split()):
                if runs_over in orders:
                    parts[name] = np.asarray(parts[name]).take(orders[runs_over], axis=axis)
    return type(value)(**parts)
