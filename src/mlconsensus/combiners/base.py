"""The base class of all combiners: statistics, merge, solve, apply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .. import decision, metrics
from ..errors import InputError
from ..execution import local
from ..execution.local import map_blocks, reduce_blocks
from ..execution.statistics import field_names, merge_statistics
from ..predictions import (
    Array,
    BasePredictions,
    FloatArray,
    Matrix,
    Predictions,
    ScoreTable,
    as_predictions,
    is_frame,
)
from ..predictions.blocks import PredictionBlock
from ..predictions.validation import Weights, model_weights
from .contributions import Contributions
from .estimator import Estimator

if TYPE_CHECKING:
    from ..decision import Empty
    from ..linalg.sparse_scores import SparseScores

# Matrices with so few columns are solved at once. BLAS does not start threads for them.
_FEW_COLUMNS = 64

# What `Predictions` takes, besides predictions themselves.
PredictionsLike = BasePredictions | ArrayLike | Mapping[str, object] | Sequence[object]

# A record of a method: its statistics, solution, or state after a pass. Each method
# has records of its own; the base class only passes them on.
Record = Any

# What `transform` returns: ndarray, SparseScores, a lazy Dask array or a DataFrame.
Output = Any

# Ground truth: an array, a sparse matrix or a DataFrame.
Truth = Any


@dataclass(frozen=True)
class FitPass:
    """A pass over all instances before the last one."""

    Statistics: type  # record of its sums over instances
    State: type  # record of what is estimated from them, for the next pass


class BaseCombiner(Estimator):
    """Base of all estimators. A method adds its parameters and its four steps.

    Attributes
    ----------
    statistics_ : record
        Sums over the fitted instances. A model that was loaded from a file without
        its statistics has none.
    models_, labels_ : tuple of str
        Names of the fitted models (m) and labels (l), in their order.
    clusters_ : tuple of str
        Names of the clusters, if clusterings were fitted.
    weights_ : ndarray of shape (m,) or None
        Weight of each model in `fit`; None: all are equal.
    n_instances_ : int or None
        Number of fitted instances; None if private statistics withhold it.
    solution_ : record
        What was solved from the statistics.
    state_ : record or None
        What the passes before the last one estimated.
    """

    identifier: ClassVar[str]  # equal to the name of the function
    name: ClassVar[str]  # in tables and files
    Statistics: ClassVar[type]  # record of sums over instances
    Solution: ClassVar[type]  # record of what is solved from them
    passes: ClassVar[tuple[FitPass, ...]] = ()  # passes before the last
    learns_from_gold: ClassVar[bool] = False  # whether `_learn` corrects the solution
    uses_clusterings: ClassVar[bool] = False
    takes_many: ClassVar[bool] = False  # whether it supports large label spaces
    pairs_labels: ClassVar[bool] = False  # whether it multiplies labels there
    pairs_models: ClassVar[bool] = False  # whether it multiplies models there
    comparable: ClassVar[bool] = True  # whether scores of instances can be compared
    additive: ClassVar[bool] = True  # whether predictions contribute independently
    in_float32: ClassVar[tuple[str, ...]] = ()  # fields of the solution in float32
    one_thread_below: ClassVar[int] = 64  # labels, below which BLAS uses one thread
    solves_at_once: ClassVar[bool] = False  # whether `_solve` needs no linear algebra

    weights: Weights = None

    statistics_: Record
    models_: tuple[str, ...]
    labels_: tuple[str, ...]
    clusters_: tuple[str, ...] = ()
    weights_: FloatArray | None = None
    n_instances_: int | None
    state_: Record | None = None
    privacy_: Any = None  # the guarantee of private statistics (`federated.privacy`)
    parts_: tuple[str, ...] = ()  # digests of the statistics files that were merged
    many_: bool | None = None  # whether the fitted label space was large
    # The parameters of the solution, and the solution.
    _solved: tuple[str, Record] | None = None

    # The steps of a method.

    @staticmethod
    def _make_block(predictions: Predictions) -> PredictionBlock:
        """Return predictions as the block that the following methods get."""
        return predictions.to_block()

    @abstractmethod
    def _compute_statistics(self, block: PredictionBlock) -> Record:
        """Return the statistics of one block."""

    @abstractmethod
    def _solve(self, statistics: Record) -> Record:
        """Return the solution of the merged statistics."""

    @staticmethod
    @abstractmethod
    def _apply(block: PredictionBlock, solution: Record) -> FloatArray | SparseScores:
        """Return the consensus scores of one block, shape (n, l)."""

    @staticmethod
    @abstractmethod
    def _contributions(
        block: PredictionBlock, solution: Record, label: int
    ) -> Contributions:
        """Return what the score of the block's only instance is the sum of."""

    # Steps that only some methods have.

    def _compute_pass_statistics(
        self, block: PredictionBlock, state: Record | None
    ) -> Record:
        """Return the statistics of one block in the pass that follows `state`."""
        raise NotImplementedError

    def _solve_pass(
        self, statistics: Record, state: Record | None, models: tuple[str, ...]
    ) -> Record:
        """Return the state after a pass before the last."""
        raise NotImplementedError

    @staticmethod
    def _learn(block: Predictions, solution: Record) -> Record:
        """Return a solution that is corrected by the gold labels of a block."""
        return solution

    @staticmethod
    def _replace_fields(solution: Record, changes: dict[str, Array]) -> Record:
        """Return a solution with other values of some fields."""
        return replace(solution, **changes)

    def check(self) -> None:
        """Raise an `InputError` for parameters that have no solution."""

    # Fitting.

    def fit(self, predictions: PredictionsLike, y: object = None) -> Self:
        """Compute the statistics of all instances, in place of those fitted before.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            `Predictions`, or anything that its constructor takes.
        y : object, default=None
            Ignored; scikit-learn passes it.

        Returns
        -------
        self : object
        """
        checked = self.check_predictions(predictions)

        # All passes use the weights that are set now.
        weights = self.weights
        if weights is not None:
            weights = model_weights(weights, checked.models)

        state = None
        for _ in self.passes:
            statistics = self._gather_statistics(checked, weights, state)
            state = self._solve_pass(statistics, state, checked.models)

        statistics = self._gather_statistics(checked, weights, state)
        self._set_fitted_to(checked, statistics, state)
        if self.learns_from_gold and checked.gold is not None:
            self.fit_gold(checked)
        return self

    def fit_gold(self, predictions: PredictionsLike) -> Self:
        """Correct a fitted combiner by gold labels, as `fit` does with those it gets.

        A combiner that was fitted to the statistics of several sites can learn from the
        gold labels of one of them.

        Parameters
        ----------
        predictions : Predictions
            Predictions with gold labels, of the models and labels that were fitted.

        Returns
        -------
        self : object
        """
        ordered = self.in_fitted_order(predictions)
        if not self.learns_from_gold:
            raise InputError(
                where="fit_gold",
                found=f"{self.identifier}, whose statistics contain the gold labels",
                expected="weighted_consensus",
            )
        if ordered.gold is None:
            raise InputError(
                where="fit_gold", found="no gold label", expected="gold labels"
            )

        from .gold_instances import collect_gold_instances

        gold_instances = collect_gold_instances(ordered).weighted(self.weights_)
        corrected = self._learn(gold_instances, self.solution_)
        self._solved = (self._describe_parameters(), corrected)
        return self

    def partial_fit(self, predictions: PredictionsLike, y: object = None) -> Self:
        """Add the statistics of more instances to those fitted before.

        The result is that of one `fit` to all instances. Weights remain those of the
        first `fit`. Methods with several passes do not support it.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            More instances of the same models and labels.
        y : object, default=None
            Ignored; scikit-learn passes it.

        Returns
        -------
        self : object
        """
        added = self.check_predictions(predictions)
        if self.passes:
            n_passes = len(self.passes) + 1
            raise InputError(
                where="partial_fit",
                found=f"{type(self).__name__}, which goes over all instances "
                f"{n_passes} times",
                expected="fit, or a method that adds up pieces",
            )
        if not hasattr(self, "models_"):
            return self.fit_pass(added)
        if not hasattr(self, "statistics_"):
            raise InputError(
                where="partial_fit",
                found="a solved model, which has no statistics",
                expected="some to add to",
            )
        if self.privacy_ is not None:
            raise InputError(
                where="partial_fit",
                found="private statistics",
                expected="exact ones, as what is added is exact",
            )

        added = self.in_fitted_order(added)
        statistics = self._gather_statistics(added, self.weights_, self.state_)
        self.statistics_ = merge_statistics(self.statistics_, statistics)
        self.n_instances_ = (self.n_instances_ or 0) + len(added)
        self._solved = None
        self.parts_ = ()
        return self

    def fit_pass(
        self, predictions: PredictionsLike, state: Record | None = None
    ) -> Self:
        """Compute the statistics of one pass, as a site with some of the instances.

        See docs/sites.md.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            `Predictions`, or anything that its constructor takes.
        state : record, default=None
            State after the passes before (`next_state`), from the statistics of all
            sites; None for the first pass.

        Returns
        -------
        self : object
            Its `statistics_` can be added to those of other sites.
        """
        checked = self.check_predictions(predictions)
        if hasattr(self, "models_") and state is not None:
            checked = self.in_fitted_order(checked)

        weights = model_weights(self.weights, checked.models)
        statistics = self._gather_statistics(checked, weights, state)
        return self._set_fitted_to(checked, statistics, state)

    def next_state(self) -> Record:
        """Return the state after the pass whose statistics were computed."""
        return self._solve_pass(self.statistics_, self.state_, self.models_)

    @property
    def unfinished(self) -> bool:
        """Whether passes are missing before there is a solution."""
        n_completed = self.count_passes(self.state_)
        return self._solved is None and n_completed < len(self.passes)

    def count_passes(self, state: Record | None) -> int:
        """Return the number of completed passes that led to a state."""
        if state is None:
            return 0
        states = [fit_pass.State for fit_pass in self.passes]
        return states.index(type(state)) + 1

    def progress(self) -> str:
        """Return which pass the statistics are of, such as "round 1 of 3"."""
        return f"round {self.count_passes(self.state_) + 1} of {len(self.passes) + 1}"

    # Using the fitted combiner.

    def transform(
        self, predictions: PredictionsLike, dtype: DTypeLike = np.float64
    ) -> Output:
        """Return consensus scores, also of instances that were not in `fit`.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            Predictions of the fitted models and labels, which are matched by name.
        dtype : dtype, default=numpy.float64
            Type of the scores. ``numpy.float32`` takes half the memory, and linear
            methods compute in it.

        Returns
        -------
        ndarray of shape (n, l)
            Higher scores are more relevant. `SparseScores` in large label spaces, a
            lazy Dask array for predictions on a cluster, and a DataFrame after
            ``set_output(transform="pandas")``.
        """
        ordered = self.in_fitted_order(predictions)
        scores = map_blocks(ordered, self.applying(dtype), dtype)
        if not self._returns_frame():
            return scores
        table = ScoreTable(self.identifier, scores, ordered.instances, self.labels_)
        return table.to_frame()

    def fit_transform(
        self, predictions: PredictionsLike, y: object = None, **fit_params: object
    ) -> FloatArray:
        """Fit to predictions and return their consensus scores.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            `Predictions`, or anything that its constructor takes.
        y, **fit_params : object
            Ignored; scikit-learn passes them.

        Returns
        -------
        ndarray of shape (n, l)
            As `transform` returns it.
        """
        converted = as_predictions(predictions)
        scores: FloatArray = self.fit(converted).transform(converted)
        return scores

    def predict(self, predictions: PredictionsLike) -> Matrix:
        """Return label sets: those of `combine` for the same predictions.

        The best scores of all instances are chosen, so the label set of an instance
        depends on the other instances. Gold labels are returned as they are; `combine`
        also calibrates the scores by them first.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            Predictions of the fitted models and labels, in memory.

        Returns
        -------
        ndarray of shape (n, l) of bool
            The label indicator; CSR in large label spaces.
        """
        ordered = self.in_fitted_order(predictions)
        if not ordered.in_memory:
            raise InputError(
                where="predict",
                found="predictions in files or on a cluster",
                expected="predictions in memory, because label sets depend on all "
                "instances; write_consensus with decision.match_instances decides "
                "block by block",
            )

        scores = map_blocks(ordered, self.applying())
        return ordered.answered(self.choose_label_sets(scores, ordered))

    def choose_label_sets(
        self,
        scores: FloatArray | SparseScores,
        predictions: Predictions,
        empty: Empty = "keep",
    ) -> Matrix:
        """Return label sets of the best scores, as many labels as are expected.

        Parameters
        ----------
        scores : ndarray or SparseScores of shape (n, l)
            Consensus scores of the predictions.
        predictions : Predictions
            Predictions of the fitted models and labels, in memory.
        empty : {"keep", "top"}, default="keep"
            Whether an instance without labels keeps none or gets its best label.

        Returns
        -------
        ndarray of shape (n, l) of bool
            CSR in large label spaces.
        """
        return decision.choose_label_sets(scores, predictions, self.comparable, empty)

    def score(self, predictions: PredictionsLike, y: Truth) -> float:
        """Return the average precision of the consensus scores.

        `cross_val_score` and `GridSearchCV` of scikit-learn use it.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            Predictions of the fitted models and labels.
        y : array-like of shape (n, l) or DataFrame
            The relevant labels in the order of `labels_`. A DataFrame is matched by its
            names.

        Returns
        -------
        float
            Label ranking average precision, from 0 to 1; higher is better.
        """
        ordered = self.in_fitted_order(predictions)
        scores = map_blocks(ordered, self.applying())
        if not is_frame(y):
            return metrics.average_precision(y, scores)

        table = ScoreTable(self.identifier, scores, ordered.instances, self.labels_)
        return metrics.average_precision(y, table.to_frame())

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> Array:
        """Return the names of the columns that `transform` returns: the labels.

        Parameters
        ----------
        input_features : sequence of str, default=None
            Ignored; scikit-learn passes them.

        Returns
        -------
        ndarray of shape (l,) of object
        """
        self.check_is_fitted()
        return np.array(self.labels_, dtype=object)

    @property
    def model_weights_(self) -> FloatArray:
        """Reliability of each model (m,), if the method estimates it."""
        names = field_names(self.Solution)
        if "model_reliability" not in names:
            name = type(self).__name__
            raise AttributeError(f"{name} does not estimate the models' reliability")
        return np.asarray(self.solution_.model_reliability)

    @property
    def solution_(self) -> Record:
        """What was solved from the statistics; solved when it is first needed."""
        self.check_is_fitted()
        parameters = self._describe_parameters()
        if self._solved is None or self._solved[0] != parameters:
            self._solved = (parameters, self._solve_statistics())
        return self._solved[1]

    def applying(
        self, dtype: DTypeLike = np.float64
    ) -> Callable[[Predictions], FloatArray]:
        """Return the function that computes the scores of a block.

        It has the solution but not the statistics, so it is small enough to be sent to
        another process.

        Parameters
        ----------
        dtype : dtype, default=numpy.float64
            Type of the scores.

        Returns
        -------
        callable
            Takes a block of predictions and returns its scores (n, l).
        """
        solution = self.solution_
        if np.dtype(dtype) == np.float32 and not self.many_:
            changes = {}
            for name in self.in_float32:
                array = getattr(solution, name)
                if array is not None:
                    changes[name] = array.astype(np.float32)
            if changes:
                solution = self._replace_fields(solution, changes)

        return partial(_apply_to_block, type(self), self.weights_, solution, dtype)

    # Fitted attributes from elsewhere.

    @classmethod
    def from_statistics(
        cls,
        statistics: Record,
        *,
        models: Sequence[str],
        labels: Sequence[str],
        n_instances: int,
        **parameters: object,
    ) -> Self:
        """Make a fitted combiner from statistics that were computed elsewhere.

        Parameters
        ----------
        statistics : record
            The `statistics_` of another combiner of this class, or their sum.
        models, labels : sequence of str
            Their names, in the order of the statistics.
        n_instances : int
            Number of instances in the statistics.
        **parameters : object
            Parameters of the constructor.

        Returns
        -------
        BaseCombiner
            The fitted combiner.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> predictions, _ = mlc.datasets.make_panel(random_state=0)
        >>> first = mlc.MLCMr().fit(predictions[:400])
        >>> second = mlc.MLCMr().fit(predictions[400:])
        >>> both = mlc.MLCMr.from_statistics(
        ...     merge_statistics(first.statistics_, second.statistics_),
        ...     models=predictions.models,
        ...     labels=predictions.labels,
        ...     n_instances=1000,
        ... )
        >>> difference = both.transform(predictions) - mlc.mlcm_r(predictions)
        >>> bool(abs(difference).max() < 1e-10)
        True
        """
        return cls(**parameters).take(
            n_instances,
            models=tuple(models),
            labels=tuple(labels),
            statistics=statistics,
        )

    def take(
        self,
        n_instances: int | None,
        solution: Record | None = None,
        *,
        models: tuple[str, ...],
        labels: tuple[str, ...],
        clusters: tuple[str, ...] = (),
        statistics: Record | None = None,
        state: Record | None = None,
        privacy: object = None,
    ) -> Self:
        """Set the fitted attributes from statistics, or only from a solution.

        Parameters
        ----------
        n_instances : int or None
            Number of fitted instances; None if it is private.
        solution : record, default=None
            The solution, if there are no statistics.
        models, labels : tuple of str
            Names in the order of the statistics or the solution.
        clusters : tuple of str, default=()
            Names of the clusters.
        statistics : record, default=None
            Sums over the fitted instances.
        state : record, default=None
            State after the passes before the last.
        privacy : Guarantee, default=None
            The guarantee of private statistics. Its `remove_noise` is applied to them
            before they are solved.

        Returns
        -------
        self : object
        """
        self.check()
        self.n_instances_ = n_instances
        self.models_ = models
        self.labels_ = labels
        self.clusters_ = clusters
        self.state_ = state
        self.privacy_ = privacy
        self.parts_ = ()
        if statistics is not None:
            self.statistics_ = statistics

        self.weights_ = None
        if self.weights is not None:
            self.weights_ = model_weights(self.weights, models)

        self._solved = None
        if solution is not None:
            self._solved = (self._describe_parameters(), solution)
        return self

    # Checks of predictions.

    def check_predictions(self, predictions: object) -> Predictions:
        """Return predictions that this method can be fitted to.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            `Predictions`, or anything that its constructor takes.

        Returns
        -------
        Predictions

        Raises
        ------
        InputError
            For parameters without a solution, for clusterings that the method cannot
            use, and for label spaces that would not fit into memory.
        """
        self.check()
        converted = as_predictions(predictions)
        if converted.clusters and not self.uses_clusterings:
            raise InputError(
                where=type(self).__name__,
                found="clusterings, which it cannot use",
                expected="BGCM or MLCMr",
            )
        if not converted.many:
            return converted

        from .memory import check_fits_memory

        return check_fits_memory(self, converted)

    def in_fitted_order(self, predictions: object) -> Predictions:
        """Return predictions with models and labels in the fitted order.

        Parameters
        ----------
        predictions : Predictions or array-like of shape (m, n, l)
            Predictions of the fitted models and labels, which are matched by name.

        Returns
        -------
        Predictions

        Raises
        ------
        InputError
            If models, labels or clusters are not those that were fitted.
        """
        self.check_is_fitted()
        converted = as_predictions(predictions)

        # Comparing tuples first: sets of 10,000,000 names take 10 s.
        if converted.models != self.models_:
            _check_same_names("models", converted.models, self.models_)
            converted = converted.select(models=self.models_)
        if converted.labels != self.labels_:
            _check_same_names("labels", converted.labels, self.labels_)
            converted = converted.select(labels=self.labels_)
        if converted.clusters != self.clusters_:
            raise InputError(
                where="clusters",
                found=len(converted.clusters),
                expected=f"the same {len(self.clusters_)} that were fitted",
            )

        if self.many_ in (None, converted.many):
            return converted
        return converted.as_block(self.many_)

    # Steps of `fit`.

    def _set_fitted_to(
        self, predictions: Predictions, statistics: Record, state: Record | None
    ) -> Self:
        """Set the fitted attributes from predictions and their statistics."""
        self.many_ = predictions.many
        return self.take(
            len(predictions),
            models=predictions.models,
            labels=predictions.labels,
            clusters=predictions.clusters,
            statistics=statistics,
            state=state,
        )

    def _gather_statistics(
        self, predictions: Predictions, weights: Weights, state: Record | None
    ) -> Record:
        """Return the statistics of all blocks in the pass that follows a state."""
        # This copy is sent to where the blocks are, so it has no statistics.
        worker = copy(self)
        vars(worker).pop("statistics_", None)
        worker._solved = None
        worker.state_ = state
        if weights is not None or predictions.weights is not None:
            predictions = predictions.weighted(weights)
        return reduce_blocks(predictions, worker._compute_pass)

    def _compute_pass(self, predictions: Predictions) -> Record:
        """Return the statistics of one block in the pass that follows `state_`."""
        block = self._make_block(predictions)
        if self.passes and self.count_passes(self.state_) < len(self.passes):
            return self._compute_pass_statistics(block, self.state_)
        return self._compute_statistics(block)

    def _solve_statistics(self) -> Record:
        """Return the solution of the statistics, or raise an `InputError`."""
        has_statistics = hasattr(self, "statistics_")
        if not has_statistics and self.state_ is not None:
            raise InputError(
                where="statistics",
                found="the state after earlier passes, and no sums",
                expected="a solved model, or sums of the last round",
            )
        if self.passes and self.unfinished:
            raise InputError(
                where="statistics",
                found=self.progress(),
                expected="sums of the last round",
            )
        if not has_statistics:
            raise InputError(
                where="parameters",
                found="others than the model was solved for",
                expected="the same, as it has no statistics",
            )

        statistics = self.statistics_
        if self.privacy_ is not None:
            statistics = self.privacy_.remove_noise(self)
        n_columns = len(self.models_) * len(self.labels_) + len(self.clusters_)
        if self.solves_at_once or n_columns <= _FEW_COLUMNS:
            return self._solve(statistics)
        uses_one_thread = len(self.labels_) < self.one_thread_below
        return local.solve(partial(self._solve, statistics), uses_one_thread)

    def _describe_parameters(self) -> str:
        """Return the parameters that a solution depends on.

        Weights are not among them: they count from the next `fit` on.
        """
        parameters = self.get_params()
        parameters.pop("weights", None)
        return repr(parameters)


