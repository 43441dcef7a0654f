"""Explanations of a score: how much each prediction of a model contributes to it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import NoReturn

import numpy as np

from ..combiners.base import BaseCombiner
from ..combiners.contributions import Contributions, Scale
from ..combiners.majority_vote import MajorityVote
from ..errors import InputError, nearest
from ..metrics.tables import plain
from ..predictions import (
    BasePredictions,
    BoolArray,
    FloatArray,
    IntArray,
    Predictions,
    as_names,
)
from ..text import shown, table

# Largest number of names among which a similar one is searched; more take seconds.
_MOST_SEARCHED = 20_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """One prediction of a model for one label, and its contribution to the score."""

    model: str  # or the cluster that contains the instance
    label: str  # empty for a cluster, which has no labels
    said: float | None  # the score that the model predicts; None if it is missing
    contribution: float  # to the consensus
    vote: float  # to the majority vote


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a label has its score: an exact sum over the models' predictions.

    Attributes
    ----------
    method : str
        Name of the method.
    instance : int or str
        Name of the instance.
    label : str
        Name of the label.
    score, vote : float
        The scores of the consensus and of majority voting.
    scale : {"score", "log-odds"}
        Whether the parts sum to the score or to its log-odds, as Dawid–Skene's do.
    baseline : float
        Where the sum starts without predictions, such as the label's frequency.
    remainder : float
        Correction of the sum by the method: the default method replaces negative scores
        by 0.
    contributions : ndarray of shape (m, l)
        Contribution of each prediction, 0 where it is missing.
    said : ndarray of shape (m, l)
        The predictions, NaN where they are missing.
    models, labels : tuple of str
        Names of the rows and columns.
    clusters : dict of str to float
        Contribution of each cluster that contains the instance, if the method uses
        clusterings.
    in_label_set : bool or None
        Whether the label is in the instance's label set; None if the explanation is not
        by a `Consensus`.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> scores = [[[1, 1], [1, 0]], [[0, 1], [1, 0]]]
    >>> panel = mlc.Predictions(scores, models=["ana", "bert"], labels=["news", "war"])
    >>> print(mlc.explain(mlc.MLCMr().fit(panel), panel, 0, "news").to_text())
    instance 0, label news: 0.3462 by mlcm_r, 0.5000 by voting
    <BLANKLINE>
    model  label  said  consensus   voting
    ana    news      1    +0.2692  +0.5000
    ana    war       1    +0.0385
    bert   war       1    +0.0385
    bert   news      0     0.0000   0.0000
    sum                    0.3462   0.5000
    """

    method: str
    instance: int | str
    label: str
    score: float
    vote: float
    scale: Scale
    baseline: float
    remainder: float
    contributions: FloatArray
    said: FloatArray
    models: tuple[str, ...]
    labels: tuple[str, ...]
    clusters: dict[str, float] = field(default_factory=dict)
    in_label_set: bool | None = None

    @property
    def total(self) -> float:
        """The sum of all parts: the score, or its log-odds."""
        return math.fsum([self.baseline, self.sum_others([]), self.remainder])

    def sum_others(self, parts: Sequence[Part]) -> float:
        """Sum the contributions of all predictions and clusters except `parts`."""
        terms = self.contributions.ravel().tolist()
        terms += self.clusters.values()
        terms += [-part.contribution for part in parts]
        return math.fsum(terms)

    @cached_property
    def is_relevant(self) -> BoolArray:
        """Which predictions (m, l) are parts.

        These are all that contribute, and all for the label by models that have
        predicted any label of the instance.
        """
        has_predictions = ~np.isnan(self.said).all(axis=1)
        is_label = np.array(self.labels, dtype=object) == self.label
        is_contributing = self.contributions != 0
        return np.asarray(is_contributing | np.outer(has_predictions, is_label))

    @cached_property
    def parts(self) -> list[Part]:
        """The relevant predictions and the clusters.

        Positive predictions of the label are first, then the others; both are sorted by
        the size of their contributions.
        """
        return self.select_parts(None)

    def select_parts(self, most: int | None) -> list[Part]:
        """Return the first of the `parts`, at most so many."""
        label = self.labels.index(self.label)
        models, labels = self._sort_predictions(label, most)

        # Each model's share of the majority vote
        is_present = ~np.isnan(self.said[:, label])
        n_predictions = max(int(is_present.sum()), 1)
        votes = np.where(is_present, self.said[:, label], 0.0) / n_predictions

        # Lists are faster than arrays to read one by one, and there can be thousands.
        scores = self.said[models, labels].tolist()
        contributions = self.contributions[models, labels].tolist()
        vote_parts = (votes[models] * (labels == label)).tolist()
        parts = []
        for position, (k, j) in enumerate(
            zip(models.tolist(), labels.tolist(), strict=True)
        ):
            score: float | None = scores[position]
            if math.isnan(scores[position]):
                score = None
            part = Part(
                model=self.models[k],
                label=self.labels[j],
                said=score,
                contribution=contributions[position],
                vote=vote_parts[position],
            )
            parts.append(part)

        for name, contribution in self.clusters.items():
            part = Part(
                model=name, label="", said=1.0, contribution=contribution, vote=0.0
            )
            parts.append(part)

        return sorted(parts, key=self._sort_key)[:most]

    def _sort_predictions(
        self, label: int, most: int | None
    ) -> tuple[IntArray, IntArray]:
        """Return the models and labels of the relevant predictions, in their order."""
        models, labels = np.nonzero(self.is_relevant)
        is_other_label = labels != label
        is_positive = self.said[models, labels] >= 0.5
        size = np.abs(self.contributions[models, labels])
        order = np.lexsort((is_other_label, -size, is_other_label | ~is_positive))
        order = order[:most]
        return models[order], labels[order]

    def _sort_key(self, part: Part) -> tuple[bool, float, bool]:
        """Return a key that sorts as `_sort_predictions` does."""
        is_label = part.label == self.label
        is_positive = part.said is not None and part.said >= 0.5
        return not (is_label and is_positive), -abs(part.contribution), not is_label

    def to_dict(self) -> dict[str, object]:
        """Return the explanation as JSON types, without the arrays.

        Infinite log-odds, of labels that are never or always relevant, are None.

        Returns
        -------
        dict of str to object
            The fields by name, and ``parts``, a list of dicts.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> why = mlc.explain(mlc.MajorityVote().fit([[[1]]]), [[[1]]], 0, 0)
        >>> why.to_dict()["parts"]  # doctest: +NORMALIZE_WHITESPACE
        [{'model': 'model_0', 'label': 'label_0', 'said': 1.0, 'contribution': 1.0,
          'vote': 1.0}]
        """
        names = (
            "method",
            "instance",
            "label",
            "in_label_set",
            "score",
            "vote",
            "scale",
            "baseline",
            "remainder",
            "parts",
        )
        return {name: plain(getattr(self, name)) for name in names}

    def to_text(self, most: int = 12) -> str:
        """Return a table for a terminal.

        Parameters
        ----------
        most : int, default=12
            Maximum number of parts with a row each; the others share one.

        Returns
        -------
        str
            Lines of text. The last row of the table is the sum.
        """
        title = str(self.scale)
        if title == "score":
            title = "consensus"
        heads = ("model", "label", "said", title, "voting")
        lines = [self._title(), "", table(heads, self._rows(most), n_left=2)]
        if self.scale == "log-odds":
            lines += ["", self._note()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Explanation: {self._title()}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text(20))}</pre>"

    def _title(self) -> str:
        """Return one line with the scores and whether the label is in the label set."""
        title = (
            f"instance {shown(self.instance)}, label {shown(self.label)}: "
            f"{self.score:.4f} by {self.method}, {self.vote:.4f} by voting"
        )
        if self.in_label_set is None:
            return title
        if self.in_label_set:
            return f"{title}; in the label set"
        return f"{title}; not in the label set"

    def _rows(self, most: int) -> list[tuple[str, ...]]:
        """Return the rows of the table: baseline, first parts, the others, and sum."""
        parts = self.parts[:most]
        others = self.parts[most:]
        digits = _choose_digits([part.contribution for part in parts])
        rows: list[tuple[str, ...]] = []

        # Without predictions of the label, voting takes its mean score.
        is_unpredicted = True
        for part in self.parts:
            if part.label == self.label and part.said is not None:
                is_unpredicted = False

        if self.baseline or is_unpredicted:
            prior = ""
            if is_unpredicted:
                prior = _format_signed(self.vote, digits)
            baseline = _format_signed(self.baseline, digits)
            rows.append(("baseline", "", "", baseline, prior))

        for part in parts:
            rows.append(self._make_row(part, digits))
        if others:
            rows.append(self._make_row_of_others(others, digits))
        if self.remainder:
            remainder = _format_signed(self.remainder, digits)
            rows.append(("floor at 0", "", "", remainder, ""))

        total = f"{self.total:.{digits}f}"
        rows.append(("sum", "", "", total, f"{self.vote:.{digits}f}"))
        return rows

    def _make_row(self, part: Part, digits: int) -> tuple[str, ...]:
        """Return the row of one part."""
        score = "–"
        if part.said is not None:
            score = f"{part.said:.4g}"
        vote = ""
        if part.label == self.label:
            vote = _format_signed(part.vote, digits)
        contribution = _format_signed(part.contribution, digits)
        return shown(part.model, 30), shown(part.label, 30), score, contribution, vote

    def _make_row_of_others(
        self, others: Sequence[Part], digits: int
    ) -> tuple[str, ...]:
        """Return the row of all parts that have no row of their own."""
        contribution = math.fsum(part.contribution for part in others)
        votes = [part.vote for part in others if part.label == self.label]
        vote = ""
        if votes:
            vote = _format_signed(math.fsum(votes), digits)
        title = f"{len(others):,} more"
        return title, "", "", _format_signed(contribution, digits), vote

    def _note(self) -> str:
        """Return a sentence about the log-odds."""
        if math.isinf(self.baseline):
            how_often = "never"
            if self.baseline > 0:
                how_often = "always"
            return (
                f"{self.method} found the label to be {how_often} true, "
                "which no vote can change."
            )

        return (
            f"{self.method} adds up log-odds: {self.total:.4f} is a score of "
            f"{self.score:.4f}."
        )


