"""Fitted combiners as files: statistics to be added up elsewhere, and solved models that need no data to be applied."""

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..combiners.base import BaseCombiner
from ..combiners.registry import COMBINERS
from ..errors import InputError, InputWarning, nearest
from ..execution.statistics import Axes, merge_statistics
from ..io.files import AnyPath, atomic_write, display, get_first_line
from ..predictions import Predictions
from .privacy.mechanism import guarantee_of
from .statistics_files import (
    Arrays,
    declared,
    from_arrays,
    read_state,
    reordered,
    to_arrays,
    write_state,
)

_KINDS = ("statistics", "round", "model")
_KNOWN = "known:"  # how arrays begin that earlier rounds told
_MOST_CELLS = 2**24  # of one instance: as many as a block of instances may have


def load(path: AnyPath) -> BaseCombiner:
    """Read a combiner from a file of statistics or of a solved model; nothing in the file is executed.

    A solved model can be applied, and has no statistics to add to.

    Parameters
    ----------
    path
        What `save_statistics` or `save` wrote.

    Returns
    -------
    The combiner, fitted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.stats"
    >>> mlc.save_statistics(mlc.MLCMr(alpha=3.0).fit([[[1, 0], [1, 1]]]), path)
    >>> mlc.load(path)
    MLCMr(alpha=3.0)
    """
    where = display(path)
    header, arrays = read_state(path)
    combiner = _unfitted(header, where)
    names = {
        what: _name_list(header.get(what), f"{where}, {what}")
        for what in ("models", "labels", "clusters")
    }
    m, l, c = map(len, names.values())
    sizes = {"m": m, "l": l, "c": c, "ml": m * l}
    if not (0 < m * l <= _MOST_CELLS):
        raise InputError(
            where=where,
            found=f"{m:,} models × {l:,} labels",
            expected=f"some, and at most {_MOST_CELLS:,} pairs",
        )

    guarantee, n, kind = (header.get(what) for what in ("privacy", "instances", "kind"))
    if guarantee is not None:
        guarantee = guarantee_of(guarantee, type(combiner), f"{where}, privacy")
    if guarantee is None:
        counted = type(n) is int and 0 < n < 2**53
    else:
        counted = n is None

    if not (counted):
        raise InputError(
            where=f"{where}, instances",
            found=repr(n),
            expected="a number above 0, or null where it is private",
        )
    if kind not in _KINDS:
        raise InputError(
            where=f"{where}, kind",
            found=repr(kind),
            expected=f"one of {', '.join(_KINDS)}",
        )

    behind = header.get("rounds", 0)
    rounds = combiner.rounds
    if not (type(behind) is int and 0 <= behind <= len(rounds)):
        raise InputError(
            where=f"{where}, rounds", found=repr(behind), expected=f"0 to {len(rounds)}"
        )

    known = {
        name.removeprefix(_KNOWN): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(_KNOWN)
    }
    fitted: dict[str, Any] = {}
    if behind and kind != "model":
        fitted["prepared"] = from_arrays(known, rounds[behind - 1].Known, sizes, where)
    if kind == "statistics":
        if behind < len(rounds):
            of_round = rounds[behind].Statistics
        else:
            of_round = combiner.Statistics

        fitted["statistics"] = from_arrays(
            arrays, of_round, sizes, where, noisy=guarantee is not None
        )
    elif kind == "model":
        fitted["solution"] = from_arrays(arrays, combiner.Solution, sizes, where)

    try:
        combiner.take(n, **names, privacy=guarantee, **fitted)
    except InputError as fault:
        raise InputError(f"{where}, parameters, {fault}") from None

    if kind == "model":
        _tried_out(combiner, where)
    elif kind == "statistics":
        combiner.parts_ = _name_list(header.get("parts", []), f"{where}, parts") or (
            _digest(combiner),
        )

    return combiner


