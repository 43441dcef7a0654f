"""The base class of all combiners: statistics, merge, solve, apply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import decision, metrics
from ..errors import InputError
from ..execution import local
from ..execution.local import map_blocks, reduce_blocks
from ..execution.statistics import field_names, merge_statistics
from ..predictions import (
    Array,
    BasePredictions,
    BoolArray,
    FloatArray,
    Predictions,
    ScoreTable,
    as_predictions,
    is_frame,
)
from ..predictions.blocks import PredictionBlock
from ..predictions.validation import Weights, model_weights
from .contributions import Contributions
from .estimator import Estimator
from .gold_instances import collect_gold_instances

if TYPE_CHECKING:
    from ..decision import Empty

# What `Predictions` takes, besides predictions themselves.
PredictionsLike = BasePredictions | ArrayLike | Mapping[str, object] | Sequence[object]


@dataclass(frozen=True)
class FitPass:
    """A pass over all instances before the last one."""

    Statistics: type  # record of its sums over instances
    State: type  # record of what is estimated from them, for the next pass


class BaseCombiner(Estimator):
    """Base of all estimators; each adds a method's settings.

    Attributes
    ----------
    statistics_
        Sums over the fitted instances; all that `fit` learns. A solved model that was
        loaded from a file has none.
    models_, labels_
        Names that `transform` expects, in this order.
    weights_
        How much each model counts (m,), as it was fitted; ``None``: all alike.
    n_instances_
        How many instances have been fitted; ``None`` where statistics are private,
        which withhold it.
    solution_
        What the statistics were solved to.
    """

    identifier: ClassVar[str]  # equal to the name of the function
    name: ClassVar[str]  # in tables, files and on the command line
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
    one_thread_below: ClassVar[int] = 0  # labels, below which BLAS uses one thread
    solves_at_once: ClassVar[bool] = False  # whether `_solve` needs no linear algebra

    weights: Weights = None

    statistics_: Any
    models_: tuple[str, ...]
    labels_: tuple[str, ...]
    clusters_: tuple[str, ...] = ()  # names of the fitted panel's clusters
    weights_: FloatArray | None = None
    n_instances_: int | None
    state_: Any = None  # what the passes before the last estimated
    privacy_: Any = None  # what the statistics guarantee, where they are private
    parts_: tuple[
        str, ...
    ] = ()  # digests of the files' sums that were added up, where they came from files
    many_: bool | None = None  # whether blocks were those of a panel of many labels
    _solved: tuple[str, Any] | None = (
        None  # the settings it was solved for, and the solution
    )

    @staticmethod
    def _replace_fields(solution: Any, changes: dict[str, Array]) -> Any:
        """Return a solution with other values of some fields."""
        return replace(solution, **changes)

    @staticmethod
    def _make_block(predictions: Predictions) -> PredictionBlock:
        """Return predictions as the block that the following methods get."""
        return predictions.to_block()

    @abstractmethod
    def _compute_statistics(self, block: PredictionBlock) -> Any:
        """Return the statistics of one block."""

    @abstractmethod
    def _solve(self, statistics: Any) -> Any:
        """Return the solution of the merged statistics."""

    @staticmethod
    @abstractmethod
    def _apply(block: PredictionBlock, solution: Any) -> Any:
        """Return the consensus scores of one block, shape (n, l)."""

    @staticmethod
    @abstractmethod
    def _contributions(
        block: PredictionBlock, solution: Any, label: int
    ) -> Contributions:
        """Return what the score of the block's one instance is the sum of."""

    @staticmethod
    def _learn(block: Predictions, solution: Any) -> Any:
        """Return a solution that is corrected by the gold labels of a block."""
        return solution

    def _compute_pass_statistics(self, block: PredictionBlock, state: Any) -> Any:
        """Return the statistics of one block in the pass that follows `state`."""
        raise NotImplementedError

    def _solve_pass(self, statistics: Any, state: Any, models: tuple[str, ...]) -> Any:
        """Return the state after a pass before the last."""
        raise NotImplementedError

    def _compute_pass(self, predictions: Predictions) -> Any:
        """Return the statistics of one block in the pass that follows `state_`."""
        block = self._make_block(predictions)
        if self.count_passes(self.state_) < len(self.passes):
            return self._compute_pass_statistics(block, self.state_)
        return self._compute_statistics(block)

    def check(self) -> None:
        """Raise an error for parameters that have no solution."""

    def describe_solution(self, solution: Any) -> str:
        """Return a few words about what the solution shows, or an empty text."""
        return ""

    def count_passes(self, state: Any) -> int:
        """Return the number of completed passes that led to a state."""
        for completed, fit_pass in enumerate(self.passes, start=1):
            if isinstance(state, fit_pass.State):
                return completed
        return 0

    def fit(self, predictions: Any, y: object = None) -> Self:
        """Gather the statistics of `predictions`, in place of any fitted before.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes.
        y
            Ignored; here for scikit-learn's conventions.

        Returns
        -------
        The estimator itself.
        """
        panel = self.checked_panel(predictions)
        weights = model_weights(self.weights, panel.models)
        state = None
        for _ in self.passes:
            statistics = self._gather_statistics(panel, weights, state)
            state = self._solve_pass(statistics, state, panel.models)
        self._fit_last_pass(panel, state)
        if not self.learns_from_gold or panel.gold is None:
            return self
        return self.fit_gold(panel)

    def fit_gold(self, predictions: Any) -> Self:
        """Correct a fitted model by gold labels, as `fit` does with those it gets.

        A model that several sites fitted together can so learn from the gold labels of
        one of them.

        Parameters
        ----------
        predictions : Predictions
            Predictions with gold labels, of the models and labels that were fitted.

        Returns
        -------
        self : object
        """
        panel = self.in_fitted_order(predictions)
        if not self.learns_from_gold:
            raise InputError(
                where="fit_gold",
                found=f"{self.name}, whose statistics contain the gold labels",
                expected="WeightedConsensus",
            )
        if panel.gold is None:
            raise InputError(
                where="fit_gold", found="no gold label", expected="gold labels"
            )

        gold_instances = collect_gold_instances(panel).weighted(self.weights_)
        corrected = self._learn(gold_instances, self.solution_)
        self._solved = (self._settings(), corrected)
        return self

    def fit_pass(self, predictions: Any, state: Any = None) -> Self:
        """Compute the statistics of one pass, as a site with some of the instances does.

        See docs/sites.md.

        Parameters
        ----------
        predictions : Predictions or object
            `Predictions`, or anything that its constructor takes.
        state : object, default=None
            State after the passes before (`next_state`), from the statistics of all
            sites; None for the first pass.

        Returns
        -------
        self : object
            Its `statistics_` can be added to those of other sites.
        """
        panel = self.checked_panel(predictions)
        if hasattr(self, "models_") and state is not None:
            panel = self.in_fitted_order(panel)
        return self._fit_last_pass(panel, state)

    @property
    def unfinished(self) -> bool:
        """Whether passes are missing before there is a solution."""
        n_completed = self.count_passes(self.state_)
        return self._solved is None and n_completed < len(self.passes)

    def next_state(self) -> Any:
        """Return the state after the pass whose statistics were computed."""
        return self._solve_pass(self.statistics_, self.state_, self.models_)

    def partial_fit(self, predictions: Any, y: object = None) -> Self:
        """Add the statistics of `predictions` to those fitted before; in the end as if all had come at once.

        Weights stay those of the `fit` that came before. Methods that go over all
        instances several times refuse it.

        Parameters
        ----------
        predictions
            More instances of the same models and labels.
        y
            Ignored.

        Returns
        -------
        The estimator itself.
        """
        panel = self.checked_panel(predictions)
        several = f"{type(self).__name__}, which goes over all instances {len(self.passes) + 1} times"
        if self.passes:
            raise InputError(
                where="partial_fit",
                found=several,
                expected="fit, or a method that adds up pieces",
            )
        if not hasattr(self, "models_"):
            return self._fit_last_pass(panel, None)

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

        panel = self.in_fitted_order(panel)
        self.statistics_ = merge_statistics(
            self.statistics_, self._gather_statistics(panel, self.weights_, self.state_)
        )
        self.n_instances_ = (self.n_instances_ or 0) + len(panel)
        self._solved, self.parts_ = None, ()
        return self

    def transform(self, predictions: Any, dtype: Any = np.float64) -> Any:
        """Return consensus scores, also of instances never seen in `fit`.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes; the models and labels
            that were fitted.
        dtype
            What the scores are returned as; ``numpy.float32`` takes half the memory,
            and linear methods are worked out in it.

        Returns
        -------
        ndarray (n, l), higher = more relevant; a lazy Dask array where the predictions
        are Dask's; a DataFrame after ``set_output(transform="pandas")``.
        """
        panel = self.in_fitted_order(predictions)
        scores = map_blocks(panel, self.applying(dtype), dtype)
        if self._returns_frame():
            return ScoreTable(
                self.name, scores, panel.instances, self.labels_
            ).to_frame()

        return scores

    def fit_transform(
        self, predictions: Any, y: object = None, **fit_params: Any
    ) -> FloatArray:
        """Fit to `predictions` and return their consensus scores.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes.
        y, **fit_params
            Ignored; here for scikit-learn's conventions.

        Returns
        -------
        ndarray (n, l), higher = more relevant.
        """
        panel = as_predictions(predictions)
        scores: FloatArray = self.fit(panel).transform(panel)
        return scores

    def predict(self, predictions: Any) -> BoolArray:
        """Return label sets: each instance gets as many labels as models give it.

        This works block by block. `combine` chooses the best scores of all instances.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes; the models and labels
            that were fitted.

        Returns
        -------
        ndarray (n, l) of bool.
        """
        panel = self.in_fitted_order(predictions)
        label_sets: BoolArray = map_blocks(
            panel, partial(_top_labels, self.applying()), bool
        )
        return label_sets

    def choose_label_sets(
        self, scores: Any, predictions: Predictions, empty: Empty = "keep"
    ) -> Any:
        """Return label sets of the best scores, as many labels as are expected.

        Parameters
        ----------
        scores : ndarray or SparseScores of shape (n, l)
            Consensus scores of the predictions.
        predictions : Predictions
            Predictions of the fitted models and labels, in memory.
        empty : {"keep", "top"}, default="keep"
            What happens to an instance without a label.

        Returns
        -------
        ndarray of shape (n, l) of bool, or CSR for large label spaces
        """
        return decision.choose_label_sets(scores, predictions, self.comparable, empty)

    def score(self, predictions: Any, y: Any) -> float:
        """Return the average precision of the consensus scores, what `cross_val_score` and `GridSearchCV` go by.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes; the models and labels
            that were fitted.
        y
            The relevant labels (n, l) in the order of `labels_`; a DataFrame is matched
            by its names.

        Returns
        -------
        A number in [0, 1], higher = better.
        """
        panel = as_predictions(predictions)
        scores = map_blocks(self.in_fitted_order(panel), self.applying())
        table = ScoreTable(self.name, scores, panel.instances, self.labels_)
        return metrics.average_precision(y, table.to_frame() if is_frame(y) else scores)

    def applying(self, dtype: Any = np.float64) -> Callable[[Predictions], FloatArray]:
        """Return what turns a block into its scores, light enough to be sent to another process."""
        solution = self.solution_
        if np.dtype(dtype) == np.float32 and not self.many_:
            changes = {}
            for name in self.in_float32:
                array = getattr(solution, name)
                if array is not None:
                    changes[name] = array.astype(np.float32)
            if changes:
                solution = type(self)._replace_fields(solution, changes)

        return partial(_apply_to_block, type(self), self.weights_, solution, dtype)

    @classmethod
    def from_statistics(
        cls,
        statistics: Any,
        *,
        models: Sequence[str],
        labels: Sequence[str],
        n_instances: int,
        **parameters: Any,
    ) -> Self:
        """Make a fitted estimator of statistics that were gathered elsewhere.

        Parameters
        ----------
        statistics
            What another estimator of this class has as `statistics_`, or a sum of such.
        models, labels
            Their names, in the order of the statistics.
        n_instances
            How many instances the statistics are of.
        **parameters
            What the constructor takes.

        Returns
        -------
        The estimator, fitted.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel, _ = mlc.datasets.make_panel(random_state=0)
        >>> here, there = mlc.MLCMr().fit(panel[:400]), mlc.MLCMr().fit(panel[400:])
        >>> both = mlc.MLCMr.from_statistics(
        ...     merge_statistics(here.statistics_, there.statistics_), models=panel.models, labels=panel.labels, n_instances=1000
        ... )
        >>> abs(both.transform(panel) - mlc.mlcm_r(panel)).max() < 1e-10
        np.True_
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
        solution: Any = None,
        *,
        models: tuple[str, ...],
        labels: tuple[str, ...],
        clusters: tuple[str, ...] = (),
        statistics: Any = None,
        state: Any = None,
        privacy: Any = None,
    ) -> Self:
        """Set the fitted attributes from statistics, or only from a solution.

        Parameters
        ----------
        n_instances : int or None
            Number of fitted instances; None if it is private.
        solution : object, default=None
            The solution, if there are no statistics.
        models, labels : tuple of str
            Names in the order of the statistics or the solution.
        clusters : tuple of str, default=()
            Names of the clusters.
        statistics : object, default=None
            Sums over the fitted instances.
        state : object, default=None
            State after the passes before the last.
        privacy : object, default=None
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

        self.weights_ = model_weights(self.weights, self.models_)
        if solution is None:
            self._solved = None
        else:
            self._solved = (self._settings(), solution)

        return self

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> Array:
        """Return the names of the columns that `transform` gives: the labels."""
        self._check_is_fitted()
        return np.array(self.labels_, dtype=object)

    @property
    def solution_(self) -> Any:
        """What the statistics are solved to; worked out when first needed, since pieces may still arrive."""
        self._check_is_fitted()
        settings = self._settings()
        if self._solved is None or self._solved[0] != settings:
            self._solved = (settings, self._solve_statistics())
        return self._solved[1]

    def _solve_statistics(self) -> Any:
        """Return the solution of the statistics, or raise an `InputError`."""
        has_statistics = hasattr(self, "statistics_")
        if not has_statistics and self.state_ is not None:
            raise InputError(
                where="statistics",
                found="what earlier rounds told, and no sums",
                expected="a solved model, or sums of the last round",
            )
        if self.unfinished:
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
        if self.solves_at_once:
            return self._solve(statistics)
        uses_one_thread = len(self.labels_) < self.one_thread_below
        return local.solve(partial(self._solve, statistics), uses_one_thread)

    @property
    def model_weights_(self) -> FloatArray:
        """How reliable each model is over all labels (m,), where the method finds that out."""
        names = field_names(self.Solution)
        if "model_reliability" not in names:
            raise AttributeError(f"{type(self).__name__} does not rate models")
        return np.asarray(self.solution_.model_reliability)

    def progress(self) -> str:
        """Say which round the statistics are of."""
        return f"round {self.count_passes(self.state_) + 1} of {len(self.passes) + 1}"

    def in_fitted_order(self, predictions: Any) -> Predictions:
        """Return predictions with models and labels, matched by name, in the fitted order; refuse others."""
        self._check_is_fitted()
        panel = as_predictions(predictions)
        _check_same_names("models", panel.models, self.models_)
        _check_same_names("labels", panel.labels, self.labels_)
        if panel.clusters != self.clusters_:
            raise InputError(
                where="clusters",
                found=len(panel.clusters),
                expected=f"the same {len(self.clusters_)} that were fitted",
            )

        panel = panel.select(models=self.models_, labels=self.labels_)
        if self.many_ in (None, panel.many):
            return panel
        return panel.as_block(self.many_)

    def checked_panel(self, predictions: Any) -> Any:
        """Return predictions that this method can be fitted to; refuse others, and settings that make no sense."""
        self.check()
        panel = as_predictions(predictions)
        if panel.clusters and not self.uses_clusterings:
            raise InputError(
                where=type(self).__name__,
                found="clusterings, which it cannot use",
                expected="BGCM or MLCMr",
            )
        if panel.many:
            from .memory import check_fits_memory

            return check_fits_memory(self, panel)
        return panel

    def _fit_last_pass(self, panel: Any, state: Any) -> Self:
        """Compute the statistics that follow a state, and set the fitted attributes."""
        weights = model_weights(self.weights, panel.models)
        statistics = self._gather_statistics(panel, weights, state)
        self.many_ = panel.many
        return self.take(
            len(panel),
            models=panel.models,
            labels=panel.labels,
            clusters=panel.clusters,
            statistics=statistics,
            state=state,
        )

    def _gather_statistics(
        self, panel: Any, weights: FloatArray | None, state: Any
    ) -> Any:
        """Return the statistics of all blocks in the pass that follows a state."""
        # A clone has no statistics: it is sent to where the blocks are.
        worker = self.make_unfitted_copy()
        worker.state_ = state
        compute = partial(_compute_block_statistics, worker, weights)
        return reduce_blocks(panel, compute)

    def _settings(self) -> str:
        """Tell apart settings that are solved for; weights count from the next `fit` on."""
        return repr(
            sorted(
                (name, value)
                for name, value in self.get_params().items()
                if name != "weights"
            )
        )


