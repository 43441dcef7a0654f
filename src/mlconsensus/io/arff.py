"""ARFF as Mulan and MEKA write it, dense or sparse.

Which attributes are labels says a Mulan XML file beside it (same name, ``.xml``), or else MEKA's option ``-C k`` in the
relation's name: the first k attributes, or the last if k is negative. Without an attribute ``instance`` of text,
instances have no names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import polars as pl
from scipy import sparse

from ..errors import InputError, nearest
from ..panel.alignment import as_names
from ..panel.model_tables import ModelTable
from . import frames, scores
from .arff_text import Arff, parse, quoted
from .files import AnyPath, Source, first_line, read_bytes
from .formats import Layout, source_of
from .statements import compact

_OPTION = re.compile(r"-C\s+(-?\d+)")
_ID = "instance"


class LabelledData(NamedTuple):
    """A data set: what is known of instances, and their labels."""

    features: Any  # csr_array (n, d); a nominal value is its position in the declaration
    labels: Any  # csr_array (n, l) of 0 and 1
    feature_names: list[str]
    label_names: list[str]


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
    source = source_of(path)
    content = parse(source.read(), source.name)
    labels = _labels(content, source)
    chosen = set(labels)
    features = [at for at, attribute in enumerate(content.attributes) if at not in chosen and not attribute.is_text]
    return LabelledData(
        content.values[:, features],
        _scores(content, labels, source.name),
        [content.attributes[at].name for at in features],
        [content.attributes[at].name for at in labels],
    )


def read(source: Source) -> list[ModelTable]:
    r"""Read the labels of an ARFF file as one model's scores.

    Examples
    --------
    >>> text = b"@relation 'r: -C 2'\n@attribute x {0,1}\n@attribute y numeric\n@data\n1,0.5\n"
    >>> read(Source("a.arff", "a", lambda: text))[0].scores
    array([[1. , 0.5]])
    """
    content = parse(source.read(), source.name)
    labels = _labels(content, source)
    matrix = _scores(content, labels, source.name)
    ids = next((texts for at, texts in content.texts.items() if content.attributes[at].name == _ID), None)
    instances = None if ids is None else as_names(ids, f"{source.name}, attribute {_ID!r}")
    names = as_names([content.attributes[at].name for at in labels], f"{source.name}, labels")
    return [ModelTable(source.model, compact(matrix), instances, names)]


def write(file: IO[bytes], table: ModelTable, layout: Layout) -> None:
    r"""Write one table with MEKA's option, instances as an attribute of text; sparse scores as sparse rows.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write(file, ModelTable("a", np.array([[True, False]]), ["007"], ["x", "y"]), "wide")
    >>> print(file.getvalue().decode().replace("\n\n", "\n"), end="")
    @relation 'a: -C -2'
    @attribute instance string
    @attribute 'x' {0,1}
    @attribute 'y' {0,1}
    @data
    '007',1,0
    """
    instances, labels = ([str(name) for name in names] for names in frames.named(table))
    kind = "numeric" if table.scores.dtype.kind == "f" else "{0,1}"
    relation = quoted(f"{table.model}: -C -{len(labels)}")
    head = [f"@relation {relation}", "", f"@attribute {_ID} string"]
    head += [f"@attribute {quoted(label)} {kind}" for label in labels] + ["", "@data", ""]
    file.write("\n".join(head).encode())
    plain = table._replace(instances=[quoted(name) for name in instances])
    if sparse.issparse(table.scores):
        _write_sparse(file, plain)
        return
    for block in frames.blocks(plain, "wide"):
        block.with_columns(pl.col(pl.Boolean).cast(pl.UInt8)).write_csv(
            file, include_header=False, quote_style="never", null_value="?"
        )


def _write_sparse(file: IO[bytes], table: ModelTable) -> None:
    matrix = table.scores if table.scores.dtype.kind == "f" else table.scores.astype(np.uint8)
    names: Any = table.instances
    for row, name in enumerate(names):
        at = slice(*matrix.indptr[row : row + 2])
        entries = zip(matrix.indices[at].tolist(), matrix.data[at].tolist(), strict=True)
        cells = "".join(f",{column + 1} {'?' if value != value else value}" for column, value in entries)
        file.write(f"{{0 {name}{cells}}}\n".encode())


def _labels(content: Arff, source: Source) -> list[int]:
    """Return the positions of the attributes that are labels."""
    beside = None if source.path is None else source.path.with_name(f"{source.model}.xml")
    if beside is not None and beside.is_file():
        return _listed(content, beside)
    option = _OPTION.search(content.relation)
    if option is None:
        lists = "" if beside is None else f"{beside.name} beside it or "
        raise InputError(f"{source.name}: found no list of labels, expected {lists}the option -C in the @relation line")
    count, width = int(option[1]), len(content.attributes)
    if not 0 < abs(count) <= width:
        raise InputError(f"{source.name}: found the option -C {count}, expected 1 to {width}, as there are attributes")
    labels = range(count) if count > 0 else range(width + count, width)
    # An attribute of text is never a label.
    return [at for at in labels if not content.attributes[at].is_text]


def _listed(content: Arff, path: Path) -> list[int]:
    """Return the positions, in the order of the attributes, of the labels in a Mulan XML file, nested or not."""
    try:
        root = ElementTree.fromstring(read_bytes(path))
    except ElementTree.ParseError as fault:
        raise InputError(f"{path}: found broken XML ({first_line(fault)}), expected Mulan's list of labels") from None
    names = [label.get("name", "") for label in root.iter() if label.tag.rpartition("}")[2] == "label"]
    if not names:
        raise InputError(f"{path}: found no label element, expected Mulan's list of labels")
    positions = {attribute.name: at for at, attribute in enumerate(content.attributes)}
    for name in names:
        if name not in positions:
            raise InputError(
                f"{path}: found the label {name!r}, expected an attribute's name{nearest(name, positions)}"
            )
    as_names(names, f"{path}, labels")
    return sorted(positions[name] for name in names)


def _scores(content: Arff, labels: list[int], name: str) -> Any:
    for at in labels:
        attribute = content.attributes[at]
        if attribute.is_text or (attribute.levels is not None and attribute.levels != ["0", "1"]):
            found = "text" if attribute.levels is None else "{" + ",".join(attribute.levels[:5]) + "}"
            raise InputError(
                f"{name}, attribute {attribute.name!r}: found {found}, expected a label {{0,1}} or numeric"
            )
    matrix = content.values[:, labels]
    outside = np.flatnonzero(scores.outside(matrix.data))
    if len(outside):
        at = int(outside[0])
        row = int(np.searchsorted(matrix.indptr, at, side="right"))
        label = content.attributes[labels[matrix.indices[at]]].name
        scores.raise_bad_score(f"{name}, data row {row}, attribute {label!r}", float(matrix.data[at]))
    return matrix
