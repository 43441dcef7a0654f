"""Settings of an experiment, and the predictions of its base models.

The predictions of each base model are stored on disk as soon as they are computed.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from ..datasets import Dataset
from ..errors import InputError, one_of
from ..execution.progress import track
from ..io.files import atomic_write, writable
from ..predictions import BoolArray
from ..predictions.validation import whole
from .learners import LEARNERS, Learner, Shuffle, out_of_fold


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The protocol's numbers; those of the paper by default.

    Examples
    --------
    >>> Settings(learner="trees").checked()
    Settings(learner='trees', repeats=10, models=10, folds=10, seed=0, full=False)
    >>> Settings(learner="forest").checked()
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: learner: found 'forest', expected one of svm, ...
    """

    learner: str = "svm"
    repeats: int = 10
    models: int = 0  # of a repeat; 0: ten, or as many as the panel has
    folds: int = 0  # 0: ten, or as many as the panel asks for
    seed: int = 0
    full: bool = False  # all instances, not as many as the paper has

    def checked(self) -> Self:
        """Return these settings with what they leave open filled in, or refuse them."""
        one_of(self.learner, LEARNERS, "learner")
        n_panel_models = len(self.how.panel)
        if n_panel_models and self.models not in (0, n_panel_models):
            raise InputError(
                where="models",
                found=self.models,
                expected=f"the {n_panel_models} that {self.learner} has",
            )

        whole(self.repeats, "repeats", 1)
        whole(self.seed, "seed", 0)
        models = whole(self.models or n_panel_models or 10, "models", 1)
        return replace(
            self, models=models, folds=whole(self.folds or self.how.folds, "folds", 2)
        )

    @property
    def how(self) -> Learner:
        """The learner that the settings name."""
        return LEARNERS[self.learner]


def base_predictions(
    data: Dataset,
    settings: Settings,
    folder: Path,
    jobs: int = -1,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[BoolArray]:
    """Iterate over repeats: the out-of-fold predictions (m, n, l) of its base models.

    Predictions in the cache are read; all others are computed first, on all cores. A
    process that is killed loses at most the models that it was fitting.

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
    >>> data = Dataset(
    ...     name="toy",
    ...     features=sparse.csr_array(np.eye(6)),
    ...     labels=sparse.csr_array(np.eye(6, 2, dtype=bool)),
    ...     feature_names=(),
    ...     label_names=(),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     settings = Settings(repeats=2, models=3, folds=2)
    ...     repeats = base_predictions(data, settings, Path(folder), jobs=1)
    ...     [predictions.shape for predictions in repeats]
    [(3, 6, 2), (3, 6, 2)]
    """
    from joblib import Parallel, delayed

    inside = folder / data.name / settings.learner
    digest = _digest(data)
    paths = {
        Shuffle(settings.seed, repeat, model): inside
        / f"{_key(digest, settings, repeat, model)}.npz"
        for repeat in range(settings.repeats)
        for model in range(settings.models)
    }
    missing = [
        shuffle
        for shuffle, path in paths.items()
        if not _is_good(path, data.labels.shape, say)
    ]
    parallel = Parallel(
        n_jobs=jobs if len(missing) > 1 else 1,
        return_as="generator_unordered",
        batch_size=1,
    )
    made = parallel(
        delayed(_make)(data, settings, shuffle, paths[shuffle]) for shuffle in missing
    )
    for _ in track(made, len(missing), f"{data.name}: base models"):
        pass

    return (
        np.stack(
            [_read(path) for shuffle, path in paths.items() if shuffle.repeat == repeat]
        )
        for repeat in range(settings.repeats)
    )


def _make(data: Dataset, settings: Settings, shuffle: Shuffle, path: Path) -> None:
    """Make one base model's predictions; their file appears whole or not at all."""
    model = settings.how.predict_fold
    predicted = out_of_fold(
        model, data.features, data.labels.toarray(), shuffle, settings.folds
    )
    with writable(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)

    with atomic_write(path, force=True) as file:
        np.savez_compressed(file, predictions=predicted)


def _read(path: Path) -> BoolArray:
    """Read one base model's predictions (n, l); NumPy checks the checksum."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return np.asarray(archive["predictions"])


def _is_good(path: Path, shape: tuple[int, ...], say: Callable[[str], None]) -> bool:
    """Check whether a file of the cache can be read and has the right shape."""
    with suppress(Exception):  # readers of damaged archives raise errors of any kind
        predictions = _read(path)
        if predictions.shape == shape and predictions.dtype == np.bool_:
            return True

    if path.exists():
        say(f"{path}: found a damaged file of the cache; it is made anew")
    return False


def _key(digest: str, settings: Settings, repeat: int, model: int) -> str:
    """Name a base model by all that decides its predictions."""
    import sklearn

    how = [
        settings.learner,
        settings.how.version,
        sklearn.__version__,
        settings.folds,
        settings.seed,
    ]
    return hashlib.sha256(
        json.dumps([digest, *how, repeat, model]).encode()
    ).hexdigest()[:32]


def _digest(data: Dataset) -> str:
    """Hash what is in a data set, not what it is called."""
    digest = hashlib.sha256()
    for matrix in (data.features, data.labels):
        digest.update(repr(matrix.shape).encode())
        for part in (matrix.indptr, matrix.indices, matrix.data):
            digest.update(part.astype(np.float64).tobytes())

    return digest.hexdigest()
