"""Why a label has its score: what each model's statement about each label added to it or took off."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..combiners.base import BaseCombiner
from ..combiners.contributions import Scale
from ..combiners.majority_vote import MajorityVote
from ..errors import InputError, nearest
from ..metrics.tables import plain
from ..predictions import BasePredictions, BoolArray, FloatArray, Predictions, as_names
from ..text import shown, table

# names among which the one that was meant is looked for; more would take seconds
_MOST_SEARCHED = 20_000


class Part(NamedTuple):
    """One model's statement about one label, and what came of it."""

    model: str  # or the cluster that the instance is in
    label: str  # empty for a cluster, which knows no labels
    said: float | None  # None: nothing
    contribution: float  # to the consensus
    vote: float  # to the majority vote


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a label has its score: an exact sum over what the models said.

    Attributes
    ----------
    method, instance, label
        What is explained.
    score, vote
        The consensus score, and what plain majority voting gives in its place.
    scale
        ``"score"``: the parts sum to the score; ``"log-odds"``: they sum to its
        log-odds, as Dawid–Skene's do.
    baseline
        Where the sum starts before any statement counts, such as the label's frequency.
    remainder
        What the method does to the sum in the end: the rater filter lifts what is below
        0 to 0.
    contributions
        What each model's statement about each label adds (m, l), 0 where it was silent.
    said
        What each model said (m, l), NaN where it was silent.
    models, labels
        What rows and columns are called.
    clusters
        What being in its clusters adds, by their names, where the panel has clusterings
        and the method uses them.
    in_label_set
        Whether the label is in the instance's label set, where a `Consensus` explains;
        else ``None``.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel = mlc.Predictions([[[1, 1], [1, 0]], [[0, 1], [1, 0]]], models=["ana", "bert"], labels=["news", "war"])
    >>> print(mlc.explain(mlc.MLCMr().fit(panel), panel, 0, "news").to_text())
    instance 0, label news: 0.3462 by MLCM-r, 0.5000 by voting
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
        """What baseline, contributions and remainder sum to: the score, or its log-odds."""
        return math.fsum([self.baseline, self.rest([]), self.remainder])

    def rest(self, parts: Sequence[Part]) -> float:
        """Add up what all statements but some contribute."""
        taken = (-part.contribution for part in parts)
        return math.fsum(
            [*self.contributions.ravel().tolist(), *self.clusters.values(), *taken]
        )

    @cached_property
    def counts(self) -> BoolArray:
        """Which statements count (m, l): all that contribute, and all about the label by who has seen the instance."""
        saw = ~np.isnan(self.said).all(axis=1)
        own = np.array(self.labels, dtype=object) == self.label
        return np.asarray((self.contributions != 0) | np.outer(saw, own))

    @cached_property
    def parts(self) -> list[Part]:
        """The statements that count: each yes to the label, then the others, from the largest contribution down."""
        return self.largest(None)

    def largest(self, most: int | None) -> list[Part]:
        """Return at most so many of the `parts`, the first."""
        own = self.labels.index(self.label)
        spoke = ~np.isnan(self.said)
        votes = np.where(spoke[:, own], self.said[:, own], 0.0) / max(
            spoke[:, own].sum(), 1
        )
        # Thousands of statements: numbers of lists are reached faster than those of
        # arrays.
        at, of = np.nonzero(self.counts)
        yes = (of == own) & (self.said[at, of] >= 0.5)
        order = np.lexsort((of != own, -np.abs(self.contributions[at, of]), ~yes))[
            :most
        ]
        at = at[order]
        of = of[order]
        columns = (
            at,
            of,
            self.said[at, of],
            self.contributions[at, of],
            votes[at] * (of == own),
        )
        found = [
            Part(
                self.models[k],
                self.labels[j],
                None if math.isnan(said) else said,
                given,
                vote,
            )
            for k, j, said, given, vote in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]
        inside = [
            Part(name, "", 1.0, contribution, 0.0)
            for name, contribution in self.clusters.items()
        ]
        return sorted(found + inside, key=self._place)[:most]

    def _place(self, part: Part) -> tuple[bool, float, bool]:
        own = part.label == self.label
        return not (own and (part.said or 0.0) >= 0.5), -abs(part.contribution), not own

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: all but the arrays; infinite log-odds, of what is never or always true, are None.

        Returns
        -------
        The fields by name, and ``parts``, a list of dicts.

        Examples
        --------
        >>> import mlconsensus as mlc
        >>> mlc.explain(mlc.MajorityVote().fit([[[1]]]), [[[1]]], 0, 0).to_dict()["parts"]
        [{'model': 'model_0', 'label': 'label_0', 'said': 1.0, 'contribution': 1.0, 'vote': 1.0}]
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
        )
        found: dict[str, Any] = plain(
            {name: getattr(self, name) for name in (*names, "parts")}
        )
        return found

    def to_text(self, most: int = 12) -> str:
        """Lay out a table for a terminal.

        Parameters
        ----------
        most
            How many parts have a row of their own, the first ones; the others share
            one.

        Returns
        -------
        Lines of text, the last of which is the sum.
        """
        heads = (
            "model",
            "label",
            "said",
            "consensus" if self.scale == "score" else self.scale,
            "voting",
        )
        lines = [self._title(), "", table(heads, self._rows(most), n_left=2)]
        return "\n".join(
            [*lines, "", self._note()] if self.scale == "log-odds" else lines
        )

    def __repr__(self) -> str:
        return f"<Explanation: {self._title()}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text(20))}</pre>"

    def _title(self) -> str:
        scores = f"{self.score:.4f} by {self.method}, {self.vote:.4f} by voting"
        chosen = {
            None: "",
            True: "; in the label set",
            False: "; not in the label set",
        }[self.in_label_set]
        return f"instance {shown(self.instance)}, label {shown(self.label)}: {scores}{chosen}"

    def _rows(self, most: int) -> list[tuple[str, ...]]:
        """Return the rows of a table, names shortened: the baseline, the largest parts, what is left, and the sum."""
        parts = self.parts[:most]
        others = self.parts[most:]
        digits = _digits([part.contribution for part in parts])
        rows: list[tuple[str, ...]] = []
        nobody_spoke = all(
            part.said is None for part in self.parts if part.label == self.label
        )
        if self.baseline or nobody_spoke:
            if nobody_spoke:
                prior = _signed(self.vote, digits)
            else:
                prior = ""

            rows.append(("baseline", "", "", _signed(self.baseline, digits), prior))

        for model, label, said, contribution, vote in parts:
            names = shown(model, 30), shown(label, 30)
            if said is None:
                voice = "–"
            else:
                voice = f"{said:.4g}"

            if label == self.label:
                own = _signed(vote, digits)
            else:
                own = ""

            rows.append((*names, voice, _signed(contribution, digits), own))

        if others:
            left = _signed(math.fsum(part.contribution for part in others), digits)
            votes = [part.vote for part in others if part.label == self.label]
            rows.append(
                (
                    f"{len(others):,} more",
                    "",
                    "",
                    left,
                    _signed(math.fsum(votes), digits) if votes else "",
                )
            )

        if self.remainder:
            rows.append(("floor at 0", "", "", _signed(self.remainder, digits), ""))
        return [
            *rows,
            ("sum", "", "", f"{self.total:.{digits}f}", f"{self.vote:.{digits}f}"),
        ]

    def _note(self) -> str:
        if math.isinf(self.baseline):
            if self.baseline > 0:
                how_often = "always"
            else:
                how_often = "never"

            return f"{self.method} found the label to be {how_often} true, which no vote can change."

        return f"{self.method} adds up log-odds: {self.total:.4f} is a score of {self.score:.4f}."