def save_statistics(
    combiner: BaseCombiner, path: AnyPath, *, force: bool = False
) -> None:
    """Write a fitted combiner's statistics, for `load` and `merge`.

    Parameters
    ----------
    combiner
        Fitted.
    path
        Where to; it appears whole or not at all.
    force
        Whether to replace a file that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.stats"
    >>> mlc.save_statistics(mlc.MLCMr().fit(panel), path)
    >>> mlc.load(path).n_instances_
    1000
    """
    _check_fitted(combiner)
    _check_statistics(combiner, "statistics")
    behind = combiner.rounds_behind(combiner.prepared_)
    arrays = to_arrays(combiner.statistics_) | _known_arrays(
        combiner.prepared_ if behind else None
    )
    _write_combiner(combiner, "statistics", arrays, path, force, behind)


def save(combiner: BaseCombiner, path: AnyPath, *, force: bool = False) -> None:
    """Solve, if that has not been done, and write all that `transform` needs, without the statistics, for `load`.

    Of a method whose rounds are not through, what is written is what the next round
    needs.

    Parameters
    ----------
    combiner
        Fitted.
    path
        Where to; it appears whole or not at all.
    force
        Whether to replace a file that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "consensus.model"
    >>> combiner = mlc.MLCMr().fit(panel)
    >>> mlc.save(combiner, path)
    >>> (mlc.load(path).transform(panel) == combiner.transform(panel)).all()
    np.True_
    """
    _check_fitted(combiner)
    if combiner.unfinished and hasattr(combiner, "statistics_"):
        behind = combiner.rounds_behind(combiner.prepared_) + 1
        with np.errstate(all="ignore"):  # what is not finite is refused
            known = _known_arrays(combiner.next_known())

        finite = all(np.isfinite(array).all() for array in known.values())
        if not (finite):
            raise InputError(
                where="statistics",
                found="sums that give no finite numbers",
                expected="sums of scores in [0, 1]",
            )

        _write_combiner(combiner, "round", known, path, force, behind)
    else:
        _write_combiner(
            combiner, "model", _tried_out(combiner, "statistics"), path, force
        )


def merge(
    combiners: Sequence[BaseCombiner], names: Sequence[str] | None = None
) -> BaseCombiner:
    """Add up the statistics of several combiners into a new one, as if it had been fitted to all their data.

    Parameters
    ----------
    combiners
        Fitted combiners of one method, with the same parameters. The order of models
        and labels may differ, and so may some of them, unless there are clusterings or
        noise: where one is not known, it said nothing. Files whose sums are in
        another's already are refused.
    names
        What error messages call them.

    Returns
    -------
    A new combiner of the same method.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> sites = [mlc.MLCMr().fit(panel[:400]), mlc.MLCMr().fit(panel[400:])]
    >>> both = mlc.merge(sites)
    >>> both.n_instances_, bool(abs(both.transform(panel) - mlc.mlcm_r(panel)).max() < 1e-10)
    (1000, True)
    """
    if not (hasattr(combiners, "__iter__")):
        raise InputError(
            where="merge", found=repr(combiners), expected="a list of fitted combiners"
        )

    combiners = list(combiners)
    if not (bool(combiners)):
        raise InputError(where="merge", found="no statistics", expected="at least one")
    if names is None:
        names = [f"combiner {at}" for at in range(len(combiners))]

    each_has = [_names_of(combiner) for combiner in combiners]
    times = {
        what: Counter(name for own in each_has for name in own[what])
        for what in each_has[0]
    }
    first_with: dict[str, int] = {}
    for at, combiner in enumerate(combiners):
        for part in combiner.parts_:
            first = first_with.setdefault(part, at)
            if first != at:
                raise InputError(
                    where=names[at],
                    found=f"sums that are in {names[first]} too",
                    expected="each site once",
                )

    together = _together(
        combiners,
        names,
        {what: tuple(count) for what, count in times.items()},
        merge_statistics,
    )
    if all(combiner.parts_ for combiner in combiners):
        together.parts_ = tuple(first_with)
    else:
        together.parts_ = ()

    for what, count in times.items():
        for own, site in zip(each_has, names, strict=True):
            strange = (
                len(each_has) > 1
                and bool(own[what])
                and all(count[name] == 1 for name in own[what])
            )
            if strange:
                raise InputError(
                    where=site,
                    found=f"no {what} that any other has",
                    expected="some in common",
                )

        lacking = [repr(name) for name, n in count.items() if n < len(each_has)]
        if told := ", ".join(lacking[:5]) + f" and {len(lacking) - 5:,} more" * (
            len(lacking) > 5
        ):
            warnings.warn(
                f"{what} that not all have: {told}; the others said nothing of them",
                InputWarning,
                2,
            )

    return together


