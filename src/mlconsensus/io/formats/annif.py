"""Subjects as Annif suggests them: for each document a file of lines ``<uri>``, label and score with tabs between.

A folder of such files is what one project says about all its documents. What Annif
takes for the truth is read too: files without scores, or of labels alone.
"""

from typing import Any

import polars as pl

from ...errors import InputError
from ..encoding import decoded
from ..files import InputFile, read_bytes
from ..options import ReadOptions
from .jsonl import frame_of
from .registry import Keep, NamedFrame, subject_files


def read(file: InputFile, keep: Keep = pl.LazyFrame.collect) -> NamedFrame:
    r"""Read the subjects of one document, called as the file is, or of all documents in a folder, as a long frame.

    Examples
    --------
    >>> lines = b"<http://example.org/7>\tlaw\t0.9\n<http://example.org/8>\twar\t0.25\n"
    >>> read(InputFile("d1.annif", "d1", lambda: lines)).rows.rows()
    [('d1', 'law', 0.9), ('d1', 'war', 0.25)]
    """
    if file.path is not None and file.path.is_dir():
        paths = subject_files(file.path)
    else:
        paths = []

    found = [(path.stem, read_bytes(path), str(path)) for path in paths] or [
        (file.model, file.read(), file.name)
    ]
    return frame_of(
        enumerate((_document(*one, file.rules) for one in found), 1), "document", file
    )


def _document(name: str, data: bytes, where: str, rules: ReadOptions) -> dict[str, Any]:
    """Return what a file says: its subjects' labels, or their URIs where the rules want these or there is no label."""
    labels: dict[str, float] = {}
    for number, line in enumerate(
        decoded(data, where).strip().splitlines() if data.strip() else (), 1
    ):
        parts = [part.strip() for part in line.split("\t")]
        if line.startswith("<"):
            uri = parts.pop(0)[1:-1]
        else:
            uri = ""

        if uri and (rules.columns.get("label") == "uri" or not parts):
            label = uri
        else:
            label = parts[0]

        try:
            labels[label] = max(
                float(parts[-1]) if len(parts) > 1 else 1.0, labels.get(label, 0.0)
            )
        except ValueError:
            raise InputError(
                f"{where}, line {number}: found {parts[-1]!r}, expected a score after a tab"
            ) from None

    return {"instance": name, "labels": labels}
