"""What all text formats ask of their bytes: UTF-8, and some of it."""

from ..errors import InputError

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
    if data.startswith(_WIDE):
        raise InputError(where=name, found="UTF-16 text", expected="UTF-8")
    if b"\0" in data[:4096]:
        raise InputError(
            where=name, found="binary data or UTF-16 text", expected="UTF-8 text"
        )
    if not (bool(data.removeprefix(_BOM).strip())):
        raise InputError(where=name, found="an empty file", expected="data")


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
        line = data.count(b"\n", 0, fault.start) + 1
        byte = data[fault.start]
        raise InputError(
            f"{name}, line {line}: found the byte 0x{byte:02x}, expected UTF-8 text"
        ) from None
