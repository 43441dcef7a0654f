"""Types of matrices: CSR, or either dense or CSR.

SciPy has no type annotations, so type checkers take `csr_array` as it is used. The name
tells readers which matrices are sparse.
"""

from scipy import sparse

from ..predictions import Array, FloatArray

# A sparse matrix, stored by rows.
CSRArray = sparse.csr_array

# A sparse matrix, stored by columns.
CSCArray = sparse.csc_array

# A matrix that a function accepts in either form.
DenseOrCSR = FloatArray | sparse.csr_array

# Values, rows and columns of the entries of a sparse matrix.
Entries = tuple[Array, Array, Array]
