"""`Predictions`: what m models said of n instances and l labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, cast

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..text import plural, sizes
from .alignment import Array, BoolArray, FloatArray, How, IntArray, Names, as_array
from .answer_rows import AnswerRows
from .blocks import InstanceInfo, PredictionBlock, make_block, make_crowd_block
from .clusterings import with_more
from .gold_labels import Gold, extract_gold_labels
from .model_scores import AlignedScores, Matrix
from .quantile_normalization import Scales
from .score_tables import ScoreTable, aligned, tables_of
from .source import MAX_DENSE_LABELS, BasePredictions, Shape, asked_for, positions
from .validation import Weights, model_weights


class Predictions(BasePredictions):
    """Predictions of `m` models for `n` instances and `l` labels, named and immutable.

    Parameters
    ----------
    scores
        An array ``(m, n, l)``; or a sequence of `m` matrices ``(n, l)``, each dense or
        scipy.sparse; or ``{model name: matrix or DataFrame}``. A matrix may also be the
        list of arrays (n, 2), one for each label, that `predict_proba` of some of
        scikit-learn's classifiers returns. Values are bool, 0/1 integers, or floats in
        [0, 1]; NaN (or a masked cell) means that the model did not say. DataFrames are
        matched by their columns (labels) and their index (instances), or, of Polars,
        the first column if it holds no numbers or is called ``instance`` or ``id``;
        what a model's frame does not have is missing.
    models, labels, instances
        Names, where `scores` does not bring them. Without names, models are matched by
        position and called ``model_0``, …, labels ``label_0``, …, and instances 0, 1,
        ….

    Notes
    -----
    Arrays are not copied: dense, read-only, memory-mapped and CSR input is looked at in
    place.

    Examples
    --------
    >>> import numpy as np
    >>> import mlconsensus as mlc
    >>> mlc.Predictions({"a": np.array([[1, 0], [0, 1]]), "b": np.array([[1, 1], [0, np.nan]])})
    <Predictions: 2 models × 2 instances × 2 labels, 1 cell missing>
    """

    weights: FloatArray | None = (
        None  # (m,) how much each model counts; None: all alike
    )
    # (n, number of clusterings) which of their clusters each instance is in, -1: in
    # none
    members: IntArray
    _rows: AnswerRows | None = None  # the predictions of a crowd
    _gold: AlignedScores | None = (
        None  # answers that are known, as if they were one more model's
    )

    def __init__(
        self, scores: Any, models: Any = None, labels: Any = None, instances: Any = None
    ) -> None:
        tables = tables_of(scores, models)
        for what, given in (("labels", labels), ("instances", instances)):
            own = [table.model for table in tables if getattr(table, what) is not None]
            if own:
                found = f"{what}=… beside model {own[0]!r}, which names its own"
            else:
                found = ""

            if not (given is None or not own):
                raise InputError(where=what, found=found, expected="one of the two")

        if labels is not None or instances is not None:
            tables = [
                table._replace(labels=labels, instances=instances) for table in tables
            ]

        vars(self).update(vars(self.from_tables(tables)))

    @classmethod
    def from_tables(
        cls,
        tables: Sequence[ScoreTable],
        *,
        instances: How = "union",
        labels: How = "union",
    ) -> Predictions:
        """Align models that have not seen the same instances or do not know the same labels, by name.

        Parameters
        ----------
        tables
            One for each model.
        instances, labels
            ``"union"`` keeps all (what a model lacks is missing), ``"intersection"``
            those that all models have.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> from mlconsensus.predictions.score_tables import ScoreTable
        >>> a = ScoreTable("a", [[1, 0]], instances=["i"], labels=["x", "y"])
        >>> b = ScoreTable("b", [[1, 1]], instances=["i"], labels=["y", "z"])
        >>> mlc.Predictions.from_tables([a, b], labels="intersection").labels
        ('y',)
        """
        return cls.from_parts(*aligned(list(tables), instances, labels))

    @staticmethod
    def from_dataset(rows: Any, **reading: Any) -> Predictions:
        """Make a panel of rows that are dicts: `mlconsensus.from_dataset`, as reading is not this room's work.

        Examples
        --------
        >>> Predictions.from_dataset([{"id": 7, "annotator": "ann", "labels": ["law"]}]).models
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
        """Put together what a reader has checked and aligned already."""
        panel = cls.__new__(cls)
        vars(panel).update(
            models=tuple(models), instances=as_array(instances), labels=tuple(labels)
        )
        vars(panel).update(
            members=np.empty((len(instances), 0), dtype=np.int64), _parts=tuple(parts)
        )
        return panel

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
        return predictions._with(_rows=rows)

    @cached_property
    def _parts(self) -> tuple[AlignedScores, ...]:
        """The scores of each model."""
        if self._rows is None:
            return ()
        return self._rows.to_parts()

    def _with(self, **changes: Any) -> Predictions:
        panel = Predictions.__new__(Predictions)
        if "_parts" in changes:
            changes.setdefault("_rows", None)
        vars(panel).update(vars(self) | changes)
        if panel._rows is not None:
            vars(panel).pop("_parts", None)  # they are made from the rows
        vars(panel).pop("n_missing", None)  # it may be another
        return panel

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

    def __getitem__(self, instances: Any) -> Predictions:
        """Restrict to some instances, by position: a slice, a mask or a list."""
        if (
            isinstance(instances, tuple) and len(instances) == 2 and instances[1] is ...
        ):  # as scikit-learn writes it
            instances = instances[0]

        forms = "a slice, a mask or a list of positions"
        n = len(self)
        try:
            index: slice | Array
            if isinstance(instances, slice):
                instances.indices(n)  # raises an error if these are not positions
                index = instances
            else:
                index = np.asarray(instances)
        except (TypeError, ValueError):
            raise InputError(
                f"instances: found {instances!r}, expected {forms}"
            ) from None

        if isinstance(index, np.ndarray):
            mask = index.dtype.kind == "b"
            if not (not mask or index.shape == (n,)):
                raise InputError(
                    where="instances",
                    found=f"a mask of shape {index.shape}",
                    expected=f"({n},)",
                )
            if mask:
                index = np.flatnonzero(index)
            else:
                if not (index.size):
                    index = index.astype(np.int64)

            if index.ndim != 1:
                raise InputError(
                    where="instances", found=f"shape {index.shape}", expected=forms
                )
            if index.dtype.kind not in "iu":
                raise InputError(
                    where="instances", found=f"{index.dtype} values", expected=forms
                )

            beyond = index[(index >= n) | (index < -n)]
            if beyond.size:
                raise InputError(
                    where="instances",
                    found=f"position {next(iter(beyond), 0)}",
                    expected=f"one of {n:,} instances",
                )

        changes: dict[str, Any] = {
            "instances": self.instances[index],
            "members": self.members[index],
            "_gold": self._gold and self._gold.take(index),
            "_many": self.many,
        }
        if self._rows is not None:
            return self._with(**changes, _rows=self._rows.take(index))
        parts = tuple(part.take(index) for part in self._parts)
        return self._with(**changes, _parts=parts)

    @property
    def complete(self) -> bool:
        """Whether every model spoke about every instance and label."""
        if self._rows is not None:
            return self._rows.n_missing == 0
        return all(part.complete for part in self._parts)

    @property
    def n_stored(self) -> int:
        """How many numbers the models' matrices hold: of sparse ones, those that are not 0."""
        if self._rows is not None:
            return int(self._rows.scores.nnz)
        return sum(part.n_stored for part in self._parts)

    @property
    def n_predictions(self) -> int:
        """Number of predictions that a block of these has to hold."""
        if self._rows is not None:
            return len(self._rows.model) * len(self.labels)
        return super().n_predictions

    def as_block(self, many: bool) -> Predictions:
        """Return the same as a block of a panel that does, or does not, have many labels."""
        return self._with(_many=many)

    @cached_property
    def n_missing(self) -> int:
        """How many of the m·n·l cells no prediction was given for; it takes a walk over all data, once."""
        if self._rows is not None:
            return self._rows.n_missing
        if self.many:
            return int(np.prod(list(self.shape))) - sum(
                int(s.sum() * known.sum()) for _, s, known in self.apart()
            )
        if self.complete:
            return 0

        n_missing = 0
        for block in self.blocks():
            for part in block._parts:
                _, is_present = part.cells()
                if is_present is not None:
                    n_missing += int((~is_present).sum())
        return n_missing

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
        n_models, n_instances, n_labels = (int(size) for size in self.shape)
        shape = (n_models, n_instances, n_labels)
        if self._rows is not None and not self.many:
            return make_crowd_block(self._rows, info)
        return make_block(self._parts, shape, info, self.many)

    def cells(self) -> Iterator[tuple[Matrix, BoolArray | None]]:
        """Yield for each model its scores (n, l), silence as 0, and where it spoke (``None``: everywhere)."""
        return (part.cells() for part in self._parts)

    def apart(self) -> Iterator[tuple[Matrix, FloatArray, FloatArray]]:
        """Yield for each model its scores as CSR, and which instances and labels it has: `cells` for many labels."""
        return (part.apart() for part in self._parts)

    def seen(self) -> Iterator[IntArray]:
        """Yield for each model the positions of the instances that it brings, with or without single cells missing."""
        every = np.arange(len(self))
        return (
            every if part.rows is None else np.flatnonzero(part.rows >= 0)
            for part in self._parts
        )

    def brought(self) -> Iterator[tuple[Matrix, BoolArray | None]]:
        """Yield for each model what `cells` does, of the instances in `seen` alone."""
        each = zip(self._parts, self.seen(), strict=True)
        return (
            part.take(own if len(own) < len(self) else slice(None)).cells()
            for part, own in each
        )

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
        panel = self
        if models is None:
            models = self.models
        else:
            models = asked_for(models, self.models, "models")

        if labels is None:
            labels = self.labels
        else:
            labels = asked_for(labels, self.labels, "labels")

        if models != self.models:
            at = positions(models, self.models, "models")
            if self.weights is None:
                weights = None
            else:
                weights = self.weights[at]

            panel = panel._with(
                models=models, weights=weights, _parts=tuple(self._parts[k] for k in at)
            )

        if labels != self.labels:
            if len(labels) > MAX_DENSE_LABELS:
                many = self._many
            else:
                many = None

            panel = panel._labelled(
                labels, positions(labels, self.labels, "labels")
            )._with(_many=many)

        return panel

    def _labelled(self, labels: Sequence[str], at: IntArray) -> Predictions:
        """Give the panel these labels, of which each stands at a position among its own, -1: at none."""
        parts = tuple(part.take_labels(at) for part in self._parts)
        gold = self._gold and self._gold.take_labels(at)
        return self._with(labels=tuple(labels), _parts=parts, _gold=gold)

    def with_labels(self, labels: Sequence[str]) -> Predictions:
        """Give the panel exactly these labels, in this order: nobody spoke of those that it lacks, others are refused.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.Predictions([[[1]]], labels=["x"]).with_labels(["w", "x"]).to_array()
        array([[[nan,  1.]]])
        """
        labels = asked_for(labels, self.labels, "labels")
        at = np.full(len(labels), -1)
        at[positions(self.labels, labels, "labels")] = np.arange(len(self.labels))
        return self._labelled(labels, at)

    def with_gold_at(
        self, gold: Gold | None, positions: IntArray | None = None
    ) -> Predictions:
        """Take known answers by where the instances stand in what these are of; by default in their own order."""
        return self._with(
            _gold=gold
            and gold.among(np.arange(len(self)) if positions is None else positions)
        )

    def of_panel(self, gold: Gold | None) -> Predictions:
        """Take known answers of a panel that this is a block of, which calls instances by where they stand there."""
        return self.with_gold_at(gold, self.instances)

    @property
    def gold(self) -> Gold | None:
        """The answers that are known; ``None`` where none is."""
        if self._gold is None:
            return None
        return extract_gold_labels(self._gold)

    def answered(self, values: Array) -> Array:
        """Put known answers in place of scores or label sets (n, l)."""
        if (gold := self.gold) is None:
            return values
        return gold.instead_of(values)

    def with_models(self, models: Sequence[str]) -> Predictions:
        """Give the panel exactly these models, in this order: those that it lacks said nothing, others are refused.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.Predictions([[[1]]], models=["ann"]).with_models(["bob", "ann"]).to_array()
        array([[[nan]], [[ 1.]]])
        """
        models = asked_for(models, self.models, "models")
        silent = AlignedScores(
            np.zeros((1, len(self.labels)), np.bool_),
            np.full(len(self), -1),
            None,
            False,
        )
        own = dict(
            zip(
                positions(self.models, models, "models").tolist(),
                self._parts,
                strict=True,
            )
        )
        parts = (own.get(k, silent) for k in range(len(models)))
        return self._with(models=models, _parts=tuple(parts), weights=None)

    def weighted(self, weights: Weights) -> Predictions:
        """Let models count as a combiner's `weights` say, for the kernels to see.

        Parameters
        ----------
        weights
            A number for each model, in their order or by name (1 where a mapping has
            none); ``None``: all alike.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.Predictions([[[1, 0]], [[0, 0]]], models=["a", "b"]).weighted({"a": 3}).weights
        array([3., 1.])
        """
        if weights is None and self.weights is None:
            return self
        return self._with(weights=model_weights(weights, self.models))

    def rescaled(self, scales: Scales) -> Predictions:
        """Bring each model's scores to the scale that `rescale` or a combiner found."""
        each = zip(self._parts, scales.of_each(), strict=True)
        scaled = (
            part._replace(scale=part.scale.then(knots) if part.scale else knots)
            for part, knots in each
        )
        return self._with(_parts=tuple(scaled))

    @property
    def has_scores(self) -> bool:  # type: ignore[override]
        """Whether any model gives floats, not only decisions."""
        if self._rows is not None:
            return bool(self._rows.scores.dtype.kind == "f")
        return any(part.matrix.dtype.kind == "f" for part in self._parts)

    def with_clusterings(self, clusterings: Mapping[str, Any]) -> Predictions:
        """Add clusterings of the instances, which know no labels, beside the models; MLCM-r and BGCM use them.

        Parameters
        ----------
        clusterings
            For each, by its name, which cluster every instance is in: a sequence in the
            order of the instances, or a mapping (or pandas Series) from instance to
            cluster. ``None`` and NaN: in no cluster.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel = mlc.Predictions([[[1, 0], [0, 0]]]).with_clusterings({"k-means": ["left", "left"]})
        >>> mlc.mlcm_r(panel)
        array([[1., 0.], [1., 0.]])
        """
        clusters, members = with_more(
            self.clusters, self.members, self.instances, clusterings
        )
        return self._with(clusters=clusters, members=members)

    def without_clusterings(self) -> Predictions:
        """Return the models' predictions alone, for methods that cannot use clusterings.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel = mlc.Predictions([[[1, 0], [0, 0]]]).with_clusterings({"k-means": ["left", "left"]})
        >>> mlc.majority_vote(panel.without_clusterings())
        array([[1., 0.], [0., 0.]])
        """
        return self._with(clusters=(), members=self.members[:, :0])

    def to_frame(self, model: str, library: str = "pandas") -> Any:
        """Return what one model said as a DataFrame, NaN where it did not say.

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
        >>> mlc.Predictions([[[1, 0]]], models=["a"], labels=["x", "y"]).to_frame("a").columns.tolist()
        ['x', 'y']
        """
        return ScoreTable(
            model, self.select([model]).to_array()[0], self.instances, self.labels
        ).to_frame(library)

    def to_array(self) -> FloatArray:
        """Return all scores as one float64 array (m, n, l), NaN where a model did not say.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.Predictions([[[True, False]]]).to_array()
        array([[[1., 0.]]])
        """
        out = np.empty(self.shape)
        for k, (values, spoken) in enumerate(self.cells()):
            out[k] = values.toarray() if sparse.issparse(values) else values
            if spoken is not None:
                out[k][~spoken] = np.nan

        return out


def as_predictions(predictions: Any) -> Predictions:
    """Return `predictions` as `Predictions`, whatever form that class takes it has.

    What is elsewhere, in files or on a cluster, is passed on as it is: blocks of it are
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
    """Put blocks of the same models and labels together, in memory; instances are called by their new positions.

    Examples
    --------
    >>> joined([Predictions([[[1, 0]]]), Predictions([[[1, 1]]])])
    <Predictions: 1 model × 2 instances × 2 labels>
    """
    scores = np.concatenate([block.to_array() for block in blocks], axis=1)
    return Predictions(scores, blocks[0].models, blocks[0].labels)
