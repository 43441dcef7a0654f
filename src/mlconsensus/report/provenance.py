"""How a report was made: command, method, versions and inputs.

It does not differ from run to run.
"""

import hashlib
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import __version__
from ..io.files import AnyPath
from ..linalg.block_sums import dense
from ..predictions import Predictions

if TYPE_CHECKING:
    from ..consensus import Consensus


_MOST_PARTS = 20  # files of a folder that are listed one by one


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file, or data in memory, and what it held."""

    name: str
    sha256: str
    size: int | None  # in bytes; None for data in memory


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a report comes from."""

    command: str  # empty if it was made in Python
    method: str
    reason: str
    reason_codes: tuple[str, ...]
    parameters: dict[str, str]
    versions: dict[str, str]
    inputs: tuple[Input, ...]


def summarize_origin(
    consensus: "Consensus", command: str = "", inputs: tuple[Input, ...] = ()
) -> Origin:
    """Describe how a consensus was made; without `inputs`, predictions are hashed.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> found = summarize_origin(mlc.combine([[[1, 0]]], method="mlcm-r"))
    >>> found.method, found.parameters["alpha"]
    ('mlcm_r', '2.0')
    """
    parameters = {
        name: repr(value)
        for name, value in sorted(consensus.combiner.get_params().items())
    }
    versions = {"mlconsensus": __version__, "Python": platform.python_version()}
    versions |= {name: version(name.lower()) for name in ("NumPy", "SciPy")}
    inputs = inputs or (hash_predictions(consensus.predictions),)
    return Origin(
        command=command,
        method=consensus.method,
        reason=consensus.reason,
        reason_codes=consensus.method_reason.codes,
        parameters=parameters,
        versions=versions,
        inputs=inputs,
    )


def hash_predictions(predictions: Predictions, name: str = "predictions") -> Input:
    """Hash names and scores; equal dense and sparse predictions have the same hash.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> one = hash_predictions(mlc.Predictions(np.eye(2)[None]))
    >>> one == hash_predictions(mlc.Predictions([np.eye(2, dtype=bool)]))
    True
    """
    names = (predictions.models, predictions.labels, predictions.clusters)
    digest = hashlib.sha256(repr(names).encode("utf-8", "surrogatepass"))
    for block in predictions.blocks():
        digest.update(
            repr([str(name) for name in block.instances.tolist()]).encode(
                "utf-8", "surrogatepass"
            )
        )
        digest.update(np.ascontiguousarray(block.members, dtype="<i8").data)
        for values, spoken in block.cells():
            # One NaN of many, and one zero of two.
            cells = np.where(
                True if spoken is None else spoken, dense(values) + 0.0, np.nan
            )
            digest.update(np.ascontiguousarray(cells, dtype="<f8").data)

    return Input(name=name, sha256=digest.hexdigest(), size=None)


def hash_files(files: Iterable[AnyPath], predictions: Predictions) -> tuple[Input, ...]:
    """Hash files and the files in folders.

    Parameters
    ----------
    files : iterable of path-like
        Files and folders. For ``-``, standard input, the predictions are hashed.
    predictions : Predictions
        What was read from the files.

    Returns
    -------
    tuple of Input
        One for each file; one for a folder of many files.
    """
    inputs = []
    for path in map(Path, files):
        if str(path) == "-":
            name = "the panel, with standard input"
            inputs.append(hash_predictions(predictions, name))
        elif path.is_dir():
            inputs += _hash_folder(path)
        else:
            inputs.append(_hash_file(path, path.parent))

    return tuple(inputs)


def _hash_folder(folder: Path) -> list[Input]:
    """Hash the files of a folder; if there are many, hash the list of their hashes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    inputs = [_hash_file(path, folder.parent) for path in paths]
    if len(inputs) <= _MOST_PARTS:
        return inputs

    digest = hashlib.sha256(repr(inputs).encode("utf-8", "surrogatepass"))
    total = Input(
        name=f"{folder.name}/, {len(inputs):,} files",
        sha256=digest.hexdigest(),
        size=sum(part.size or 0 for part in inputs),
    )
    return [total]


def _hash_file(path: Path, folder: Path) -> Input:
    """Hash one file; its name is relative to a folder."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")

    return Input(
        name=path.relative_to(folder).as_posix(),
        sha256=digest.hexdigest(),
        size=path.stat().st_size,
    )