def explain(
    combiner: BaseCombiner, predictions: Any, instance: int | str, label: int | str
) -> Explanation:
    """Say which model's which statement raised or lowered a score, and by how much, against plain voting.

    Parameters
    ----------
    combiner
        Fitted.
    predictions
        What `transform` takes; the instance must be in it.
    instance, label
        Their names. A label without a name of its own may be given by its position.

    Returns
    -------
    Explanation
        An exact sum.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> why = mlc.explain(mlc.WeightedConsensus().fit(panel), panel, instance=0, label="label_3")
    >>> bool(abs(why.baseline + why.contributions.sum() + why.remainder - why.score) < 1e-10)
    True
    """
    if not (isinstance(combiner, BaseCombiner)):
        raise InputError(
            where="combiner",
            found=repr(combiner),
            expected="a fitted one, such as MLCMa().fit(panel)",
        )

    solution = combiner.solution_
    panel = combiner.in_fitted_order(predictions)
    one = find_instance(panel, instance)
    column = find_label(panel.labels, label)
    weighted = combiner._make_block(one.weighted(combiner.weights_))
    found = combiner._contributions(weighted, solution, column)
    said = one.to_array()[:, 0]
    name = panel.labels[column]
    # Where nobody spoke, voting falls back on all that was said about the label.
    if np.isnan(said[:, column]).all():
        asked = panel
    else:
        asked = one

    voting = MajorityVote()
    if asked.clusters:
        asked = asked.without_clusterings()
    voting.fit(asked.weighted(None).select(labels=[name]))
    prior = voting.solution_.prior
    clusters: dict[str, float] = {}
    if found.clusters is not None:
        for cluster, contribution in zip(
            panel.clusters, found.clusters.tolist(), strict=True
        ):
            if contribution:
                clusters[cluster] = contribution

    return Explanation(
        method=combiner.name,
        instance=one.instances.tolist()[0],
        label=name,
        score=float(combiner._apply(weighted, solution)[0, column]),
        vote=float(prior[0]),
        scale=found.scale,
        baseline=found.baseline,
        remainder=found.remainder,
        contributions=found.statements,
        said=said,
        models=panel.models,
        labels=panel.labels,
        clusters=clusters,
    )