def _check_same_names(
    what: str, names: tuple[str, ...], fitted_names: tuple[str, ...]
) -> None:
    """Raise an `InputError` unless names are those that were fitted, in any order."""
    # Comparing tuples first: sets of 10,000,000 names take 10 s.
    if names == fitted_names:
        return
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
            expected=f"{fitted}; Predictions.with_{what} makes what lacks silent",
        )


def _compute_block_statistics(
    combiner: BaseCombiner,
    weights: FloatArray | None,
    block: Predictions,
) -> Any:
    """Return the statistics of one block; workers of a cluster call it."""
    return combiner._compute_pass(block.weighted(weights))


def _apply_to_block(
    combiner: type[BaseCombiner],
    weights: FloatArray | None,
    solution: Any,
    dtype: Any,
    predictions: Predictions,
) -> Any:
    """Return the scores of a block; gold labels replace the scores of their pairs."""
    block = combiner._make_block(predictions.weighted(weights))
    scores = combiner._apply(block, solution)
    if not block.is_large and scores.dtype != dtype:
        scores = scores.astype(dtype)
    return predictions.answered(scores)


def _top_labels(
    apply: Callable[[Predictions], FloatArray], block: Predictions
) -> BoolArray:
    return block.answered(
        decision.match_instances(apply(block), decision.cardinalities(block))
    )