def subtract(
    total: BaseCombiner, part: BaseCombiner, names: Sequence[str] = ("total", "part")
) -> BaseCombiner:
    """Take statistics back out of a sum that they are in: a site that leaves, or a day that is too long ago.

    Models and labels stay those of the sum. Sums are as if the part had never been
    added, but for rounding.

    Parameters
    ----------
    total, part
        Fitted combiners of one method, with the same parameters.
    names
        What error messages call them.

    Returns
    -------
    A new combiner of the same method.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> total, monday = mlc.MLCMr().fit(panel), mlc.MLCMr().fit(panel[:400])
    >>> rest, without = mlc.subtract(total, monday), mlc.MLCMr().fit(panel[400:])
    >>> rest.n_instances_, bool(abs(rest.transform(panel) - without.transform(panel)).max() < 1e-10)
    (600, True)
    """
    _names_of(total), _names_of(part)
    if total.privacy_ is not None:
        raise InputError(
            where=names[0],
            found="noise, which would not be taken back",
            expected="sums without",
        )

    several = (
        len(total.parts_) > 1
    )  # what was gathered in one go does not tell what is in it
    if several:
        gone = set(part.parts_ or (_digest(part),))
    else:
        gone = set()

    if not (gone <= set(total.parts_)):
        raise InputError(
            where=names[1],
            found=f"sums that are not among those of {names[0]}",
            expected="some that were added",
        )

    left = _together([total, part], names, _names_of(total), _less, -1)
    if several:
        left.parts_ = tuple(own for own in total.parts_ if own not in gone)
    else:
        left.parts_ = ()

    return left


def _digest(combiner: BaseCombiner) -> str:
    """Name sums by their content, as float32 has it: whatever the order of models, labels and instances."""
    names = {what: sorted(own) for what, own in _names_of(combiner).items()}
    found = hashlib.sha256(
        repr((names, combiner.n_instances_)).encode(errors="surrogatepass")
    )
    with np.errstate(over="ignore"):
        for name, array in to_arrays(
            reordered(combiner.statistics_, _names_of(combiner), names)
        ).items():
            found.update(
                name.encode() + (array + 1).astype(np.float32).tobytes()
            )  # what is nearly 0 is 0

    return found.hexdigest()[:16]


def _less(total: Any, part: Any) -> Any:
    """Subtract sums field by field; what rounding leaves of nothing is nothing."""
    # which refuses sums of many labels
    left = []
    _ = to_arrays(total)
    for (name, axes), whole, own in zip(
        declared(total.__class__).items(), total, part, strict=True
    ):
        if isinstance(axes, Axes):
            rest = np.asarray(whole) - np.asarray(own)
        else:
            rest = whole - own

        if isinstance(axes, Axes):
            rest = np.where(np.abs(rest) <= 1e-11 * np.abs(whole), 0.0, rest)[
                ()
            ]  # many times what rounding leaves
            if not (np.min(rest, initial=0) >= axes.least):
                raise InputError(
                    where=name,
                    found="more than there is in all",
                    expected="sums that were added",
                )

        left.append(rest)

    return type(total)(*left)


