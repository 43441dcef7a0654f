"""What decides the figures of an experiment, and nothing that does not."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import expect, one_of
from ..parameters import whole
from .learners import LEARNERS, Learner


class Settings(NamedTuple):
    """The protocol's numbers; those of the paper by default.

    Examples
    --------
    >>> Settings("trees").checked()
    Settings(learner='trees', repeats=10, models=10, folds=10, seed=0, full=False)
    >>> Settings("forest").checked()
    Traceback (most recent call last):
    ...
    mlconsensus.errors.InputError: learner: found 'forest', expected one of svm, trees, ...
    """

    learner: str = "svm"
    repeats: int = 10
    models: int = 0  # of a repeat; 0: ten, or as many as the panel has
    folds: int = 0  # 0: ten, or as many as the panel asks for
    seed: int = 0
    full: bool = False  # all instances, not as many as the paper has

    def checked(self) -> Settings:
        """Return these settings with what they leave open filled in, or refuse them."""
        one_of(self.learner, LEARNERS, "learner")
        own = len(self.how.panel)
        right = not own or self.models in (0, own)
        expect(right, "models", self.models, f"the {own} that {self.learner} has")
        whole(self.repeats, "repeats", 1)
        whole(self.seed, "seed", 0)
        models = whole(self.models or own or 10, "models", 1)
        return self._replace(models=models, folds=whole(self.folds or self.how.folds, "folds", 2))

    @property
    def how(self) -> Learner:
        """The learner that the settings name."""
        return LEARNERS[self.learner]