def explain(
    combiner: BaseCombiner, predictions: object, instance: int | str, label: int | str
) -> Explanation:
    """Explain a score by the contribution of each model's predictions.

    Parameters
    ----------
    combiner : BaseCombiner
        A fitted combiner.
    predictions : Predictions or array-like
        Input of `transform` that contains the instance.
    instance : int or str
        Name of the instance.
    label : int or str
        Name of the label, or its position if labels have default names.

    Returns
    -------
    Explanation
        An exact sum, compared with majority voting.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> combiner = mlc.WeightedConsensus().fit(panel)
    >>> why = mlc.explain(combiner, panel, instance=0, label="label_3")
    >>> total = why.baseline + why.contributions.sum() + why.remainder
    >>> bool(abs(total - why.score) < 1e-10)
    True
    """
    if not isinstance(combiner, BaseCombiner):
        raise InputError(
            where="combiner",
            found=repr(combiner),
            expected="a fitted one, such as MLCMa().fit(panel)",
        )

    solution = combiner.solution_
    panel = combiner.in_fitted_order(predictions)
    selected = find_instance(panel, instance)
    column = find_label(panel.labels, label)

    block = combiner._make_block(selected.weighted(combiner.weights_))
    contributions = combiner._contributions(block, solution, column)
    scores = selected.to_array()[:, 0]

    # Without predictions of the label, voting takes its mean score over all instances.
    voters = selected
    if np.isnan(scores[:, column]).all():
        voters = panel
    return Explanation(
        method=combiner.identifier,
        instance=selected.instances.tolist()[0],
        label=panel.labels[column],
        score=float(combiner._apply(block, solution)[0, column]),
        vote=_compute_mean_vote(voters, panel.labels[column]),
        scale=contributions.scale,
        baseline=contributions.baseline,
        remainder=contributions.remainder,
        contributions=contributions.predictions,
        said=scores,
        models=panel.models,
        labels=panel.labels,
        clusters=_name_clusters(contributions, panel.clusters),
    )


