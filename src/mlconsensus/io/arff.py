"""ARFF as Mulan and MEKA write it, dense or sparse; liac-arff parses it.

Which attributes are labels says a Mulan XML file beside it (same name, ``.xml``), or else MEKA's option ``-C k`` in the
relation's name: the first k attributes, or the last if k is negative. Without an attribute ``instance`` of text,
instances have no names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from ..errors import InputError, nearest
from ..panel.alignment import as_names
from ..panel.model_tables import ModelTable
from .columns import outside, raise_bad_score
from .files import AnyPath, InputFile, first_line, guarded, read_bytes
from .formats import input_file
from .stored import compact
from .text import decoded

_OPTION = re.compile(r"-C\s+(-?\d{1,9})\b")
_ID = "instance"
_SPARSE = re.compile(r"^[ \t]*@data[ \t\r]*\n(?:[ \t]*(?:%.*)?\n)*[ \t]*\{", re.I | re.M)  # what its first row is


class LabelledData(NamedTuple):
    """A data set: what is known of instances, and their labels."""

    features: Any  # csr_array (n, d); a nominal value is its position in the declaration
    labels: Any  # csr_array (n, l) of 0 and 1
    feature_names: list[str]
    label_names: list[str]


class _Content(NamedTuple):
    relation: str
    names: list[str]  # of attributes
    kinds: list[Any]  # "STRING", another name of a type, or the values of a nominal attribute
    values: Any  # csr_array (n, attributes): numbers, positions of nominal values, NaN where missing; no text
    ids: list[str] | None  # of instances


def load(path: AnyPath) -> LabelledData:
    r"""Load a data set from an ARFF file and the XML file beside it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "toy.arff"
    >>> _ = path.write_text("@relation 'toy: -C -1'\n@attribute a numeric\n@attribute y {0,1}\n@data\n0.5,1\n")
    >>> data = load(path)
    >>> data.features.toarray(), data.label_names
    (array([[0.5]]), ['y'])
    """
    file = input_file(path)
    with guarded(file.name, "ARFF"):
        content = _content(file)
    labels = _labels(content, file)
    features = [at for at in range(len(content.names)) if at not in set(labels) and content.kinds[at] != "STRING"]
    names = [[content.names[at] for at in chosen] for chosen in (features, labels)]
    return LabelledData(content.values[:, features], _scores(content, labels, file.name), *names)


def read(file: InputFile, keep: object = None) -> list[ModelTable]:
    r"""Read the labels of an ARFF file as one model's scores.

    Examples
    --------
    >>> text = b"@relation 'r: -C 2'\n@attribute x {0,1}\n@attribute y numeric\n@data\n1,0.5\n"
    >>> read(InputFile("a.arff", "a", lambda: text))[0].scores
    array([[1. , 0.5]])
    """
    content = _content(file)
    labels = _labels(content, file)
    matrix = compact(_scores(content, labels, file.name))
    instances = None if content.ids is None else as_names(content.ids, f"{file.name}, attribute {_ID!r}")
    names = as_names([content.names[at] for at in labels], f"{file.name}, labels")
    return [ModelTable(file.model, matrix, instances, names, file.name)]


def _content(file: InputFile) -> _Content:
    import arff

    text = decoded(file.read(), file.name)
    is_sparse = _SPARSE.search(text) is not None
    try:
        found = arff.loads(text, encode_nominal=True, return_type=arff.LOD if is_sparse else arff.DENSE)
    except arff.ArffException as fault:
        raise InputError(
            f"{file.name}, line {fault.line}: found broken data ({first_line(fault)}), expected ARFF"
        ) from None
    names, kinds = ([attribute[at] for attribute in found["attributes"]] for at in (0, 1))
    if not found["data"]:
        raise InputError(f"{file.name}: found no row after @data, expected at least one")
    rows = found["data"] if is_sparse else [dict(enumerate(row)) for row in found["data"]]
    ids = None
    if _ID in names and kinds[names.index(_ID)] == "STRING":
        ids = [row.get(names.index(_ID)) or "" for row in rows]
    entries = [(at, column, value) for at, row in enumerate(rows) for column, value in row.items()]
    numbers = [entry for entry in entries if kinds[entry[1]] != "STRING"]
    at, columns, values = zip(*numbers, strict=True) if numbers else ((), (), ())
    cells = np.array(values, dtype=np.float64), (np.array(at, np.int64), np.array(columns, np.int64))
    matrix = sparse.csr_array(cells, shape=(len(rows), len(names)))
    matrix.eliminate_zeros()
    return _Content(found["relation"], names, kinds, matrix, ids)


def _labels(content: _Content, file: InputFile) -> list[int]:
    """Return the positions of the attributes that are labels."""
    beside = None if file.path is None else file.path.with_name(f"{file.model}.xml")
    if beside is not None and beside.is_file():
        return _listed(content, beside)
    option = _OPTION.search(content.relation)
    if option is None:
        lists = "" if beside is None else f"{beside.name} beside it or "
        raise InputError(f"{file.name}: found no list of labels, expected {lists}the option -C in the @relation line")
    count, width = int(option[1]), len(content.names)
    if not 0 < abs(count) <= width:
        raise InputError(f"{file.name}: found the option -C {count}, expected 1 to {width}, as there are attributes")
    labels = range(count) if count > 0 else range(width + count, width)
    return [at for at in labels if content.kinds[at] != "STRING"]  # text is never a label


def _listed(content: _Content, path: Path) -> list[int]:
    """Return the positions, in the order of the attributes, of the labels in a Mulan XML file, nested or not."""
    with guarded(str(path), "XML"):
        root = ElementTree.fromstring(read_bytes(path))
    names = [label.get("name", "") for label in root.iter() if label.tag.rpartition("}")[2] == "label"]
    if not names:
        raise InputError(f"{path}: found no label element, expected Mulan's list of labels")
    positions = {name: at for at, name in enumerate(content.names)}
    for name in names:
        if name not in positions:
            raise InputError(
                f"{path}: found the label {name!r}, expected an attribute's name{nearest(name, positions)}"
            )
    as_names(names, f"{path}, labels")
    return sorted(positions[name] for name in names)


def _scores(content: _Content, labels: list[int], name: str) -> Any:
    for at in labels:
        if content.kinds[at] not in ("NUMERIC", "REAL", "INTEGER", ["0", "1"]):
            found = (
                content.kinds[at] if isinstance(content.kinds[at], str) else f"{{{','.join(content.kinds[at][:5])}}}"
            )
            raise InputError(
                f"{name}, attribute {content.names[at]!r}: found {found}, expected a label {{0,1}} or numeric"
            )
    matrix = content.values[:, labels]
    bad = np.flatnonzero(outside(matrix.data))
    if len(bad):
        at = int(bad[0])
        row = int(np.searchsorted(matrix.indptr, at, side="right"))
        label = content.names[labels[matrix.indices[at]]]
        raise_bad_score(f"{name}, data row {row}, attribute {label!r}", float(matrix.data[at]))
    return matrix
