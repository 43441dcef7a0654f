"""The footer of a Parquet file: how large its row groups are, and one footer for files that stand behind each other.

The table library writes a whole file at once and tells nothing about row groups. A footer is a Thrift structure in the
compact protocol; here it is taken apart into fields and put together again, without knowing what most of them mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import InputError

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_WHOLE = (4, 5, 6)  # numbers of 16, 32 and 64 bits

# Names of the format's own definition, and the numbers that it gives them.
_NUM_ROWS, _ROW_GROUPS = 3, 4  # FileMetaData
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7  # RowGroup
_CHUNK_OFFSET, _META_DATA, _CHUNK_INDEXES = 2, 3, (4, 6)  # ColumnChunk
_PAGE_OFFSETS = (9, 10, 11, 14)  # ColumnMetaData


Wanted = Mapping[int, Any] | None  # numbers of the fields to read, and what of each; None: all


class Field(NamedTuple):
    """One field of a structure."""

    number: int
    kind: int
    value: Any  # a number, bytes, a truth value, (kind, list) of a list, or a list of fields of a structure


def group_rows(path: Path) -> list[int]:
    """Return the number of rows of each row group.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars as pl
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pl.DataFrame({"x": range(5)}).write_parquet(path, row_group_size=3)
    >>> group_rows(path)
    [3, 2]
    """
    state = path.stat()
    return list(_group_rows(path, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=64)
def _group_rows(path: Path, size: int, time: int) -> tuple[int, ...]:
    with path.open("rb") as file:
        groups = _find(_read_footer(_part(file, 0, size), {_ROW_GROUPS: {_GROUP_ROWS: None}}), _ROW_GROUPS)
    return tuple(int(_find(group, _GROUP_ROWS)) for group in groups[1]) if groups else ()


def join(file: IO[bytes], lengths: Sequence[int]) -> None:
    """Turn Parquet files of the same columns that stand behind each other in `file` into one, by a footer for all.

    The bytes of the single files stay as they are; their footers are passed over by readers.

    Examples
    --------
    >>> import io
    >>> import polars as pl
    >>> file, lengths = io.BytesIO(), []
    >>> for rows in ([1, 2], [3]):
    ...     start = file.tell()
    ...     pl.DataFrame({"x": rows}).write_parquet(file)
    ...     lengths.append(file.tell() - start)
    >>> join(file, lengths)
    >>> pl.read_parquet(file.getvalue())["x"].to_list()
    [1, 2, 3]
    """
    joint = Joint()
    for length in lengths:
        joint.take(file, length)
    joint.finish(file)


class Joint:
    """The one footer, as file after file is written."""

    def __init__(self) -> None:
        self.length, self.rows = 0, 0  # of all files so far
        self._first: list[Field] = []
        self._groups: list[bytes] = []

    def take(self, file: IO[bytes], length: int) -> None:
        """Read the footer of the next file, which stands in `file` behind the others."""
        self.add(_part(file, self.length, length), length)

    def add(self, end: bytes | memoryview, length: int) -> None:
        """Take in the next file, of which `end` is all or the last part, with its footer."""
        footer = _read_footer(end, {_NUM_ROWS: None, _ROW_GROUPS: None} if self._first else None)
        self._first = self._first or footer
        self.rows += int(_find(footer, _NUM_ROWS))
        for group in _find(footer, _ROW_GROUPS)[1]:
            out = bytearray()
            _write_struct(out, _moved(group, self.length, len(self._groups)))
            self._groups.append(bytes(out))
        self.length += length

    def finish(self, file: IO[bytes]) -> None:
        """Write it behind all files."""
        changed = {_NUM_ROWS: self.rows, _ROW_GROUPS: (_STRUCT, self._groups)}
        out = bytearray()
        _write_struct(out, [field._replace(value=changed.get(field.number, field.value)) for field in self._first])
        file.seek(self.length)
        file.write(bytes(out) + len(out).to_bytes(4, "little") + _MAGIC)


def _part(file: IO[bytes], start: int, length: int) -> bytes:
    """Read the end of one of the files that stand behind each other in `file`: its footer, and what says how long."""
    file.seek(start + max(0, length - 8))
    size = int.from_bytes(file.read(4), "little")
    file.seek(start + max(0, length - 8 - size))
    return file.read(min(length, size + 8))


def _read_footer(end: bytes | memoryview, wanted: Wanted = None) -> list[Field]:
    size = int.from_bytes(end[-8:-4], "little")
    if end[-4:] != _MAGIC or size > len(end) - 8:
        raise InputError("Parquet footer: found broken data, expected a whole Parquet file")
    return _read_struct(bytes(end[len(end) - 8 - size : -8]), 0, wanted)[0]


def _moved(group: list[Field], by: int, ordinal: int) -> list[Field]:
    """Return a row group whose bytes stand further back in the file."""
    out = []
    for field in group:
        if field.number == _COLUMNS:
            kind, chunks = field.value
            field = field._replace(value=(kind, [_moved_chunk(chunk, by) for chunk in chunks]))
        elif field.number == _GROUP_OFFSET:
            field = field._replace(value=field.value + by)
        elif field.number == _ORDINAL:
            field = field._replace(value=ordinal)
        if field.number != _ORDINAL or ordinal < 2**15:  # 16 bits hold no more, and the field may be left out
            out.append(field)
    return out


def _moved_chunk(chunk: list[Field], by: int) -> list[Field]:
    out = []
    for field in chunk:
        if field.number in (_CHUNK_OFFSET, *_CHUNK_INDEXES):
            # 0 is what writers put where they do not say.
            field = field._replace(value=field.value + by if field.value else 0)
        elif field.number == _META_DATA:
            moved = [part._replace(value=part.value + by) if part.number in _PAGE_OFFSETS else part
                     for part in field.value]  # fmt: skip
            field = field._replace(value=moved)
        out.append(field)
    return out


def _find(fields: list[Field], number: int) -> Any:
    return next((field.value for field in fields if field.number == number), None)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = data[at] & 127
    shift = 0
    while data[at] > 127:
        at += 1
        shift += 7
        found |= (data[at] & 127) << shift
    return found, at + 1


def _read_struct(data: bytes, at: int, wanted: Wanted = None) -> tuple[list[Field], int]:
    """Read a structure's fields, or some of them, and where it ends. Files have many thousand: each step counts."""
    fields, number = [], 0
    while (head := data[at]) != 0:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            number, at = _varint(data, at)
            number = (number >> 1) ^ -(number & 1)
        kind = head & 15
        if wanted is not None and number not in wanted:
            at = _skip(data, at, kind)
        elif kind in _WHOLE:
            value, at = _varint(data, at)
            fields.append(Field(number, kind, (value >> 1) ^ -(value & 1)))
        elif kind in (_TRUE, _FALSE):
            fields.append(Field(number, kind, kind == _TRUE))
        else:
            value, at = _read(data, at, kind, None if wanted is None else wanted[number])
            fields.append(Field(number, kind, value))
    return fields, at + 1


