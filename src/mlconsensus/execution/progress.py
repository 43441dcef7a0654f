"""Progress bars, shown only if the command line has said that there is a terminal."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Set by the command line. A library does not write to its user's screen.
on_terminal: ContextVar[bool] = ContextVar("on_terminal", default=False)


def track(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """Iterate over items and show the progress on a terminal.

    Parameters
    ----------
    items : iterable
        Passed on one by one.
    total : int
        Number of items.
    doing : str
        Text of the progress bar.

    Yields
    ------
    object
        The items.

    Examples
    --------
    >>> list(track("ab", 2, "reading"))
    ['a', 'b']
    """
    with show_progress(doing, total) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def show_progress(
    doing: str, total: int | None = None
) -> Iterator[Callable[[], object]]:
    """Show a progress bar on a terminal.

    Parameters
    ----------
    doing : str
        Text of the progress bar.
    total : int, default=None
        Number of steps. By default it is not known.

    Yields
    ------
    callable
        To be called after each step.

    Examples
    --------
    >>> with show_progress("solving"):
    ...     pass
    """
    if not on_terminal.get() or total == 1:
        yield lambda: None
        return

    from rich.console import Console
    from rich.progress import Progress

    # Work inside this work does not show a second bar.
    token = on_terminal.set(False)
    console = Console(stderr=True)
    try:
        with Progress(console=console, transient=True, redirect_stdout=False) as bar:
            task = bar.add_task(doing, total=total)
            yield lambda: bar.advance(task)
    finally:
        on_terminal.reset(token)
