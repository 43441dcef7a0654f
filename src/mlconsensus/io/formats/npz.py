"""NPZ: NumPy's archives of arrays, dense or as `scipy.sparse.save_npz` writes them.

Pickled objects are never loaded.
"""

import io
import warnings
from collections.abc import Mapping, Sequence
from operator import index
from typing import IO

import numpy as np
from scipy import sparse

from ...errors import InputError, nearest
from ...execution.memory import check_size
from ...predictions import Array, Matrix, ScoreTable, as_names
from .. import layouts
from ..columns import check_array
from ..files import InputFile, reader_errors
from ..layouts import Layout
from ..options import ValueRange

_Arrays = Mapping[str, Array]  # the arrays of an archive by name

_AXES = ("models", "instances", "labels")

# Names of arrays of scores. The first of them that is in the archive is read.
_SCORE_KEYS = ("scores", "predictions", "truth")
_TRUTH_KEYS = ("truth", "scores", "predictions")

_COMPRESSED = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "bsr": sparse.bsr_array,
}


def read(file: InputFile, collect: object = None) -> list[ScoreTable]:
    """Read ``scores`` (n, l), ``predictions`` (m, n, l) or a SciPy matrix.

    The arrays ``models``, ``instances`` and ``labels`` contain names. If one of them is
    not in the archive, the tables have no such names. If ground truth or a consensus is
    read, ``truth`` is preferred.

    Parameters
    ----------
    file : InputFile
        The file to read.
    collect : object
        Ignored, present because all formats are called alike.

    Returns
    -------
    list of ScoreTable, one for each model

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, scores=[[0.5, 1.0]], labels=["sports", "law"])
    >>> read(InputFile(name="a.npz", model="a", read=file.getvalue))[0].labels.tolist()
    ['sports', 'law']
    """
    arrays = _load_arrays(file)
    names = {}
    for axis in _AXES:
        if axis in arrays:
            names[axis] = _check_names(arrays[axis], f"{file.name}, {axis}")

    # Read the scores: one matrix for each model.
    key = _find_score_key(arrays, file.options.is_truth)
    value_range = file.options.value_range
    if key is None and "format" in arrays:
        matrices = [_make_sparse(arrays, file.name, value_range)]
    else:
        matrices = _check_dense(arrays, key, file.name, value_range)

    # Ground truth in an archive of predictions does not have the models' names.
    models: Sequence[str]
    if "models" in names and key != "truth":
        models = names["models"].tolist()
    else:
        models = _name_models(file.model, len(matrices))

    n_instances, n_labels = matrices[0].shape
    _check_length(models, len(matrices), f"{file.name}, models")
    if "instances" in names:
        _check_length(names["instances"], n_instances, f"{file.name}, instances")
    if "labels" in names:
        _check_length(names["labels"], n_labels, f"{file.name}, labels")

    tables = []
    for model, matrix in zip(models, matrices, strict=True):
        table = ScoreTable(
            model=str(model),
            scores=matrix,
            instances=names.get("instances"),
            labels=names.get("labels"),
            file=file.name,
        )
        tables.append(table)

    return tables


def write(file: IO[bytes], table: ScoreTable, layout: Layout) -> None:
    """Write one table with its names: dense as ``scores``, sparse as SciPy does.

    Parameters
    ----------
    file : binary file
        Where to write.
    table : ScoreTable
        The scores of one model.
    layout : str
        Ignored, present because all formats are called alike.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> write(file, ScoreTable("a", sparse.csr_array([[0.5]]), ["7"], ["x"]), "wide")
    >>> sparse.load_npz(io.BytesIO(file.getvalue())).toarray()
    array([[0.5]])
    """
    instances, labels = layouts.get_names(table)
    arrays: dict[str, object] = {
        "instances": np.array(list(map(str, instances))),
        "labels": np.array(list(map(str, labels))),
    }
    matrix = table.scores
    if sparse.issparse(matrix):
        arrays["format"] = b"csr"
        arrays["shape"] = matrix.shape
        arrays["_is_array"] = True
        arrays["data"] = matrix.data
        arrays["indices"] = matrix.indices
        arrays["indptr"] = matrix.indptr
    else:
        arrays["scores"] = matrix

    # A ZIP file is written back and forth, but a compressed stream only forth.
    archive = io.BytesIO()
    np.savez_compressed(archive, allow_pickle=False, **arrays)  # type: ignore[arg-type]
    file.write(archive.getvalue())


def _load_arrays(file: InputFile) -> dict[str, Array]:
    """Read all arrays of an archive."""
    try:
        data = file.read()
        _check_magic_bytes(data, file.name)

        # NumPy warns about files that Python 2 wrote.
        with (
            warnings.catch_warnings(action="ignore"),
            np.load(io.BytesIO(data), allow_pickle=False) as archive,
        ):
            unpacked_size = sum(member.file_size for member in archive.zip.infolist())
            check_size(unpacked_size, file.name, "when unpacked")
            return {key: np.asarray(archive[key]) for key in archive.files}
    except Exception as error:
        if "pickle" in str(error).lower():
            raise InputError(
                where=file.name,
                found="pickled objects",
                expected="arrays of numbers and text (pickles are never opened)",
            ) from None

        raise


