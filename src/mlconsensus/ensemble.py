"""`ConsensusClassifier`: an ensemble of multilabel classifiers for scikit-learn."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble._base import _BaseHeterogeneousEnsemble
from sklearn.utils import Bunch, Tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .combiners.base import BaseCombiner
from .combiners.registry import Method, make_combiner
from .combiners.weighted_consensus import WeightedConsensus
from .decision.label_sets import cardinalities, match_instances
from .errors import InputError
from .predictions import Array, FloatArray, Predictions
from .predictions.families import FamiliesLike, merge_stated_families

# Probabilities are at least this and at most 1 minus this, so that their logarithms
# are finite.
_SMALLEST_PROBABILITY = 1e-12


class ConsensusClassifier(ClassifierMixin, _BaseHeterogeneousEnsemble):  # type: ignore[misc]
    """Fit multilabel classifiers and combine their predictions.

    It is to multilabel targets what scikit-learn's `VotingClassifier` is to others. A
    `y` with one class per instance is accepted, too; the classes are then ranked.

    The scores of a classifier are its `predict_proba`, in either of scikit-learn's two
    forms. A classifier without it is asked for its `decision_function`, which goes
    through the logistic function, or else for its `predict`.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and classifiers. Clones of the classifiers are fitted. ``"drop"`` in place
        of a classifier leaves it out.
    combiner : BaseCombiner or str, default=None
        A combiner or the name of a method. By default, the method that `combine` would
        choose.
    prefit : bool, default=False
        Whether the classifiers are fitted already and stay as they are. `fit` then only
        fits the combiner to their predictions for its `X`, and needs no `y`.
    families : None, "independent", "by-name" or mapping, default=None
        Which classifiers are related, as in `combine`.

    Attributes
    ----------
    estimators_ : list of estimator
        The fitted classifiers.
    named_estimators_ : Bunch
        The fitted classifiers by name.
    combiner_ : BaseCombiner
        The fitted combiner.
    classifier_names_ : tuple of str
        Names of the classifiers that are combined.
    labels_ : tuple of str
        Names of the labels: columns of the `y` that was fitted, if it was a DataFrame.
    classes_ : list of ndarray, or ndarray of shape (l,)
        0 and 1 for each label, as in scikit-learn's multilabel classifiers; or the
        classes.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_multilabel_classification(random_state=0)
    >>> ensemble = mlc.ConsensusClassifier(
    ...     [("tree", DecisionTreeClassifier()), ("near", KNeighborsClassifier())]
    ... )
    >>> ensemble.fit(X, y).predict(X).shape
    (100, 5)
    """

    def __init__(
        self,
        estimators: list[tuple[str, BaseEstimator]],
        combiner: Method = None,
        prefit: bool = False,
        families: FamiliesLike = None,
    ) -> None:
        super().__init__(estimators=estimators)
        self.combiner = combiner
        self.prefit = prefit
        self.families = families

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, **fit_params: object
    ) -> Self:
        """Fit the classifiers, and the combiner to their predictions for `X`.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Features, in any form that the classifiers accept.
        y : array-like of shape (n, l) or (n,), default=None
            Relevant labels, 0/1 or bool, dense, sparse or a DataFrame; or classes. Not
            needed with `prefit`.
        **fit_params
            For the `fit` of each classifier, such as `sample_weight`. With metadata
            routing, only for classifiers that request it.

        Returns
        -------
        self : object
        """
        names, estimators = self._validate_estimators()
        classifiers = {}
        for name, estimator in zip(names, estimators, strict=True):
            if not isinstance(estimator, str):  # "drop"
                classifiers[name] = estimator

        target = None
        if not self.prefit or y is not None:
            target = _check_target(y)
        if not self.prefit:
            classifiers = self._fit_classifiers(classifiers, X, target, fit_params)
        self._set_classifiers(classifiers)

        # Without a target, the predictions show whether there are several labels.
        first = self.estimators_[0]
        shown = target
        if shown is None:
            shown = first.predict(X)
        is_multilabel = shown.ndim == 2
        labels = None
        columns = getattr(y, "columns", None)
        if is_multilabel and columns is not None:
            labels = [str(name) for name in columns]

        predictions = Predictions(
            [_compute_scores(classifier, X) for classifier in self.estimators_],
            models=list(classifiers),
            labels=labels,
        )
        method = self.combiner
        if method is not None and not isinstance(method, str):
            method = clone(method)
        combiner = make_combiner(method, self.families)
        self.combiner_ = combiner.fit(self._merge_families(combiner, predictions))
        self.classifier_names_ = predictions.models
        self.labels_ = predictions.labels
        if is_multilabel:
            self.classes_ = [np.array([0, 1])] * len(predictions.labels)
        else:
            self.classes_ = first.classes_
        return self

    def panel(self, X: ArrayLike) -> Predictions:
        """Return the classifiers' predictions, to combine, explain or report them.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Features, in any form that the classifiers accept.

        Returns
        -------
        Predictions
            Scores of the classifiers, under their names.
        """
        check_is_fitted(self)
        scores = [_compute_scores(classifier, X) for classifier in self.estimators_]
        return Predictions(scores, models=self.classifier_names_, labels=self.labels_)

    def predict(self, X: ArrayLike) -> Array:
        """Return label sets, with as many labels as the classifiers give on average.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Features, in any form that the classifiers accept.

        Returns
        -------
        ndarray of shape (n, l) or (n,)
            1 for the labels of an instance, 0 for others; or the class with the highest
            score, if `y` had one class per instance.
        """
        check_is_fitted(self)
        if isinstance(self.classes_, list):
            # As for any classifier, the labels of an instance do not depend on others.
            predictions = self._merge_families(self.combiner_, self.panel(X))
            scores = self.combiner_.transform(predictions)
            label_sets = match_instances(scores, cardinalities(predictions))
            return np.asarray(label_sets, dtype=np.int64)
        return np.asarray(self.classes_[self._combine(X).argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return consensus scores, clipped to [0, 1]. They are not calibrated.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Features, in any form that the classifiers accept.

        Returns
        -------
        ndarray of shape (n, l)
            Rows sum to 1 if `y` had one class per instance.
        """
        scores = np.clip(
            self._combine(X), _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY
        )
        if isinstance(self.classes_, list):
            return scores
        return scores / scores.sum(axis=1, keepdims=True)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return consensus scores; higher scores are more relevant.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Features, in any form that the classifiers accept.

        Returns
        -------
        ndarray of shape (n, l) or (n,)
            If `y` had one class per instance: the result of `predict_proba`, or the
            difference of its two columns for two classes.
        """
        check_is_fitted(self)
        if isinstance(self.classes_, list):
            return self._combine(X)

        probabilities = self.predict_proba(X)
        if len(self.classes_) != 2:
            return probabilities
        return probabilities[:, 1] - probabilities[:, 0]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return that `fit` passes metadata to the `fit` of the classifiers."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self)
        return router.add(**dict(self.estimators), method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.required = not self.prefit
        return tags

    def _fit_classifiers(
        self,
        classifiers: dict[str, BaseEstimator],
        X: ArrayLike,
        target: Array | None,
        fit_params: dict[str, object],
    ) -> dict[str, BaseEstimator]:
        """Return fitted clones of the classifiers, by name."""
        routing = None
        if get_config()["enable_metadata_routing"]:
            routing = process_routing(self, "fit", **fit_params)

        fitted = {}
        for name, classifier in classifiers.items():
            params = fit_params
            if routing is not None:
                params = routing[name].fit
            fitted[name] = clone(classifier).fit(X, target, **params)
        return fitted

    def _set_classifiers(self, classifiers: dict[str, BaseEstimator]) -> None:
        """Set the attributes that scikit-learn's ensembles have."""
        self.estimators_ = list(classifiers.values())
        self.named_estimators_ = Bunch(**dict(self.estimators) | classifiers)
        first = self.estimators_[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))

    def _combine(self, X: ArrayLike) -> FloatArray:
        """Return the consensus scores (n, l)."""
        predictions = self.panel(X)  # first, as it checks that all is fitted
        predictions = self._merge_families(self.combiner_, predictions)
        return np.asarray(self.combiner_.transform(predictions))

    def _merge_families(
        self, combiner: BaseCombiner, predictions: Predictions
    ) -> Predictions:
        """Return the combiner's input: a stated family is one model for most methods.

        Weighted consensus weights the members of a family itself.
        """
        if isinstance(combiner, WeightedConsensus):
            return predictions
        return merge_stated_families(predictions, self.families)


