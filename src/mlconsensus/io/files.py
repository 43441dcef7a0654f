"""Bytes in and out: files and standard streams, compression, and outputs that appear whole or not at all."""

import contextlib
import errno
import io
import os
import secrets
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NamedTuple, Self

from ..errors import InputError, nearest
from ..text import safe
from .compression import GZIP, ZSTD, unpacked
from .options import DEFAULT_OPTIONS, ReadOptions

AnyPath = str | PathLike[str]
Paths = AnyPath | Sequence[AnyPath]  # of a panel

STANDARD = "-"  # the path that means standard input or output
COMPRESSIONS = (".gz", ".zst")

_NO_LINKS = errno.EPERM, errno.ENOTSUP, errno.ENOSYS


class InputFile(NamedTuple):
    """Where one file's bytes come from, and what to call it.

    Examples
    --------
    >>> InputFile("votes.csv", "votes", lambda: b"id,x").read()
    b'id,x'
    """

    name: str  # as messages say it
    model: str  # what the file's name says the model is called
    read: Callable[
        [], bytes
    ]  # a call, so that the reader alone holds the bytes and can let go of them
    path: Path | None = None
    rules: ReadOptions = DEFAULT_OPTIONS  # how to read it

    def content(self) -> bytes | Path:
        """Return the file itself if a library can read it as it is, which spares memory, else its bytes."""
        if self.path is not None and is_plain(self.path):
            return self.path.absolute()
        return self.read()


class Place(NamedTuple):
    """Where the rows of a table stand in their file, as messages say it.

    Examples
    --------
    >>> place = Place("a.csv", "line", lambda row: row + 2)
    >>> place(0), place.short(5)
    ('a.csv, line 2', 'line 7')
    """

    file: str
    unit: str  # "line" of a text file, "row" of a table
    number: Callable[[int], int]  # of the row that stands at a position

    def below(self, start: int) -> Self:
        """Return the place of the rows from one on."""
        return self._replace(number=lambda row: self.number(row + start))

    def short(self, row: int) -> str:
        """Say where, without the file."""
        return f"{self.unit} {self.number(row)}"

    def __call__(self, row: int) -> str:
        """Say where."""
        return f"{self.file}, {self.short(row)}"


def read_bytes(path: AnyPath) -> bytes:
    """Return a file's bytes, decompressed; ``-`` is standard input.

    Examples
    --------
    >>> read_bytes("no/such/file.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: no/such/file.csv: found no such file, expected a file to read
    """
    shown = display(path)
    data = raw_bytes(path)
    suffix = Path(path).suffix.lower()
    for kind, ending, called in ((GZIP, ".gz", "gzip"), (ZSTD, ".zst", "zstd")):
        if data.startswith(kind) or suffix == ending:
            with reader_errors(
                shown, f"a whole {called} file", f"broken {called} data"
            ):
                return unpacked(data, kind, shown)

    return data


def raw_bytes(path: AnyPath) -> bytes:
    """Return a file's bytes as they are; ``-`` is standard input.

    Examples
    --------
    >>> raw_bytes("no/such/folder")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: no/such/folder: found no such file, expected a file to read
    """
    shown = display(path)
    if not (os.fspath(path) != STANDARD or sys.stdin is not None):
        raise InputError(where=shown, found="it closed", expected="it open")

    try:
        if os.fspath(path) == STANDARD:
            return sys.stdin.buffer.read()
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"{shown}: found no such file, expected a file to read{_neighbour(Path(path))}"
        ) from None
    except (OSError, ValueError) as fault:
        raise InputError(
            f"{shown}: found {_reason(fault)}, expected a file to read"
        ) from None


def display(path: AnyPath) -> str:
    """Return the path as messages say it.

    Examples
    --------
    >>> display("a.csv"), display("-")
    ('a.csv', 'standard input')
    """
    if os.fspath(path) == STANDARD:
        return "standard input"
    return os.fspath(path)


