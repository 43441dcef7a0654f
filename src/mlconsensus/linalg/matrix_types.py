"""Types of matrices: CSR, or either dense or CSR.

SciPy has no type annotations, so type checkers take `csr_array` as it is used. The name
tells readers which matrices are sparse.
"""

from typing import TYPE_CHECKING

from scipy import sparse

from ..predictions import Array, FloatArray

# Consecutive rows. Python 3.11 accepts no type arguments of `slice` at run time.
if TYPE_CHECKING:
    RowSlice = slice[int, int, int | None]
else:
    RowSlice = slice

# A sparse matrix, stored by rows.
CSRArray = sparse.csr_array

# A sparse matrix, stored by columns.
CSCArray = sparse.csc_array

# A matrix that a function accepts in either form.
DenseOrCSR = FloatArray | sparse.csr_array

# Values, rows and columns of the entries of a sparse matrix.
Entries = tuple[Array, Array, Array]
