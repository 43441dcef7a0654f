"""The command `mlconsensus`, also as `python -m mlconsensus`."""

import os
import signal


def main() -> None:
    """Import the command line, which takes most of a second, and run it; Ctrl-C meanwhile shows no traceback."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, _interrupted)

    from .cli import main as run

    signal.signal(signal.SIGINT, usual)
    run()


def _interrupted(number: int, frame: object) -> None:
    """End at once: nothing is done yet."""
    os.write(2, b"mlconsensus: interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
