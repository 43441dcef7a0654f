"""Statistics and solutions as files of named arrays in the format safetensors.

Arrays are checked against the axes that methods declare. Nothing in such a file is ever
executed: JSON is parsed, and numbers are copied. docs/state-files.md describes the
format for other programs.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import IO, Protocol, Self, TypeVar, get_type_hints, runtime_checkable

import numpy as np

from ..errors import InputError
from ..execution.statistics import Axes, field_names, optional_field_names
from ..io.files import AnyPath, display, get_first_line, read_raw_bytes
from ..predictions import MAX_DENSE_LABELS, Array, FloatArray, IntArray

VERSION = 2  # raised when older programs would misread what newer ones write

_KEY = "mlconsensus"
_TYPES = {"F64": np.float64, "I64": np.int64, "U8": np.uint8}
# Largest number in a file: sums of scores are far below, and products of five such
# numbers are finite.
_LARGEST = 1e60
_MAX_ASYMMETRY = 1e-8  # relative to the largest number of the matrix

Header = dict[str, object]  # values that JSON can hold
Arrays = dict[str, Array]
R = TypeVar("R")  # a record of statistics, a state or a solution


@runtime_checkable
class StoredField(Protocol):
    """A field of statistics that is stored as several arrays, such as vote patterns."""

    def arrays(self) -> Arrays:
        """Return the arrays to store, by name."""

    def reordered(self, models: IntArray, labels: IntArray) -> Self:
        """Return the field in another order of models and labels."""

    @classmethod
    def from_arrays(cls, arrays: Arrays, shape: tuple[int, int], where: str) -> Self:
        """Make the field from its stored arrays, after checking them."""


def write_state(file: IO[bytes], header: Header, arrays: Arrays) -> None:
    """Write a header and named arrays.

    The same content gives the same bytes on every machine.

    Parameters
    ----------
    file : binary file
        Open for writing.
    header : dict
        Values that JSON can hold.
    arrays : dict of str to ndarray
        Arrays of float64, int64 or uint8; others become float64.
    """
    from safetensors.numpy import save

    types_by_kind = {"u": np.uint8, "i": np.int64}
    stored: Arrays = {}
    for name, array in sorted(arrays.items()):
        stored_type = types_by_kind.get(array.dtype.kind, np.float64)
        stored[name] = np.array(array, stored_type, order="C")

    versioned = header | {"version": VERSION}
    text = json.dumps(versioned, ensure_ascii=False, allow_nan=False)

    # The library writes metadata in any order, so all of it is one entry.
    entry = json.dumps({"header": text, "sha256": _sha256_of(text, stored)})
    file.write(save(stored, metadata={_KEY: entry}))


def read_state(path: AnyPath) -> tuple[Header, Arrays]:
    """Read a file that `write_state` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    header : dict
        The header that was passed to `write_state`.
    arrays : dict of str to ndarray
        The arrays, in alphabetical order of their names.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.stats"
    >>> with path.open("wb") as file:
    ...     write_state(file, {"kind": "statistics"}, {"total": np.array([1.0, 2.0])})
    >>> read_state(path)
    ({'kind': 'statistics'}, {'total': array([1., 2.])})
    """
    where = display(path)
    data = read_raw_bytes(path)
    text, header, checksum = _parse_header(data, where)

    version = header.pop("version", None)
    if version != VERSION:
        raise InputError(
            where=where,
            found=f"version {version!r} of the format",
            expected=f"{VERSION}: read it with a newer mlconsensus, or write it "
            "again with this one",
        )

    arrays = _parse_arrays(data, where)
    if _sha256_of(text, arrays) != checksum:
        raise InputError(
            where=where,
            found="content that does not fit its checksum",
            expected="a whole file: it was changed or cut off",
        )

    return header, arrays


def _parse_header(data: bytes, where: str) -> tuple[str, Header, object]:
    """Return the header as text and parsed, and the checksum of the file."""
    try:
        length = int.from_bytes(data[:8], "little")  # of the header of safetensors
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        entry = json.loads(metadata[_KEY])
        text = entry["header"]
        header = json.loads(text)
        checksum = entry.get("sha256")
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ):
        header = None

    if not isinstance(header, dict):
        raise InputError(
            where=where,
            found="no statistics or model file of mlconsensus",
            expected="what 'mlconsensus statistics' or 'mlconsensus solve' writes",
        )

    return text, header, checksum


def _parse_arrays(data: bytes, where: str) -> Arrays:
    """Return the arrays of a file by name, in alphabetical order."""
    from safetensors import SafetensorError, deserialize

    try:
        # It checks sizes before it allocates any memory.
        tensors = deserialize(data)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise InputError(
            where=where,
            found=f"a broken file ({get_first_line(error)})",
            expected="a whole one",
        ) from None

    arrays: Arrays = {}
    for name, tensor in sorted(tensors):
        if tensor["dtype"] not in _TYPES:
            raise InputError(
                where=f"{where}, {name}",
                found=f"{tensor['dtype']} values",
                expected=f"some of {', '.join(_TYPES)}",
            )

        flat = np.frombuffer(tensor["data"], _TYPES[tensor["dtype"]])
        arrays[name] = flat.reshape(tensor["shape"])

    return arrays


def _sha256_of(text: str, arrays: Arrays) -> str:
    """Compute the checksum of a header and arrays."""
    digest = hashlib.sha256(text.encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)

    return digest.hexdigest()


def read_axes(record_type: type) -> Mapping[str, Axes | type[StoredField]]:
    """Return what the annotation of each field of a record declares.

    Parameters
    ----------
    record_type : type
        Class of statistics, a state or a solution.

    Returns
    -------
    dict of str to Axes or type
        The `Axes` of each array; the class of a field with several arrays.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_r import MLCMrStatistics
    >>> read_axes(MLCMrStatistics)["walk"].names
    'm l m l'
    """
    hints = get_type_hints(record_type, include_extras=True)
    axes = {}
    for name in field_names(record_type):
        if not hasattr(hints[name], "__metadata__"):
            place = f"{record_type.__module__}.{record_type.__name__}.{name}"
            raise TypeError(f"{place} declares no Axes, which files need")

        axes[name] = hints[name].__metadata__[0]

    return axes


def check_small_label_space(record: object) -> None:
    """Check that all fields of a record are numbers or arrays.

    In large label spaces, some fields are sparse or factored.

    Parameters
    ----------
    record : dataclass or NamedTuple
        Statistics, a state or a solution.

    Raises
    ------
    InputError
        If a field is one of a large label space.
    """
    for name in field_names(record):
        value = getattr(record, name)
        is_plain = value is None or isinstance(value, Real | StoredField)
        is_array = hasattr(value, "__array__") and not getattr(value, "is_large", False)
        if not is_plain and not is_array:
            raise InputError(
                where=name,
                found="that of a panel of many labels",
                expected=f"one of at most {MAX_DENSE_LABELS:,} to write, rename or "
                "take back",
            )


def to_arrays(record: object) -> Arrays:
    """Return the fields of a record as named arrays.

    Parameters
    ----------
    record : dataclass or NamedTuple
        Statistics, a state or a solution.

    Returns
    -------
    dict of str to ndarray
        Arrays by the names of the fields. A `StoredField` has several arrays, such as
        ``patterns.counts``. A field that is None has none.

    Examples
    --------
    >>> from mlconsensus.combiners.majority_vote import MajorityVoteStatistics
    >>> to_arrays(MajorityVoteStatistics(score_sum=np.array([2.0]), n_predictions=3))
    {'score_sum': array([2.]), 'n_predictions': array(3)}
    """
    check_small_label_space(record)
    arrays: Arrays = {}
    for name in field_names(record):
        value = getattr(record, name)
        if isinstance(value, StoredField):
            for part, array in value.arrays().items():
                arrays[f"{name}.{part}"] = array
        elif value is not None:
            arrays[name] = np.asarray(value)

    return arrays


def from_arrays(
    arrays: Arrays,
    record_type: type[R],
    *,
    sizes: Mapping[str, int],
    where: str,
    has_noise: bool = False,
) -> R:
    """Make a record of named arrays, after checking names, shapes and numbers.

    Parameters
    ----------
    arrays : dict of str to ndarray
        The result of `to_arrays`.
    record_type : type
        Class of the statistics, state or solution.
    sizes : dict of str to int
        Number of models ``m``, labels ``l``, model-label pairs ``ml`` and clusters
        ``c``.
    where : str
        Place of the arrays in error messages.
    has_noise : bool, default=False
        Whether noise was added, so that numbers may be out of their range.

    Returns
    -------
    dataclass or NamedTuple
        An instance of `record_type`.
    """
    axes_by_field = read_axes(record_type)
    optional = optional_field_names(record_type)
    arrays_by_field = _group_by_field(arrays, list(axes_by_field), where)

    values: dict[str, object] = {}
    for name, axes in axes_by_field.items():
        field_arrays = arrays_by_field[name]
        if not field_arrays and name not in optional:
            raise InputError(where=where, found=f"no array {name!r}", expected="one")
        if name in optional and _is_absent(field_arrays):
            continue

        field_where = f"{where}, {name}"
        if isinstance(axes, Axes):
            array = _check_single_array(field_arrays, field_where)
            _check_shape(array, axes, sizes, field_where)
            _check_numbers(array, axes, field_where, has_noise)
            values[name] = _to_value(array)
        else:
            shape = (sizes["m"], sizes["l"])
            values[name] = axes.from_arrays(field_arrays, shape, field_where)

    return record_type(**values)


def _group_by_field(
    arrays: Arrays, names: Sequence[str], where: str
) -> dict[str, Arrays]:
    """Return the arrays of each field; the single array of a field has no name."""
    arrays_by_field: dict[str, Arrays] = {name: {} for name in names}
    for key, array in arrays.items():
        name, _, part = key.partition(".")
        if name not in arrays_by_field:
            raise InputError(
                where=where, found=f"the array {key!r}", expected=", ".join(names)
            )
        if not (np.abs(array) <= _LARGEST).all():
            raise InputError(
                where=f"{where}, {name}",
                found="NaN, infinite or impossibly large values",
                expected="finite numbers",
            )

        arrays_by_field[name][part] = array

    return arrays_by_field


def _is_absent(field_arrays: Arrays) -> bool:
    """Return whether a field is absent: no array, or a single 0."""
    if not field_arrays:
        return True

    array = field_arrays.get("")
    return array is not None and array.shape == () and bool(array == 0)


def _check_single_array(field_arrays: Arrays, where: str) -> Array:
    """Return the single array of a field."""
    array = field_arrays.get("")
    if array is None or array.dtype.kind == "u":
        raise InputError(
            where=where,
            found="no numbers that fit",
            expected="float64 or int64 of its own name",
        )

    return array


def _check_shape(
    array: Array, axes: Axes, sizes: Mapping[str, int], where: str
) -> None:
    """Check the shape of an array; an axis without a size may have any."""
    names = axes.names.split()
    fits = array.ndim == len(names)
    if fits:
        for name, size in zip(names, array.shape, strict=True):
            fits = fits and sizes.get(name, size) == size

    if not fits:
        raise InputError(
            where=where,
            found=f"the shape {array.shape}",
            expected=" × ".join(names) or "a single number",
        )


def _check_numbers(array: Array, axes: Axes, where: str, has_noise: bool) -> None:
    """Check that the method can have computed these numbers."""
    if array.size and not has_noise:
        _check_range(array, axes, where)

    if axes.distribution:
        sums = array.sum(axis=-1)
        if not (np.abs(sums - 1) < 1e-6).all():
            raise InputError(
                where=where,
                found="shares that do not add up to 1",
                expected="distributions over labels",
            )

    if axes.symmetric and array.size and not _is_symmetric(array):
        raise InputError(
            where=where,
            found="a matrix that is not symmetric",
            expected="a symmetric one",
        )


def _check_range(array: Array, axes: Axes, where: str) -> None:
    """Check the smallest and the largest number."""
    least = array.min()
    if least < axes.least:
        raise InputError(
            where=where,
            found=f"{least:g}",
            expected=f"no number below {axes.least:g}",
        )

    most = array.max()
    if most > axes.most:
        raise InputError(
            where=where,
            found=f"{most:g}",
            expected=f"no number above {axes.most:g}",
        )


def _is_symmetric(array: Array) -> bool:
    """Return whether an array is symmetric, except for rounding.

    Arrays of shape (r, r) and (m, l, m, l) are one matrix, those of shape (l, r, r) one
    for each label.
    """
    order: tuple[int, ...]
    if array.ndim == 3:
        order = (0, 2, 1)
    else:
        half = array.ndim // 2
        order = (*range(half, array.ndim), *range(half))

    asymmetry = np.abs(array - array.transpose(order)).max()
    return bool(asymmetry <= _MAX_ASYMMETRY * np.abs(array).max())


def _to_value(array: Array) -> FloatArray | float:
    """Return an array as float64, or a single number as a Python number."""
    if array.ndim:
        return array.astype(np.float64, copy=False)

    number: float = array.item()
    return number


def reorder_record(
    record: R, names: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
) -> R:
    """Return statistics in another order of models, labels and clusters.

    Parameters
    ----------
    record : dataclass or NamedTuple
        Statistics or a state.
    names, wanted : dict of str to sequence of str
        Names of ``models``, ``labels`` and ``clusters``, in the present order and in
        the new one. Predictions of new models and labels are missing.

    Returns
    -------
    dataclass or NamedTuple
        The same record if the order is the same.
    """
    if names == wanted:
        return record

    check_small_label_space(record)
    orders = _find_orders(names, wanted)
    values = {}
    for name, axes in read_axes(type(record)).items():
        value = getattr(record, name)
        if isinstance(value, StoredField):
            value = value.reordered(orders["m"], orders["l"])
        elif isinstance(axes, Axes) and np.ndim(value) > 0:
            value = _reorder_array(np.asarray(value), axes, orders)
        values[name] = value

    reordered: R = type(record)(**values)
    is_new_label = orders["l"] < 0
    if is_new_label.any() and hasattr(reordered, "with_unknown_labels"):
        reordered = reordered.with_unknown_labels(is_new_label)
    return reordered


def _find_orders(
    names: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
) -> dict[str, IntArray]:
    """Return, for each axis, the old position of each new one; -1 for new names."""
    orders: dict[str, IntArray] = {}
    for what, old_names in names.items():
        positions = {name: position for position, name in enumerate(old_names)}
        order = [positions.get(name, -1) for name in wanted[what]]
        axis = what[0]  # m, l or c
        orders[axis] = np.array(order, dtype=np.intp)

    # Model-label pairs.
    models = orders["m"][:, np.newaxis]
    labels = orders["l"]
    pairs = models * len(names["labels"]) + labels
    is_new = (models < 0) | (labels < 0)
    orders["ml"] = np.where(is_new, -1, pairs).ravel()
    return orders


def _reorder_array(array: Array, axes: Axes, orders: Mapping[str, IntArray]) -> Array:
    """Return an array in another order along all its named axes."""
    for axis, axis_name in enumerate(axes.names.split()):
        if axis_name not in orders:
            continue

        # Sums over missing predictions are 0: -1 takes the zeros behind the last.
        order = orders[axis_name]
        if (order < 0).any():
            array = np.insert(array, array.shape[axis], 0, axis=axis)
        array = array.take(order, axis=axis)

    return array
