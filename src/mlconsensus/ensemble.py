"""`ConsensusClassifier`: multilabel classifiers in, their consensus out, as scikit-learn's `VotingClassifier` votes."""

from typing import Any, Self

import numpy as np
from scipy import sparse, special
from sklearn import get_config
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble._base import _BaseHeterogeneousEnsemble
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .choosing import choose
from .errors import InputError
from .predictions import Array, FloatArray, Predictions

# no label is impossible or certain, so that logarithms of probabilities are finite
_LEAST = 1e-12


class ConsensusClassifier(ClassifierMixin, _BaseHeterogeneousEnsemble):  # type: ignore[misc]
    """Fit multilabel classifiers and combine what they say, where `VotingClassifier` takes no multilabel `y`.

    A `y` with one class for each instance is taken too; the classes are then what is
    ranked.

    What each says is taken from its `predict_proba`, in either form that scikit-learn
    has; else from its `decision_function`, through the logistic function; else from
    `predict`.

    Parameters
    ----------
    estimators
        Pairs (name, classifier). Clones of them are fitted; ``"drop"`` in place of a
        classifier leaves it out.
    combiner
        A combiner, or the name of its method; ``None``: what `combine` would choose.
    prefit
        Whether the classifiers are fitted already and stay as they are. `fit` then only
        fits the combiner, to what they say of its `X`; it needs no `y`.

    Attributes
    ----------
    estimators_, named_estimators_
        The fitted classifiers.
    combiner_
        The fitted combiner.
    labels_
        Names of the labels: columns of the `y` that was fitted, if it was a DataFrame.
    classes_
        For each label, that it can be 0 or 1, as scikit-learn's multilabel classifiers
        have it; or the classes (l,).

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_multilabel_classification(random_state=0)
    >>> ensemble = mlc.ConsensusClassifier([("tree", DecisionTreeClassifier()), ("near", KNeighborsClassifier())])
    >>> ensemble.fit(X, y).predict(X).shape
    (100, 5)
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        combiner: Any = None,
        prefit: bool = False,
    ) -> None:
        super().__init__(estimators=estimators)
        self.combiner = combiner
        self.prefit = prefit

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Fit the classifiers, and the combiner to what they say of `X`.

        Parameters
        ----------
        X
            Features (n, …), whatever the classifiers take.
        y
            Relevant labels (n, l), 0/1 or bool, dense or scipy.sparse, or a DataFrame;
            or classes (n,). Not needed with `prefit`.
        **fit_params
            For the `fit` of every classifier, such as `sample_weight`; of those that
            ask for it, if metadata routing is enabled.

        Returns
        -------
        The ensemble itself.
        """
        names, given = self._validate_estimators()
        members = {
            name: one
            for name, one in zip(names, given, strict=True)
            if not isinstance(one, str)
        }
        if self.prefit and y is None:
            known = None
        else:
            known = self._target(y)

        if not self.prefit:
            if get_config()["enable_metadata_routing"]:
                routed = process_routing(self, "fit", **fit_params)
            else:
                routed = None

            members = {
                name: clone(one).fit(
                    X, known, **(routed[name].fit if routed else fit_params)
                )
                for name, one in members.items()
            }

        self.estimators_, self.named_estimators_ = (
            list(members.values()),
            Bunch(**dict(self.estimators) | members),
        )
        first = self.estimators_[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))

        several = (first.predict(X) if known is None else known).ndim == 2
        if several and hasattr(y, "columns"):
            labels = [str(name) for name in y.columns]
        else:
            labels = None

        panel = Predictions(
            [self._said(one, X) for one in self.estimators_],
            models=list(members),
            labels=labels,
        )
        if self.combiner is None or isinstance(self.combiner, str):
            wanted = self.combiner
        else:
            wanted = clone(self.combiner)

        self.combiner_ = choose(panel, method=wanted).combiner.fit(panel)
        self.labels_ = panel.labels
        if several:
            self.classes_ = [np.array([0, 1])] * len(panel.labels)
        else:
            self.classes_ = first.classes_

        return self

    def panel(self, X: Any) -> Predictions:
        """Return what the classifiers say of `X`, to combine, explain or report as any panel.

        Parameters
        ----------
        X
            Features (n, …), whatever the classifiers take.

        Returns
        -------
        Predictions of the classifiers, under their names.
        """
        check_is_fitted(self)
        said = [self._said(one, X) for one in self.estimators_]
        return Predictions(said, models=self.combiner_.models_, labels=self.labels_)

    def predict(self, X: Any) -> Array:
        """Return label sets (n, l) of 0 and 1: as many top labels as the classifiers give an instance on average.

        Parameters
        ----------
        X
            Features (n, …), whatever the classifiers take.

        Returns
        -------
        ndarray (n, l); the class of highest score (n,), if `fit` saw a `y` with one
        class for each instance.
        """
        check_is_fitted(self)
        if isinstance(self.classes_, list):
            return np.asarray(self.combiner_.predict(self.panel(X)), dtype=np.int64)
        return np.asarray(self.classes_[self._scores(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return consensus scores, cut to between 0 and 1; they rank labels and are not calibrated.

        Parameters
        ----------
        X
            Features (n, …), whatever the classifiers take.

        Returns
        -------
        ndarray (n, l); rows sum to 1, if `fit` saw a `y` with one class for each
        instance.
        """
        scores = np.clip(self._scores(X), _LEAST, 1 - _LEAST)
        if isinstance(self.classes_, list):
            return scores
        return scores / scores.sum(axis=1, keepdims=True)

    def decision_function(self, X: Any) -> FloatArray:
        """Return consensus scores, higher = more relevant.

        Parameters
        ----------
        X
            Features (n, …), whatever the classifiers take.

        Returns
        -------
        ndarray (n, l). If `fit` saw a `y` with one class for each instance: what
        `predict_proba` gives, of two classes their difference (n,).
        """
        check_is_fitted(self)
        if isinstance(self.classes_, list):
            return self._scores(X)

        found = self.predict_proba(X)
        if len(self.classes_) != 2:
            return found
        return found[:, 1] - found[:, 0]

    def _scores(self, X: Any) -> FloatArray:
        panel = self.panel(X)  # which says so first if nothing is fitted
        return np.asarray(self.combiner_.transform(panel))

    def get_metadata_routing(self) -> MetadataRouter:
        """Say that `fit` passes metadata on to the `fit` of the classifiers that ask for it."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(
            **dict(self.estimators), method_mapping=mapping
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.required = not self.prefit
        return tags

    def _target(self, y: Any) -> Array:
        """Return `y` as classes (n,) or a matrix of 0 and 1 (n, l); refuse other targets."""
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            return np.asarray(y.toarray() if sparse.issparse(y) else y).astype(np.int64)
        if kind not in ("binary", "multiclass"):
            raise InputError(
                where="y",
                found=f"a {kind} target",
                expected="a binary matrix (n, l), or classes (n,)",
            )

        return np.asarray(column_or_1d(y, warn=True))

    def _said(self, estimator: Any, X: Any) -> Array:
        """Return what a fitted classifier says of each instance and label or class (n, l), within 0 and 1."""
        if hasattr(estimator, "predict_proba"):
            found = estimator.predict_proba(X)
            if isinstance(
                found, list
            ):  # a label that was never, or always, there has one class only
                found = np.stack(
                    [
                        p @ (own == 1)
                        for p, own in zip(found, estimator.classes_, strict=True)
                    ],
                    axis=1,
                )
        elif hasattr(estimator, "decision_function"):
            found = special.expit(estimator.decision_function(X))
            if found.ndim == 1:
                found = np.stack([1 - found, found], axis=1)
        else:
            found = estimator.predict(X)
            if found.ndim == 1:
                found = found[:, None] == estimator.classes_

        return np.asarray(
            np.clip(found.toarray() if sparse.issparse(found) else found, 0, 1)
        )
