"""Subjects as Annif suggests them.

A file holds the subjects of one document, one line for each: ``<uri>``, label and score
with tabs between them. A folder of such files holds the suggestions of one project for
all documents. Annif's files of the truth can be read, too: they have no scores, or only
labels.
"""

import polars as pl

from ...errors import InputError
from ..encoding import decode_text
from ..files import InputFile, read_bytes
from ..options import ReadOptions
from .jsonl import make_long_frame
from .registry import Collect, NamedFrame, list_subject_files


def read(file: InputFile, collect: Collect = pl.LazyFrame.collect) -> NamedFrame:
    r"""Read the subjects of one document, or of all documents in a folder.

    Parameters
    ----------
    file : InputFile
        A file, named as its document, or a folder of such files.
    collect : callable
        Ignored: the subjects are in memory.

    Returns
    -------
    NamedFrame
        A long table.

    Examples
    --------
    >>> line = b"<http://example.org/7>\tlaw\t0.9\n"
    >>> read(InputFile(name="d1.annif", model="d1", read=lambda: line)).rows.rows()
    [('d1', 'law', 0.9)]
    """
    documents = []
    if file.path is not None and file.path.is_dir():
        for path in list_subject_files(file.path):
            labels = _parse_subjects(read_bytes(path), str(path), file.options)
            documents.append({"instance": path.stem, "labels": labels})

    if not documents:
        labels = _parse_subjects(file.read(), file.name, file.options)
        documents.append({"instance": file.model, "labels": labels})

    return make_long_frame(enumerate(documents, 1), "document", file)


def _parse_subjects(data: bytes, where: str, options: ReadOptions) -> dict[str, float]:
    """Return the score of each subject, named by its label or by its URI."""
    if not data.strip():
        return {}

    prefers_uri = options.columns.get("label") == "uri"
    scores: dict[str, float] = {}
    for number, line in enumerate(decode_text(data, where).strip().splitlines(), 1):
        fields = [part.strip() for part in line.split("\t")]
        uri = ""
        if line.startswith("<"):
            uri = fields.pop(0)[1:-1]

        label = uri
        if not uri or (fields and not prefers_uri):
            label = fields[0]

        score = 1.0
        if len(fields) > 1:
            score = _parse_score(fields[-1], f"{where}, line {number}")

        scores[label] = max(score, scores.get(label, 0.0))

    return scores


def _parse_score(text: str, where: str) -> float:
    """Return the number in a text."""
    try:
        return float(text)
    except ValueError:
        raise InputError(
            where=where, found=repr(text), expected="a score after a tab"
        ) from None
