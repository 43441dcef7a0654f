"""Thrift's compact protocol, as far as the metadata of Parquet needs it.

Polars does not return the sizes in the metadata, which must be checked before a file
is decoded.
"""

from collections.abc import Mapping
from typing import Union

# A field that is not a number, a list or a structure is skipped: None.
_Value = Union[int, list["_Value"], "Struct", None]

# Codes of types.
_INTEGERS = (4, 5, 6)
_LIST = 9
_STRUCT = 12
# Bytes of the types true, false, byte and double; a text has its size before it.
_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}


class Struct:
    """A structure whose fields are numbered.

    Parameters
    ----------
    fields : mapping of int to value
        Fields by number.
    """

    def __init__(self, fields: Mapping[int, _Value]) -> None:
        self.fields = fields

    def __contains__(self, number: int) -> bool:
        return number in self.fields

    def get_int(self, number: int) -> int:
        """Return a field that is an integer.

        Parameters
        ----------
        number : int
            Number of the field.

        Returns
        -------
        int
        """
        value = self.fields[number]
        if not isinstance(value, int):
            raise TypeError(f"field {number} is not an integer")
        return value

    def get_struct(self, number: int) -> "Struct":
        """Return a field that is a structure.

        Parameters
        ----------
        number : int
            Number of the field.

        Returns
        -------
        Struct
        """
        return _check_struct(self.fields[number], number)

    def get_structs(self, number: int) -> list["Struct"]:
        """Return a field that is a list of structures.

        Parameters
        ----------
        number : int
            Number of the field.

        Returns
        -------
        list of Struct
        """
        values = self.fields[number]
        if not isinstance(values, list):
            raise TypeError(f"field {number} is not a list")
        return [_check_struct(value, number) for value in values]


def _check_struct(value: _Value, number: int) -> Struct:
    """Return a value that must be a structure."""
    if not isinstance(value, Struct):
        raise TypeError(f"field {number} is not a structure")
    return value


def parse_struct(data: bytes | memoryview, start: int = 0) -> tuple[Struct, int]:
    r"""Parse a structure.

    Parameters
    ----------
    data : bytes or memoryview
        The file.
    start : int, default=0
        Position at which the structure begins.

    Returns
    -------
    struct : Struct
        The fields. One that is not a number, a list or a structure is ``None``.
    end : int
        Position after the structure.

    Examples
    --------
    >>> struct, end = parse_struct(b"\x15\x04\x19\x25\x02\x04\x00")
    >>> struct.fields, end
    ({1: 2, 2: [1, 2]}, 7)
    """
    reader = _Reader(data, start)
    struct = reader.read_struct()
    return struct, reader.position


class _Reader:
    """Reads values one after the other."""

    def __init__(self, data: bytes | memoryview, position: int) -> None:
        self.data = data
        self.position = position

    def read_byte(self) -> int:
        """Read one byte."""
        byte = self.data[self.position]
        self.position += 1
        return byte

    def read_varint(self) -> int:
        """Read an integer of any size: 7 bits of each byte, the lowest bits first."""
        number = 0
        shift = 0
        byte = self.read_byte()
        while byte > 127 and shift < 63:
            number |= (byte & 127) << shift
            shift += 7
            byte = self.read_byte()

        return number | byte << shift

    def read_struct(self) -> Struct:
        """Read fields until the byte 0; each has its type and distance in one byte."""
        fields: dict[int, _Value] = {}
        number = 0
        head = self.read_byte()
        while head:
            number += head >> 4
            fields[number] = self.read_value(head & 15)
            head = self.read_byte()

        return Struct(fields)

    def read_value(self, kind: int) -> _Value:
        """Read a value of a type."""
        if kind in _INTEGERS:
            zigzag = self.read_varint()  # the lowest bit is the sign
            return zigzag >> 1 ^ -(zigzag & 1)
        if kind == _STRUCT:
            return self.read_struct()
        if kind == _LIST:
            return self.read_list()

        size = _SIZES.get(kind)
        if size is None:
            size = self.read_varint()

        self.position += size
        # A list in a broken file may be longer than the file.
        if self.position > len(self.data):
            raise IndexError("it ends too early")
        return None

    def read_list(self) -> list[_Value] | None:
        """Read a list; one of truth values is skipped."""
        head = self.read_byte()
        size = head >> 4
        if size == 15:
            size = self.read_varint()

        kind = head & 15
        if kind <= 2:
            self.position += size
            return None
        return [self.read_value(kind) for _ in range(size)]
