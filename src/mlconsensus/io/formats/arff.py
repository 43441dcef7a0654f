"""ARFF as Mulan and MEKA write it, dense or sparse; liac-arff parses it.

Which attributes are labels says a Mulan XML file beside it (same name, ``.xml``), or
else MEKA's option ``-C k`` in the relation's name: the first k attributes, or the last
if k is negative. Without an attribute ``instance`` of text, instances have no names.
"""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from ...errors import InputError, nearest
from ...predictions import Matrix, ScoreTable, as_names
from ..columns import is_outside, raise_bad_score
from ..encoding import decode_text
from ..files import AnyPath, InputFile, get_first_line, read_bytes, reader_errors
from ..on_disk import compact_matrix
from .registry import make_input_file

_OPTION = re.compile(r"-C\s+(-?\d{1,9})\b")
_ID = "instance"
_SPARSE = re.compile(
    r"^[ \t]*@data[ \t\r]*\n(?:[ \t]*(?:%.*)?\n)*[ \t]*\{", re.I | re.M
)  # what its first row is


def load(path: AnyPath) -> tuple[Any, Any, list[str], list[str]]:
    r"""Load a data set from an ARFF file and the XML file beside it.

    Parameters
    ----------
    path
        The ARFF file.

    Returns
    -------
    features
        CSR (n, d); a nominal value is its position in the declaration.
    labels
        CSR (n, l) of 0 and 1.
    feature_names, label_names
        What the columns are called.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "toy.arff"
    >>> _ = path.write_text("@relation 'toy: -C -1'\n@attribute a numeric\n@attribute y {0,1}\n@data\n0.5,1\n")
    >>> features, _, _, label_names = load(path)
    >>> features.toarray(), label_names
    (array([[0.5]]), ['y'])
    """
    file = make_input_file(path)
    with reader_errors(file.name, "ARFF"):
        return _loaded(file)[:4]


def read(file: InputFile, collect: object = None) -> list[ScoreTable]:
    r"""Read the labels of an ARFF file as one model's scores.

    Examples
    --------
    >>> text = b"@relation 'r: -C 2'\n@attribute x {0,1}\n@attribute y numeric\n@data\n1,0.5\n"
    >>> read(InputFile(name="a.arff", model="a", read=lambda: text))[0].scores
    array([[1. , 0.5]])
    """
    _, scores, _, names, ids = _loaded(file)
    if ids is None:
        instances = None
    else:
        instances = as_names(ids, f"{file.name}, attribute {_ID!r}")

    return [
        ScoreTable(
            file.model,
            compact_matrix(scores),
            instances,
            as_names(names, f"{file.name}, labels"),
            file.name,
        )
    ]


def _loaded(file: InputFile) -> tuple[Any, Any, list[str], list[str], list[str] | None]:
    """Return what `load` does, and the names of the instances where an attribute holds them."""
    import arff

    text = decode_text(file.read(), file.name)
    is_sparse = _SPARSE.search(text) is not None
    try:
        found = arff.loads(
            text, encode_nominal=True, return_type=arff.LOD if is_sparse else arff.DENSE
        )
    except arff.ArffException as fault:
        where = f"{file.name}, line {fault.line}"
        raise InputError(
            f"{where}: found broken data ({get_first_line(fault)}), expected ARFF"
        ) from None

    if not (bool(found["data"])):
        raise InputError(
            where=file.name, found="no row after @data", expected="at least one"
        )
    if is_sparse:
        rows = found["data"]
    else:
        rows = [dict(enumerate(row)) for row in found["data"]]

    kinds = dict(
        found["attributes"]
    )  # "STRING", another name of a type, or the values of a nominal attribute
    position = {name: at for at, name in enumerate(kinds)}
    if kinds.get(_ID) == "STRING":
        ids = [row.get(position[_ID]) or "" for row in rows]
    else:
        ids = None

    labels = _labels(found["relation"], kinds, file)
    numbers = {at for name, at in position.items() if kinds[name] != "STRING"}
    others = numbers - {position[name] for name in labels}
    features = [name for name, at in position.items() if at in others]
    cells = [
        (at, *cell)
        for at, row in enumerate(rows)
        for cell in row.items()
        if cell[0] in numbers
    ]
    at, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
    numbered = (
        np.array(values, np.float64),
        (np.array(at, np.int64), np.array(columns, np.int64)),
    )
    matrix = sparse.csr_array(numbered, shape=(len(rows), len(kinds)))
    matrix.eliminate_zeros()
    feature_values, label_scores = (
        matrix[:, [position[name] for name in chosen]] for chosen in (features, labels)
    )
    return (
        feature_values,
        _check_scores(label_scores, labels, kinds, file),
        features,
        labels,
        ids,
    )


def _labels(relation: str, kinds: dict[str, Any], file: InputFile) -> list[str]:
    """Return the names of the attributes that are labels."""
    if file.path is None:
        beside = None
    else:
        beside = file.path.with_name(f"{file.model}.xml")

    if beside is not None and beside.is_file():
        return _listed(kinds, beside)

    option = _OPTION.search(relation)
    if option is None:
        if beside is None:
            lists = ""
        else:
            lists = f"{beside.name} beside it or "

        raise InputError(
            f"{file.name}: found no list of labels, expected {lists}the option -C in the @relation line"
        )

    count = int(option[1])
    names = list(kinds)
    many = f"1 to {len(names)}, as there are attributes"
    if not (0 < abs(count) <= len(names)):
        raise InputError(where=file.name, found=f"the option -C {count}", expected=many)
    if count > 0:
        chosen = names[:count]
    else:
        chosen = names[count:]

    return [name for name in chosen if kinds[name] != "STRING"]  # text is never a label


def _listed(kinds: dict[str, Any], path: Path) -> list[str]:
    """Return, in the order of the attributes, the labels in a Mulan XML file, nested or not."""
    with reader_errors(str(path), "XML"):
        root = ElementTree.fromstring(read_bytes(path))

    names = [
        label.get("name", "")
        for label in root.iter()
        if label.tag.rpartition("}")[2] == "label"
    ]
    if not (bool(names)):
        raise InputError(
            where=str(path), found="no label element", expected="Mulan's list of labels"
        )

    for name in names:
        if name in kinds:
            hint = ""
        else:
            hint = nearest(name, kinds)

        if name not in kinds:
            raise InputError(
                where=str(path),
                found=f"the label {name!r}",
                expected=f"an attribute's name{hint}",
            )

    as_names(names, f"{path}, labels")
    listed = set(names)
    return [name for name in kinds if name in listed]


def _check_scores(
    matrix: Matrix, labels: list[str], kinds: dict[str, Any], file: InputFile
) -> Matrix:
    """Check the declarations and the values of labels."""
    name = file.name
    for label in labels:
        kind = kinds[label]
        if isinstance(kind, str):
            found = kind
        else:
            found = f"{{{','.join(kind[:5])}}}"

        right = kind in ("NUMERIC", "REAL", "INTEGER", ["0", "1"])
        if not (right):
            raise InputError(
                where=f"{name}, attribute {label!r}",
                found=found,
                expected="a label {0,1} or numeric",
            )

    for at in np.flatnonzero(
        is_outside(matrix.data, file.options.value_range)
    ).tolist():
        row = int(np.searchsorted(matrix.indptr, at, side="right"))
        where = f"{name}, data row {row}, attribute {labels[matrix.indices[at]]!r}"
        raise_bad_score(where, float(matrix.data[at]))

    return matrix
