"""The hidden folder that holds what is done so far of an output: one at a time works in it."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..errors import InputError

_LOCK = "lock"  # a file in the folder, locked while somebody is at work


@contextlib.contextmanager
def held(folder: Path, output: str) -> Iterator[None]:
    """Make the folder if there is none, and keep all others out of it; what is left in it then stays.

    The system lets go of the lock when the process ends, however it ends. Where a system has no such locks, nobody is
    kept out.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "part"
    >>> with held(folder, "out.csv"), held(folder, "out.csv"):
    ...     pass
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: out.csv: found other work on it under way, expected one at a time; ...
    >>> folder.exists()
    False
    """
    with _locked(folder, output):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                (folder / _LOCK).unlink(missing_ok=True)  # while it is locked: later it might be another's
                folder.rmdir()  # unless something is left in it


def emptied(folder: Path, ignore_errors: bool = False) -> None:
    """Remove what is in a held folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "rows").write_text("1")
    >>> emptied(folder)
    >>> list(folder.iterdir())
    []
    """
    for path in folder.iterdir():
        with contextlib.suppress(*[OSError] * ignore_errors):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != _LOCK:
                path.unlink(missing_ok=True)


def _locked(folder: Path, output: str) -> contextlib.ExitStack:
    """Lock the folder until the stack is closed."""
    while True:  # again if whoever was there before has just removed it
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        if folder.is_symlink():  # what it points at is not ours to empty
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        with contextlib.ExitStack() as stack, contextlib.suppress(FileNotFoundError):
            if sys.platform != "win32":  # where an open file could not be removed
                file = stack.enter_context((folder / _LOCK).open("ab"))
                _lock(file, output)
                if not os.path.samestat(os.fstat(file.fileno()), (folder / _LOCK).stat()):
                    continue
            return stack.pop_all()


def _lock(file: IO[bytes], output: str) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{output}: found other work on it under way, expected one at a time; nothing was changed"
        ) from None
    except OSError:  # a file system without locks
        pass
