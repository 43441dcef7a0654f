"""Where all randomness of an experiment comes from: the seed, the repeat and the model, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.intp]


class Shuffle(NamedTuple):
    """The randomness of one base model.

    Its streams are numpy's ``SeedSequence`` of (seed, repeat, model, purpose), so that no model's predictions depend on
    which others are made, where, or in which order.

    Examples
    --------
    >>> [fold.tolist() for fold in Shuffle(seed=0, repeat=0, model=0).folds(5, 2)]
    [[2, 4, 3], [0, 1]]
    """

    seed: int
    repeat: int
    model: int

    def folds(self, n: int, k: int) -> list[IntArray]:
        """Shuffle `n` instances and cut them into `k` parts of equal size, but for one instance."""
        return np.array_split(self._generator(0).permutation(n), k)

    def generator(self, fold: int, label: int = 0) -> np.random.Generator:
        """Return the randomness that the learner may use for one fold, and one label where it learns them singly."""
        return self._generator(1, fold, label)

    def of_model(self) -> np.random.Generator:
        """Return the randomness that all folds of the model have in common."""
        return self._generator(2)

    def of_repeat(self) -> np.random.Generator:
        """Return the randomness that all models of the repeat have in common."""
        return self._replace(model=0)._generator(3)

    def _generator(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self.seed, self.repeat, self.model, *purpose)))
