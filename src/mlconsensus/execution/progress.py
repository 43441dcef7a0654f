"""How far long work has come: silent unless a command says that there is a terminal to show it on."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Set by the command line; a library does not write to its user's screen.
on_terminal: ContextVar[bool] = ContextVar("on_terminal", default=False)


def track(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """Pass on `items`, showing on a terminal how many of them have gone by.

    Examples
    --------
    >>> list(track("ab", 2, "reading"))
    ['a', 'b']
    """
    with working(doing, total) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def working(doing: str, total: int | None = None) -> Iterator[Callable[[], object]]:
    """Show on a terminal that something is being done, in so many steps or in nobody knows how many.

    Parameters
    ----------
    doing
        What the bar says.
    total
        How many steps there are; ``None``: that is not known.

    Yields
    ------
    What is called after each step.

    Examples
    --------
    >>> with working("solving"):
    ...     pass
    """
    if not on_terminal.get() or total == 1:
        yield lambda: None
        return

    from rich.console import Console
    from rich.progress import Progress

    token = on_terminal.set(False)  # work inside this work shows no bar of its own
    try:
        with Progress(
            console=Console(stderr=True), transient=True, redirect_stdout=False
        ) as bar:
            task = bar.add_task(doing, total=total)
            yield lambda: bar.advance(task)
    finally:
        on_terminal.reset(token)
