"""Reading and writing of bytes: files, standard streams and compression.

Output files appear only when they are complete.
"""

import contextlib
import errno
import io
import os
import secrets
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Protocol

from ..errors import InputError, InputWarning, nearest
from ..text import safe
from .compression import GZIP, ZSTD, decompress
from .options import DEFAULT_OPTIONS, ReadOptions

AnyPath = str | PathLike[str]
Paths = AnyPath | Sequence[AnyPath]

STANDARD = "-"  # the path of standard input and output
COMPRESSIONS = (".gz", ".zst")

# Exceptions that are not errors of a library; a filter may turn warnings into errors.
_EXPECTED_ERRORS = (
    InputError,
    InputWarning,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
)

# Errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


class _Compressor(Protocol):
    """An object of zlib or Zstandard that compresses piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """Return compressed bytes, perhaps none yet."""

    def flush(self) -> bytes:
        """Return the compressed bytes that remain."""


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A file to read.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    model : str
        Name of the model if the file does not contain one.
    read : callable
        Returns the bytes. It is a function so that only the reader holds the bytes and
        can free them.
    path : Path, default=None
        ``None`` if the bytes are not from a path.
    options : ReadOptions
        Options for reading.

    Examples
    --------
    >>> InputFile(name="votes.csv", model="votes", read=lambda: b"id,x").read()
    b'id,x'
    """

    name: str
    model: str
    read: Callable[[], bytes]
    path: Path | None = None
    options: ReadOptions = DEFAULT_OPTIONS

    def get_content(self) -> bytes | Path:
        """Return the path if libraries can open it, which saves memory, else the bytes.

        Returns
        -------
        bytes or Path
        """
        if self.path is not None and is_plain(self.path):
            return self.path.absolute()
        return self.read()


@dataclass(frozen=True, kw_only=True)
class Place:
    """Location of the rows of a table in their file, for messages.

    Parameters
    ----------
    file : str
        Name of the file in messages.
    unit : str
        "line" of a text file, "row" of a table.
    number : callable
        Returns the number of the row at a position.

    Examples
    --------
    >>> place = Place(file="a.csv", unit="line", number=lambda row: row + 2)
    >>> place(0), place.describe_row(5)
    ('a.csv, line 2', 'line 7')
    """

    file: str
    unit: str
    number: Callable[[int], int]

    def shift(self, start: int) -> "Place":
        """Return the place of the rows that begin at position `start`.

        Parameters
        ----------
        start : int
            Position of the first row.

        Returns
        -------
        Place
        """
        return replace(self, number=lambda row: self.number(row + start))

    def describe_row(self, row: int) -> str:
        """Return the location of a row without the file.

        Parameters
        ----------
        row : int
            Position of the row.

        Returns
        -------
        str
        """
        return f"{self.unit} {self.number(row)}"

    def __call__(self, row: int) -> str:
        """Return the location of a row with the file."""
        return f"{self.file}, {self.describe_row(row)}"


def read_bytes(path: AnyPath) -> bytes:
    """Read a file and decompress it.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard input.

    Returns
    -------
    bytes

    Examples
    --------
    >>> read_bytes("no/such/file.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: no/such/file.csv: found no such file, expected ...
    """
    shown = display(path)
    data = read_raw_bytes(path)
    suffix = Path(path).suffix.lower()
    if data.startswith(GZIP) or suffix == ".gz":
        with reader_errors(shown, "a whole gzip file", "broken gzip data"):
            return decompress(data, GZIP, shown)

    if data.startswith(ZSTD) or suffix == ".zst":
        with reader_errors(shown, "a whole zstd file", "broken zstd data"):
            return decompress(data, ZSTD, shown)

    return data


def read_raw_bytes(path: AnyPath) -> bytes:
    """Read a file without decompressing it.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard input.

    Returns
    -------
    bytes

    Examples
    --------
    >>> read_raw_bytes("no/such/folder")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: no/such/folder: found no such file, expected a ...
    """
    shown = display(path)
    is_standard = os.fspath(path) == STANDARD
    if is_standard and sys.stdin is None:
        raise InputError(where=shown, found="it closed", expected="it open")

    try:
        if is_standard:
            return sys.stdin.buffer.read()
        return Path(path).read_bytes()
    except FileNotFoundError:
        hint = _suggest_neighbor(Path(path))
        raise InputError(
            where=shown, found="no such file", expected=f"a file to read{hint}"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            where=shown, found=_describe_error(error), expected="a file to read"
        ) from None


