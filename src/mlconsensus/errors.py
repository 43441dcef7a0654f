"""The one exception that bad input raises, and the one warning."""

import difflib
from collections.abc import Collection, Iterable
from importlib import import_module
from typing import Any


class InputError(ValueError):
    """Raised for input that cannot be used.

    Parameters
    ----------
    message : str, default=None
        A whole sentence, for messages that are not about data.
    where : str, default=None
        The place in the input, such as a file and its row.
    found : object, default=None
        What is there.
    expected : str, default=None
        What should be there.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.Predictions([[[0.0, 1.5]]])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: model 'model_0', instance 0, label 'label_1': found 1.5, expected ...
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        where: str | None = None,
        found: object = None,
        expected: str | None = None,
    ) -> None:
        if message is None:
            message = f"{where}: found {found}, expected {expected}"

        super().__init__(message)


class InputWarning(UserWarning):
    """What the user gave was read, but not as it stands there; the message says what was done.

    Examples
    --------
    >>> issubclass(InputWarning, UserWarning)
    True
    """


def expect(right: bool, where: str, found: object, expected: str) -> None:
    """Refuse what is not right, in one sentence.

    Parameters
    ----------
    right
        Whether all is well.
    where, found, expected
        What the sentence says.

    Examples
    --------
    >>> expect(2 < 1, "a.csv, row 7", 2, "a number below 1")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: a.csv, row 7: found 2, expected a number below 1
    """
    if not right:
        raise InputError(f"{where}: found {found}, expected {expected}")


def one_of(name: str, names: Collection[str], where: str) -> None:
    """Refuse a name that is none of those that there are, and say which of them was meant.

    Examples
    --------
    >>> one_of("mlcmr", ["mv", "mlcm-r"], "method")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: method: found 'mlcmr', expected one of mv, mlcm-r; did you mean 'mlcm-r'?
    """
    if name not in names:
        raise InputError(
            f"{where}: found {name!r}, expected one of {', '.join(names)}{nearest(name, names)}"
        )


def needed(package: str, extra: str, where: str) -> Any:
    """Import a package that only some users need; where it is not installed, say how to get it.

    Parameters
    ----------
    package
        What is imported.
    extra
        The optional dependencies of ours that bring it.
    where
        Says in error messages what needs it.

    Examples
    --------
    >>> needed("no_such_package", "extra", "privacy")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy: found no package no_such_package, expected pip install 'mlconsensus[extra]'
    """
    try:
        return import_module(package)
    except ImportError:
        raise InputError(
            f"{where}: found no package {package}, expected pip install 'mlconsensus[{extra}]'"
        ) from None


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the valid name closest to `name`, or nothing.

    Examples
    --------
    >>> nearest("mlcmr", ["mv", "mlcm-r", "mlcm-a"])
    "; did you mean 'mlcm-r'?"
    """
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
