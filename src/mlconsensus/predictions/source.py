"""Base classes of predictions: names of models and labels, instances in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partialmethod
from operator import methodcaller
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from ..errors import InputError
from ..text import sizes
from .alignment import as_names
from .array_types import IntArray, Names
from .gold_labels import Gold, gold_of

if TYPE_CHECKING:
    from .predictions import Predictions

Steps = tuple[methodcaller, ...]  # methods of `Predictions` with their arguments

# Number of predictions of all models that one block may hold: 128 MB as dense float64,
# 16 MB as bool.
_BLOCK_CELLS = 2**24
_BLOCK_STORED = 2**21  # and number of stored scores in large label spaces

# Arrays of labels × labels or instances × labels are not made for more labels than
# this, if at most this share of the scores is stored.
MAX_DENSE_LABELS = 2048
_MAX_STORED_SHARE = 0.06


class BasePredictions(ABC):
    """Predictions in memory, in files or on a cluster.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> isinstance(mlc.Predictions([[[1, 0]]]), BasePredictions)
    True
    """

    models: tuple[str, ...]
    labels: tuple[str, ...]
    instances: Names
    clusters: tuple[str, ...] = ()  # names of the clusters of all clusterings
    has_scores: bool  # whether any model has scores that are floats
    in_memory: ClassVar[bool] = False  # not in files or on a cluster
    _many: bool | None = None  # what `many` is; None: it depends on the sizes

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, start: int, stop: int) -> Predictions:
        """Return the instances from one position to another."""

    @property
    def block_size(self) -> int:
        """Number of instances of a block, by default."""
        if self.many:
            return max(1, _BLOCK_STORED * len(self) // max(1, self.n_stored))
        return max(1, _BLOCK_CELLS * len(self) // max(1, self.n_predictions))

    @property
    def n_predictions(self) -> int:
        """Number of predictions that blocks have to hold, missing ones included."""
        return len(self.models) * len(self) * len(self.labels)

    @property
    def n_stored(self) -> int:
        """Number of stored scores: all, unless a subclass has sparse matrices."""
        return len(self.models) * len(self) * len(self.labels)

    @property
    def many(self) -> bool:
        """Whether this is a large label space, where only stored scores are used."""
        if self._many is not None:
            return self._many
        if len(self.labels) <= MAX_DENSE_LABELS:
            return False

        n_pairs = len(self.models) * len(self) * len(self.labels)
        return self.n_stored <= _MAX_STORED_SHARE * n_pairs

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Iterate over blocks of `size` instances.

        Examples
        --------
        >>> import numpy as np
        >>> import mlconsensus as mlc
        >>> [len(block) for block in mlc.Predictions(np.zeros((3, 5, 2))).blocks(2)]
        [2, 2, 1]
        """
        if size is None:
            size = self.block_size
        if size <= 0:
            raise InputError(
                where="blocks", found=f"size {size}", expected="at least 1"
            )

        return self._read_blocks(size)

    def _read_blocks(self, size: int) -> Iterator[Predictions]:
        """Yield blocks of `size` instances; the last one may be smaller."""
        for start in range(0, len(self), size):
            yield self.read(start, min(len(self), start + size))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of models, instances and labels."""
        return len(self.models), len(self), len(self.labels)

    @abstractmethod
    def with_gold_at(self, gold: Gold | None) -> Self:
        """Return the same with gold labels that are matched already."""

    def with_gold(self, gold: object) -> Self:
        """Return the same with gold labels of some instances.

        Parameters
        ----------
        gold
            An array (n, l) of 1, 0 and NaN (unknown), or a DataFrame or table that is
            matched by its names; labels that it does not have are unknown. ``None``
            removes all gold labels.

        Examples
        --------
        >>> import numpy as np
        >>> import mlconsensus as mlc
        >>> predictions = mlc.Predictions([[[1, 0], [1, 1]]])
        >>> predictions.with_gold([[np.nan, np.nan], [0, 1]]).gold
        Gold(at=array([1]), answers=array([[0., 1.]]))
        """
        if gold is None:
            return self.with_gold_at(None)
        return self.with_gold_at(gold_of(gold, self.instances, self.labels))


class LazyPredictions(BasePredictions):
    """Predictions that are not in memory.

    Selections and other steps are applied to each block when it is read. They are
    also applied at once to `front`, a small part with the same models and labels, which
    shows errors and the new names early.
    """

    gold: Gold | None = None  # of all instances

    def __init__(self, front: Predictions) -> None:
        self._steps: Steps = ()
        self._set_front(front)

    def _set_front(self, front: Predictions) -> None:
        """Set the attributes that depend on the front."""
        self.front = front
        self.models = front.models
        self.labels = front.labels
        self.weights = front.weights
        self.has_scores = front.has_scores

    def as_block(self, many: bool) -> Self:
        """Return the same with `many` set."""
        changed = copy(self)
        changed._many = many
        return changed

    def with_gold_at(self, gold: Gold | None) -> Self:
        """Return the same with gold labels that are matched already."""
        changed = self._add_step("of_panel", gold)
        changed.gold = gold
        return changed

    def _add_step(self, name: str, *arguments: object, **keywords: object) -> Self:
        """Apply a method of `Predictions` to the front now and to each block later."""
        changed = copy(self)
        step = methodcaller(name, *arguments, **keywords)
        changed._steps = (*self._steps, step)
        changed._set_front(step(self.front))
        return changed

    # The methods of `Predictions` with these names.
    select = partialmethod(_add_step, "select")
    with_labels = partialmethod(_add_step, "with_labels")
    with_models = partialmethod(_add_step, "with_models")
    weighted = partialmethod(_add_step, "weighted")
    rescaled = partialmethod(_add_step, "rescaled")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {sizes(self.shape)}>"


def prepared(block: Predictions, steps: Steps) -> Predictions:
    """Apply the steps of lazy predictions to a block, in their order.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> select = methodcaller("select", labels=["label_1"])
    >>> prepared(mlc.Predictions([[[1, 0]]]), (select,)).labels
    ('label_1',)
    """
    for step in steps:
        block = step(block)

    return block


def asked_for(wanted: object, names: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return the wanted names as unique texts.

    The tuple `names` itself is returned without checks, which were made before.

    Examples
    --------
    >>> asked_for(iter([1, 0]), ("0", "1"), "labels")
    ('1', '0')
    """
    if isinstance(wanted, tuple) and wanted == names:
        return names

    selected = tuple(map(str, as_names(wanted, what).tolist()))
    if not selected:
        raise InputError(where=what, found="none", expected="at least one")
    return selected


def positions(wanted: Sequence[str], names: Sequence[str], what: str) -> IntArray:
    """Return the positions of the wanted names; unknown names are an error.

    Examples
    --------
    >>> positions(["b"], ["a", "b"], "labels")
    array([1])
    """
    lookup: dict[str, int] = {}
    for position, name in enumerate(names):
        lookup[name] = position

    for name in wanted:
        if name not in lookup:
            shown = ", ".join(map(repr, names[:5]))
            if len(names) > 5:
                shown += f", … ({len(names)} in all)"
            raise InputError(f"{what}: found {name!r}, expected some of {shown}")

    return np.array([lookup[name] for name in wanted], dtype=np.int64)