def display(path: AnyPath) -> str:
    """Return the name of a path in messages.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    str

    Examples
    --------
    >>> display("a.csv"), display("-")
    ('a.csv', 'standard input')
    """
    if os.fspath(path) == STANDARD:
        return "standard input"
    return os.fspath(path)


def check_output(path: AnyPath, force: bool = False) -> None:
    """Check that an output can be written, before any work is done for it.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard output.
    force : bool, default=False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> check_output("no/such/folder/out.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: no/such/folder/out.csv: found no folder ..., ...
    """
    if os.fspath(path) == STANDARD:
        return
    if not os.fspath(path):
        raise InputError(
            where="output", found="an empty name", expected="a file to write"
        )

    shown = display(path)
    target = Path(os.path.realpath(path))
    with writable(path):  # the system refuses names that are too long
        if target.is_dir():
            raise InputError(where=shown, found="a folder", expected="a file to write")
        if not target.parent.is_dir():
            raise InputError(
                where=shown,
                found=f"no folder {str(target.parent)!r}",
                expected="it to exist",
            )
        if target.is_file() and not force:
            raise InputError(
                where=shown,
                found="an existing file",
                expected="none (--force or force=True replaces it)",
            )


@contextlib.contextmanager
def atomic_write(path: AnyPath, force: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that appears at its path only when it is complete.

    The bytes go to a hidden file in the same folder, which is renamed at the end. After
    an error or a kill, `path` is as it was before. Devices and pipes cannot be replaced
    and are written directly.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard output.
    force : bool, default=False
        Whether to replace an existing file.

    Yields
    ------
    binary file

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "out.txt"
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"all")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'all'
    """
    if os.fspath(path) == STANDARD:
        if sys.stdout is None:
            raise InputError(
                where="standard output", found="it closed", expected="it open"
            )

        buffer = io.BytesIO()
        yield buffer
        _print_bytes(buffer.getvalue())
        return

    with writable(path):
        # If the path is a link, it remains and its target is replaced.
        target = Path(os.path.realpath(path))
        check_output(path, force)

        opener: contextlib.AbstractContextManager[IO[bytes]]
        if target.exists() and not target.is_file():
            opener = _open_device(target)
        else:
            opener = _write_then_rename(target, force)

        with opener as file:
            yield file


def _print_bytes(data: bytes) -> None:
    """Write bytes to standard output; control characters are escaped on a terminal."""
    if sys.stdout.buffer.isatty():
        lines = data.decode(errors="backslashreplace").split("\n")
        data = "\n".join(map(safe, lines)).encode()

    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


# A context manager made of a generator would keep the refused data in memory.
@dataclass(frozen=True)
class reader_errors(contextlib.AbstractContextManager[None]):  # noqa: N801
    """Turn any error of a library that reads a file into an `InputError`.

    Panics of Polars are caught, too, although they are not of type `Exception`.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    kind : str
        The expected format.
    problem : str, default="broken data"
        Description of the problem.

    Examples
    --------
    >>> with reader_errors("a.parquet", "Parquet"):
    ...     raise RuntimeError("bad magic")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.parquet: found broken data (bad magic), ...
    """

    name: str
    kind: str
    problem: str = "broken data"

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        if error is None or isinstance(error, _EXPECTED_ERRORS):
            return

        reason = "its reader panicked"
        if isinstance(error, Exception):
            reason = get_first_line(error)

        raise InputError(
            where=self.name, found=f"{self.problem} ({reason})", expected=self.kind
        ) from None


@contextlib.contextmanager
def writable(path: AnyPath) -> Iterator[None]:
    """Turn an error of the system while an output is written into an `InputError`.

    Parameters
    ----------
    path : str or path-like
        The output, for the message.

    Examples
    --------
    >>> with writable("out.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: out.csv: found 'no space left on device', ...
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            where=display(path),
            found=_describe_error(error),
            expected="a place to write to",
        ) from None


