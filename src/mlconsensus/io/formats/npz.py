"""NPZ: NumPy's archives of arrays, dense or as `scipy.sparse.save_npz` writes them. Nothing is ever unpickled."""

import io
import warnings
from operator import index
from typing import IO, Any

import numpy as np
from scipy import sparse

from ...errors import InputError, nearest
from ...execution.memory import check_size
from ...predictions import ScoreTable, as_names
from .. import layouts
from ..columns import check_array, judged
from ..files import InputFile, reader_errors
from ..layouts import Layout

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


def read(file: InputFile, keep: object = None) -> list[ScoreTable]:
    """Read ``scores`` (n, l), ``predictions`` (m, n, l) or a SciPy matrix, named by what else is in the archive.

    Where the archive holds none of ``models``, ``instances`` or ``labels``, the tables
    have no such names. Where the truth or a consensus is wanted, ``truth`` comes first.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, scores=[[0.5, 1.0]], labels=["sports", "law"])
    >>> read(InputFile("a.npz", "a", file.getvalue))[0].labels.tolist()
    ['sports', 'law']
    """
    arrays = _arrays(file)
    named = {
        name: _names(arrays[name], f"{file.name}, {name}")
        for name in _NAMES
        if name in arrays
    }
    key = next(
        (
            key
            for key in sorted(_KEYS, key=lambda key: judged.get() and key != "truth")
            if key in arrays
        ),
        None,
    )
    if key is None and "format" in arrays:
        matrices = [_sparse(arrays, file.name)]
    else:
        matrices = _dense(arrays, key, file.name)

    models = named.get("models")
    if models is None or key == "truth":
        if len(matrices) == 1:
            models = [file.model]
        else:
            models = [f"{file.model}_{k}" for k in range(len(matrices))]

    sizes = {
        "models": len(matrices),
        "instances": matrices[0].shape[0],
        "labels": matrices[0].shape[1],
    }
    for name, given in {**named, "models": models}.items():
        size = sizes[name]
        if len(given) != size:
            raise InputError(
                where=f"{file.name}, {name}",
                found=f"names for {len(given)}",
                expected=f"for {size}",
            )

    return [
        ScoreTable(
            str(model), matrix, named.get("instances"), named.get("labels"), file.name
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
    each = zip(("instances", "labels"), layouts.named(table), strict=True)
    names = {what: np.array([str(name) for name in own]) for what, own in each}
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


def _arrays(file: InputFile) -> dict[str, Any]:
    try:
        data = file.read()
        if data.startswith(b"\x93NUMPY"):
            found = "a single array (NPY)"
        else:
            found = "no ZIP file"

        right = data.startswith(
            (b"PK", b"\x80")
        )  # a ZIP file, or a pickle, of which more is said below
        if not (right):
            raise InputError(
                where=file.name, found=found, expected="an NPZ archive of named arrays"
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
            )

        raise


def _dense(arrays: dict[str, Any], key: str | None, name: str) -> list[Any]:
    if key is None:
        found = ", ".join(arrays) or "nothing"
        hint = next((hint for array in arrays if (hint := nearest(array, _KEYS))), "")
        raise InputError(
            f"{name}: found the arrays {found}, expected scores (n, l) or predictions (m, n, l){hint}"
        )

    array = arrays[key]
    if key == "predictions":
        shape = "(m, n, l)"
    else:
        shape = "(n, l)"

    found = f"the shape {array.shape}"
    if array.ndim != shape.count(",") + 1:
        raise InputError(where=f"{name}, {key}", found=found, expected=shape)
    if 0 in array.shape:
        raise InputError(where=f"{name}, {key}", found=found, expected="no zero in it")

    check_array(array, f"{name}, {key}")
    if key == "predictions":
        return list(array)
    return [array]


def _sparse(arrays: dict[str, Any], name: str) -> Any:
    """Make a CSR matrix of SciPy's arrays; its compiled routines convert it only after all positions are checked."""
    with reader_errors(name, "SciPy's", "a broken sparse matrix"):
        n, l = (index(size) for size in arrays["shape"])
        kind = arrays["format"].item()
        if isinstance(kind, bytes):
            kind = kind.decode()

        data = arrays["data"]
        given = [
            arrays[key] for key in ("row", "col", "indices", "indptr") if key in arrays
        ]
        if (
            min(n, l) < 1
            or max(n, l) >= 2**31
            or any(found.dtype.kind not in "iu" for found in given)
        ):
            raise ValueError("its shape or positions")

        check_size(64 * n, name, f"for {n:,} rows")
        if kind == "coo":
            matrix: Any = sparse.coo_array((data, tuple(given)), shape=(n, l))
        else:
            if (
                np.diff(given[1].astype(np.int64)) < 0
            ).any():  # which SciPy does not look at where nothing is stored
                raise ValueError("indptr")

            matrix = _COMPRESSED[kind]((data, *given), shape=(n, l))
            matrix.check_format(full_check=True)

        check_array(matrix.data, f"{name}, data")
        matrix = matrix.tocoo()
        whole = matrix.tocsr()

    if whole.nnz != matrix.nnz:
        raise InputError(
            where=name,
            found="a broken sparse matrix (a cell twice)",
            expected="each cell once",
        )

    return whole


def _names(array: Any, where: str) -> Any:
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
