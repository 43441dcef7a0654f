"""NPZ: NumPy's archives of arrays, dense or as `scipy.sparse.save_npz` writes them. Nothing is ever unpickled."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from scipy import sparse

from ..errors import InputError, nearest
from ..panel.alignment import as_names
from ..panel.model_tables import ModelTable
from . import frames, scores
from .files import Source, first_line
from .formats import Layout

_NAMES = ("models", "instances", "labels")


def read(source: Source) -> list[ModelTable]:
    """Read ``scores`` (n, l), ``predictions`` (m, n, l) or a SciPy matrix, named by what else is in the archive.

    Where the archive holds none of ``models``, ``instances`` or ``labels``, the tables have no such names.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, scores=[[0.5, 1.0]], labels=["sports", "law"])
    >>> read(Source("a.npz", "a", file.getvalue))[0].labels.tolist()
    ['sports', 'law']
    """
    return _read(source, ("scores", "predictions", "truth"))


def read_truth(source: Source) -> list[ModelTable]:
    """Read as `read` does, but ``truth`` first where the archive holds it beside predictions.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, predictions=np.zeros((3, 1, 1)), truth=[[True]])
    >>> read_truth(Source("a.npz", "a", file.getvalue))[0].scores
    array([[ True]])
    """
    return _read(source, ("truth", "scores", "predictions"))


def write(file: IO[bytes], table: ModelTable, layout: Layout) -> None:
    """Write one table with its names: dense as ``scores``, sparse as SciPy does.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", sparse.csr_array([[0.5]]), ["7"], ["x"]), "wide")
    >>> sparse.load_npz(io.BytesIO(file.getvalue())).toarray()
    array([[0.5]])
    """
    instances, labels = frames.named(table)
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


def _read(source: Source, keys: tuple[str, ...]) -> list[ModelTable]:
    data = source.read()
    arrays = _arrays(data, source.name)
    named = {name: _names(arrays[name], f"{source.name}, {name}") for name in _NAMES if name in arrays}
    key = next((key for key in keys if key in arrays), None)
    matrices = _sparse(data, source.name) if key is None and "format" in arrays else _dense(arrays, key, source.name)
    models = named.get("models")
    if models is None or key == "truth":
        models = [source.model] if len(matrices) == 1 else [f"{source.model}_{k}" for k in range(len(matrices))]
    sizes = {"models": len(matrices), "instances": matrices[0].shape[0], "labels": matrices[0].shape[1]}
    for name, given in {**named, "models": models}.items():
        if len(given) != sizes[name]:
            raise InputError(f"{source.name}, {name}: found names for {len(given)}, expected for {sizes[name]}")
    return [
        ModelTable(str(model), matrix, named.get("instances"), named.get("labels"))
        for model, matrix in zip(models, matrices, strict=True)
    ]


def _arrays(data: bytes, name: str) -> dict[str, Any]:
    try:
        archive = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise InputError(f"{name}: found a single array (NPY), expected an NPZ archive of named arrays")
        with archive:
            return {key: archive[key] for key in archive.files}
    except InputError:
        raise
    except (ValueError, OSError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error) as fault:
        if "pickle" in str(fault).lower():
            raise InputError(
                f"{name}: found pickled objects, expected arrays of numbers and text (pickles are never opened)"
            ) from None
        raise InputError(f"{name}: found broken NPZ data ({first_line(fault)}), expected an NPZ file") from None


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
    scores.check_array(array, f"{name}, {key}")
    return list(array) if dimensions == 3 else [array]


def _sparse(data: bytes, name: str) -> list[Any]:
    try:
        matrix = sparse.csr_array(sparse.load_npz(io.BytesIO(data)))
        matrix.check_format()
    except (ValueError, KeyError, NotImplementedError, TypeError) as fault:
        raise InputError(f"{name}: found a broken sparse matrix ({first_line(fault)}), expected SciPy's") from None
    if 0 in matrix.shape:
        raise InputError(f"{name}: found the shape {matrix.shape}, expected no zero in it")
    scores.check_array(matrix.data, f"{name}, data")
    return [matrix]


def _names(array: Any, where: str) -> Any:
    """Check an array of names: text, or whole numbers."""
    if array.dtype.kind not in "UTiu":
        raise InputError(f"{where}: found {array.dtype} values, expected text or whole numbers")
    names = as_names(array.astype(np.dtypes.StringDType()), where)
    if "" in names:
        raise InputError(f"{where}[{names.tolist().index('')}]: found nothing, expected a name")
    return names
