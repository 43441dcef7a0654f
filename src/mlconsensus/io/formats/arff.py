"""ARFF as Mulan and MEKA write it, dense or sparse; liac-arff parses it.

A Mulan XML file with the same name and the suffix ``.xml`` lists the attributes that
are labels. If there is none, MEKA's option ``-C k`` in the name of the relation counts
them: the first k attributes, or the last if k is negative. Instances have names if
there is an attribute ``instance`` of text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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

# The declared type of each attribute, such as "STRING" or "NUMERIC", or its values if
# it is nominal.
_Types = Mapping[str, str | list[str]]

_INSTANCE_ATTRIBUTE = "instance"
_MEKA_OPTION = re.compile(r"-C\s+(-?\d{1,9})\b")

# Data whose first row, after empty lines and comments, is in braces.
_SPARSE_DATA = re.compile(
    r"^[ \t]*@data[ \t\r]*\n(?:[ \t]*(?:%.*)?\n)*[ \t]*\{", re.I | re.M
)


@dataclass(frozen=True, kw_only=True)
class ArffData:
    """The content of an ARFF file.

    Parameters
    ----------
    features : csr_array of shape (n, d)
        A nominal value is its position in the declaration.
    labels : csr_array of shape (n, l)
        Scores or labels.
    feature_names : list of str, length d
        Names of the attributes that are features.
    label_names : list of str, length l
        Names of the attributes that are labels.
    instance_names : list of str, length n, default=None
        ``None`` if the file does not name its instances.
    """

    features: Matrix
    labels: Matrix
    feature_names: list[str]
    label_names: list[str]
    instance_names: list[str] | None = None


def load(path: AnyPath) -> ArffData:
    r"""Load a data set from an ARFF file and the XML file next to it.

    Parameters
    ----------
    path : str or path-like
        The ARFF file.

    Returns
    -------
    ArffData

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "toy.arff"
    >>> declarations = "@relation 'toy: -C -1'\n@attribute a numeric\n"
    >>> _ = path.write_text(f"{declarations}@attribute y {{0,1}}\n@data\n0.5,1\n")
    >>> data = load(path)
    >>> data.features.toarray(), data.label_names
    (array([[0.5]]), ['y'])
    """
    file = make_input_file(path)
    with reader_errors(file.name, "ARFF"):
        return parse(file)


def read(file: InputFile, collect: object = None) -> list[ScoreTable]:
    r"""Read the labels of an ARFF file as one model's scores.

    Parameters
    ----------
    file : InputFile
        The file to read.
    collect : object
        Ignored, present because all formats are called alike.

    Returns
    -------
    list with one ScoreTable

    Examples
    --------
    >>> declarations = "@relation 'r: -C 2'\n@attribute x {0,1}\n@attribute y numeric\n"
    >>> text = f"{declarations}@data\n1,0.5\n".encode()
    >>> read(InputFile(name="a.arff", model="a", read=lambda: text))[0].scores
    array([[1. , 0.5]])
    """
    data = parse(file)
    instances = None
    if data.instance_names is not None:
        where = f"{file.name}, attribute {_INSTANCE_ATTRIBUTE!r}"
        instances = as_names(data.instance_names, where)

    table = ScoreTable(
        model=file.model,
        scores=compact_matrix(data.labels),
        instances=instances,
        labels=as_names(data.label_names, f"{file.name}, labels"),
        file=file.name,
    )
    return [table]


def parse(file: InputFile) -> ArffData:
    """Parse an ARFF file and separate its labels from its features.

    Parameters
    ----------
    file : InputFile
        The file to read.

    Returns
    -------
    ArffData
    """
    relation, types, rows = _parse_text(file)
    position = {name: index for index, name in enumerate(types)}

    instance_names = None
    if types.get(_INSTANCE_ATTRIBUTE) == "STRING":
        instance_column = position[_INSTANCE_ATTRIBUTE]
        instance_names = [str(row.get(instance_column) or "") for row in rows]

    # Attributes of text are neither labels nor features.
    label_names = _find_labels(relation, types, file)
    label_set = set(label_names)
    feature_names = []
    for name, declared_type in types.items():
        if declared_type != "STRING" and name not in label_set:
            feature_names.append(name)

    # Zeros of sparse rows are removed, so that they look like those of dense rows.
    matrix = _make_matrix(rows, types)
    matrix.eliminate_zeros()
    features = matrix[:, [position[name] for name in feature_names]]
    labels = matrix[:, [position[name] for name in label_names]]

    _check_label_types(label_names, types, file.name)
    _check_label_scores(labels, label_names, file)
    return ArffData(
        features=features,
        labels=labels,
        feature_names=feature_names,
        label_names=label_names,
        instance_names=instance_names,
    )


def _parse_text(
    file: InputFile,
) -> tuple[str, _Types, list[dict[int, float | str | None]]]:
    """Return the relation, the types of the attributes, and the cells of each row."""
    import arff

    text = decode_text(file.read(), file.name)
    is_sparse = _SPARSE_DATA.search(text) is not None
    return_type = arff.DENSE
    if is_sparse:
        return_type = arff.LOD

    try:
        content = arff.loads(text, encode_nominal=True, return_type=return_type)
    except arff.ArffException as error:
        reason = get_first_line(error)
        raise InputError(
            where=f"{file.name}, line {error.line}",
            found=f"broken data ({reason})",
            expected="ARFF",
        ) from None

    rows = content["data"]
    if not rows:
        raise InputError(
            where=file.name, found="no row after @data", expected="at least one"
        )
    if not is_sparse:
        rows = [dict(enumerate(row)) for row in rows]

    return content["relation"], dict(content["attributes"]), rows


def _make_matrix(
    rows: Sequence[Mapping[int, float | str | None]], types: _Types
) -> Matrix:
    """Return the numbers of all attributes, shape (n, attributes), text left out."""
    numeric_columns = set()
    for column, declared_type in enumerate(types.values()):
        if declared_type != "STRING":
            numeric_columns.add(column)

    row_positions = []
    columns = []
    values = []
    for row_position, row in enumerate(rows):
        for column, value in row.items():
            if column in numeric_columns:
                row_positions.append(row_position)
                columns.append(column)
                values.append(value)

    positions = (np.array(row_positions, np.int64), np.array(columns, np.int64))
    scores = np.array(values, np.float64)  # None becomes NaN
    return sparse.csr_array((scores, positions), shape=(len(rows), len(types)))


def _find_labels(relation: str, types: _Types, file: InputFile) -> list[str]:
    """Return the names of the attributes that are labels."""
    xml_path = None
    alternative = ""
    if file.path is not None:
        xml_path = file.path.with_name(f"{file.model}.xml")
        alternative = f"{xml_path.name} in the same folder or "
        if xml_path.is_file():
            return _read_mulan_labels(types, xml_path)

    option = _MEKA_OPTION.search(relation)
    if option is None:
        raise InputError(
            where=file.name,
            found="no list of labels",
            expected=f"{alternative}the option -C in the @relation line",
        )

    count = int(option[1])
    names = list(types)
    if not 0 < abs(count) <= len(names):
        raise InputError(
            where=file.name,
            found=f"the option -C {count}",
            expected=f"1 to {len(names)}, as there are attributes",
        )

    selected = names[:count]
    if count < 0:
        selected = names[count:]

    return [name for name in selected if types[name] != "STRING"]


def _read_mulan_labels(types: _Types, path: Path) -> list[str]:
    """Return the labels of a Mulan XML file, in the order of the attributes."""
    with reader_errors(str(path), "XML"):
        root = ElementTree.fromstring(read_bytes(path))

    # Labels may be nested, and tags may begin with a namespace.
    names = []
    for element in root.iter():
        if element.tag.rpartition("}")[2] == "label":
            names.append(element.get("name", ""))

    if not names:
        raise InputError(
            where=str(path), found="no label element", expected="Mulan's list of labels"
        )

    for name in names:
        if name not in types:
            raise InputError(
                where=str(path),
                found=f"the label {name!r}",
                expected=f"an attribute's name{nearest(name, types)}",
            )

    as_names(names, f"{path}, labels")
    label_set = set(names)
    return [name for name in types if name in label_set]


def _check_label_types(labels: list[str], types: _Types, name: str) -> None:
    """Check that labels are declared as numeric or as 0 and 1."""
    for label in labels:
        declared_type = types[label]
        if declared_type in ("NUMERIC", "REAL", "INTEGER", ["0", "1"]):
            continue

        if isinstance(declared_type, str):
            description = declared_type
        else:
            description = f"{{{','.join(declared_type[:5])}}}"

        raise InputError(
            where=f"{name}, attribute {label!r}",
            found=description,
            expected="a label {0,1} or numeric",
        )


def _check_label_scores(matrix: Matrix, labels: list[str], file: InputFile) -> None:
    """Check that the scores of labels are in their range."""
    bad_cells = np.flatnonzero(is_outside(matrix.data, file.options.value_range))
    if len(bad_cells) == 0:
        return

    first = int(bad_cells[0])
    row = int(np.searchsorted(matrix.indptr, first, side="right"))  # counted from 1
    label = labels[matrix.indices[first]]
    where = f"{file.name}, data row {row}, attribute {label!r}"
    raise_bad_score(where, float(matrix.data[first]))