def find_instance(panel: BasePredictions, name: int | str) -> Predictions:
    """Find an instance by its name, and return it by itself.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel = mlc.Predictions([[[1], [0]]], instances=["a1", "a2"])
    >>> find_instance(panel, "a2").to_array()
    array([[[0.]]])
    >>> find_instance(panel, "b2")
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: instance: found 'b2', expected one of 2 names, such as 'a1'; did you mean 'a2'?
    """
    seen: list[str] = []
    (name,) = as_names([name], "instance").tolist()
    for block in [panel] if isinstance(panel, Predictions) else panel.blocks():
        names = block.instances
        if names.dtype.kind != "T" and isinstance(
            name, str
        ):  # as the command line gives it
            names = names.astype(np.dtypes.StringDType())

        at = np.flatnonzero(names == (str(name) if names.dtype.kind == "T" else name))
        if len(at):
            return block[at]

        seen += map(str, names[: _MOST_SEARCHED - len(seen)].tolist())

    return _unknown("instance", name, seen, len(panel))


def find_label(labels: tuple[str, ...], name: int | str) -> int:
    """Find a label by its name, or by its position where labels have no names of their own.

    Examples
    --------
    >>> find_label(("news", "war"), "war"), find_label(("label_0", "label_1"), 1)
    (1, 1)
    """
    for wanted in (str(name), f"label_{name}"):
        if wanted in labels:
            return labels.index(wanted)

    return _unknown("label", name, labels, len(labels))


def _unknown(what: str, name: object, names: Sequence[str], count: int) -> NoReturn:
    expected = f"expected one of {count:,} names, such as {names[0]!r}"
    raise InputError(
        f"{what}: found {str(name)!r}, {expected}{nearest(str(name), names)}"
    )


def _digits(contributions: Sequence[float]) -> int:
    """How many decimals show three figures of the largest contribution: at least four."""
    largest = max((abs(value) for value in contributions), default=0.0)
    if largest == 0:
        return 4
    return min(max(4, 2 - math.floor(math.log10(largest))), 12)


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    # no sign where nothing is left of it
    if float(text):
        return text
    return text[1:]
