"""The command line: parse, call the library, format. One file a theme."""

import os
import signal
import sys
from threading import current_thread, main_thread

if sys.stderr is None:  # where the shell has closed it, NumPy 2.0 cannot be imported
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _interrupted(number: int, frame: object) -> None:
    """End at once: nothing is done yet, and Python would show what it was importing."""
    os.write(2, b"mlconsensus: interrupted\n")
    os._exit(128 + number)


_started = [os.path.splitext(part)[0] for part in "".join(sys.argv[:1]).replace("\\", "/").split("/")[-2:]]
_early = _started[-1:] == ["mlconsensus"] or _started == ["mlconsensus", "__main__"]  # whether this process is ours
_early = _early and signal.getsignal(signal.SIGINT) is signal.default_int_handler and current_thread() is main_thread()
if _early:
    signal.signal(signal.SIGINT, _interrupted)

from .main import main  # noqa: E402

if _early:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["main"]