@contextlib.contextmanager
def open_compressed(file: IO[bytes], path: AnyPath) -> Iterator[IO[bytes]]:
    """Compress the bytes that are written to a file, if the suffix asks for it.

    The same content always gives the same bytes.

    Parameters
    ----------
    file : binary file
        The file.
    path : str or path-like
        Its suffix selects the compression.

    Yields
    ------
    binary file
        An object with the method `write`.

    Examples
    --------
    >>> import gzip, io
    >>> file = io.BytesIO()
    >>> with open_compressed(file, "a.csv.gz") as packed:
    ...     _ = packed.write(b"text")
    >>> gzip.decompress(file.getvalue())
    b'text'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in COMPRESSIONS:
        yield file
        return

    compressor: _Compressor
    if suffix == ".zst":
        import zstandard

        compressor = zstandard.ZstdCompressor().compressobj()
    else:
        # wbits=31 is gzip with neither a time nor a name in its header.
        compressor = zlib.compressobj(6, wbits=31)

    def write(data: bytes) -> int:
        """Compress and write bytes; return their number, as files do."""
        file.write(compressor.compress(data))
        return len(data)

    # Unlike gzip.GzipFile, this object writes nothing when it is deleted.
    yield SimpleNamespace(write=write)  # type: ignore[misc]
    file.write(compressor.flush())


def _open_device(target: Path) -> IO[bytes]:
    """Open a device, or a pipe, which must have a reader."""
    descriptor = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return open(descriptor, "wb")


def make_part_path(target: Path) -> Path:
    """Return a hidden path next to an output, for the incomplete file.

    Parameters
    ----------
    target : Path
        The output.

    Returns
    -------
    Path

    Examples
    --------
    >>> make_part_path(Path("out.csv")).name.startswith(".out.csv.")
    True
    """
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")


@contextlib.contextmanager
def _write_then_rename(target: Path, force: bool) -> Iterator[IO[bytes]]:
    """Open a hidden file, and rename it to the target when it is complete."""
    part = make_part_path(target)
    try:
        # Files of tempfile would not get the permissions of a new file.
        with part.open("xb") as file:
            yield file

        put_in_place(part, target, force)
    finally:
        part.unlink(missing_ok=True)


def put_in_place(part: Path, target: Path, force: bool = True) -> None:
    """Move a complete file or folder to its path.

    After a loss of power, the path holds the new content or that of before.

    Parameters
    ----------
    part : Path
        The complete file or folder. A file may be left at this path.
    target : Path
        Where to move it.
    force : bool, default=True
        Whether to replace an existing file. If false, `FileExistsError` is raised, also
        if another process creates the file at the same time.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "part").write_text("all")
    >>> put_in_place(folder / "part", folder / "out.txt")
    >>> [path.name for path in folder.iterdir()]
    ['out.txt']
    """
    paths = [part]
    if part.is_dir():
        paths = sorted(part.iterdir())

    for path in paths:
        _sync(path)

    if force:
        os.replace(part, target)
    else:
        _link(part, target)

    with contextlib.suppress(OSError):  # some systems cannot open folders
        _sync(target.parent)


def _link(part: Path, target: Path) -> None:
    """Make a file available at a second path, which must not exist."""
    try:
        os.link(part, target)
    except OSError as error:
        has_links = error.errno not in _NO_LINKS
        if has_links or target.exists():
            raise

        os.replace(part, target)


def _sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_plain(path: Path) -> bool:
    """Return whether a path is a regular file that is not compressed.

    Libraries can open such files. `read_bytes` reads all others.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_plain(Path("no/such/file.csv"))
    False
    """
    with contextlib.suppress(OSError):
        # Polars does not accept names that are not UTF-8.
        absolute = path.absolute()
        is_utf8 = str(absolute).encode(errors="ignore") == os.fsencode(absolute)
        has_compressed_suffix = path.suffix.lower() in COMPRESSIONS
        if is_utf8 and not has_compressed_suffix and path.is_file():
            with path.open("rb") as file:
                return not file.read(4).startswith((GZIP, ZSTD))

    return False


def open_content(content: bytes | Path) -> IO[bytes]:
    """Open the result of `InputFile.get_content`.

    Parameters
    ----------
    content : bytes or Path
        A path or the bytes themselves.

    Returns
    -------
    binary file

    Examples
    --------
    >>> open_content(b"text").read()
    b'text'
    """
    if isinstance(content, Path):
        return content.open("rb")
    return io.BytesIO(content)


def _describe_error(error: Exception) -> str:
    """Return a system error in a few words."""
    if isinstance(error, IsADirectoryError):
        return "a folder"
    if isinstance(error, PermissionError):
        return "no permission"

    reason = getattr(error, "strerror", None) or str(error)
    return repr(reason.lower())


def _suggest_neighbor(path: Path) -> str:
    """Return a hint with the most similar name of a file in the same folder."""
    with contextlib.suppress(OSError):
        files = filter(Path.is_file, path.parent.iterdir())
        return nearest(path.name, [file.name for file in files])

    return ""


def get_first_line(error: object) -> str:
    r"""Return the first line of a library's error message, to quote it in our own.

    Parameters
    ----------
    error : object
        An exception, or its text.

    Returns
    -------
    str

    Examples
    --------
    >>> get_first_line(ValueError("bad magic\nConsider …"))
    'bad magic'
    """
    lines = str(error).strip().splitlines()
    if lines:
        return lines[0].rstrip(".:")
    return type(error).__name__
