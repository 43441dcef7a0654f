"""NPZ: NumPy's archives of arrays, dense or as `scipy.sparse.save_npz` writes them. Nothing is ever unpickled."""

from __future__ import annotations

import io
from typing import IO, Any

import numpy as np
from scipy import sparse

from ..errors import InputError, nearest
from ..panel.alignment import as_names
from ..panel.model_tables import ModelTable
from . import layouts
from .columns import check_array
from .files import InputFile, first_line
from .formats import Layout

_NAMES = ("models", "instances", "labels")


def read(file: InputFile, keep: object = None) -> list[ModelTable]:
    """Read ``scores`` (n, l), ``predictions`` (m, n, l) or a SciPy matrix, named by what else is in the archive.

    Where the archive holds none of ``models``, ``instances`` or ``labels``, the tables have no such names.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, scores=[[0.5, 1.0]], labels=["sports", "law"])
    >>> read(InputFile("a.npz", "a", file.getvalue))[0].labels.tolist()
    ['sports', 'law']
    """
    return _read(file, ("scores", "predictions", "truth"))


def read_truth(file: InputFile, keep: object = None) -> list[ModelTable]:
    """Read as `read` does, but ``truth`` first where the archive holds it beside predictions.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, predictions=np.zeros((3, 1, 1)), truth=[[True]])
    >>> read_truth(InputFile("a.npz", "a", file.getvalue))[0].scores
    array([[ True]])
    """
    return _read(file, ("truth", "scores", "predictions"))