def _together(
    combiners: Sequence[BaseCombiner],
    names: Sequence[str],
    every: Any,
    add: Callable[[Any, Any], Any],
    sign: int = 1,
) -> BaseCombiner:
    """Add to the first combiner's statistics those of the others, or take them away, if they belong together."""
    first = combiners[0]
    total = None
    known = _known_arrays(combiners[0].prepared_)
    for combiner, name in zip(combiners, names, strict=True):
        _check_statistics(combiner, name)
        _check_alike(combiner, first, name, names[0], every)
        own = _known_arrays(
            combiner.prepared_
            and reordered(combiner.prepared_, _names_of(combiner), _names_of(first))
        )
        same = own.keys() == known.keys() and all(
            np.array_equal(own[key], known[key]) for key in known
        )
        if not (same):
            raise InputError(
                where=name,
                found="sums that follow other rounds",
                expected=f"the same earlier rounds as those of {names[0]}",
            )

        sums = reordered(combiner.statistics_, _names_of(combiner), every)
        if total is None:
            total = sums
        else:
            total = add(total, sums)

    counts = [
        each.n_instances_ or each.privacy_.releases for each in combiners
    ]  # of instances, or of releases
    left = counts[0] + sign * sum(counts[1:])
    if not (left > 0):
        raise InputError(
            where=names[-1],
            found="all that there is",
            expected="less, so that something is left",
        )

    guarantee = first.privacy_ and first.privacy_._replace(releases=left)
    together: BaseCombiner = clone(first).set_params(**_parameters(first))
    if guarantee:
        n = None
    else:
        n = left

    return together.take(
        n, **every, statistics=total, prepared=first.prepared_, privacy=guarantee
    )


def _known_arrays(known: Any) -> Arrays:
    if known is None:
        return {}
    return {_KNOWN + name: array for name, array in to_arrays(known).items()}


def _write_combiner(
    combiner: BaseCombiner,
    kind: str,
    arrays: Arrays,
    path: AnyPath,
    force: bool,
    behind: int = 0,
) -> None:
    known = COMBINERS.get(combiner.name) is type(combiner)
    if not (known):
        raise InputError(
            where="method",
            found=f"{combiner.name}, which files have no name for",
            expected=f"one of {', '.join(COMBINERS)}",
        )

    header = {
        "kind": kind,
        "method": combiner.name,
        "parameters": _parameters(combiner),
        **_names_of(combiner),
        "instances": combiner.n_instances_,
        "parts": combiner.parts_
        if len(combiner.parts_) > 1
        else [],  # the digest of one is found anew
        "rounds": behind,
        "privacy": combiner.privacy_ and combiner.privacy_._asdict(),
        "written_by": f"mlconsensus {__version__}",
    }
    with atomic_write(path, force) as file:
        write_state(file, header, arrays)


def _parameters(combiner: BaseCombiner) -> dict[str, Any]:
    """Return the parameters as JSON has them, and as they were when it was fitted.

    Weights are by name, since models may stand in another order elsewhere.
    """
    given = combiner.get_params()
    if "weights" in given:
        weights = combiner.weights_
        given["weights"] = (
            None
            if weights is None
            else dict(zip(combiner.models_, weights.tolist(), strict=True))
        )

    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in given.items()
    }


def _unfitted(header: Any, where: str) -> BaseCombiner:
    method = header.get("method")
    parameters = header.get("parameters")
    known = method in list(COMBINERS)
    hint = (
        f"{nearest(str(method), COMBINERS)} (written by {header.get('written_by')!r})"
    )
    if not (known):
        raise InputError(
            where=f"{where}, method",
            found=repr(method),
            expected=f"one of {', '.join(COMBINERS)}{hint}",
        )

    settings = COMBINERS[str(method)]().get_params()
    right = isinstance(parameters, dict) and set(parameters) <= set(settings)
    right = right and isinstance(parameters.get("weights"), dict | None)
    if not (right):
        raise InputError(
            where=f"{where}, parameters",
            found=parameters,
            expected=f"an object of {', '.join(settings)}, with weights by model",
        )

    return COMBINERS[str(method)](**parameters)


def _name_list(found: Any, where: str) -> tuple[str, ...]:
    right = isinstance(found, list) and all(
        isinstance(name, str) and name for name in found
    )
    if not (right):
        raise InputError(
            where=where, found=repr(str(found)[:40]), expected="a list of names"
        )

    twice = [name for name, times in Counter(found).items() if times > 1]
    if twice:
        raise InputError(
            where=where, found=f"{twice[:1]} twice", expected="each name once"
        )

    return tuple(found)


