"""Types of arrays, matrices, frames and names.

This is the border to libraries without types: the only module of the folder that uses
``Any``. The names say what a value is where a type checker cannot.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of any data type
AnyDtype = np.dtype[Any]
FloatArray = NDArray[np.float64]
FloatDtype = np.dtype[np.floating[Any]]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

# (count,) of int64 or of StringDType; while files are read, a Polars series of text
Names = Array

# A sequence, an array, an index of pandas or a series of Polars; None: without names.
NamesLike = Any

# A matrix (n, l): an ndarray, or a sparse matrix of SciPy, which has no types.
Matrix = Any

# A DataFrame of pandas, which has no types, or of Polars, or a table of Arrow.
Frame = Any

# An elementwise function of one or more arrays that can be broadcast.
Elementwise = Callable[..., Array]

# Consecutive rows. Python 3.11 accepts no type arguments of `slice` at run time.
if TYPE_CHECKING:
    RowSlice = slice[int | None, int | None, int | None]
else:
    RowSlice = slice


class Shape(tuple[int, ...]):
    """A shape that scikit-learn does not take for (number of instances, ...).

    Its first number is an array, not an integer.
    """

    def __getitem__(self, position: Any) -> Any:
        if position == 0:
            return np.array(super().__getitem__(0))
        return super().__getitem__(position)
