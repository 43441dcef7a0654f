"""What engines walk: models and labels by name, and instances that come in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..parameters import Weights, model_weights

if TYPE_CHECKING:
    from .alignment import Names
    from .predictions import Predictions
    from .scales import Scales

S = TypeVar("S", bound=tuple[Any, ...])
Steps = tuple[tuple[str, tuple[Any, ...]], ...]  # methods of `Predictions` and their arguments


class Source(ABC):
    """Predictions that are somewhere: in memory, in files, on a cluster.

    A source knows who walks it: `gather` and `spread` are the two passes that every method is made of.

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

    @property
    @abstractmethod
    def block_size(self) -> int:
        """How many instances `blocks` gives at a time unless told."""

    @abstractmethod
    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Walk the instances, `size` at a time."""

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

    def gather(self, statistics: Callable[[Predictions], S]) -> S:
        """First pass: the statistics of each block, merged."""
        from ..engines import local

        return local.gather(self, statistics)

    def spread(self, apply: Callable[[Predictions], Any], dtype: Any = float) -> NDArray[Any]:
        """Second pass: what `apply` makes of each block, (n, l) of `dtype`."""
        from ..engines import local

        return local.spread(self, apply, dtype)


class LazySource(Source):
    """Predictions that are not in memory: what is asked of all of them is done to each block when it arrives."""

    def __init__(self, models: Sequence[str], labels: Sequence[str]) -> None:
        self.models, self.labels = tuple(models), tuple(labels)
        self.weights: NDArray[np.float64] | None = None
        self.clusters: tuple[str, ...] = ()
        self._steps: Steps = ()

    def prepared(self, block: Predictions) -> Predictions:
        """Do to a block all that was asked of the whole."""
        return prepared(block, self._steps)

    @property
    def block_size(self) -> int:
        """How many instances `blocks` gives at a time unless told: what keeps a block small."""
        from .predictions import usual_block_size

        return usual_block_size(len(self.models), len(self.labels))

    def select(self, models: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> Self:
        """Choose or reorder models and labels by name."""
        from .predictions import positions

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
        from .predictions import positions

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
