"""Checks and decoding of text files: they must be UTF-8 and not empty."""

from ..errors import EmptyFileError, InputError

_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16 and UTF-32
_N_CHECKED_BYTES = 4096


def check_text(data: bytes, name: str) -> None:
    """Check that the first bytes of a file look like UTF-8 text.

    Single bytes that are not UTF-8 are found when the text is decoded.

    Parameters
    ----------
    data : bytes
        The file, or its beginning.
    name : str
        Name of the file in messages.

    Examples
    --------
    >>> check_text("id,é".encode("utf-16"), "a.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv: found UTF-16 text, expected UTF-8 ...
    """
    if data.startswith(_WIDE_BOMS):
        raise InputError(
            where=name,
            found="UTF-16 text",
            expected="UTF-8 (save the file as CSV UTF-8, or convert it: "
            "iconv -f UTF-16 -t UTF-8)",
        )
    if b"\0" in data[:_N_CHECKED_BYTES]:
        raise InputError(
            where=name, found="binary data or UTF-16 text", expected="UTF-8 text"
        )
    if not data.removeprefix(_BOM).strip():
        raise EmptyFileError(where=name, found="an empty file", expected="data")


def decode_text(data: bytes, name: str) -> str:
    r"""Decode a text file.

    Parameters
    ----------
    data : bytes
        The file.
    name : str
        Name of the file in messages.

    Returns
    -------
    str
        The text without a byte order mark.

    Examples
    --------
    >>> decode_text(b"caf\xe9", "a.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, line 1: found the byte 0xe9, ...
    """
    check_text(data, name)
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise InputError(
            where=f"{name}, line {line}",
            found=f"the byte 0x{byte:02x}",
            expected="UTF-8 text (files of Windows: save them as CSV UTF-8, or convert "
            "them: iconv -f CP1252 -t UTF-8)",
        ) from None
