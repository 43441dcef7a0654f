"""NPZ: NumPy's archives of arrays, dense or as `scipy.sparse.save_npz` writes them. Nothing is ever unpickled."""

import io
import warnings
from collections.abc import Sequence
from operator import index
from typing import IO, Any

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

_NAMES = ("models", "instances", "labels")
_KEYS = (
    "scores",
    "predictions",
    "truth",
)  # of the arrays that count, the first that is there
_COMPRESSED = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "bsr": sparse.bsr_array,
}


def read(file: InputFile, collect: object = None) -> list[ScoreTable]:
    """Read ``scores`` (n, l), ``predictions`` (m, n, l) or a SciPy matrix, named by what else is in the archive.

    Where the archive holds none of ``models``, ``instances`` or ``labels``, the tables
    have no such names. Where the truth or a consensus is wanted, ``truth`` comes first.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, scores=[[0.5, 1.0]], labels=["sports", "law"])
    >>> read(InputFile(name="a.npz", model="a", read=file.getvalue))[0].labels.tolist()
    ['sports', 'law']
    """
    arrays = _load_arrays(file)
    named = {
        name: _check_names(arrays[name], f"{file.name}, {name}")
        for name in _NAMES
        if name in arrays
    }
    keys = _KEYS
    if file.options.is_truth:
        keys = ("truth", "scores", "predictions")

    key = next((key for key in keys if key in arrays), None)
    if key is None and "format" in arrays:
        matrices = [_make_sparse(arrays, file.name, file.options.value_range)]
    else:
        matrices = _check_dense(arrays, key, file.name, file.options.value_range)

    models: Sequence[str] | Array
    if "models" in named and key != "truth":
        models = named["models"]
    elif len(matrices) == 1:
        models = [file.model]
    else:
        models = [f"{file.model}_{position}" for position in range(len(matrices))]

    sizes = {
        "models": len(matrices),
        "instances": matrices[0].shape[0],
        "labels": matrices[0].shape[1],
    }
    all_names = {**named, "models": models}
    for name, axis_names in all_names.items():
        size = sizes[name]
        if len(axis_names) != size:
            raise InputError(
                where=f"{file.name}, {name}",
                found=f"names for {len(axis_names)}",
                expected=f"for {size}",
            )

    return [
        ScoreTable(
            model=str(model),
            scores=matrix,
            instances=named.get("instances"),
            labels=named.get("labels"),
            file=file.name,
        )
        for model, matrix in zip(models, matrices, strict=True)
    ]


def write(file: IO[bytes], table: ScoreTable, layout: Layout) -> None:
    """Write one table with its names: dense as ``scores``, sparse as SciPy does.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> write(file, ScoreTable("a", sparse.csr_array([[0.5]]), ["7"], ["x"]), "wide")
    >>> sparse.load_npz(io.BytesIO(file.getvalue())).toarray()
    array([[0.5]])
    """
    instances, labels = layouts.get_names(table)
    names = {
        "instances": np.array([str(name) for name in instances]),
        "labels": np.array([str(name) for name in labels]),
    }
    matrix = table.scores
    if sparse.issparse(matrix):
        stored = {"format": b"csr", "shape": matrix.shape, "_is_array": True}
        stored |= {
            "data": matrix.data,
            "indices": matrix.indices,
            "indptr": matrix.indptr,
        }
    else:
        stored = {"scores": matrix}

    archive = (
        io.BytesIO()
    )  # a ZIP file is written back and forth, which a compressed stream does not allow
    np.savez_compressed(archive, allow_pickle=False, **stored, **names)
    file.write(archive.getvalue())


def _load_arrays(file: InputFile) -> dict[str, Any]:
    try:
        data = file.read()
        if data.startswith(b"\x93NUMPY"):
            description = "a single array (NPY)"
        else:
            description = "no ZIP file"

        right = data.startswith(
            (b"PK", b"\x80")
        )  # a ZIP file, or a pickle, of which more is said below
        if not (right):
            raise InputError(
                where=file.name,
                found=description,
                expected="an NPZ archive of named arrays",
            )

        # NumPy warns of what Python 2 wrote.
        with (
            warnings.catch_warnings(action="ignore"),
            np.load(io.BytesIO(data), allow_pickle=False) as archive,
        ):
            check_size(
                sum(member.file_size for member in archive.zip.infolist()),
                file.name,
                "when unpacked",
            )
            return {key: np.asarray(archive[key]) for key in archive.files}
    except Exception as fault:
        pickled = "pickle" in str(fault).lower()
        if pickled:
            raise InputError(
                where=file.name,
                found="pickled objects",
                expected="arrays of numbers and text (pickles are never opened)",
            ) from None

        raise


def _check_dense(
    arrays: dict[str, Any], key: str | None, name: str, value_range: ValueRange
) -> list[Array]:
    if key is None:
        names = ", ".join(arrays) or "nothing"
        hint = next((hint for array in arrays if (hint := nearest(array, _KEYS))), "")
        raise InputError(
            where=name,
            found=f"the arrays {names}",
            expected=f"scores (n, l) or predictions (m, n, l){hint}",
        )

    array = arrays[key]
    if key == "predictions":
        shape = "(m, n, l)"
    else:
        shape = "(n, l)"

    description = f"the shape {array.shape}"
    if array.ndim != shape.count(",") + 1:
        raise InputError(where=f"{name}, {key}", found=description, expected=shape)
    if 0 in array.shape:
        raise InputError(
            where=f"{name}, {key}", found=description, expected="no zero in it"
        )

    check_array(array, f"{name}, {key}", value_range)
    if key == "predictions":
        return list(array)
    return [array]


def _make_sparse(arrays: dict[str, Any], name: str, value_range: ValueRange) -> Matrix:
    """Make a CSR matrix of SciPy's arrays; its compiled routines convert it only after all positions are checked."""
    with reader_errors(name, "SciPy's", "a broken sparse matrix"):
        n, l = (index(size) for size in arrays["shape"])
        kind = arrays["format"].item()
        if isinstance(kind, bytes):
            kind = kind.decode()

        data = arrays["data"]
        positions = [
            arrays[key] for key in ("row", "col", "indices", "indptr") if key in arrays
        ]
        if (
            min(n, l) < 1
            or max(n, l) >= 2**31
            or any(array.dtype.kind not in "iu" for array in positions)
        ):
            raise ValueError("its shape or positions")

        check_size(64 * n, name, f"for {n:,} rows")
        if kind == "coo":
            matrix: Any = sparse.coo_array((data, tuple(positions)), shape=(n, l))
        else:
            if (
                np.diff(positions[1].astype(np.int64)) < 0
            ).any():  # which SciPy does not look at where nothing is stored
                raise ValueError("indptr")

            matrix = _COMPRESSED[kind]((data, *positions), shape=(n, l))
            matrix.check_format(full_check=True)

        check_array(matrix.data, f"{name}, data", value_range)
        matrix = matrix.tocoo()
        csr_matrix = matrix.tocsr()

    if csr_matrix.nnz != matrix.nnz:
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

    check_size(
        16 * array.size, where, f"for {array.size:,} names"
    )  # where each is empty, they are nothing in the file
    text = array.astype(np.dtypes.StringDType())
    return as_names(
        np.where(np.strings.strip(text) == "", "", text), where
    )  # which refuses those that are empty
