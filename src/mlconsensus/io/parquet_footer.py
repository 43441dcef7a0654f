"""The footer of a Parquet file: how large its row groups are, and one footer for files that stand behind each other.

The table library writes a whole file at once and tells nothing about row groups. A footer is a Thrift structure in the
compact protocol; here it is taken apart into fields and put together again, without knowing what most of them mean.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        groups = _find(_footer(file, 0, size), _ROW_GROUPS)
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
    start, rows = 0, 0
    groups: list[list[Field]] = []
    first: list[Field] = []
    for length in lengths:
        footer = _footer(file, start, length)
        first = first or footer
        rows += int(_find(footer, _NUM_ROWS))
        for group in _find(footer, _ROW_GROUPS)[1]:
            groups.append(_moved(group, start, len(groups)))
        start += length
    whole = [
        field._replace(value=rows)
        if field.number == _NUM_ROWS
        else field._replace(value=(_STRUCT, groups))
        if field.number == _ROW_GROUPS
        else field
        for field in first
    ]
    out = bytearray()
    _write_struct(out, whole)
    file.seek(start)
    file.write(bytes(out) + len(out).to_bytes(4, "little") + _MAGIC)


def _footer(file: IO[bytes], start: int, length: int) -> list[Field]:
    file.seek(start + max(0, length - 8))
    tail = file.read(8)
    size = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or size > length - 8:
        raise InputError("Parquet footer: found broken data, expected a whole Parquet file")
    file.seek(start + length - 8 - size)
    return _read_struct(_Bytes(file.read(size)))


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


class _Bytes:
    """Bytes and how far they have been read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def zigzag(self) -> int:
        found = self.varint()
        return (found >> 1) ^ -(found & 1)


def _read_struct(data: _Bytes) -> list[Field]:
    fields, number = [], 0
    while (head := data.byte()) != 0:
        number = number + (head >> 4) if head >> 4 else data.zigzag()
        kind = head & 15
        value = kind == _TRUE if kind in (_TRUE, _FALSE) else _read(data, kind)
        fields.append(Field(number, kind, value))
    return fields


def _read(data: _Bytes, kind: int) -> Any:
    if kind in _WHOLE:
        return data.zigzag()
    if kind == _BINARY:
        return data.take(data.varint())
    if kind == _STRUCT:
        return _read_struct(data)
    if kind in (_LIST, _SET):
        head = data.byte()
        size = data.varint() if head >> 4 == 15 else head >> 4
        return head & 15, [_read(data, head & 15) for _ in range(size)]
    if kind in (_TRUE, _FALSE, _BYTE):  # in a list, a truth value has a byte of its own
        return data.byte()
    if kind == _DOUBLE:
        return data.take(8)
    raise InputError(f"Parquet footer: found a field of kind {kind}, expected one that Parquet has")


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
