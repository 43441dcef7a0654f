"""Settings of an experiment, and the predictions of its base models.

The predictions of each base model are stored on disk as soon as they are computed.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
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
    data : Dataset
        Features and labels.
    settings : Settings
        Numbers of repeats, models and folds, and the learner.
    folder : Path
        The cache.
    jobs : int, default=-1
        Number of processes; -1 for one per core.
    say : callable, default=no output
        Called with a message for each damaged file of the cache.

    Yields
    ------
    ndarray of shape (m, n, l) of bool

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

    # The file of each base model
    subfolder = folder / data.name / settings.learner
    digest = _digest(data)
    paths = {}
    for repeat, model in product(range(settings.repeats), range(settings.models)):
        key = _key(digest, settings, repeat, model)
        paths[Shuffle(settings.seed, repeat, model)] = subfolder / f"{key}.npz"

    # Compute those that are not in the cache
    missing = []
    for shuffle, path in paths.items():
        if not _is_good(path, data.labels.shape, say):
            missing.append(shuffle)

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

    return map(partial(_read_repeat, paths), range(settings.repeats))


def _read_repeat(paths: dict[Shuffle, Path], repeat: int) -> BoolArray:
    """Read the predictions (m, n, l) of all models of one repeat."""
    models = []
    for shuffle, path in paths.items():
        if shuffle.repeat == repeat:
            models.append(_read(path))

    return np.stack(models)


def _make(data: Dataset, settings: Settings, shuffle: Shuffle, path: Path) -> None:
    """Compute and store the predictions of one base model."""
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
        say(f"{path}: found a damaged file of the cache; it is computed again")
    return False


def _key(digest: str, settings: Settings, repeat: int, model: int) -> str:
    """Return a hash of everything that determines a base model's predictions."""
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
    """Return a hash of the content of a data set, without its name."""
    digest = hashlib.sha256()
    for matrix in (data.features, data.labels):
        digest.update(repr(matrix.shape).encode())
        for part in (matrix.indptr, matrix.indices, matrix.data):
            digest.update(part.astype(np.float64).tobytes())

    return digest.hexdigest()
