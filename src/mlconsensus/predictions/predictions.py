"""`Predictions`: scores of m models for n instances and l labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TypeGuard, cast

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..text import plural, sizes
from .alignment import How, as_array
from .answer_rows import AnswerRows
from .array_types import (
    Array,
    BoolArray,
    FloatArray,
    Frame,
    IntArray,
    Matrix,
    Names,
    RowSlice,
    Shape,
)
from .blocks import (
    DenseBlock,
    InstanceInfo,
    PredictionBlock,
    make_block,
    make_crowd_block,
)
from .clusterings import with_more
from .gold_labels import Gold, extract_gold_labels
from .model_scores import AlignedScores
from .quantile_normalization import Scales
from .score_tables import ScoreTable, make_tables
from .source import MAX_DENSE_LABELS, BasePredictions, asked_for, positions
from .table_alignment import align_tables
from .validation import Weights, model_weights


@dataclass(frozen=True, kw_only=True)
class _Content:
    """What an object of `Predictions` holds: scores as one of array, parts, rows."""

    models: tuple[str, ...]
    instances: Names
    labels: tuple[str, ...]
    members: IntArray  # (n, number of clusterings) cluster of each instance, -1: none
    clusters: tuple[str, ...] = ()
    weights: FloatArray | None = None  # (m,) weight of each model; None: all are 1
    array: Array | None = None  # (m, n, l) scores, none of which is missing
    parts: tuple[AlignedScores, ...] | None = None  # scores of each model
    rows: AnswerRows | None = None  # scores of a crowd
    gold: AlignedScores | None = None  # gold labels, as scores of one more model
    is_many: bool | None = None  # what `many` is; None: it depends on the sizes


class Predictions(BasePredictions):
    """Predictions of `m` models for `n` instances and `l` labels, named and immutable.

    Parameters
    ----------
    scores
        An array ``(m, n, l)``; or a sequence of `m` matrices ``(n, l)``, each dense or
        scipy.sparse; or ``{model name: matrix or DataFrame}``. A matrix may also be the
        list of arrays (n, 2), one for each label, that `predict_proba` of some of
        scikit-learn's classifiers returns. Values are bool, 0/1 integers, or floats in
        [0, 1]; NaN (or a masked cell) means that the prediction is missing. DataFrames
        are matched by their columns (labels) and their index (instances). In Polars,
        the first column names the instances if it does not hold numbers or is called
        ``instance`` or ``id``. What a model's frame does not have is missing.
    models, labels, instances
        Names, where `scores` does not bring them. Without names, models are matched by
        position and called ``model_0``, …, labels ``label_0``, …, and instances 0, 1,
        ….

    Notes
    -----
    Arrays are not copied: dense, read-only, memory-mapped and CSR input is used in
    place.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> first = np.array([[1, 0], [0, 1]])
    >>> second = np.array([[1, 1], [0, np.nan]])
    >>> mlc.Predictions({"a": first, "b": second})
    <Predictions: 2 models × 2 instances × 2 labels, 1 cell missing>
    """

    weights: FloatArray | None  # (m,) weight of each model; None: all are 1
    members: IntArray  # (n, number of clusterings) cluster of each instance, -1: none
    in_memory = True
    _content: _Content
    _array: Array | None  # (m, n, l) scores, none of which is missing
    _rows: AnswerRows | None  # scores of a crowd
    _gold: AlignedScores | None  # gold labels, as scores of one more model

    def __init__(
        self,
        scores: object,
        models: object = None,
        labels: object = None,
        instances: object = None,
    ) -> None:
        is_named = not (models is None and labels is None and instances is None)
        if not is_named and _is_complete_array(scores):
            self._set_content(_store_array(scores))
            return

        tables = make_tables(scores, models)
        if labels is not None:
            _check_unnamed(tables, "labels")
        if instances is not None:
            _check_unnamed(tables, "instances")

        if labels is not None or instances is not None:
            tables = [
                replace(table, labels=labels, instances=instances) for table in tables
            ]

        self._set_content(self.from_tables(tables)._content)

    @classmethod
    def from_tables(
        cls,
        tables: Sequence[ScoreTable],
        *,
        instances: How = "union",
        labels: How = "union",
    ) -> Predictions:
        """Align models by name that have different instances or labels.

        Parameters
        ----------
        tables
            One for each model.
        instances, labels
            ``"union"`` keeps all (predictions that a model does not have are missing),
            ``"intersection"`` those that all models have.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> from mlconsensus.predictions.score_tables import ScoreTable
        >>> a = ScoreTable("a", [[1, 0]], instances=["i"], labels=["x", "y"])
        >>> b = ScoreTable("b", [[1, 1]], instances=["i"], labels=["y", "z"])
        >>> mlc.Predictions.from_tables([a, b], labels="intersection").labels
        ('y',)
        """
        return cls.from_parts(*align_tables(tables, instances, labels))

    @staticmethod
    def from_dataset(rows: Iterable[object], **reading: object) -> Predictions:
        """Make predictions of rows that are dicts: calls `mlconsensus.from_dataset`.

        Examples
        --------
        >>> row = {"id": 7, "annotator": "ann", "labels": ["law"]}
        >>> Predictions.from_dataset([row]).models
        ('ann',)
        """
        return import_module("mlconsensus").from_dataset(rows, **reading)  # type: ignore[no-any-return]

    @classmethod
    def from_parts(
        cls,
        models: Sequence[str],
        instances: Names,
        labels: Sequence[str],
        parts: Sequence[AlignedScores],
    ) -> Predictions:
        """Return the predictions of tables that are checked and aligned already."""
        content = _Content(
            models=tuple(models),
            instances=as_array(instances),
            labels=tuple(labels),
            members=np.empty((len(instances), 0), dtype=np.int64),
            parts=tuple(parts),
        )
        return cls._from_content(content)

    @classmethod
    def from_answer_rows(
        cls,
        models: Sequence[str],
        instances: Names,
        labels: Sequence[str],
        rows: AnswerRows,
    ) -> Predictions:
        """Return the predictions of a crowd, which a reader has checked.

        Parameters
        ----------
        models, labels : sequence of str
            Their names.
        instances : ndarray
            Their names.
        rows : AnswerRows
            What each model predicted for the instances that it saw.

        Returns
        -------
        Predictions
        """
        predictions = cls.from_parts(models, instances, labels, ())
        content = replace(predictions._content, parts=None, rows=rows)
        return cls._from_content(content)

    @classmethod
    def _from_content(cls, content: _Content) -> Predictions:
        """Make predictions of their content, without checks."""
        predictions = cls.__new__(cls)
        predictions._set_content(content)
        return predictions

    def _set_content(self, content: _Content) -> None:
        """Set all attributes, once: `__setattr__` refuses later changes."""
        object.__setattr__(self, "_content", content)
        object.__setattr__(self, "models", content.models)
        object.__setattr__(self, "instances", content.instances)
        object.__setattr__(self, "labels", content.labels)
        object.__setattr__(self, "members", content.members)
        object.__setattr__(self, "clusters", content.clusters)
        object.__setattr__(self, "weights", content.weights)
        object.__setattr__(self, "_array", content.array)
        object.__setattr__(self, "_rows", content.rows)
        object.__setattr__(self, "_gold", content.gold)
        object.__setattr__(self, "_many", content.is_many)

    @property
    def _parts(self) -> tuple[AlignedScores, ...]:
        """The scores of each model."""
        if self._array is not None:
            return tuple(AlignedScores(matrix=matrix) for matrix in self._array)
        if self._rows is not None:
            return self._parts_of_rows
        return self._content.parts or ()

    @cached_property
    def _parts_of_rows(self) -> tuple[AlignedScores, ...]:
        """The scores of each model of a crowd; they are sorted once."""
        if self._rows is None:
            return ()
        return self._rows.to_parts()

    def _replace_parts(self, parts: Iterable[AlignedScores]) -> _Content:
        """Return the content with other scores of each model."""
        return replace(self._content, parts=tuple(parts), array=None, rows=None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"Predictions cannot be changed: found an assignment to {name!r}"
        )

    def __len__(self) -> int:
        return len(self.instances)

    def __repr__(self) -> str:
        if self.n_missing:
            missing = f", {plural(self.n_missing, 'cell')} missing"
        else:
            missing = ""

        return f"<Predictions: {sizes(tuple(self.shape))}{missing}>"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of models, instances and labels."""
        return Shape(super().shape)  # type: ignore[return-value]

    def __getitem__(self, instances: object) -> Predictions:
        """Restrict to some instances, by position: a slice, a mask or a list."""
        # scikit-learn indexes with (positions, ...).
        if isinstance(instances, tuple) and len(instances) == 2 and instances[1] is ...:
            instances = instances[0]

        index = _check_index(instances, len(self))
        gold = None
        if self._gold is not None:
            gold = self._gold.take(index)

        content = replace(
            self._content,
            instances=self.instances[index],
            members=self.members[index],
            gold=gold,
            is_many=self.many,
        )
        if self._array is not None:
            content = replace(content, array=self._array[:, index])
        elif self._rows is not None:
            content = replace(content, rows=self._rows.take(index))
        else:
            parts = tuple(part.take(index) for part in self._parts)
            content = replace(content, parts=parts)

        return self._from_content(content)

    @property
    def complete(self) -> bool:
        """Whether no prediction is missing."""
        if self._array is not None:
            return True
        if self._rows is not None:
            return self._rows.n_missing == 0
        return all(part.complete for part in self._parts)

    @property
    def n_stored(self) -> int:
        """Number of stored scores; sparse matrices store those that are not 0."""
        if self._array is not None:
            return int(self._array.size)
        if self._rows is not None:
            return int(self._rows.scores.nnz)
        return sum(part.n_stored for part in self._parts)

    @property
    def n_predictions(self) -> int:
        """Number of predictions that a block of these has to hold."""
        if self._rows is not None:
            return len(self._rows.model) * len(self.labels)
        return len(self.models) * len(self.instances) * len(self.labels)

    def as_block(self, many: bool) -> Predictions:
        """Return the same with `many` set, for blocks of larger predictions."""
        return self._from_content(replace(self._content, is_many=many))

    @cached_property
    def n_missing(self) -> int:
        """Number of missing predictions; computing it reads all data, once."""
        if self._rows is not None:
            return self._rows.n_missing
        if self.many:
            n_missing = self._count_pairs()
            for _, is_seen, is_known in self.apart():
                n_missing -= int(is_seen.sum() * is_known.sum())
            return n_missing
        if self.complete:
            return 0

        n_missing = 0
        for block in self.blocks():
            for part in block._parts:
                _, is_present = part.cells()
                if is_present is not None:
                    n_missing += int((~is_present).sum())
        return n_missing

    def _count_pairs(self) -> int:
        """Return the number of models times instances times labels."""
        return len(self.models) * len(self) * len(self.labels)

    def read(self, start: int, stop: int) -> Predictions:
        """Return the instances from one position to another."""
        return self[start:stop]

    def to_block(self) -> PredictionBlock:
        """Return these predictions in the layout that suits them, with their sums.

        Returns
        -------
        PredictionBlock

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.Predictions([[[1, 0.5]], [[1, 0]]]).to_block().sum_scores().to_array()
        array([[2. , 0.5]])
        """
        info = InstanceInfo(
            weights=self.weights,
            gold=self.gold,
            clusters=self.members,
            n_clusters=len(self.clusters),
        )
        if self._array is not None and not self.many:
            scores = list(self._array)
            return DenseBlock(scores, [None] * len(scores), info)
        if self._rows is not None and not self.many:
            return make_crowd_block(self._rows, info)

        shape = (len(self.models), len(self), len(self.labels))
        return make_block(self._parts, shape, info, self.many)

    def cells(self) -> Iterator[tuple[Matrix, BoolArray | None]]:
        """Yield each model's scores (n, l), missing ones as 0, and their presence.

        The presence (n, l) is ``None`` where no score of the model is missing.
        """
        return (part.cells() for part in self._parts)

    def apart(self) -> Iterator[tuple[Matrix, FloatArray, FloatArray]]:
        """Yield each model's scores as CSR, and which instances and labels it has.

        This is `cells` for large label spaces.
        """
        return (part.apart() for part in self._parts)

    def seen(self) -> Iterator[IntArray]:
        """Yield the positions of the instances that each model has."""
        all_instances = np.arange(len(self))
        for part in self._parts:
            if part.rows is None:
                yield all_instances
            else:
                yield np.flatnonzero(part.rows >= 0)

    def brought(self) -> Iterator[tuple[Matrix, BoolArray | None]]:
        """Yield what `cells` does, only for the instances that each model has."""
        for part, instances in zip(self._parts, self.seen(), strict=True):
            if len(instances) < len(self):
                yield part.take(instances).cells()
            else:
                yield part.take(slice(None)).cells()

    def select(
        self, models: Sequence[str] | None = None, labels: Sequence[str] | None = None
    ) -> Predictions:
        """Choose or reorder models and labels by name.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel = mlc.Predictions(np.eye(2)[None], models=["a"], labels=["x", "y"])
        >>> panel.select(labels=["y"]).to_array().tolist()
        [[[0.0], [1.0]]]
        """
        predictions = self
        if models is not None and models is not self.models:
            predictions = predictions._select_models(models)
        if labels is not None and labels is not self.labels:
            predictions = predictions._select_labels(labels)
        return predictions

    def _select_models(self, models: Sequence[str]) -> Predictions:
        """Return the predictions of some models."""
        models = asked_for(models, self.models, "models")
        if models == self.models:
            return self

        selected = positions(models, self.models, "models")
        weights = None
        if self.weights is not None:
            weights = self.weights[selected]

        parts = self._parts
        content = self._replace_parts([parts[k] for k in selected])
        return self._from_content(replace(content, models=models, weights=weights))

    def _select_labels(self, labels: Sequence[str]) -> Predictions:
        """Return the predictions of some labels."""
        labels = asked_for(labels, self.labels, "labels")
        if labels == self.labels:
            return self

        is_many = None
        if len(labels) > MAX_DENSE_LABELS:
            is_many = self._many

        selected = positions(labels, self.labels, "labels")
        predictions = self._replace_labels(labels, selected)
        return self._from_content(replace(predictions._content, is_many=is_many))

    def _replace_labels(
        self, labels: tuple[str, ...], label_positions: IntArray
    ) -> Predictions:
        """Return predictions of these labels, given their old positions (-1: new)."""
        gold = None
        if self._gold is not None:
            gold = self._gold.take_labels(label_positions)

        parts = [part.take_labels(label_positions) for part in self._parts]
        content = self._replace_parts(parts)
        return self._from_content(replace(content, labels=labels, gold=gold))

    def with_labels(self, labels: Sequence[str]) -> Predictions:
        """Return predictions of exactly these labels, in this order.

        Predictions of new labels are missing. All old labels have to be among the new
        ones.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.Predictions([[[1]]], labels=["x"]).with_labels(["w", "x"]).to_array()
        array([[[nan,  1.]]])
        """
        labels = asked_for(labels, self.labels, "labels")
        old_positions = np.full(len(labels), -1)
        new_positions = positions(self.labels, labels, "labels")
        old_positions[new_positions] = np.arange(len(self.labels))
        return self._replace_labels(labels, old_positions)

    def with_gold_at(
        self, gold: Gold | None, positions: IntArray | None = None
    ) -> Predictions:
        """Return the same with gold labels, which are matched by position.

        Parameters
        ----------
        gold : Gold or None
            The gold labels; ``None`` removes them.
        positions : ndarray of shape (n,), default=None
            Position of each instance in the predictions that `gold` refers to. By
            default 0, 1, ….

        Returns
        -------
        Predictions
        """
        if gold is None:
            return self._from_content(replace(self._content, gold=None))
        if positions is None:
            positions = np.arange(len(self))

        content = replace(self._content, gold=gold.among(positions))
        return self._from_content(content)

    def of_panel(self, gold: Gold | None) -> Predictions:
        """Set gold labels of all instances on a block whose names are positions."""
        return self.with_gold_at(gold, self.instances)

    @property
    def gold(self) -> Gold | None:
        """The gold labels; ``None`` if there are none."""
        if self._gold is None:
            return None
        return extract_gold_labels(self._gold)

    def answered(self, values: Matrix) -> Matrix:
        """Replace scores or label sets (n, l) by gold labels where these exist."""
        gold = self.gold
        if gold is None:
            return values
        return gold.instead_of(values)

    def with_models(self, models: Sequence[str]) -> Predictions:
        """Return predictions of exactly these models, in this order.

        New models have no predictions. All old models have to be among the new ones.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> predictions = mlc.Predictions([[[1]]], models=["ann"])
        >>> predictions.with_models(["bob", "ann"]).to_array()
        array([[[nan]], [[ 1.]]])
        """
        models = asked_for(models, self.models, "models")
        without_predictions = AlignedScores(
            matrix=np.zeros((1, len(self.labels)), np.bool_),
            rows=np.full(len(self), -1),
        )
        parts = [without_predictions] * len(models)
        new_positions = positions(self.models, models, "models").tolist()
        for position, part in zip(new_positions, self._parts, strict=True):
            parts[position] = part

        content = self._replace_parts(parts)
        return self._from_content(replace(content, models=models, weights=None))

    def weighted(self, weights: Weights) -> Predictions:
        """Return the same with weights of the models.

        Parameters
        ----------
        weights
            A number for each model, in their order or by name (1 for models that are
            not in a mapping); ``None``: all are 1.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> predictions = mlc.Predictions([[[1, 0]], [[0, 0]]], models=["a", "b"])
        >>> predictions.weighted({"a": 3}).weights
        array([3., 1.])
        """
        if weights is None and self.weights is None:
            return self
        content = replace(self._content, weights=model_weights(weights, self.models))
        return self._from_content(content)

    def rescaled(self, scales: Scales) -> Predictions:
        """Apply quantile normalization to the scores of each model."""
        parts = []
        for part, knots in zip(self._parts, scales.of_each(), strict=True):
            if part.scale is not None:
                knots = part.scale.then(knots)
            parts.append(replace(part, scale=knots))

        return self._from_content(self._replace_parts(parts))

    @property
    def has_scores(self) -> bool:  # type: ignore[override]
        """Whether any model has scores that are floats, not only label sets."""
        if self._array is not None:
            return self._array.dtype.kind == "f"
        if self._rows is not None:
            return bool(self._rows.scores.dtype.kind == "f")
        return any(part.matrix.dtype.kind == "f" for part in self._parts)

    def with_clusterings(self, clusterings: Mapping[str, object]) -> Predictions:
        """Add clusterings of the instances, which MLCM-r and BGCM use.

        Parameters
        ----------
        clusterings
            For each, by its name, which cluster every instance is in: a sequence in the
            order of the instances, or a mapping (or pandas Series) from instance to
            cluster. ``None`` and NaN: in no cluster.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> predictions = mlc.Predictions([[[1, 0], [0, 0]]])
        >>> mlc.mlcm_r(predictions.with_clusterings({"k-means": ["left", "left"]}))
        array([[1., 0.], [1., 0.]])
        """
        clusters, members = with_more(
            self.clusters, self.members, self.instances, clusterings
        )
        content = replace(self._content, clusters=clusters, members=members)
        return self._from_content(content)

    def without_clusterings(self) -> Predictions:
        """Return the predictions without clusterings, which some methods cannot use.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> predictions = mlc.Predictions([[[1, 0], [0, 0]]])
        >>> clustered = predictions.with_clusterings({"k-means": ["left", "left"]})
        >>> mlc.majority_vote(clustered.without_clusterings())
        array([[1., 0.], [0., 0.]])
        """
        content = replace(self._content, clusters=(), members=self.members[:, :0])
        return self._from_content(content)

    def to_frame(self, model: str, library: str = "pandas") -> Frame:
        """Return the scores of one model as a DataFrame, NaN where they are missing.

        Parameters
        ----------
        model
            Its name.
        library
            ``"pandas"``: instances are the index; ``"polars"``: they are the first
            column.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> predictions = mlc.Predictions([[[1, 0]]], models=["a"], labels=["x", "y"])
        >>> predictions.to_frame("a").columns.tolist()
        ['x', 'y']
        """
        return ScoreTable(
            model, self.select([model]).to_array()[0], self.instances, self.labels
        ).to_frame(library)

    def to_array(self) -> FloatArray:
        """Return all scores as one float64 array (m, n, l), NaN where they are missing.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.Predictions([[[True, False]]]).to_array()
        array([[[1., 0.]]])
        """
        scores = np.empty((len(self.models), len(self), len(self.labels)))
        for k, (values, is_present) in enumerate(self.cells()):
            if sparse.issparse(values):
                values = values.toarray()
            scores[k] = values
            if is_present is not None:
                scores[k][~is_present] = np.nan

        return scores


