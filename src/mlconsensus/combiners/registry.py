"""The scikit-learn face of every method, written once.

`COMBINERS` has an estimator class for each method, and `function` makes the function
beneath: `MLCMr` and `mlcm_r`.
"""

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import one_of
from ..execution.local import reduce_blocks
from ..predictions import FloatArray, as_predictions, quantile_normalization
from . import METHODS, Method
from .estimator import BaseCombiner

__all__ = [
    "COMBINERS",
    "BaseCombiner",
    "estimator",
    "find_method_name",
    "function",
    "register",
    "rescale",
]

_PREDICTIONS = (
    "    predictions\n        `Predictions`, or anything that its constructor takes.\n"
)
_SCORES = "    Returns\n    -------\n    ndarray (n, l), higher = more relevant.\n\n"


def estimator(method: type[Method]) -> type[BaseCombiner]:
    """Make the estimator of a method: its settings and documentation, and `fit`, `transform` and the rest.

    Parameters
    ----------
    method
        A subclass of `combiners.Method`.

    Returns
    -------
    A subclass of it and of `BaseCombiner`.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_r import MLCMr
    >>> estimator(MLCMr)(alpha=3.0)
    MLCMr(alpha=3.0)
    """
    return type(
        method.__name__,
        (method, BaseCombiner),
        {"__doc__": method.__doc__, "__module__": __name__},
    )


def function(kind: type[BaseCombiner]) -> Callable[..., FloatArray]:
    """Make the function of a method: predictions and settings in, consensus scores (n, l) out.

    Parameters
    ----------
    kind
        An estimator class.

    Returns
    -------
    A function that takes predictions and what the estimator's constructor takes.

    Examples
    --------
    >>> from mlconsensus.combiners.mlcm_r import MLCMr
    >>> function(estimator(MLCMr))([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]], alpha=2.0).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def combined(predictions: Any, *settings: Any, **more_settings: Any) -> FloatArray:
        return kind(*settings, **more_settings).fit_transform(predictions)

    taken = inspect.Parameter(
        "predictions", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any
    )
    combined.__signature__ = inspect.Signature(
        [taken, *inspect.signature(kind).parameters.values()]
    )  # type: ignore[attr-defined]
    documented = (kind.__doc__ or "").replace(
        "----------\n", f"----------\n{_PREDICTIONS}", 1
    )
    documented = documented.replace("    Examples\n", f"{_SCORES}    Examples\n", 1)
    combined.__doc__ = (
        f"Return the consensus scores that `{kind.__name__}` gives.\n\n{documented}"
    )
    combined.__name__ = combined.__qualname__ = kind.function_name
    return combined


# Every method by the name that tables, files and the command line use.
COMBINERS: dict[str, type[BaseCombiner]] = {
    method.name: estimator(method) for method in METHODS
}


def register(method: type[Method]) -> type[BaseCombiner]:
    """Add a method to `COMBINERS`, so that `combine`, `compare`, files and the report know it.

    Parameters
    ----------
    method
        A subclass of `combiners.Method`.

    Returns
    -------
    Its estimator class.
    """
    COMBINERS[method.name] = kind = estimator(method)
    return kind


def find_method_name(name: str) -> str:
    """Return the method's name as tables write it, however the user wrote it.

    Examples
    --------
    >>> find_method_name("mlcm_r")
    'MLCM-r'
    """
    wanted = name.lower().replace("_", "-")
    known = {method.lower(): method for method in COMBINERS}
    one_of(wanted, known, "method")
    return known[wanted]


def rescale(predictions: Any) -> Any:
    """Bring the scores of models that live on different scales to one (quantile normalisation), without any truth.

    Parameters
    ----------
    predictions
        `Predictions`, or anything that its constructor takes.

    Returns
    -------
    Predictions
        Those whose every model's scores, in their order, are distributed as the models'
        scores are in the middle.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((100, 3))
    >>> one = mlc.rescale([scores, scores, scores / 100]).to_array()
    >>> bool(abs(one[2] - one[0]).max() < 0.01)
    True
    """
    panel = as_predictions(predictions)
    return panel.rescaled(
        quantile_normalization.solve(
            reduce_blocks(panel, quantile_normalization.statistics)
        )
    )


def __getattr__(name: str) -> Any:
    """Find an estimator class such as `MLCMr`, or a function such as `mlcm_r`, by its name."""
    for kind in COMBINERS.values():
        if name in (kind.__name__, kind.function_name):
            if name == kind.__name__:
                return kind
            return function(kind)

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