def _compute_mean_vote(predictions: Predictions, label: str) -> float:
    """Return the mean score of a label over all predictions."""
    if predictions.clusters:
        predictions = predictions.without_clusterings()

    voting = MajorityVote().fit(predictions.weighted(None).select(labels=[label]))
    return float(voting.solution_.prior[0])


def _name_clusters(
    contributions: Contributions, names: Sequence[str]
) -> dict[str, float]:
    """Return the contributions of clusters that are not 0, by name."""
    if contributions.clusters is None:
        return {}

    values = contributions.clusters.tolist()
    return {name: value for name, value in zip(names, values, strict=True) if value}


def find_instance(panel: BasePredictions, name: int | str) -> Predictions:
    """Return the predictions of one instance.

    Parameters
    ----------
    panel : BasePredictions
        The predictions, in memory or in files.
    name : int or str
        Name of the instance.

    Returns
    -------
    Predictions
        Of shape (m, 1, l).

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel = mlc.Predictions([[[1], [0]]], instances=["a1", "a2"])
    >>> find_instance(panel, "a2").to_array()
    array([[[0.]]])
    >>> find_instance(panel, "b2")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: instance: found 'b2', expected one of 2 names, ...
    """
    searched: list[str] = []
    (name,) = as_names([name], "instance").tolist()
    blocks = [panel] if isinstance(panel, Predictions) else panel.blocks()
    for block in blocks:
        # The command line gives names of integers as strings.
        names = block.instances
        if names.dtype.kind != "T" and isinstance(name, str):
            names = names.astype(np.dtypes.StringDType())

        wanted = name
        if names.dtype.kind == "T":
            wanted = str(name)
        positions = np.flatnonzero(names == wanted)
        if len(positions):
            return block[positions]

        n_missing = _MOST_SEARCHED - len(searched)
        searched += map(str, names[:n_missing].tolist())

    return _refuse_name("instance", name, searched, len(panel))


