"""How far long work has come: silent unless a command says where to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Reporter = Callable[[Iterable[T], int, str], Iterable[T]]

# Set by the command line for a terminal; a library does not write to its user's screen.
reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)  # type: ignore[type-arg]


def track(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """Pass on `items`, telling the reporter, if there is one, how many have gone by.

    Examples
    --------
    >>> list(track("ab", 2, "reading"))
    ['a', 'b']
    """
    show = reporter.get()
    if show is None:
        yield from items
        return
    token = reporter.set(None)  # work inside this work shows no bar of its own
    try:
        yield from show(items, total, doing)
    finally:
        reporter.reset(token)


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Tell the reporter, if there is one, that something is being done whose length nobody knows."""
    yield
