"""What a method is: settings, and the pure functions of the route statistics → merge → solve → apply.

A method knows no engine, file or machine; `estimators` gives each its scikit-learn
face.
"""

import sys
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from ..execution.statistics import S
from ..predictions import BasePredictions, FloatArray, Predictions
from ..predictions.validation import Weights

ReduceBlocks = Callable[
    [Callable[[Predictions], S]], S
]  # one pass over all blocks: the statistics of each, merged


class Round(NamedTuple):
    """A pass over all instances before the last: its sums, and what is solved from them for the passes that follow."""

    Statistics: Any  # NamedTuple of sums over instances
    statistics: Callable[..., Any]  # block, what was `known` before -> Statistics
    Known: Any  # NamedTuple of what is solved from them
    solve: Callable[
        [Any, Any], Any
    ]  # merged Statistics, what was known before -> Known
    told_before: Callable[[Any], Any] = lambda known: (
        None
    )  # the Statistics, where what is known has them; saves a pass


class Method:
    """Base of all methods: a subclass has a `name` and a constructor that only stores.

    `Statistics`, `Solution`, `statistics`, `solve`, `apply` and `contributions` are
    taken from the module that the subclass is written in, unless the subclass has its
    own. `weights` are applied before any of them sees a block.
    """

    name: ClassVar[str]  # what tables, files and the command line call it
    function_name: ClassVar[
        str
    ]  # of the function beside the estimator: what the module is called
    Statistics: ClassVar[Any]  # NamedTuple of sums over instances
    Solution: ClassVar[Any]  # NamedTuple of what is solved from them
    statistics: ClassVar[Any]  # block -> Statistics
    solver: ClassVar[Any] = (
        None  # the module's `solve`: Statistics, and whatever else it names -> Solution
    )
    apply: ClassVar[Any]  # block, Solution -> scores (n, l)
    learn: ClassVar[Any] = (
        # block of instances with known answers, Solution -> Solution; None: sums have
        # them
        None
    )
    contributions: ClassVar[
        Any
    ]  # block of one instance, Solution, label's position -> Contributions
    rounds: ClassVar[
        tuple[Round, ...]
    ] = ()  # passes before the last; then `statistics` takes what these tell, too
    uses_clusterings: ClassVar[bool] = False
    takes_many: ClassVar[bool] = (
        # whether blocks of many labels may come, of which only what was said is kept
        False
    )
    pairs_labels: ClassVar[bool] = (
        False  # whether it then adds up products of two labels
    )
    pairs_models: ClassVar[bool] = (
        False  # and whether it adds up products of two models for each label
    )
    comparable: ClassVar[bool] = (
        True  # whether scores of different instances can be compared
    )
    additive: ClassVar[bool] = (
        True  # whether a statement moves the score by its own contribution alone
    )
    in_float32: ClassVar[
        tuple[str, ...]
    ] = ()  # fields of the solution to work with where float32 is asked for
    one_thread_below: ClassVar[int] = (
        0  # number of labels below which BLAS solves faster with one thread
    )

    weights: Weights = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        module = sys.modules.get(cls.__module__)
        if "name" not in cls.__dict__:  # an estimator, whose method has them
            return

        cls.function_name, cls.solver = (
            cls.__module__.rpartition(".")[2],
            getattr(module, "solve", cls.solver),
        )
        for name in (
            "Statistics",
            "Solution",
            "statistics",
            "apply",
            "learn",
            "contributions",
        ):
            own = getattr(module, name, None)
            if name not in cls.__dict__ and own is not None:
                setattr(cls, name, own if isinstance(own, type) else staticmethod(own))

    def check(self) -> None:
        """Refuse settings that no solution can be found with."""

    def prepare(self, source: BasePredictions, reduce_blocks: ReduceBlocks[Any]) -> Any:
        """Find out, by as many passes as it takes, what must be known before the sums; ``None``: nothing."""
        return self.go_through(None, reduce_blocks)

    def go_through(self, known: Any, reduce_blocks: ReduceBlocks[Any]) -> Any:
        """Go through the rounds before the last, given what is known already."""
        for each in self.rounds:
            told = each.told_before(known)
            known = each.solve(
                reduce_blocks(partial(each.statistics, known=known))
                if told is None
                else told,
                known,
            )

        return known

    def rounds_behind(self, known: Any) -> int:
        """Tell how many rounds told what is known; as many as there are in `rounds` once `prepare` is through."""
        return next(
            (
                at + 1
                for at, each in enumerate(self.rounds)
                if isinstance(known, each.Known)
            ),
            0,
        )

    def sums(self, block: Predictions, prepared: Any) -> Any:
        """Return the statistics of a block in the round that follows what is known."""
        behind = self.rounds_behind(prepared)
        if behind < len(self.rounds):
            return self.rounds[behind].statistics(block, prepared)

        kind = type(self)
        if self.rounds:
            return kind.statistics(block, prepared)
        return kind.statistics(block)

    def saw(self, solution: Any) -> str:
        """Say in a few words what the solution shows of the panel; "": nothing."""
        return ""

    def solve(self, statistics: Any, weights: FloatArray | None, prepared: Any) -> Any:
        """Return the solution, given the merged sums, how much each model counts (m,) and what rounds before told.

        The module's `solve` gets those settings, and of `weights` and what is `known`,
        that it has parameters for.
        """
        solver = type(self).solver
        given = vars(self) | {"weights": weights, "known": prepared}
        return solver(
            statistics,
            **{
                name: given[name]
                for name in signature(solver).parameters
                if name in given
            },
        )
