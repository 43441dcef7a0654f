"""How a report was made: command, method, versions and inputs; nothing that differs from run to run."""

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import __version__
from ..io.files import AnyPath
from ..linalg.block_sums import dense
from ..predictions import Predictions

if TYPE_CHECKING:
    from ..consensus import Consensus


_MOST_PARTS = 20  # files of a folder that are listed one by one


class Input(NamedTuple):
    """A file, or data in memory, and what it held."""

    name: str
    sha256: str
    size: int | None  # in bytes; None for data in memory


class Origin(NamedTuple):
    """Where a report comes from."""

    command: str  # empty if it was made in Python
    method: str
    reason: str
    parameters: dict[str, str]
    versions: dict[str, str]
    inputs: tuple[Input, ...]


def summarize_origin(
    consensus: "Consensus", command: str = "", inputs: tuple[Input, ...] = ()
) -> Origin:
    """Say how a consensus was made; without `inputs`, its predictions are hashed.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> found = summarize_origin(mlc.combine([[[1, 0]]], method="mlcm-r"))
    >>> found.method, found.parameters["alpha"]
    ('MLCM-r', '2.0')
    """
    parameters = {
        name: repr(value)
        for name, value in sorted(consensus.combiner.get_params().items())
    }
    versions = {"mlconsensus": __version__, "Python": platform.python_version()}
    versions |= {name: version(name.lower()) for name in ("NumPy", "SciPy")}
    inputs = inputs or (hash_predictions(consensus.predictions),)
    return Origin(
        command, consensus.method, consensus.reason, parameters, versions, inputs
    )


def hash_predictions(predictions: Predictions, name: str = "predictions") -> Input:
    """Hash names and scores, silence included; dense and sparse panels that say the same have the same hash.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> one = hash_predictions(mlc.Predictions(np.eye(2)[None]))
    >>> one == hash_predictions(mlc.Predictions([np.eye(2, dtype=bool)]))
    True
    """
    names = (predictions.models, predictions.labels, predictions.clusters)
    found = hashlib.sha256(repr(names).encode("utf-8", "surrogatepass"))
    for block in predictions.blocks():
        found.update(
            repr([str(name) for name in block.instances.tolist()]).encode(
                "utf-8", "surrogatepass"
            )
        )
        found.update(np.ascontiguousarray(block.members, dtype="<i8").data)
        for values, spoken in block.cells():
            # One NaN of many, and one zero of two.
            cells = np.where(
                True if spoken is None else spoken, dense(values) + 0.0, np.nan
            )
            found.update(np.ascontiguousarray(cells, dtype="<f8").data)

    return Input(name, found.hexdigest(), None)


def hash_files(files: Iterable[AnyPath], predictions: Predictions) -> tuple[Input, ...]:
    """Hash files, in folders too, of many the list of hashes; for standard input, which is gone, the predictions."""
    found = []
    for name in map(Path, files):
        if str(name) == "-":
            found.append(
                hash_predictions(predictions, "the panel, with standard input")
            )
            continue

        if name.is_dir():
            parts = sorted(part for part in name.rglob("*") if part.is_file())
        else:
            parts = [name]

        each = [
            Input(
                part.relative_to(name.parent).as_posix(),
                _hashed(part),
                part.stat().st_size,
            )
            for part in parts
        ]
        if len(each) > _MOST_PARTS:
            digest = hashlib.sha256(
                repr(each).encode("utf-8", "surrogatepass")
            ).hexdigest()
            each = [
                Input(
                    f"{name.name}/, {len(each):,} files",
                    digest,
                    sum(own.size or 0 for own in each),
                )
            ]

        found += each

    return tuple(found)


def _hashed(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