def _check_target(y: ArrayLike | None) -> Array:
    """Return `y` as classes (n,) or as 0 and 1 (n, l); other targets are an error."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        return _to_dense(y).astype(np.int64)
    if kind not in ("binary", "multiclass"):
        raise InputError(
            where="y",
            found=f"a {kind} target",
            expected="a binary matrix (n, l), or classes (n,)",
        )
    return np.asarray(column_or_1d(y, warn=True))


def _compute_scores(classifier: BaseEstimator, X: ArrayLike) -> Array:
    """Return a fitted classifier's scores of labels or classes (n, l), in [0, 1]."""
    if hasattr(classifier, "predict_proba"):
        scores = classifier.predict_proba(X)
        if isinstance(scores, list):
            scores = _select_relevant(scores, classifier.classes_)
    elif hasattr(classifier, "decision_function"):
        scores = special.expit(classifier.decision_function(X))
        if scores.ndim == 1:  # two classes
            scores = np.stack([1 - scores, scores], axis=1)
    else:
        scores = classifier.predict(X)
        if scores.ndim == 1:
            scores = scores[:, np.newaxis] == classifier.classes_
    return np.asarray(np.clip(_to_dense(scores), 0, 1))


def _select_relevant(probabilities: list[FloatArray], classes: list[Array]) -> Array:
    """Return the probability of 1 for each label (n, l).

    A label that all training instances have, or none, has one class only.
    """
    columns = []
    for label_probabilities, label_classes in zip(probabilities, classes, strict=True):
        columns.append(label_probabilities @ (label_classes == 1))
    return np.stack(columns, axis=1)


def _to_dense(matrix: object) -> Array:
    """Return a matrix that may be sparse as an array."""
    if sparse.issparse(matrix):
        matrix = sparse.csr_array(matrix).toarray()
    return np.asarray(matrix)