def as_predictions(predictions: object) -> Predictions:
    """Convert to `Predictions` unless it already is one.

    Predictions in files or on a cluster are returned unchanged: their blocks are
    `Predictions`.

    Examples
    --------
    >>> as_predictions([[[1, 0]]])
    <Predictions: 1 model × 1 instance × 2 labels>
    """
    if isinstance(predictions, BasePredictions):
        return cast("Predictions", predictions)
    return Predictions(predictions)


def joined(blocks: Sequence[Predictions]) -> Predictions:
    """Concatenate blocks of the same models and labels in memory.

    The instances are named by their new positions.

    Examples
    --------
    >>> joined([Predictions([[[1, 0]]]), Predictions([[[1, 1]]])])
    <Predictions: 1 model × 2 instances × 2 labels>
    """
    scores = np.concatenate([block.to_array() for block in blocks], axis=1)
    return Predictions(scores, blocks[0].models, blocks[0].labels)


def _is_complete_array(scores: object) -> TypeGuard[Array]:
    """Return whether scores are an array (m, n, l) of valid numbers, none missing.

    Everything else is read as tables, which also raise the errors.
    """
    if not isinstance(scores, np.ndarray) or isinstance(scores, np.ma.MaskedArray):
        return False
    if scores.ndim != 3 or scores.size == 0:
        return False

    if scores.dtype.kind == "b":
        return True
    is_number = scores.dtype.kind in "iu" or scores.dtype.char in "fd"
    # NaN is not at least 0.
    return is_number and bool(scores.min() >= 0 and scores.max() <= 1)