def _tried_out(combiner: BaseCombiner, where: str) -> Arrays:
    """Solve, apply the solution to instances of which all models say yes, no and nothing, and return its arrays.

    What gives no finite numbers is refused.
    """
    m = len(combiner.models_)
    l = len(combiner.labels_)
    said = np.stack(
        [np.ones((m, l)), np.zeros((m, l)), np.full((m, l), np.nan)], axis=1
    )
    reason = "numbers that are not finite"
    try:
        with np.errstate(all="ignore"):
            arrays = to_arrays(combiner.solution_)
            apply = combiner.applying()
            scores = [
                apply(Predictions(some, combiner.models_, combiner.labels_))
                for some in (said[:, :2], said)
            ]

        if all(np.isfinite(array).all() for array in [*arrays.values(), *scores]):
            return arrays
    except InputError:
        raise
    except (
        ValueError,
        TypeError,
        IndexError,
        ArithmeticError,
    ) as fault:  # numpy's LinAlgError is a ValueError
        reason = get_first_line(fault)

    raise InputError(
        f"{where}: found no solution that gives scores ({reason}), expected one"
    )


def _check_fitted(combiner: BaseCombiner) -> None:
    found = type(combiner).__name__
    joblib = "joblib.dump keeps other estimators, such as ConsensusClassifier"
    right = isinstance(combiner, BaseCombiner)
    if not (right):
        raise InputError(
            where="combiner",
            found=f"a {found}",
            expected=f"a fitted combiner, such as MLCMr().fit(panel) ({joblib})",
        )

    check_is_fitted(combiner, "models_")


def _check_statistics(combiner: BaseCombiner, name: str) -> None:
    """Refuse what has no statistics that could be added to others'."""
    summed = hasattr(combiner, "statistics_")
    if not (summed):
        raise InputError(
            where=name,
            found="a solved model, which has no statistics",
            expected="a combiner that was fitted, or its statistics",
        )

    taught = (
        getattr(combiner._solved and combiner._solved[1], "learned", None) is not None
    )
    if taught:
        raise InputError(
            where=name,
            found="what known answers taught, which its sums do not hold",
            expected="a combiner fitted without gold",
        )


def _check_alike(
    combiner: BaseCombiner, first: BaseCombiner, name: str, first_name: str, every: Any
) -> None:
    """Refuse statistics that cannot be added to the first ones, and say why."""
    own = _described(combiner)
    for what, value in _described(first).items():
        if own.get(what) != value:
            raise InputError(
                where=name,
                found=f"{what} = {own.get(what)!r}",
                expected=f"{value!r} as in {first_name}",
            )

    # A clustering counts beside every label, known or not, and noise beside every
    # number: neither is 0 there.
    if first.privacy_:
        of = "noise"
    else:
        if any((*first.clusters_, *combiner.clusters_)):
            of = "clusterings"
        else:
            of = ""

    for what, names in _names_of(first).items():
        found = set(_names_of(combiner)[what])
        expected = set(names)
        both = f"{sorted(found - expected)[:3]} too many and {sorted(expected - found)[:3]} lacking"
        if of:
            fits = found == expected
        else:
            fits = found <= set(every[what])

        if of:
            why = f"; with {of}, all must have the same"
        else:
            why = ""

        if not (fits):
            raise InputError(
                where=f"{name}, {what}",
                found=both,
                expected=f"the {what} of {first_name}, in any order{why}",
            )


def _names_of(combiner: BaseCombiner) -> dict[str, tuple[str, ...]]:
    if not (isinstance(combiner, BaseCombiner)):
        raise InputError(
            where="combiner",
            found=repr(combiner),
            expected="a fitted one, as mlc.load gives it",
        )

    check_is_fitted(combiner, "models_")
    return {
        "models": combiner.models_,
        "labels": combiner.labels_,
        "clusters": combiner.clusters_,
    }


def _described(combiner: BaseCombiner) -> dict[str, Any]:
    """Return all in which statistics have to be alike, the most important first."""
    guarantee = combiner.privacy_ and combiner.privacy_._replace(releases=1)
    more = {
        name: getattr(guarantee, name, None) for name in ("clip", "sensitivity")
    }  # the scale follows, for one size
    return {
        "method": combiner.name,
        **_parameters(combiner),
        "privacy": str(guarantee or "none"),
        **more,
    }
