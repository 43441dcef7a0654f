"""Statistics and solutions as files: named arrays in safetensors, checked against the axes that methods declare.

Nothing in such a file is ever executed: JSON is parsed, numbers are copied.
docs/state-files.md describes the format for other programs.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import IO, Any, get_type_hints

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..execution.statistics import Axes
from ..io.files import AnyPath, display, get_first_line, read_raw_bytes
from ..predictions import MAX_DENSE_LABELS, Array

VERSION = 2  # raised when older programs would misread what newer ones write

_KEY = "mlconsensus"
_TYPES = {"F64": np.float64, "I64": np.int64, "U8": np.uint8}
# number in a state file: no sum of scores comes near, and products of five are finite
_LARGEST = 1e60

Arrays = dict[str, Array]


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
        own: np.array(a, kinds.get(a.dtype.kind, np.float64), order="C")
        for own, a in sorted(arrays.items())
    }
    text = json.dumps(
        header | {"version": VERSION}, ensure_ascii=False, allow_nan=False
    )
    # The library's own order of metadata is not fixed, so all of it is one entry.
    file.write(
        save(
            plain,
            metadata={
                _KEY: json.dumps({"header": text, "sha256": _sha256_of(text, plain)})
            },
        )
    )


def read_state(path: AnyPath) -> tuple[Any, Arrays]:
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

    name = display(path)
    data = read_raw_bytes(path)
    try:
        length = int.from_bytes(data[:8], "little")  # of safetensors' own header
        entry = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][_KEY])
        header = json.loads(entry["header"])
        version = header.pop("version", None)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ):
        written = "what 'mlconsensus statistics' or 'mlconsensus solve' writes"
        raise InputError(
            f"{name}: found no statistics or model file of mlconsensus, expected {written}"
        ) from None

    advice = (
        f"{VERSION}: read it with a newer mlconsensus, or write it anew with this one"
    )
    if version != VERSION:
        raise InputError(
            where=name, found=f"version {version!r} of the format", expected=advice
        )

    try:
        listed = deserialize(data)  # type: ignore[no-untyped-call]  # checks sizes before it allocates anything
    except SafetensorError as fault:
        raise InputError(
            f"{name}: found a broken file ({get_first_line(fault)}), expected a whole one"
        ) from None

    arrays: Arrays = {}
    for own, tensor in sorted(listed):
        if tensor["dtype"] not in _TYPES:
            raise InputError(
                where=f"{name}, {own}",
                found=f"{tensor['dtype']} values",
                expected=f"some of {', '.join(_TYPES)}",
            )

        arrays[own] = np.frombuffer(tensor["data"], _TYPES[tensor["dtype"]]).reshape(
            tensor["shape"]
        )

    whole = _sha256_of(entry["header"], arrays) == entry.get("sha256")
    if not (whole):
        raise InputError(
            where=name,
            found="content that does not fit its checksum",
            expected="a whole file: it was changed or cut off",
        )

    return header, arrays


def _sha256_of(text: str, arrays: Arrays) -> str:
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
    >>> from mlconsensus.combiners.mlcm_r import MLCMrStatistics
    >>> declared(MLCMrStatistics)["walk"].names
    'm l m l'
    """
    hints = get_type_hints(kind, include_extras=True)
    for name in kind._fields:
        if not hasattr(hints[name], "__metadata__"):
            raise TypeError(
                f"{kind.__module__}.{kind.__name__}.{name} declares no Axes, which files need"
            )

    return {name: hints[name].__metadata__[0] for name in kind._fields}


def to_arrays(value: Any) -> Arrays:
    """Take statistics or a solution apart into named arrays.

    Parameters
    ----------
    value
        A method's `Statistics` or `Solution`.

    Returns
    -------
    Arrays by the names of the fields; a field that is no array has several, as
    ``patterns.counts``.

    Examples
    --------
    >>> from mlconsensus.combiners.majority_vote import MajorityVoteStatistics
    >>> to_arrays(MajorityVoteStatistics(np.array([2.0]), 3))
    {'total': array([2.]), 'heard': array(3)}
    """
    arrays: Arrays = {}
    for name, part in value._asdict().items():
        if hasattr(part, "arrays"):
            arrays |= {f"{name}.{own}": array for own, array in part.arrays().items()}
        elif part is not None:
            many = sparse.issparse(part) or isinstance(part, tuple)
            few = f"one of at most {MAX_DENSE_LABELS:,} to write, rename or take back"
            if many:
                raise InputError(
                    where=name, found="that of a panel of many labels", expected=few
                )

            arrays[name] = np.asarray(part)

    return arrays


