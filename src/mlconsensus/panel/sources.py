"""What engines walk: models and labels by name, and instances that come in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..parameters import Weights, model_weights
from .gold import Gold, gold_of

if TYPE_CHECKING:
    from .alignment import IntArray, Names
    from .predictions import Predictions
    from .scales import Scales

Steps = tuple[tuple[str, tuple[Any, ...]], ...]  # methods of `Predictions` and their arguments

# How many cells of all models one block of instances may hold: 128 MB as dense float64, 16 MB as bool.
_BLOCK_CELLS = 2**24


class Source(ABC):
    """Predictions that are somewhere: in memory, in files, on a cluster; `engines` walk them.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> isinstance(mlc.Predictions([[[1, 0]]]), Source)
    True
    """

    __slots__ = ()

    models: tuple[str, ...]
    labels: tuple[str, ...]
    instances: Names
    clusters: tuple[str, ...] = ()  # names of the clusters that instances are in, where there are clusterings

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, start: int, stop: int) -> Predictions:
        """Return the instances from one position to another."""

    @property
    def block_size(self) -> int:
        """How many instances `blocks` gives at a time unless told: what keeps a block small."""
        return max(1, _BLOCK_CELLS // (len(self.models) * len(self.labels)))

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Walk the instances, `size` at a time.

        Examples
        --------
        >>> import numpy as np
        >>> import mlconsensus as mlc
        >>> [len(block) for block in mlc.Predictions(np.zeros((3, 5, 2))).blocks(2)]
        [2, 2, 1]
        """
        size = self.block_size if size is None else size
        if size < 1:
            raise InputError(f"blocks: found size {size}, expected at least 1")
        return (self.read(start, min(len(self), start + size)) for start in range(0, len(self), size))

    @abstractmethod
    def select(self, models: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> Self:
        """Choose or reorder models and labels by name."""

    @abstractmethod
    def with_labels(self, labels: Sequence[str]) -> Self:
        """Give exactly these labels, in this order: nobody spoke of those that are lacking, others are refused."""

    @abstractmethod
    def weighted(self, weights: Weights) -> Self:
        """Let models count as a combiner's `weights` say, in place of what was said before."""

    @abstractmethod
    def with_gold(self, gold: Any) -> Self:
        """Let methods know answers of some instances or cells: what the models are judged by, not one of them."""

    @abstractmethod
    def rescaled(self, scales: Scales) -> Self:
        """Bring each model's scores to another scale."""

    @property
    @abstractmethod
    def has_scores(self) -> bool:
        """Whether any model gives floats, not only decisions."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of models, instances and labels."""
        return len(self.models), len(self), len(self.labels)


class LazySource(Source):
    """Predictions that are not in memory: what is asked of all of them is done to each block when it arrives."""

    def __init__(self, models: Sequence[str], labels: Sequence[str]) -> None:
        self.models, self.labels = tuple(models), tuple(labels)
        self.weights: NDArray[np.float64] | None = None
        self.clusters: tuple[str, ...] = ()
        self.gold: Gold | None = None  # as it was given
        self._steps: Steps = ()

    def prepared(self, block: Predictions) -> Predictions:
        """Do to a block all that was asked of the whole."""
        return prepared(block, self._steps)

    def select(self, models: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> Self:
        """Choose or reorder models and labels by name."""
        chosen = self._with("select", models, labels)
        if models is not None and tuple(models) != self.models:
            at = positions(models, self.models, "models")
            chosen.models, chosen.weights = tuple(models), None if self.weights is None else self.weights[at]
        if labels is not None and tuple(labels) != self.labels:
            positions(labels, self.labels, "labels")
            chosen.labels = tuple(labels)
        return chosen

    def with_labels(self, labels: Sequence[str]) -> Self:
        """Give exactly these labels, in this order: nobody spoke of those that are lacking, others are refused."""
        positions(self.labels, labels, "labels")
        out = self._with("with_labels", tuple(labels))
        out.labels = tuple(labels)
        return out

    def weighted(self, weights: Weights) -> Self:
        """Let models count as a combiner's `weights` say, in place of what was said before."""
        out = self._with("weighted", weights)
        out.weights = model_weights(weights, self.models)
        return out

    def rescaled(self, scales: Scales) -> Self:
        """Bring each model's scores to another scale."""
        return self._with("rescaled", scales)

    def with_gold(self, gold: Any) -> Self:
        """Let methods know answers of some instances or cells; blocks call instances by their positions."""
        found = None if gold is None else gold_of(gold, self.instances, self.labels)
        out = self._with("with_gold_at", found)
        out.gold = found
        return out

    def _with(self, name: str, *arguments: Any) -> Self:
        out = copy(self)
        out._steps = (*self._steps, (name, arguments))
        return out

    def __repr__(self) -> str:
        m, n, l = self.shape
        return f"<{type(self).__name__}: {m:,} models × {n:,} instances × {l:,} labels>"


def prepared(block: Predictions, steps: Steps) -> Predictions:
    """Do to a block, one after the other, what was asked of the whole.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> prepared(mlc.Predictions([[[1, 0]]]), (("select", (None, ["label_1"])),)).labels
    ('label_1',)
    """
    for name, arguments in steps:
        block = getattr(block, name)(*arguments)
    return block


def positions(wanted: Sequence[str], names: Sequence[str], what: str) -> IntArray:
    """Find where the wanted names stand among all; refuse others.

    Examples
    --------
    >>> positions(["b"], ["a", "b"], "labels")
    array([1])
    """
    lookup = {name: at for at, name in enumerate(names)}
    unknown = [name for name in wanted if name not in lookup]
    if unknown:
        raise InputError(f"{what}: found {unknown[0]!r}, expected some of {_listed(names)}")
    return np.array([lookup[name] for name in wanted], dtype=np.int64)


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
