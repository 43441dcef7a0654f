"""Compressed bytes → plain ones, piece by piece, so that a small file cannot take all memory."""

import gzip
import io
from collections.abc import Iterator

from ..execution.memory import check_size

# how such files begin
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"

_PIECE = (
    2**12
)  # compressed bytes that are unpacked at a time; Zstandard can make 128 MB of them
_STEP = 2**26  # unpacked bytes after which to look how much memory is left


def unpacked(data: bytes, kind: bytes, name: str) -> bytes:
    """Return what is in a gzip or Zstandard file, unless it is more than fits into memory.

    Parameters
    ----------
    data
        The file's bytes.
    kind
        `GZIP` or `ZSTD`.
    name
        As messages say it.

    Examples
    --------
    >>> unpacked(gzip.compress(b"text"), GZIP, "a.csv.gz")
    b'text'
    """
    parts = []
    size = 0
    seen = 0
    file = gzip.GzipFile(fileobj=io.BytesIO(data))
    for part in (
        iter(lambda: file.read(_STEP), b"") if kind == GZIP else _from_zstd(data)
    ):
        parts.append(part)
        size += len(part)
        if size - seen >= _STEP:
            check_size(size, name, "or more when unpacked")
            seen = size

    return b"".join(parts)


def _from_zstd(data: bytes) -> Iterator[bytes]:
    import zstandard

    whole = memoryview(data)
    at = 0
    while at < len(whole):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if at == len(
                whole
            ):  # zstandard gives what it has of a file that was cut off, without a word
                raise EOFError("it ends too early")

            piece = whole[at : at + _PIECE]
            yield frame.decompress(piece)
            at += len(piece) - len(frame.unused_data)