def from_arrays(
    arrays: Arrays, kind: Any, sizes: Mapping[str, int], where: str, noisy: bool = False
) -> Any:
    """Put statistics or a solution together from named arrays, after checking names, shapes and numbers.

    Parameters
    ----------
    arrays
        What `to_arrays` gave.
    kind
        The NamedTuple they belong to.
    sizes
        How many models ``m``, labels ``l``, (model, label) pairs ``ml`` and clusters
        ``c`` there are.
    where
        Says in error messages where the arrays come from.
    noisy
        Whether noise was added, which may bring numbers out of their range.

    Returns
    -------
    The NamedTuple.
    """
    fields = declared(kind)
    own: dict[str, Arrays] = {name: {} for name in fields}
    for key, array in arrays.items():
        name, _, part = key.partition(".")
        if name not in fields:
            raise InputError(
                where=where, found=f"the array {key!r}", expected=", ".join(fields)
            )

        finite = bool((np.abs(array) <= _LARGEST).all())
        if not (finite):
            raise InputError(
                where=f"{where}, {name}",
                found="NaN, infinite or impossibly large values",
                expected="finite numbers",
            )

        own[name][part] = array

    found = {}
    for name, axes in fields.items():
        optional = name in kind._field_defaults
        here = f"{where}, {name}"
        alone = own[name].get("", np.empty(0, np.uint8))
        if not own[name]:
            if not (optional):
                raise InputError(
                    where=where, found=f"no array {name!r}", expected="one"
                )
        elif (
            optional and alone.shape == () and alone == 0
        ):  # in place of an array: nothing was added up
            found[name] = 0
        elif not isinstance(axes, Axes):
            found[name] = axes.from_arrays(own[name], (sizes["m"], sizes["l"]), here)
        else:
            if alone.dtype.kind == "u":
                raise InputError(
                    where=here,
                    found="no numbers that fit",
                    expected="float64 or int64 of its own name",
                )

            found[name] = _checked_numbers(alone, axes, sizes, here, noisy)

    return kind(**found)


def _checked_numbers(
    array: Array, axes: Axes, sizes: Mapping[str, int], where: str, noisy: bool
) -> Any:
    """Refuse numbers that the method cannot have written."""
    names = axes.names.split()
    fits = array.ndim == len(names) and array.shape == tuple(
        map(sizes.get, names, array.shape)
    )
    if not (fits):
        raise InputError(
            where=where,
            found=f"the shape {array.shape}",
            expected=" × ".join(names) or "a single number",
        )
    if array.size and not noisy:
        least = array.min()
        most = array.max()
        if not (least >= axes.least):
            raise InputError(
                where=where,
                found=f"{least:g}",
                expected=f"no number below {axes.least:g}",
            )
        if not (most <= axes.most):
            raise InputError(
                where=where,
                found=f"{most:g}",
                expected=f"no number above {axes.most:g}",
            )

    if axes.distribution:
        sums_to_1 = bool((np.abs(array.sum(axis=-1) - 1) < 1e-6).all())
        if not (sums_to_1):
            raise InputError(
                where=where,
                found="shares that do not add up to 1",
                expected="distributions over labels",
            )

    if axes.symmetric and array.size:
        half = (
            array.ndim // 2
        )  # (r, r) and (m, l, m, l) as one matrix, (l, r, r) as a matrix for each label
        if array.ndim == 3:
            order = (0, 2, 1)
        else:
            order = (*range(half, array.ndim), *range(half))

        same = (
            np.abs(array - array.transpose(order)).max() <= 1e-8 * np.abs(array).max()
        )
        if not (bool(same)):
            raise InputError(
                where=where,
                found="a matrix that is not symmetric",
                expected="a symmetric one",
            )

    if names:
        return array.astype(np.float64, copy=False)
    return array.item()


def reordered(
    value: Any, names: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
) -> Any:
    """Put models, labels and clusters of statistics into another order, also among others that said nothing.

    Parameters
    ----------
    value
        A method's `Statistics`.
    names, wanted
        Names of ``models``, ``labels`` and ``clusters``, in the present order and in
        the new one.

    Returns
    -------
    The statistics in the new order; the same object where nothing changes its place.
    """
    if names == wanted or not to_arrays(
        value
    ):  # which refuses sums of many labels, as they have no axes to reorder
        return value

    orders = {}
    for what, present in names.items():
        place = {name: at for at, name in enumerate(present)}
        orders[what[0]] = np.array(
            [place.get(name, -1) for name in wanted[what]], dtype=np.intp
        )

    both = orders["m"][:, None] * len(names["labels"]) + orders["l"]
    orders["ml"] = np.where(
        (orders["m"][:, None] < 0) | (orders["l"] < 0), -1, both
    ).ravel()
    parts = value._asdict()
    for name, axes in declared(value.__class__).items():
        if hasattr(parts[name], "reordered"):
            parts[name] = parts[name].reordered(orders["m"], orders["l"])
        elif np.ndim(parts[name]):
            for at, axis in enumerate(axes.names.split()):
                if axis in orders:
                    own = np.asarray(parts[name])
                    # Sums over what was never said are 0: -1 takes the zeros behind the
                    # last.
                    if (orders[axis] < 0).any():
                        own = np.insert(own, own.shape[at], 0, axis=at)

                    parts[name] = own.take(orders[axis], axis=at)

    out = type(value)(**parts)
    silent = orders["l"] < 0
    if silent.any() and hasattr(out, "with_silence"):
        return out.with_silence(silent)
    return out