def _check_magic_bytes(data: bytes, name: str) -> None:
    """Check that bytes may be an archive; `_load_arrays` refuses pickles later."""
    if data.startswith((b"PK", b"\x80")):
        return

    description = "no ZIP file"
    if data.startswith(b"\x93NUMPY"):
        description = "a single array (NPY)"

    raise InputError(
        where=name, found=description, expected="an NPZ archive of named arrays"
    )


def _find_score_key(arrays: _Arrays, is_truth: bool) -> str | None:
    """Return the name of the array of scores, or ``None`` if there is none."""
    candidates = _SCORE_KEYS
    if is_truth:
        candidates = _TRUTH_KEYS

    for key in candidates:
        if key in arrays:
            return key

    return None


def _name_models(name: str, n_models: int) -> list[str]:
    """Return names for models that the archive does not name."""
    if n_models == 1:
        return [name]
    return [f"{name}_{position}" for position in range(n_models)]


def _check_dense(
    arrays: _Arrays, key: str | None, name: str, value_range: ValueRange
) -> list[Array]:
    """Return the matrices (n, l) of an array of scores, after a check."""
    if key is None:
        hints = [nearest(array_name, _SCORE_KEYS) for array_name in arrays]
        hint = next(filter(None, hints), "")
        array_names = ", ".join(arrays) or "nothing"
        raise InputError(
            where=name,
            found=f"the arrays {array_names}",
            expected=f"scores (n, l) or predictions (m, n, l){hint}",
        )

    array = arrays[key]
    where = f"{name}, {key}"
    n_axes = 2
    expected_shape = "(n, l)"
    if key == "predictions":
        n_axes = 3
        expected_shape = "(m, n, l)"

    description = f"the shape {array.shape}"
    if array.ndim != n_axes:
        raise InputError(where=where, found=description, expected=expected_shape)
    if 0 in array.shape:
        raise InputError(where=where, found=description, expected="no zero in it")

    check_array(array, where, value_range)
    if key == "predictions":
        return list(array)
    return [array]


def _make_sparse(arrays: _Arrays, name: str, value_range: ValueRange) -> Matrix:
    """Make a CSR matrix of SciPy's arrays.

    All positions are checked before a compiled routine of SciPy uses them.
    """
    with reader_errors(name, "SciPy's", "a broken sparse matrix"):
        n, l = map(index, arrays["shape"])
        if min(n, l) < 1 or max(n, l) >= 2**31:
            raise ValueError("its shape or positions")

        positions = []
        for key in ("row", "col", "indices", "indptr"):
            if key in arrays:
                positions.append(arrays[key])
                if arrays[key].dtype.kind not in "iu":
                    raise ValueError("its shape or positions")

        check_size(64 * n, name, f"for {n:,} rows")
        layout = arrays["format"].item()
        if isinstance(layout, bytes):
            layout = layout.decode()

        if layout == "coo":
            values_and_positions = (arrays["data"], tuple(positions))
            matrix = sparse.coo_array(values_and_positions, shape=(n, l))
        else:
            # SciPy does not check this if no value is stored.
            if (np.diff(positions[1].astype(np.int64)) < 0).any():
                raise ValueError("indptr")

            matrix = _COMPRESSED[layout]((arrays["data"], *positions), shape=(n, l))
            matrix.check_format(full_check=True)

        check_array(matrix.data, f"{name}, data", value_range)
        coo_matrix = matrix.tocoo()
        csr_matrix = coo_matrix.tocsr()  # adds values of the same cell

    if csr_matrix.nnz != coo_matrix.nnz:
        raise InputError(
            where=name,
            found="a broken sparse matrix (a cell twice)",
            expected="each cell once",
        )

    return csr_matrix


def _check_names(array: Array, where: str) -> Array:
    """Check an array of names: text, or whole numbers."""
    if array.dtype.kind not in "UTiu":
        raise InputError(
            where=where, found=f"{array.dtype} values", expected="text or whole numbers"
        )

    # Empty names need no space in the file, but in memory.
    check_size(16 * array.size, where, f"for {array.size:,} names")
    text = array.astype(np.dtypes.StringDType())

    # Blank names become empty ones, which `as_names` refuses.
    return as_names(np.where(np.strings.strip(text) == "", "", text), where)


def _check_length(names: Sequence[str] | Array, size: int, where: str) -> None:
    """Check that there are as many names as models, instances or labels."""
    if len(names) != size:
        raise InputError(
            where=where, found=f"names for {len(names)}", expected=f"for {size}"
        )