def write(file: IO[bytes], table: ModelTable, layout: Layout) -> None:
    """Write one table with its names: dense as ``scores``, sparse as SciPy does.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", sparse.csr_array([[0.5]]), ["7"], ["x"]), "wide")
    >>> sparse.load_npz(io.BytesIO(file.getvalue())).toarray()
    array([[0.5]])
    """
    instances, labels = layouts.named(table)
    names = {
        "instances": np.array([str(name) for name in instances]),
        "labels": np.array([str(name) for name in labels]),
    }
    matrix = table.scores
    if sparse.issparse(matrix):
        stored = {"format": b"csr", "shape": matrix.shape, "_is_array": True}
        stored |= {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    else:
        stored = {"scores": matrix}
    archive = io.BytesIO()  # a ZIP file is written back and forth, which a compressed stream does not allow
    np.savez_compressed(archive, allow_pickle=False, **stored, **names)
    file.write(archive.getbuffer())


def _read(file: InputFile, keys: tuple[str, ...]) -> list[ModelTable]:
    arrays = _arrays(file)
    named = {name: _names(arrays[name], f"{file.name}, {name}") for name in _NAMES if name in arrays}
    key = next((key for key in keys if key in arrays), None)
    matrices = [_sparse(arrays, file.name)] if key is None and "format" in arrays else _dense(arrays, key, file.name)
    models = named.get("models")
    if models is None or key == "truth":
        models = [file.model] if len(matrices) == 1 else [f"{file.model}_{k}" for k in range(len(matrices))]
    sizes = {"models": len(matrices), "instances": matrices[0].shape[0], "labels": matrices[0].shape[1]}
    for name, given in {**named, "models": models}.items():
        if len(given) != sizes[name]:
            raise InputError(f"{file.name}, {name}: found names for {len(given)}, expected for {sizes[name]}")
    return [
        ModelTable(str(model), matrix, named.get("instances"), named.get("labels"), file.name)
        for model, matrix in zip(models, matrices, strict=True)
    ]


def _arrays(file: InputFile) -> dict[str, Any]:
    try:
        archive = np.load(io.BytesIO(file.read()), allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise InputError(f"{file.name}: found a single array (NPY), expected an NPZ archive of named arrays")
        with archive:
            return {key: np.asarray(archive[key]) for key in archive.files}
    except InputError:
        raise
    except Exception as fault:
        if "pickle" in str(fault).lower():
            raise InputError(
                f"{file.name}: found pickled objects, expected arrays of numbers and text (pickles are never opened)"
            ) from None
        raise


def _dense(arrays: dict[str, Any], key: str | None, name: str) -> list[Any]:
    if key is None:
        known = ("scores", "predictions", "truth")
        found = ", ".join(arrays) or "nothing"
        hint = next((hint for array in arrays if (hint := nearest(array, known))), "")
        raise InputError(f"{name}: found the arrays {found}, expected scores (n, l) or predictions (m, n, l){hint}")
    array = arrays[key]
    dimensions = 3 if key == "predictions" else 2
    if array.ndim != dimensions:
        shape = "(m, n, l)" if dimensions == 3 else "(n, l)"
        raise InputError(f"{name}, {key}: found the shape {array.shape}, expected {shape}")
    if 0 in array.shape:
        raise InputError(f"{name}, {key}: found the shape {array.shape}, expected no zero in it")
    check_array(array, f"{name}, {key}")
    return list(array) if dimensions == 3 else [array]


def _sparse(arrays: dict[str, Any], name: str) -> Any:
    """Make a CSR matrix of SciPy's arrays, none of which its compiled routines see before they are checked."""
    try:
        n, l = (int(size) for size in arrays["shape"])
        if min(n, l) < 1 or max(n, l) >= 2**31:
            raise ValueError(f"shape {(n, l)}")
        kind = arrays["format"].item()
        data, rows, columns = _entries(kind.decode() if isinstance(kind, bytes) else kind, n, l, arrays)
        for found, size in ((rows, n), (columns, l)):
            if (
                found.shape != data.shape
                or found.dtype.kind not in "iu"
                or (np.clip(found, 0, size - 1) != found).any()
            ):
                raise ValueError("positions outside")
    except (ValueError, KeyError, TypeError, IndexError) as fault:
        raise InputError(f"{name}: found a broken sparse matrix ({first_line(fault)}), expected SciPy's") from None
    check_array(data, f"{name}, data")
    matrix = sparse.coo_array((data, (rows, columns)), shape=(n, l)).tocsr()
    if matrix.nnz < len(data):
        raise InputError(f"{name}: found a broken sparse matrix (a cell twice), expected each cell once")
    return matrix


def _entries(kind: str, n: int, l: int, arrays: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the values, rows and columns of a matrix that is stored by entries, rows, columns or blocks."""
    data = arrays["data"]
    if kind == "coo":
        return data, arrays["row"], arrays["col"]
    if kind not in ("csr", "csc", "bsr"):
        raise ValueError(f"format {kind!r}")
    indices, starts = arrays["indices"], arrays["indptr"]
    if indices.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        raise ValueError("positions that are no whole numbers")
    height, width = data.shape[1:] if kind == "bsr" else (1, 1)
    lines = l if kind == "csc" else n // height
    steps = np.diff(starts.astype(np.int64))
    if starts.shape != (lines + 1,) or starts[0] != 0 or steps.min() < 0 or not starts[-1] == len(data) == len(indices):
        raise ValueError("indptr")
    line = np.repeat(np.arange(lines), steps)
    if kind == "csc":
        return data, indices, line
    within_rows, within_columns = (at.ravel() for at in np.indices((height, width)))
    rows = (line[:, None] * height + within_rows).ravel()
    return data.reshape(-1), rows, (indices.astype(np.int64)[:, None] * width + within_columns).ravel()


def _names(array: Any, where: str) -> Any:
    """Check an array of names: text, or whole numbers."""
    if array.dtype.kind not in "UTiu":
        raise InputError(f"{where}: found {array.dtype} values, expected text or whole numbers")
    names = as_names(array.astype(np.dtypes.StringDType()), where)
    if "" in names:
        raise InputError(f"{where}[{names.tolist().index('')}]: found nothing, expected a name")
    return names
