"""The exception for input that cannot be used, and the warning for changed input."""

import difflib
from collections.abc import Collection, Iterable
from importlib import import_module
from types import ModuleType


class InputError(ValueError):
    """Raised for input that cannot be used.

    Parameters
    ----------
    message : str, default=None
        A full sentence, for messages that are not about data.
    where : str, default=None
        The place in the input, such as a file and its row.
    found : object, default=None
        The value at this place.
    expected : str, default=None
        Description of the values that are accepted.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> mlc.Predictions([[[0.0, 1.5]]])
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: model 'model_0', instance 0, label 'label_1': found
    1.5, expected ...
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


class EmptyFileError(InputError):
    """A file has no predictions. The other files of a command may be used."""


class InputWarning(UserWarning):
    """Issued for input that was changed while it was read.

    The message says what was done.

    Examples
    --------
    >>> issubclass(InputWarning, UserWarning)
    True
    """


def one_of(name: str, names: Collection[str], where: str) -> None:
    """Check that a name is valid.

    Parameters
    ----------
    name : str
        The name to check.
    names : collection of str
        The valid names.
    where : str
        The place of the name, for the error message.

    Raises
    ------
    InputError
        If it is not valid; the message suggests the closest valid name.

    Examples
    --------
    >>> one_of("mlcmr", ["mv", "mlcm-r"], "method")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: method: found 'mlcmr', expected one of mv, mlcm-r;
    did you mean 'mlcm-r'?
    """
    if name not in names:
        raise InputError(
            where=where,
            found=repr(name),
            expected=f"one of {', '.join(names)}{nearest(name, names)}",
        )


def needed(package: str, extra: str, where: str) -> ModuleType:
    """Import an optional dependency.

    Parameters
    ----------
    package : str
        Name of the package to import.
    extra : str
        The extra of this project that installs it.
    where : str
        The feature that needs it, for the error message.

    Returns
    -------
    module

    Raises
    ------
    InputError
        If it is not installed; the message says how to install it.

    Examples
    --------
    >>> needed("no_such_package", "extra", "privacy")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: privacy: found no package no_such_package,
    expected pip install 'mlconsensus[extra]'
    """
    try:
        return import_module(package)
    except ImportError:
        raise InputError(
            where=where,
            found=f"no package {package}",
            expected=f"pip install 'mlconsensus[{extra}]'",
        ) from None


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of the closest valid name, or an empty text.

    Parameters
    ----------
    name : str
        The name that is not valid.
    names : iterable of str
        The valid names.

    Returns
    -------
    str

    Examples
    --------
    >>> nearest("mlcmr", ["mv", "mlcm-r", "mlcm-a"])
    "; did you mean 'mlcm-r'?"
    """
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    if not matches:
        return ""
    return f"; did you mean {matches[0]!r}?"
