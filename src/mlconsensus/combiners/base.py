"""What every combiner shares: the route statistics → merge → solve → apply as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..decisions import cardinalities, match_instances
from ..engines.local import gather, spread
from ..errors import InputError
from ..predictions import Predictions, as_predictions
from ..statistics import merge


class Combiner(TransformerMixin, BaseEstimator):
    """Base of all combiners; a subclass brings `_statistics`, `_solve` and `_apply`.

    Attributes
    ----------
    statistics_
        Sums over the fitted instances; all that `fit` learns.
    models_, labels_
        Names that `transform` expects, in this order.
    n_instances_
        How many instances have been fitted.
    """

    statistics_: Any
    models_: tuple[str, ...]
    labels_: tuple[str, ...]
    n_instances_: int
    _solved: tuple[str | None, Any]  # the parameters it was solved for, and the solution

    def _statistics(self, block: Predictions) -> Any:
        raise NotImplementedError

    def _solve(self, statistics: Any) -> Any:
        raise NotImplementedError

    def _apply(self, block: Predictions, solution: Any) -> NDArray[np.float64]:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse what the constructor stored and no solution can be found with."""

    def fit(self, predictions: Any, y: object = None) -> Self:
        """Gather the statistics of `predictions`, in place of any fitted before.

        Parameters
        ----------
        predictions
            `Predictions`, or anything that its constructor takes.
        y
            Ignored; here for scikit-learn's conventions.
        """
        self._check_parameters()
        panel = as_predictions(predictions)
        self._take(panel, gather(panel, self._statistics), len(panel))
        return self

    def partial_fit(self, predictions: Any, y: object = None) -> Self:
        """Add the statistics of `predictions` to those fitted before; in the end as if all had come at once."""
        panel = as_predictions(predictions)
        if not hasattr(self, "statistics_"):
            return self.fit(panel)
        panel = self._in_fitted_order(panel)
        statistics = merge(self.statistics_, gather(panel, self._statistics))
        self._take(panel, statistics, self.n_instances_ + len(panel))
        return self

    def transform(self, predictions: Any) -> NDArray[np.float64]:
        """Return consensus scores (n, l), higher = more relevant, also of instances never seen in `fit`."""
        check_is_fitted(self, "statistics_")
        panel = self._in_fitted_order(as_predictions(predictions))
        solution = self.solution_
        return spread(panel, lambda block: self._apply(block, solution))

    def fit_transform(self, predictions: Any, y: object = None, **fit_params: Any) -> NDArray[np.float64]:
        """Fit to `predictions` and return their consensus scores."""
        panel = as_predictions(predictions)
        return self.fit(panel).transform(panel)

    def predict(self, predictions: Any) -> NDArray[np.bool_]:
        """Return label sets (n, l): for each instance as many top labels as the models gave it on average."""
        panel = as_predictions(predictions)
        check_is_fitted(self, "statistics_")
        panel = self._in_fitted_order(panel)
        solution = self.solution_
        scores = spread(panel, lambda block: self._apply(block, solution))
        return match_instances(scores, cardinalities(panel))

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the names of the columns that `transform` gives: the labels."""
        check_is_fitted(self, "statistics_")
        return np.array(self.labels_, dtype=object)

    @property
    def solution_(self) -> Any:
        """What `_solve` makes of the statistics; worked out when first needed, since pieces may still arrive."""
        check_is_fitted(self, "statistics_")
        key = repr(sorted(self.get_params().items()))
        if getattr(self, "_solved", (None, None))[0] != key:
            self._solved = key, self._solve(self.statistics_)
        return self._solved[1]

    def _take(self, panel: Predictions, statistics: Any, n_instances: int) -> None:
        self.models_, self.labels_ = panel.models, panel.labels
        self.statistics_, self.n_instances_ = statistics, n_instances
        self._solved = (None, None)

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
        return panel.select(models=self.models_, labels=self.labels_)
