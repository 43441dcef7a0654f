"""What every combiner shares: the route statistics → merge → solve → apply as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..engines import gather, spread
from ..errors import InputError
from ..evaluation.decisions import cardinalities, match_instances
from ..insight.explanations import Explanation, describe, label_position, one_instance
from ..panel.predictions import Predictions, as_predictions
from ..panel.sources import Source
from .contributions import Contributions
from .statistics import merge

if TYPE_CHECKING:
    import os

    from ..sites.privacy import Guarantee


class Combiner(TransformerMixin, BaseEstimator):
    """Base of all combiners; a subclass brings `_statistics`, `_solve`, `_apply` and `_contributions`.

    Attributes
    ----------
    statistics_
        Sums over the fitted instances; all that `fit` learns. A solved model that was loaded from a file has none.
    models_, labels_
        Names that `transform` expects, in this order.
    n_instances_
        How many instances have been fitted; ``None`` where statistics are private, which withhold it.
    privacy_
        What privacy the statistics guarantee; ``None`` where they are exact.
    """

    statistics_: Any
    models_: tuple[str, ...]
    labels_: tuple[str, ...]
    n_instances_: int | None
    privacy_: Guarantee | None = None
    clusters_: tuple[str, ...] = ()  # names of the fitted panel's clusters
    _uses_clusterings = False
    _in_float32: tuple[str, ...] = ()  # parts of the solution that are, where scores are asked for in float32
    _solved: tuple[str | None, Any]  # the parameters it was solved for, and the solution

    def _statistics(self, block: Predictions) -> Any:
        raise NotImplementedError

    def _solve(self, statistics: Any) -> Any:
        raise NotImplementedError

    def _apply(self, block: Predictions, solution: Any) -> NDArray[np.float64]:
        raise NotImplementedError

    def _contributions(self, block: Predictions, solution: Any, label: int) -> Contributions:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse what the constructor stored and no solution can be found with."""

    def _first_round(self, source: Source) -> None:
        """Find out what must be known of all instances before their statistics can be gathered."""

    def _checked(self, predictions: Any) -> Any:
        self._check_parameters()
        panel = as_predictions(predictions)
        if panel.clusters and not self._uses_clusterings:
            raise InputError(f"{type(self).__name__}: found clusterings, which it cannot use, expected MLCMr or BGCM")
        return panel

    def fit(self, predictions: Any, y: object = None) -> Self:
        """Gather the statistics of `predictions`, in place of any fitted before.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes.
        y
            Ignored; here for scikit-learn's conventions.
        """
        self._first_round(panel := self._checked(predictions))
        self._take(panel, gather(panel, self._bare()._statistics), len(panel))
        return self

    def partial_fit(self, predictions: Any, y: object = None) -> Self:
        """Add the statistics of `predictions` to those fitted before; in the end as if all had come at once.

        What takes a round of its own over all instances (bringing scores to one scale in `RaterFilter`) is left out,
        unless a `fit` came before, whose scales are then kept.
        """
        panel = self._checked(predictions)
        if not hasattr(self, "models_"):
            self._take(panel, gather(panel, self._bare()._statistics), len(panel))
            return self
        if not hasattr(self, "statistics_"):
            raise InputError("partial_fit: found a solved model, which has no statistics, expected some to add to")
        if self.n_instances_ is None:
            raise InputError("partial_fit: found private statistics, expected exact ones, as what is added is exact")
        panel = self._in_fitted_order(panel)
        statistics = merge(self.statistics_, gather(panel, self._bare()._statistics))
        self._take(panel, statistics, self.n_instances_ + len(panel))
        return self

    def transform(self, predictions: Any, dtype: Any = np.float64) -> Any:
        """Return consensus scores (n, l), higher = more relevant, also of instances never seen in `fit`.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes; the models and labels that were fitted.
        dtype
            What the scores are returned as; ``numpy.float32`` takes half the memory, and linear methods are worked out
            in it.
        """
        check_is_fitted(self, "models_")
        panel = self._in_fitted_order(as_predictions(predictions))
        return spread(panel, self.applying(dtype), dtype)

    def fit_transform(self, predictions: Any, y: object = None, **fit_params: Any) -> NDArray[np.float64]:
        """Fit to `predictions` and return their consensus scores."""
        panel = as_predictions(predictions)
        scores: NDArray[np.float64] = self.fit(panel).transform(panel)
        return scores

    def predict(self, predictions: Any) -> NDArray[np.bool_]:
        """Return label sets (n, l): for each instance as many top labels as the models gave it on average."""
        panel = as_predictions(predictions)
        check_is_fitted(self, "models_")
        panel = self._in_fitted_order(panel)
        return spread(panel, partial(_label_sets, self.applying()), bool)

    def applying(self, dtype: Any = np.float64) -> Callable[[Predictions], NDArray[np.float64]]:
        """Return what turns a block into its scores, light enough to be sent to another process."""
        solution = self.solution_
        if np.dtype(dtype) == np.float32:
            parts = {name: getattr(solution, name) for name in self._in_float32}
            cast = {name: part.astype(np.float32) for name, part in parts.items() if part is not None}
            solution = solution._replace(**cast) if cast else solution
        return partial(self._bare()._apply, solution=solution)

    def explain(self, predictions: Any, instance: int | str, label: int | str) -> Explanation:
        """Say which model's which statement raised or lowered a score, and by how much, against plain voting.

        Parameters
        ----------
        predictions
            What `transform` takes; the instance must be in it.
        instance, label
            Their names. A label without a name of its own may be given by its position.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel, _ = mlc.datasets.make_panel(random_state=0)
        >>> why = mlc.RaterFilter().fit(panel).explain(panel, instance=0, label="label_3")
        >>> bool(abs(why.baseline + why.contributions.sum() + why.remainder - why.score) < 1e-10)
        True
        """
        from . import name_of  # which imports this file

        solution = self.solution_
        panel = self._in_fitted_order(as_predictions(predictions))
        block, column = one_instance(panel, instance), label_position(panel.labels, label)
        score = float(self._apply(block, solution)[0, column])
        return describe(panel, block, column, name_of(self), score, self._contributions(block, solution, column))

    @classmethod
    def from_statistics(
        cls, statistics: Any, *, models: Sequence[str], labels: Sequence[str], n_instances: int, **parameters: Any
    ) -> Self:
        """Make a fitted combiner of statistics that were gathered elsewhere.

        Parameters
        ----------
        statistics
            What another combiner of this class has as `statistics_`, or a sum of such (`statistics.merge`).
        models, labels
            Their names, in the order of the statistics.
        n_instances
            How many instances the statistics are of.
        **parameters
            What the constructor takes.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> panel, _ = mlc.datasets.make_panel(random_state=0)
        >>> here, there = mlc.MLCMr().fit(panel[:400]), mlc.MLCMr().fit(panel[400:])
        >>> both = mlc.MLCMr.from_statistics(
        ...     merge(here.statistics_, there.statistics_), models=panel.models, labels=panel.labels, n_instances=1000
        ... )
        >>> abs(both.transform(panel) - mlc.mlcm_r(panel)).max() < 1e-10
        np.True_
        """
        from ..sites.state import fitted

        return fitted(cls(**parameters), tuple(models), tuple(labels), n_instances, statistics=statistics)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the solved model, all that `transform` needs and no statistics, for `mlconsensus.load`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mlconsensus as mlc
        >>> panel, _ = mlc.datasets.make_panel(random_state=0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "consensus.model"
        >>> combiner = mlc.MLCMr().fit(panel)
        >>> combiner.save(path)
        >>> (mlc.load(path).transform(panel) == combiner.transform(panel)).all()
        np.True_
        """
        from ..sites.state import save_model

        save_model(self, path, force=force)

    def save_statistics(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the statistics, for `mlconsensus.load` and `mlconsensus.merge`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mlconsensus as mlc
        >>> panel, _ = mlc.datasets.make_panel(random_state=0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.stats"
        >>> mlc.MLCMr().fit(panel).save_statistics(path)
        >>> mlc.load(path).n_instances_
        1000
        """
        from ..sites.state import save_statistics

        save_statistics(self, path, force=force)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the names of the columns that `transform` gives: the labels."""
        check_is_fitted(self, "models_")
        return np.array(self.labels_, dtype=object)

    @property
    def solution_(self) -> Any:
        """What `_solve` makes of the statistics; worked out when first needed, since pieces may still arrive."""
        check_is_fitted(self, "models_")
        key = self._parameters_key()
        if getattr(self, "_solved", (None, None))[0] != key:
            if not hasattr(self, "statistics_"):
                raise InputError(
                    "parameters: found others than the model was solved for, expected the same, as it has no statistics"
                )
            self._solved = key, self._solve(self._sums())
        return self._solved[1]

    def _parameters_key(self) -> str:
        return repr(sorted(self.get_params().items()))

    def _sums(self) -> Any:
        """Return the statistics as `_solve` takes them: private ones cleared of what is mere noise."""
        if self.privacy_ is None:
            return self.statistics_
        from ..sites.privacy import cleared

        return cleared(self)

    def _bare(self) -> Self:
        """Return a copy without the sums and what was solved from them, which blocks are gathered and applied with."""
        bare = copy(self)
        for name in ("statistics_", "_solved"):
            bare.__dict__.pop(name, None)
        return bare

    def _take(self, panel: Predictions, statistics: Any, n_instances: int) -> None:
        self.models_, self.labels_, self.clusters_ = panel.models, panel.labels, panel.clusters
        self.statistics_, self.n_instances_ = statistics, n_instances
        self.privacy_, self._solved = None, (None, None)

    def _in_fitted_order(self, panel: Predictions) -> Predictions:
        """Reorder models and labels by name to the fitted order; refuse others."""
        for what, found, fitted in (
            ("models", panel.models, self.models_),
            ("labels", panel.labels, self.labels_),
        ):
            if len(found) != len(fitted):
                raise InputError(f"{what}: found {len(found)}, expected the {len(fitted)} that were fitted")
            strange = set(found) - set(fitted)
            if strange:
                absent = sorted(set(fitted) - set(found))[0]
                raise InputError(f"{what}: found {min(strange)!r}, expected {absent!r} as was fitted")
        if panel.clusters != self.clusters_:
            raise InputError(
                f"clusters: found {len(panel.clusters)}, expected the same {len(self.clusters_)} that were fitted"
            )
        return panel.select(models=self.models_, labels=self.labels_)


def _label_sets(apply: Callable[[Predictions], NDArray[np.float64]], block: Predictions) -> NDArray[np.bool_]:
    return match_instances(apply(block), cardinalities(block))
