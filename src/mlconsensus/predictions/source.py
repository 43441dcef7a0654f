"""What engines walk: models and labels by name, and instances that come in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partialmethod
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import InputError
from ..text import sizes
from .alignment import IntArray, Names, as_names
from .gold_labels import Gold, gold_of

if TYPE_CHECKING:
    from .predictions import Predictions

Steps = tuple[methodcaller, ...]  # methods of `Predictions` with their arguments

# How many cells of all models one block of instances may hold: 128 MB as dense float64,
# 16 MB as bool.
_BLOCK_CELLS = 2**24
_BLOCK_SAID = 2**21  # and how many numbers, where only those are kept

# Beyond so many labels, of which models name but a few, arrays of labels × labels or
# instances × labels are not made.
MAX_DENSE_LABELS = 2048
_FEW_SAID = 0.06


class BasePredictions(ABC):
    """Predictions that are somewhere: in memory, in files, on a cluster; `engines` walk them.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> isinstance(mlc.Predictions([[[1, 0]]]), BasePredictions)
    True
    """

    models: tuple[str, ...]
    labels: tuple[str, ...]
    instances: Names
    clusters: tuple[
        str, ...
    ] = ()  # names of the clusters that instances are in, where there are clusterings
    has_scores: bool  # whether any model gives floats, not only decisions
    _many: bool | None = None  # what `many` was told to be

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, start: int, stop: int) -> Predictions:
        """Return the instances from one position to another."""

    @property
    def block_size(self) -> int:
        """How many instances `blocks` gives at a time unless told: what keeps a block small."""
        if self.many:
            return max(1, _BLOCK_SAID * len(self) // max(1, self.n_stored))
        return max(1, _BLOCK_CELLS * len(self) // max(1, self.n_predictions))

    @property
    def n_predictions(self) -> int:
        """Number of predictions that blocks have to hold, missing ones included."""
        m, n, l = self.shape
        return int(m) * n * l

    @property
    def n_stored(self) -> int:
        """How many numbers the models' matrices hold: all cells, unless the source knows that they are sparse."""
        m, n, l = self.shape
        return int(m) * n * l

    @property
    def many(self) -> bool:
        """Whether there are so many labels, and so few of them named, that only what was said is worked on."""
        m, n, l = self.shape
        few = l > MAX_DENSE_LABELS and self.n_stored <= _FEW_SAID * int(m) * n * l
        if self._many is None:
            return few
        return self._many

    def blocks(self, size: int | None = None) -> Iterator[Predictions]:
        """Walk the instances, `size` at a time.

        Examples
        --------
        >>> import numpy as np
        >>> import mlconsensus as mlc
        >>> [len(block) for block in mlc.Predictions(np.zeros((3, 5, 2))).blocks(2)]
        [2, 2, 1]
        """
        if size is None:
            size = self.block_size
        if not (size > 0):
            raise InputError(
                where="blocks", found=f"size {size}", expected="at least 1"
            )

        return (
            self.read(start, min(len(self), start + size))
            for start in range(0, len(self), size)
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of models, instances and labels."""
        return len(self.models), len(self), len(self.labels)

    @abstractmethod
    def with_gold_at(self, gold: Gold | None) -> Self:
        """Take known answers that are matched already."""

    def with_gold(self, gold: Any) -> Self:
        """Let methods know answers of some instances or cells: what the models are judged by, not one of them.

        Parameters
        ----------
        gold
            An array (n, l) of 1, 0 and NaN (not known), or a DataFrame or table that is
            matched by its names; what it does not have is not known. ``None``: no
            answer is known.

        Examples
        --------
        >>> import numpy as np
        >>> import mlconsensus as mlc
        >>> panel = mlc.Predictions([[[1, 0], [1, 1]]]).with_gold([[np.nan, np.nan], [0, 1]])
        >>> panel.gold
        Gold(at=array([1]), answers=array([[0., 1.]]))
        """
        return self.with_gold_at(
            None if gold is None else gold_of(gold, self.instances, self.labels)
        )


class Shape(tuple[int, ...]):
    """A shape whose first number is no plain integer: scikit-learn would take it for the number of instances."""

    def __getitem__(self, at: Any) -> Any:
        if at == 0:
            return np.array(super().__getitem__(0))
        return super().__getitem__(at)


class LazyPredictions(BasePredictions):
    """Predictions that are not in memory: what is asked of all of them is done to each block when it arrives.

    It is also done at once to `front`, a small panel of the same models and labels:
    what is wrong with it shows there, and so do the names that come of it.
    """

    gold: Gold | None = None  # as it was given

    def __init__(self, front: Predictions) -> None:
        self._steps: Steps = ()
        self._show(front)

    def _show(self, front: Predictions) -> None:
        self.front, self.models, self.labels, self.weights = (
            front,
            front.models,
            front.labels,
            front.weights,
        )
        self.has_scores = front.has_scores

    def as_block(self, many: bool) -> Self:
        """Return the same with blocks that are, or are not, those of a panel of many labels."""
        out = copy(self)
        out._many = many
        return out

    def with_gold_at(self, gold: Gold | None) -> Self:
        """Take known answers that are matched already."""
        out = self._with("of_panel", gold)
        out.gold = gold
        return out

    def _with(self, name: str, *arguments: Any, **named: Any) -> Self:
        out = copy(self)
        step = methodcaller(name, *arguments, **named)
        out._steps = (*self._steps, step)
        out._show(step(self.front))
        return out

    # As `Predictions` has them.
    select = partialmethod(_with, "select")
    with_labels = partialmethod(_with, "with_labels")
    with_models = partialmethod(_with, "with_models")
    weighted = partialmethod(_with, "weighted")
    rescaled = partialmethod(_with, "rescaled")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {sizes(self.shape)}>"


def prepared(block: Predictions, steps: Steps) -> Predictions:
    """Do to a block, one after the other, what was asked of the whole.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> prepared(mlc.Predictions([[[1, 0]]]), (methodcaller("select", labels=["label_1"]),)).labels
    ('label_1',)
    """
    for step in steps:
        block = step(block)

    return block


def asked_for(wanted: Any, own: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return names that are wanted as text, each once; `own` ones, which were looked through before, as they are.

    Examples
    --------
    >>> asked_for(iter([1, 0]), ("0", "1"), "labels")
    ('1', '0')
    """
    if isinstance(wanted, tuple) and wanted == own:
        return own

    names = tuple(str(name) for name in as_names(wanted, what).tolist())
    if not (bool(names)):
        raise InputError(where=what, found="none", expected="at least one")
    return names


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
        shown = ", ".join(map(repr, names[:5])) + f", … ({len(names)} in all)" * (
            len(names) > 5
        )
        raise InputError(f"{what}: found {unknown[0]!r}, expected some of {shown}")

    return np.array([lookup[name] for name in wanted], dtype=np.int64)