def find_label(labels: tuple[str, ...], name: int | str) -> int:
    """Return the position of a label.

    Parameters
    ----------
    labels : tuple of str
        Names of the labels.
    name : int or str
        A name, or a position if labels have default names.

    Returns
    -------
    int

    Examples
    --------
    >>> find_label(("news", "war"), "war"), find_label(("label_0", "label_1"), 1)
    (1, 1)
    """
    for candidate in (str(name), f"label_{name}"):
        if candidate in labels:
            return labels.index(candidate)

    return _refuse_name("label", name, labels, len(labels))


def _refuse_name(kind: str, name: object, names: Sequence[str], count: int) -> NoReturn:
    """Raise an error about a name that does not exist."""
    expected = f"expected one of {count:,} names, such as {names[0]!r}"
    suggestion = nearest(str(name), names)
    raise InputError(f"{kind}: found {str(name)!r}, {expected}{suggestion}")


def _choose_digits(contributions: Sequence[float]) -> int:
    """Return how many decimals show three digits of the largest number: at least 4."""
    largest = max(map(abs, contributions), default=0.0)
    if largest == 0:
        return 4
    return min(max(4, 2 - math.floor(math.log10(largest))), 12)


def _format_signed(value: float, digits: int) -> str:
    """Return a number with its sign, without one if it is rounded to 0."""
    text = f"{value:+.{digits}f}"
    if float(text):
        return text
    return text[1:]
