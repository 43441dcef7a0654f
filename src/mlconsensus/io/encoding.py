"""What all text formats ask of their bytes: UTF-8, and some of it."""

from ..errors import InputError, expect

_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # how UTF-16 and UTF-32 begin


def check_text(data: bytes, name: str) -> None:
    """Refuse at a glance what is not UTF-8 text; single wrong bytes show when they are read.

    Examples
    --------
    >>> check_text("id,é".encode("utf-16"), "a.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv: found UTF-16 text, expected UTF-8
    """
    expect(not data.startswith(_WIDE), name, "UTF-16 text", "UTF-8")
    expect(b"\0" not in data[:4096], name, "binary data or UTF-16 text", "UTF-8 text")
    expect(bool(data.removeprefix(_BOM).strip()), name, "an empty file", "data")


def decoded(data: bytes, name: str) -> str:
    r"""Return the whole text.

    Examples
    --------
    >>> decoded(b"caf\xe9", "a.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, line 1: found the byte 0xe9, expected UTF-8 text
    """
    check_text(data, name)
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as fault:
        line, byte = data.count(b"\n", 0, fault.start) + 1, data[fault.start]
        raise InputError(
            f"{name}, line {line}: found the byte 0x{byte:02x}, expected UTF-8 text"
        ) from None
