"""The command `mlconsensus`, also as `python -m mlconsensus`."""

import os
import signal


def main() -> None:
    """Run the command line; Ctrl-C during the imports prints no traceback."""
    original_handler = signal.getsignal(signal.SIGINT)
    if original_handler is signal.default_int_handler:  # otherwise it is ignored
        signal.signal(signal.SIGINT, _exit_at_once)

    # This import takes most of a second.
    from .cli import main as run_command_line

    signal.signal(signal.SIGINT, original_handler)
    run_command_line()


def _exit_at_once(number: int, frame: object) -> None:
    """Exit without cleaning up: no work has started yet."""
    os.write(2, b"mlconsensus: interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