def _check_same_names(
    what: str, names: tuple[str, ...], fitted_names: tuple[str, ...]
) -> None:
    """Raise an `InputError` unless names are those that were fitted, in any order."""
    unknown = sorted({*names} - {*fitted_names})
    absent = sorted({*fitted_names} - {*names})
    fitted = f"the {len(fitted_names):,} that were fitted"
    if unknown:
        expected = fitted
        if absent:
            expected = f"{absent[0]!r} as was fitted"
        raise InputError(where=what, found=repr(unknown[0]), expected=expected)
    if absent:
        listed = ", ".join(map(repr, absent[:5]))
        raise InputError(
            where=what,
            found=f"no {listed}",
            expected=f"{fitted}; Predictions.with_{what} adds them without predictions",
        )


def _apply_to_block(
    combiner: type[BaseCombiner],
    weights: FloatArray | None,
    solution: Record,
    dtype: DTypeLike,
    predictions: Predictions,
) -> Output:
    """Return the scores of a block; gold labels replace the scores of their pairs."""
    weighted = predictions
    if weights is not None or predictions.weights is not None:
        weighted = predictions.weighted(weights)

    scores = combiner._apply(combiner._make_block(weighted), solution)
    scores = scores.astype(dtype, copy=False)
    if predictions.gold is None:
        return scores
    return predictions.answered(scores)