def check_output(path: AnyPath, force: bool = False) -> None:
    """Refuse a place that cannot be written to, before any work is done for it.

    Examples
    --------
    >>> check_output("no/such/folder/out.csv")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: no/such/folder/out.csv: found no folder ..., expected it to exist
    """
    if os.fspath(path) == STANDARD:
        return
    if not (bool(os.fspath(path))):
        raise InputError(
            where="output", found="an empty name", expected="a file to write"
        )

    shown = display(path)
    target = Path(os.path.realpath(path))
    with writable(path):  # names can be too long
        if target.is_dir():
            raise InputError(where=shown, found="a folder", expected="a file to write")
        if not (target.parent.is_dir()):
            raise InputError(
                where=shown,
                found=f"no folder {str(target.parent)!r}",
                expected="it to exist",
            )
        if not (force or not target.is_file()):
            raise InputError(
                where=shown,
                found="an existing file",
                expected="none (--force or force=True replaces it)",
            )


@contextlib.contextmanager
def atomic_write(path: AnyPath, force: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that takes its place only when all of it is written; ``-`` is standard output.

    The bytes go to a hidden file in the same folder, which is renamed at the end; an
    error, or a kill, leaves whatever was at `path` before. Devices and pipes, which
    cannot be renamed over, are written directly.

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
        shown = buffer.getvalue()
        if sys.stdout.buffer.isatty():
            shown = "\n".join(
                map(safe, shown.decode(errors="backslashreplace").split("\n"))
            ).encode()

        sys.stdout.buffer.write(shown)
        sys.stdout.buffer.flush()
        return

    with writable(path):
        target = Path(
            os.path.realpath(path)
        )  # a link stays a link: what it points at is replaced
        check_output(path, force)
        with (
            _written_directly(target)
            if target.exists() and not target.is_file()
            else _renamed(target, force) as file
        ):
            yield file


# One that is made of a generator keeps what it refused in memory.
class reader_errors(contextlib.AbstractContextManager[Any]):  # noqa: N801 - used as a function is
    """Refuse a file that a library cannot read, whatever it raises; Polars even panics, which no `Exception` is.

    Examples
    --------
    >>> with reader_errors("a.parquet", "Parquet"):
    ...     raise RuntimeError("bad magic")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.parquet: found broken data (bad magic), expected Parquet
    """

    def __init__(self, name: str, kind: str, found: str = "broken data") -> None:
        self.name, self.kind, self.found = name, kind, found

    def __exit__(
        self, kind: object, fault: BaseException | None, trace: object
    ) -> None:
        if fault is None or isinstance(
            fault, InputError | KeyboardInterrupt | SystemExit | GeneratorExit
        ):
            return
        if isinstance(fault, Exception):
            why = first_line(fault)
        else:
            why = "its reader panicked"

        raise InputError(
            f"{self.name}: found {self.found} ({why}), expected {self.kind}"
        ) from None


@contextlib.contextmanager
def writable(path: AnyPath) -> Iterator[None]:
    """Say of an output that cannot be written why not.

    Examples
    --------
    >>> with writable("out.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: out.csv: found 'no space left on device', expected a place to write to
    """
    try:
        yield
    except OSError as fault:
        raise InputError(
            f"{display(path)}: found {_reason(fault)}, expected a place to write to"
        ) from None


@contextlib.contextmanager
def compressed(file: IO[bytes], path: AnyPath) -> Iterator[IO[bytes]]:
    """Compress what is written to `file` as the suffix of `path` says; the same content gives the same bytes.

    Examples
    --------
    >>> import gzip, io
    >>> file = io.BytesIO()
    >>> with compressed(file, "a.csv.gz") as packed:
    ...     _ = packed.write(b"text")
    >>> gzip.decompress(file.getvalue())
    b'text'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in COMPRESSIONS:
        yield file
        return

    packer: Any = zlib.compressobj(
        6, wbits=31
    )  # gzip, with neither a time nor a name in its header
    if suffix == ".zst":
        import zstandard

        packer = zstandard.ZstdCompressor().compressobj()

    def write(data: bytes) -> int:
        file.write(packer.compress(data))
        return len(data)

    yield SimpleNamespace(write=write)  # type: ignore[misc]  # unlike gzip.GzipFile, it does nothing when let go of
    file.write(packer.flush())


def _written_directly(target: Path) -> IO[bytes]:
    """Open a device, or a pipe, which must have a reader."""
    descriptor = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(descriptor, True)
    return open(descriptor, "wb")


def part_of(target: Path) -> Path:
    """Return the hidden place, beside an output, of what is not whole yet.

    Examples
    --------
    >>> part_of(Path("out.csv")).name.startswith(".out.csv.")
    True
    """
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")


@contextlib.contextmanager
def _renamed(target: Path, force: bool) -> Iterator[IO[bytes]]:
    part = part_of(target)
    try:
        with part.open(
            "xb"
        ) as file:  # not tempfile: it shall get the permissions that any new file gets
            yield file

        put_in_place(part, target, force)
    finally:
        part.unlink(missing_ok=True)


def put_in_place(part: Path, target: Path, force: bool = True) -> None:
    """Let a file or folder that is whole take its place, so that a loss of power leaves it or what was there before.

    Parameters
    ----------
    part, target
        Where it is, and where it is to be. A file may stay where it is, too.
    force
        Whether to replace a file that is there; else `FileExistsError` is raised,
        whoever was first by however little.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "part").write_text("all")
    >>> put_in_place(folder / "part", folder / "out.txt")
    >>> [path.name for path in folder.iterdir()]
    ['out.txt']
    """
    for path in sorted(part.iterdir()) if part.is_dir() else [part]:
        _synced(path)

    try:
        (os.replace if force else os.link)(part, target)
    except OSError as fault:  # not every file system has links
        if force or fault.errno not in _NO_LINKS or target.exists():
            raise

        os.replace(part, target)

    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        _synced(target.parent)


def _synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_plain(path: Path) -> bool:
    """Tell whether a path is a regular file that libraries can open, not compressed; `read_bytes` takes all others.

    Examples
    --------
    >>> is_plain(Path("no/such/file.csv"))
    False
    """
    with contextlib.suppress(OSError):
        # Polars takes no name that is not UTF-8.
        named = str(path.absolute()).encode(errors="ignore") == os.fsencode(
            path.absolute()
        )
        if named and path.suffix.lower() not in COMPRESSIONS and path.is_file():
            with path.open("rb") as file:
                return not file.read(4).startswith((GZIP, ZSTD))

    return False


def opened(content: bytes | Path) -> IO[bytes]:
    """Open what `InputFile.content` returns.

    Examples
    --------
    >>> opened(b"text").read()
    b'text'
    """
    if isinstance(content, Path):
        return content.open("rb")
    return io.BytesIO(content)


def _reason(fault: Exception) -> str:
    plain: dict[type, str] = {
        IsADirectoryError: "a folder",
        PermissionError: "no permission",
    }
    return plain.get(type(fault)) or repr(
        (getattr(fault, "strerror", None) or str(fault)).lower()
    )


def _neighbour(path: Path) -> str:
    """Suggest the file in the same folder whose name is closest."""
    with contextlib.suppress(OSError):
        return nearest(
            path.name,
            [entry.name for entry in path.parent.iterdir() if entry.is_file()],
        )

    return ""


def first_line(fault: Any) -> str:
    r"""Return the first line of a library's error message, to be quoted in ours.

    Examples
    --------
    >>> first_line(ValueError("bad magic\nConsider …"))
    'bad magic'
    """
    lines = str(fault).strip().splitlines()
    if lines:
        return lines[0].rstrip(".:")
    return type(fault).__name__