def _store_array(scores: Array) -> _Content:
    """Return the content of a complete array, named by positions; it is not copied."""
    n_models, n_instances, n_labels = scores.shape
    array = np.asarray(scores).view()
    array.flags.writeable = False
    instances = np.arange(n_instances)
    instances.flags.writeable = False
    return _Content(
        models=tuple(f"model_{k}" for k in range(n_models)),
        instances=instances,
        labels=tuple(f"label_{j}" for j in range(n_labels)),
        members=np.empty((n_instances, 0), dtype=np.int64),
        array=array,
    )


def _check_unnamed(tables: Sequence[ScoreTable], what: str) -> None:
    """Check that no table names its own labels or instances."""
    for table in tables:
        if getattr(table, what) is not None:
            raise InputError(
                where=what,
                found=f"{what}=… next to model {table.model!r}, which names its own",
                expected="one of the two",
            )


def _check_index(instances: object, n_instances: int) -> RowSlice | IntArray:
    """Return a slice as it is, and a mask or a list as an array of positions."""
    forms = "a slice, a mask or a list of positions"
    try:
        if isinstance(instances, slice):
            instances.indices(n_instances)  # raises an error for other values
            return instances
        index = np.asarray(instances)
    except (TypeError, ValueError):
        raise InputError(f"instances: found {instances!r}, expected {forms}") from None

    if index.dtype.kind == "b":
        if index.shape != (n_instances,):
            raise InputError(
                where="instances",
                found=f"a mask of shape {index.shape}",
                expected=f"({n_instances},)",
            )
        index = np.flatnonzero(index)
    elif index.size == 0:
        index = index.astype(np.int64)

    if index.ndim != 1:
        raise InputError(
            where="instances", found=f"shape {index.shape}", expected=forms
        )
    if index.dtype.kind not in "iu":
        raise InputError(
            where="instances", found=f"{index.dtype} values", expected=forms
        )

    is_outside = (index >= n_instances) | (index < -n_instances)
    if is_outside.any():
        raise InputError(
            where="instances",
            found=f"position {index[is_outside][0]}",
            expected=f"one of {n_instances:,} instances",
        )
    return index
