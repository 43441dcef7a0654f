"""The base models' predictions: made in pieces on all cores, each kept on disk as soon as it is there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..datasets import Dataset
from ..engines.progress import track
from . import cache
from .learners import LEARNERS
from .learners.base import BoolArray, Problem
from .settings import Settings
from .shuffles import Shuffle


class Piece(NamedTuple):
    """The part of all predictions that one file of the cache holds."""

    repeat: int
    models: tuple[int, ...]
    labels: range

    def shuffles(self, seed: int) -> list[Shuffle]:
        """Return the shuffles of the piece's models."""
        return [Shuffle(seed, self.repeat, model) for model in self.models]


class Job(NamedTuple):
    """Pieces that one process makes together, because they share work."""

    pieces: tuple[Piece, ...]
    paths: tuple[Path, ...]
    settings: Settings
    data: Dataset

    def __call__(self) -> None:
        """Make the pieces and write each to its file."""
        from threadpoolctl import threadpool_limits

        labels = self.pieces[0].labels
        truth = self.data.labels[:, labels.start : labels.stop].toarray()
        shuffles = [shuffle for piece in self.pieces for shuffle in piece.shuffles(self.settings.seed)]
        problem = Problem(self.data.features, truth, shuffles, self.settings.folds, labels.start)
        with threadpool_limits(1):  # one core a process: more threads than cores are slower by far
            made = iter(self.settings.how.predict(problem))
        for piece, path in zip(self.pieces, self.paths, strict=True):
            cache.write(path, np.stack([next(made) for _ in piece.models]))


def base_predictions(
    data: Dataset, settings: Settings, folder: Path, jobs: int = -1, say: Callable[[str], None] = lambda _: None
) -> Iterator[BoolArray]:
    """Return for each repeat, one at a time, the out-of-fold predictions (m, n, l) of its base models.

    What is in the cache is taken from there; the rest is made first, on all cores. A process that is killed loses at
    most the pieces that were being made.

    Parameters
    ----------
    data, settings
        What is predicted, and how.
    folder
        The cache.
    jobs
        How many processes; -1: one a core.
    say
        Is told of damaged files of the cache, which are made anew.

    Examples
    --------
    >>> import tempfile
    >>> from scipy import sparse
    >>> data = Dataset("toy", sparse.csr_array(np.eye(6)), sparse.csr_array(np.eye(6, 2, dtype=bool)), (), ())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [made.shape for made in base_predictions(data, Settings(repeats=2, models=3, folds=2), Path(folder), 1)]
    [(3, 6, 2), (3, 6, 2)]
    """
    pieces = _pieces(data, settings)
    digest = _digest(data)
    paths = {piece: folder / data.name / settings.learner / f"{_key(digest, settings, piece)}.npz" for piece in pieces}
    missing = [piece for piece in pieces if not _is_good(paths[piece], say)]
    work = [
        Job(group, tuple(paths[piece] for piece in group), settings, data)
        for group in _groups(missing, settings.how.repeats_together)
    ]
    for _ in track(_run(work, jobs), len(work), f"{data.name}: base models"):
        pass
    return (_whole(repeat, paths, data, settings) for repeat in range(settings.repeats))


def _whole(repeat: int, paths: Mapping[Piece, Path], data: Dataset, settings: Settings) -> BoolArray:
    """Put one repeat's pieces together."""
    whole = np.empty((settings.models, *data.labels.shape), dtype=np.bool_)
    for piece, path in paths.items():
        if piece.repeat == repeat:
            labels = slice(piece.labels.start, piece.labels.stop)
            whole[piece.models[0] : piece.models[-1] + 1, :, labels] = cache.read(path)
    return whole


def _pieces(data: Dataset, settings: Settings) -> list[Piece]:
    learner, l = settings.how, data.labels.shape[1]
    step = learner.labels_at_once or l
    chunks = [range(start, min(start + step, l)) for start in range(0, l, step)]
    every = range(settings.models)
    models = [tuple(every)] if learner.repeats_together else [(model,) for model in every]
    return [Piece(repeat, some, labels) for repeat in range(settings.repeats) for some in models for labels in chunks]


def _groups(pieces: Sequence[Piece], repeats_together: bool) -> list[tuple[Piece, ...]]:
    if not repeats_together:
        return [(piece,) for piece in pieces]
    by_labels: dict[range, list[Piece]] = {}
    for piece in pieces:
        by_labels.setdefault(piece.labels, []).append(piece)
    return [tuple(group) for group in by_labels.values()]


def _is_good(path: Path, say: Callable[[str], None]) -> bool:
    try:
        return cache.read(path) is not None
    except cache.DamagedError:
        say(f"{path}: found a damaged file of the cache; it is made anew")
        cache.discard(path)
        return False


def _run(work: Sequence[Job], jobs: int) -> Iterator[None]:
    if jobs == 1 or len(work) < 2:
        return (job() for job in work)
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    made: Iterator[None] = parallel(delayed(job)() for job in work)
    return made


def _key(digest: str, settings: Settings, piece: Piece) -> str:
    """Name a piece by all that decides its content."""
    import sklearn

    return cache.key(
        {
            "data": digest,
            "learner": [settings.learner, LEARNERS[settings.learner].version],
            "scikit-learn": sklearn.__version__,
            "folds": settings.folds,
            "seed": settings.seed,
            "repeat": piece.repeat,
            "models": piece.models,
            "labels": [piece.labels.start, piece.labels.stop],
        }
    )


def _digest(data: Dataset) -> str:
    """Hash what is in a data set, not what it is called."""
    digest = hashlib.sha256()
    for matrix in (data.features, data.labels):
        digest.update(repr(matrix.shape).encode())
        parts: tuple[NDArray[np.generic], ...] = (
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data,
        )
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
