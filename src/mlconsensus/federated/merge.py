"""Merge the statistics of several sites, and subtract those of one of them."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..combiners.base import BaseCombiner
from ..errors import InputError, InputWarning
from ..execution.statistics import Axes, S, merge_statistics
from ..predictions import Array
from .combiner_files import (
    NamesByAxis,
    check_statistics,
    compute_digest,
    get_names,
    get_parameters,
    make_state_arrays,
)
from .statistics_files import check_small_label_space, read_axes, reorder_record

# Differences below this share of the total are 0. Rounding leaves far less.
_ROUNDING = 1e-11
_MAX_NAMES = 5  # in a warning


def merge(
    combiners: Sequence[BaseCombiner], names: Sequence[str] | None = None
) -> BaseCombiner:
    """Add the statistics of several combiners.

    The result is as if one combiner had been fitted to all their data.

    Parameters
    ----------
    combiners : sequence of BaseCombiner
        Fitted combiners of one method, with the same parameters. The order of models
        and labels may differ. Without clusterings and noise, also models and labels
        may differ: predictions of those that a combiner does not have are missing.
        Statistics that are already part of another combiner are refused.
    names : sequence of str, default=None
        Names of the combiners in error messages.

    Returns
    -------
    BaseCombiner
        A new combiner of the same method.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions, _ = mlc.datasets.make_panel(random_state=0)
    >>> one = mlc.MLCMr().fit(predictions[:400])
    >>> other = mlc.MLCMr().fit(predictions[400:])
    >>> both = mlc.merge([one, other])
    >>> both.n_instances_
    1000
    >>> difference = both.transform(predictions) - mlc.mlcm_r(predictions)
    >>> bool(abs(difference).max() < 1e-10)
    True
    """
    if not hasattr(combiners, "__iter__"):
        raise InputError(
            where="merge", found=repr(combiners), expected="a list of fitted combiners"
        )

    combiners = list(combiners)
    if not combiners:
        raise InputError(where="merge", found="no statistics", expected="at least one")
    if names is None:
        names = [f"combiner {position}" for position in range(len(combiners))]

    names_by_combiner = [get_names(combiner) for combiner in combiners]
    counts = _count_names(names_by_combiner)
    parts = _collect_parts(combiners, names)

    union = {axis: tuple(count) for axis, count in counts.items()}
    merged = _add_statistics(combiners, names, union, merge_statistics)
    merged.n_instances_, merged.privacy_ = _add_counts(combiners)
    if all(combiner.parts_ for combiner in combiners):
        merged.parts_ = parts

    for axis, count in counts.items():
        axis_names = [names_by_axis[axis] for names_by_axis in names_by_combiner]
        _check_common_names(axis, axis_names, count, names)
        _warn_about_missing_names(axis, count, len(combiners))

    return merged


def subtract(
    total: BaseCombiner, part: BaseCombiner, names: Sequence[str] = ("total", "part")
) -> BaseCombiner:
    """Subtract statistics that were merged: a site that leaves, or a day long ago.

    The models and labels of the total stay. The result is as if the part had never
    been added, except for rounding.

    Parameters
    ----------
    total, part : BaseCombiner
        Fitted combiners of one method, with the same parameters.
    names : sequence of str, default=("total", "part")
        Names of both in error messages.

    Returns
    -------
    BaseCombiner
        A new combiner of the same method.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> predictions, _ = mlc.datasets.make_panel(random_state=0)
    >>> total = mlc.MLCMr().fit(predictions)
    >>> monday = mlc.MLCMr().fit(predictions[:400])
    >>> rest = mlc.subtract(total, monday)
    >>> rest.n_instances_
    600
    >>> expected = mlc.MLCMr().fit(predictions[400:])
    >>> difference = rest.transform(predictions) - expected.transform(predictions)
    >>> bool(abs(difference).max() < 1e-10)
    True
    """
    total_names = get_names(total)
    get_names(part)  # checks that it is fitted
    if total.privacy_ is not None:
        raise InputError(
            where=names[0],
            found="noise, which would not be taken back",
            expected="sums without",
        )

    remaining_parts = _remove_parts(total, part, names)
    rest = _add_statistics([total, part], names, total_names, _subtract_statistics)
    n_instances = _count_instances(total) - _count_instances(part)
    if n_instances <= 0:
        raise InputError(
            where=names[1],
            found="all that there is",
            expected="less, so that something is left",
        )

    rest.n_instances_ = n_instances
    rest.parts_ = remaining_parts
    return rest


def _count_names(
    names_by_combiner: Sequence[NamesByAxis],
) -> dict[str, Counter[str]]:
    """Return how many combiners have each model, label and cluster."""
    counts: dict[str, Counter[str]] = {}
    for names_by_axis in names_by_combiner:
        for axis, axis_names in names_by_axis.items():
            counts.setdefault(axis, Counter()).update(axis_names)

    return counts


def _collect_parts(
    combiners: Sequence[BaseCombiner], names: Sequence[str]
) -> tuple[str, ...]:
    """Return the digests of all statistics; raise an error if one is repeated."""
    first_with: dict[str, str] = {}
    for combiner, name in zip(combiners, names, strict=True):
        for part in combiner.parts_:
            if part in first_with:
                raise InputError(
                    where=name,
                    found=f"sums that are in {first_with[part]} too",
                    expected="each site once",
                )

            first_with[part] = name

    return tuple(first_with)


def _remove_parts(
    total: BaseCombiner, part: BaseCombiner, names: Sequence[str]
) -> tuple[str, ...]:
    """Return the digests of the total without those of the part."""
    if len(total.parts_) < 2:
        return ()  # the parts of statistics that were not merged are unknown

    removed = set(part.parts_ or (compute_digest(part),))
    if not removed <= set(total.parts_):
        raise InputError(
            where=names[1],
            found=f"sums that are not among those of {names[0]}",
            expected="some that were added",
        )

    return tuple(digest for digest in total.parts_ if digest not in removed)


def _check_common_names(
    axis: str,
    axis_names: Sequence[tuple[str, ...]],
    count: Counter[str],
    combiner_names: Sequence[str],
) -> None:
    """Check that each combiner has a model, label or cluster that another one has."""
    if len(axis_names) == 1:
        return

    for names, combiner_name in zip(axis_names, combiner_names, strict=True):
        if names and all(count[name] == 1 for name in names):
            raise InputError(
                where=combiner_name,
                found=f"no {axis} that any other has",
                expected="some in common",
            )


def _warn_about_missing_names(axis: str, count: Counter[str], n_combiners: int) -> None:
    """Warn about models, labels or clusters that some of the combiners do not have."""
    missing = [repr(name) for name, times in count.items() if times < n_combiners]
    if not missing:
        return

    text = ", ".join(missing[:_MAX_NAMES])
    if len(missing) > _MAX_NAMES:
        text += f" and {len(missing) - _MAX_NAMES:,} more"

    warnings.warn(
        f"{axis} that some files do not have: {text}; their predictions count as "
        "missing",
        InputWarning,
        stacklevel=3,
    )


def _add_statistics(
    combiners: Sequence[BaseCombiner],
    names: Sequence[str],
    wanted: NamesByAxis,
    add: Callable[[S, S], S],
) -> BaseCombiner:
    """Return a combiner with the sum of statistics, for `wanted` models and labels.

    `add` merges or subtracts the statistics of two combiners.
    """
    first = combiners[0]
    total: S | None = None
    for combiner, name in zip(combiners, names, strict=True):
        check_statistics(combiner, name)
        _check_compatible(combiner, first, (name, names[0]), wanted)
        _check_same_state(combiner, first, (name, names[0]))

        statistics = reorder_record(combiner.statistics_, get_names(combiner), wanted)
        if total is None:
            total = statistics
        else:
            total = add(total, statistics)

    result: BaseCombiner = first.make_unfitted_copy().set_params(
        **get_parameters(first)
    )
    return result.take(None, **wanted, statistics=total, state=first.state_)


def _add_counts(combiners: Sequence[BaseCombiner]) -> tuple[int | None, object]:
    """Return the number of instances, or else the guarantee of all releases."""
    guarantee = combiners[0].privacy_
    if guarantee is None:
        return sum(_count_instances(combiner) for combiner in combiners), None

    n_releases = sum(combiner.privacy_.releases for combiner in combiners)
    return None, replace(guarantee, releases=n_releases)


def _count_instances(combiner: BaseCombiner) -> int:
    """Return the number of instances of statistics without noise."""
    if combiner.n_instances_ is None:
        raise TypeError("private statistics have no number of instances")
    return combiner.n_instances_


def _subtract_statistics(total: S, part: S) -> S:
    """Subtract statistics field by field."""
    check_small_label_space(total)
    rest = {}
    for name, axes in read_axes(type(total)).items():
        total_value = getattr(total, name)
        part_value = getattr(part, name)
        if part_value is None:
            rest[name] = total_value
        elif isinstance(axes, Axes):
            rest[name] = _subtract_array(
                np.asarray(total_value), np.asarray(part_value), name, axes.least
            )
        else:
            rest[name] = total_value - part_value

    return type(total)(**rest)


def _subtract_array(total: Array, part: Array, name: str, least: float) -> Array:
    """Subtract an array; differences that are only rounding become 0."""
    rest = total - part
    is_rounding = np.abs(rest) <= _ROUNDING * np.abs(total)
    rest = np.where(is_rounding, 0.0, rest)
    if np.min(rest, initial=0) < least:
        raise InputError(
            where=name,
            found="more than there is in all",
            expected="sums that were added",
        )

    scalar_or_array: Array = rest[()]
    return scalar_or_array


def _check_same_state(
    combiner: BaseCombiner, first: BaseCombiner, names: tuple[str, str]
) -> None:
    """Check that the state from earlier passes is the same in both combiners."""
    state = combiner.state_
    if state is not None:
        state = reorder_record(state, get_names(combiner), get_names(first))

    arrays = make_state_arrays(state)
    first_arrays = make_state_arrays(first.state_)
    is_same = arrays.keys() == first_arrays.keys()
    for key, array in first_arrays.items():
        is_same = is_same and np.array_equal(arrays[key], array)

    if not is_same:
        name, first_name = names
        raise InputError(
            where=name,
            found="sums that follow other rounds",
            expected=f"the same earlier rounds as those of {first_name}",
        )


def _check_compatible(
    combiner: BaseCombiner,
    first: BaseCombiner,
    names: tuple[str, str],
    wanted: NamesByAxis,
) -> None:
    """Check that statistics can be added to the first ones."""
    name, first_name = names
    settings = _describe_settings(combiner)
    for what, expected in _describe_settings(first).items():
        if settings.get(what) != expected:
            raise InputError(
                where=name,
                found=f"{what} = {settings.get(what)!r}",
                expected=f"{expected!r} as in {first_name}",
            )

    # Without a model or label, sums are 0. This is not so for clusterings, which count
    # for all labels, and for noise, which is in all numbers.
    reason = ""
    if first.privacy_ is not None:
        reason = "noise"
    elif any(first.clusters_) or any(combiner.clusters_):
        reason = "clusterings"

    present_names = get_names(combiner)
    for axis, first_names in get_names(first).items():
        present = set(present_names[axis])
        expected_names = set(first_names)
        if reason:
            fits = present == expected_names
            explanation = f"; with {reason}, all must have the same"
        else:
            fits = present <= set(wanted[axis])
            explanation = ""

        if not fits:
            surplus = sorted(present - expected_names)[:3]
            missing = sorted(expected_names - present)[:3]
            raise InputError(
                where=f"{name}, {axis}",
                found=f"{surplus} too many and {missing} lacking",
                expected=f"the {axis} of {first_name}, in any order{explanation}",
            )


def _describe_settings(combiner: BaseCombiner) -> Mapping[str, object]:
    """Return all that must be equal to add statistics, the most important first."""
    privacy = "none"
    clip = None
    sensitivity = None
    guarantee = combiner.privacy_
    if guarantee is not None:
        privacy = str(replace(guarantee, releases=1))
        clip = guarantee.clip
        sensitivity = guarantee.sensitivity

    # The scale of the noise follows from these.
    return {
        "method": combiner.identifier,
        **get_parameters(combiner),
        "privacy": privacy,
        "clip": clip,
        "sensitivity": sensitivity,
    }