def _read(data: bytes, at: int, kind: int, wanted: Wanted = None) -> tuple[Any, int]:
    if kind == _STRUCT:
        return _read_struct(data, at, wanted)
    if kind in (_LIST, _SET):
        size, inner, at = _list_head(data, at)
        items = []
        for _ in range(size):
            item, at = _read(data, at, inner, wanted)
            items.append(item)
        return (inner, items), at
    if kind in _WHOLE:
        value, at = _varint(data, at)
        return (value >> 1) ^ -(value & 1), at
    if kind in (_TRUE, _FALSE, _BYTE):  # in a list, a truth value has a byte of its own
        return data[at], at + 1
    end = _skip(data, at, kind)
    start = end - 8 if kind == _DOUBLE else _varint(data, at)[1]
    return data[start:end], end


def _skip(data: bytes, at: int, kind: int) -> int:
    """Tell where a value ends."""
    if kind in _WHOLE:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == _BINARY:
        size, at = _varint(data, at)
        return at + size
    if kind == _STRUCT:
        while (head := data[at]) != 0:
            at += 1
            if head < 16:
                at = _varint(data, at)[1]
            if head & 15 > _FALSE:
                at = _skip(data, at, head & 15)
        return at + 1
    if kind in (_LIST, _SET):
        size, inner, at = _list_head(data, at)
        for _ in range(size):
            at = _skip(data, at, _BYTE if inner in (_TRUE, _FALSE) else inner)
        return at
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    raise InputError(f"Parquet footer: found a field of kind {kind}, expected one that Parquet has")


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Read how many items a list has and of what kind, and where the first stands."""
    head = data[at]
    size, at = _varint(data, at + 1) if head >> 4 == 15 else (head >> 4, at + 1)
    return size, head & 15, at


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_zigzag(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_struct(out: bytearray, fields: list[Field]) -> None:
    last = 0
    for field in fields:
        kind = (_TRUE if field.value else _FALSE) if field.kind in (_TRUE, _FALSE) else field.kind
        if 0 < field.number - last < 16:
            out.append((field.number - last) << 4 | kind)
        else:
            out.append(kind)
            _write_zigzag(out, field.number)
        last = field.number
        if kind not in (_TRUE, _FALSE):
            _write(out, kind, field.value)
    out.append(0)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in _WHOLE:
        _write_zigzag(out, value)
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out.extend(value)
    elif kind == _STRUCT:
        if isinstance(value, bytes):  # written before
            out.extend(value)
        else:
            _write_struct(out, value)
    elif kind in (_LIST, _SET):
        inner, items = value
        if len(items) < 15:
            out.append(len(items) << 4 | inner)
        else:
            out.append(15 << 4 | inner)
            _write_varint(out, len(items))
        for item in items:
            _write(out, inner, item)
    elif kind == _DOUBLE:
        out.extend(value)
    else:
        out.append(value)
