"""Decompression in pieces, so that a small file cannot take all memory."""

import gzip
import io
from collections.abc import Iterator

from ..execution.memory import check_size

# The first bytes of compressed files.
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"

# Compressed bytes of one piece; Zstandard can make 128 MB of them.
_PIECE = 2**12
# Decompressed bytes after which the memory is checked.
_STEP = 2**26


def decompress(data: bytes, kind: bytes, name: str) -> bytes:
    """Decompress a gzip or Zstandard file, if the result fits into memory.

    Parameters
    ----------
    data : bytes
        The compressed file.
    kind : bytes
        `GZIP` or `ZSTD`.
    name : str
        Name of the file in messages.

    Returns
    -------
    bytes

    Examples
    --------
    >>> decompress(gzip.compress(b"text"), GZIP, "a.csv.gz")
    b'text'
    """
    if kind == GZIP:
        pieces = _decompress_gzip(data)
    else:
        pieces = _decompress_zstd(data)

    parts = []
    size = 0
    checked_size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size - checked_size >= _STEP:
            check_size(size, name, "or more when unpacked")
            checked_size = size

    return b"".join(parts)


def _decompress_gzip(data: bytes) -> Iterator[bytes]:
    """Decompress gzip data piece by piece."""
    file = gzip.GzipFile(fileobj=io.BytesIO(data))
    while piece := file.read(_STEP):
        yield piece


def _decompress_zstd(data: bytes) -> Iterator[bytes]:
    """Decompress Zstandard data piece by piece; it may consist of several frames."""
    import zstandard

    view = memoryview(data)
    position = 0
    while position < len(view):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            # zstandard does not report a file that was cut off.
            if position == len(view):
                raise EOFError("it ends too early")

            piece = view[position : position + _PIECE]
            yield frame.decompress(piece)
            position += len(piece) - len(frame.unused_data)
