"""Fitted combiners as files: statistics to be added up elsewhere, and solved models that need no data to be applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..combiners.statistics import merge as added
from ..errors import InputError, nearest
from ..estimators import COMBINERS, Combiner
from ..io.files import AnyPath, display, first_line, whole_file
from ..panel.predictions import Predictions
from ..parameters import model_weights
from . import privacy
from .fields import from_arrays, reordered, to_arrays
from .privacy.guarantee import Guarantee
from .state_file import Arrays, read_state, write_state

_MOST_CELLS = 2**24  # of one instance: as many as a block of instances may have


def load(path: AnyPath) -> Combiner:
    """Read a combiner from a file of statistics or of a solved model; nothing in the file is executed.

    A solved model can be applied, and has no statistics to add to.

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
    models, labels, clusters = (
        _names(header.get(what), f"{where}, {what}") for what in ("models", "labels", "clusters")
    )
    for what, names in (("models", models), ("labels", labels)):
        if not names:
            raise InputError(f"{where}, {what}: found none, expected at least one")
    guarantee = None if header.get("privacy") is None else Guarantee.from_header(header["privacy"], f"{where}, privacy")
    if guarantee is not None:
        with _saying(where):
            privacy.method_of(type(combiner))
    n = header.get("instances")
    if not (type(n) is int and 0 < n < 2**53 if guarantee is None else n is None):
        raise InputError(f"{where}, instances: found {n!r}, expected a number above 0, or null where it is private")
    sizes = {"m": len(models), "l": len(labels), "ml": len(models) * len(labels), "c": len(clusters)}
    if sizes["ml"] > _MOST_CELLS:
        raise InputError(f"{where}: found {sizes['m']:,} models × {sizes['l']:,} labels, expected fewer")
    if not isinstance(weights := combiner.get_params().get("weights"), dict | None):
        raise InputError(f"{where}, parameters: found weights = {weights!r}, expected an object of models, or null")
    with _saying(f"{where}, parameters"):
        model_weights(weights, models)
    if header.get("kind") == "statistics":
        sums = from_arrays(arrays, combiner.Statistics, sizes, where, noisy=guarantee is not None)
        return privacy.marked(combiner.take(models, labels, n, clusters=clusters, statistics=sums), guarantee)
    if header.get("kind") != "model":
        raise InputError(f"{where}, kind: found {header.get('kind')!r}, expected 'statistics' or 'model'")
    solution = from_arrays(arrays, combiner.Solution, sizes, where)
    found = privacy.marked(combiner.take(models, labels, n, clusters=clusters, solution=solution), guarantee)
    _try_out(found, where)
    return found


def save_statistics(combiner: Combiner, path: AnyPath, *, force: bool = False) -> None:
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
    check_is_fitted(combiner, "models_")
    if not hasattr(combiner, "statistics_"):
        raise InputError("statistics: found a solved model, which has none, expected a combiner that was fitted")
    _check_scale(combiner, "statistics")
    _write(combiner, "statistics", to_arrays(combiner.statistics_), path, force)


def save(combiner: Combiner, path: AnyPath, *, force: bool = False) -> None:
    """Solve, if that has not been done, and write all that `transform` needs, without the statistics, for `load`.

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
    check_is_fitted(combiner, "models_")
    try:
        with np.errstate(all="ignore"):
            arrays = to_arrays(combiner.solution_)
    except InputError:
        raise
    except (ValueError, ArithmeticError) as fault:  # numpy's LinAlgError is a ValueError
        raise InputError(f"statistics: found no solution ({first_line(fault)}), expected sums over instances") from None
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InputError("statistics: found no finite solution, expected sums over instances")
    _try_out(combiner, "statistics")
    _write(combiner, "model", arrays, path, force)


def merge(combiners: Sequence[Combiner], names: Sequence[str] | None = None) -> Combiner:
    """Add up the statistics of several combiners into a new one, as if it had been fitted to all their data.

    Parameters
    ----------
    combiners
        Fitted combiners of one method, with the same parameters, models and labels; the order of models and labels may
        differ.
    names
        What error messages call them.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> panel, _ = mlc.datasets.make_panel(random_state=0)
    >>> sites = [mlc.MLCMr().fit(panel[:400]), mlc.MLCMr().fit(panel[400:])]
    >>> both = mlc.merge(sites)
    >>> both.n_instances_, bool(abs(both.transform(panel) - mlc.mlcm_r(panel)).max() < 1e-10)
    (1000, True)
    """
    combiners = list(combiners)
    if not combiners:
        raise InputError("merge: found no statistics, expected at least one")
    names = [f"combiner {at}" for at in range(len(combiners))] if names is None else names
    first = combiners[0]
    for combiner, name in zip(combiners, names, strict=True):
        check_is_fitted(combiner, "models_")
        if not hasattr(combiner, "statistics_"):
            raise InputError(f"{name}: found a solved model, which has no statistics, expected statistics")
        _check_scale(combiner, name)
        _check_fit(combiner, first, name, names[0])
    total = first.statistics_
    for combiner in combiners[1:]:
        pairs = {"m": ("models_", combiner), "l": ("labels_", combiner), "c": ("clusters_", combiner)}
        orders = {axis: _order(getattr(first, what), getattr(own, what)) for axis, (what, own) in pairs.items()}
        total = added(total, reordered(combiner.statistics_, orders))
    counts = [combiner.n_instances_ for combiner in combiners]
    n = None if None in counts else sum(count for count in counts if count is not None)
    guarantee = first.privacy_
    if guarantee is not None:
        guarantee = guarantee._replace(releases=sum(combiner.privacy_.releases for combiner in combiners))
    whole: Combiner = clone(first).set_params(weights=_parameters(first).get("weights"))
    whole.take(first.models_, first.labels_, n, clusters=first.clusters_, statistics=total)
    return privacy.marked(whole, guarantee)


@contextmanager
def _saying(where: str) -> Iterator[None]:
    """Put where it was found in front of what is refused."""
    try:
        yield
    except InputError as fault:
        raise InputError(f"{where}, {fault}") from None


def _write(combiner: Combiner, kind: str, arrays: Arrays, path: AnyPath, force: bool) -> None:
    method = combiner.name
    if COMBINERS.get(method) is not type(combiner):
        raise InputError(
            f"method: found {method}, which files have no name for, expected one of {', '.join(COMBINERS)}"
        )
    header = {
        "kind": kind,
        "method": method,
        "parameters": _parameters(combiner),
        "models": list(combiner.models_),
        "labels": list(combiner.labels_),
        "clusters": list(combiner.clusters_),
        "instances": combiner.n_instances_,
        "privacy": None if combiner.privacy_ is None else combiner.privacy_._asdict(),
        "written_by": f"mlconsensus {__version__}",
    }
    with whole_file(path, force) as file:
        write_state(file, header, arrays)


def _parameters(combiner: Combiner) -> dict[str, Any]:
    """Return the parameters as JSON has them; weights by name, since models may stand in another order elsewhere."""
    found = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in combiner.get_params().items()
    }
    if "weights" in found:  # as they were when it was fitted
        weights = combiner.weights_
        found["weights"] = None if weights is None else dict(zip(combiner.models_, weights.tolist(), strict=True))
    return found


def _unfitted(header: Mapping[str, Any], where: str) -> Combiner:
    method, parameters = header.get("method"), header.get("parameters")
    if not isinstance(method, str) or method not in COMBINERS:
        hint = nearest(str(method), COMBINERS)
        by = header.get("written_by")
        raise InputError(
            f"{where}, method: found {method!r}, expected one of {', '.join(COMBINERS)}{hint} (written by {by!r})"
        )
    known = COMBINERS[method]().get_params()
    if not isinstance(parameters, dict):
        raise InputError(f"{where}, parameters: found {parameters!r}, expected an object of {', '.join(known)}")
    for name in parameters:
        if name not in known:
            raise InputError(f"{where}, parameters: found {name!r}, expected those of {method}: {', '.join(known)}")
    combiner = COMBINERS[method](**parameters)
    with _saying(f"{where}, parameters"):
        combiner.check()
    return combiner


def _names(found: Any, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise InputError(f"{where}: found {str(found)[:40]!r}, expected a list of names")
    if len(set(found)) < len(found):
        raise InputError(
            f"{where}: found {next(n for n in found if found.count(n) > 1)!r} twice, expected each name once"
        )
    return tuple(found)


def _try_out(combiner: Combiner, where: str) -> None:
    """Apply a model to instances of which all models say yes, no and nothing: a sound one gives finite scores."""
    m, l = len(combiner.models_), len(combiner.labels_)
    said = np.stack([np.ones((m, l)), np.zeros((m, l)), np.full((m, l), np.nan)], axis=1)
    blocks = [Predictions(said[:, rows], combiner.models_, combiner.labels_) for rows in (slice(2), slice(3))]
    try:
        with np.errstate(all="ignore"):
            sound = all(
                np.isfinite(combiner.apply(block.weighted(combiner.weights_), combiner.solution_)).all()
                for block in blocks
            )
    except (ValueError, TypeError, IndexError, ArithmeticError) as fault:
        raise InputError(f"{where}: found a model that cannot be applied ({first_line(fault)}), expected one") from None
    if not sound:
        raise InputError(f"{where}: found a model that gives scores that are not finite, expected a solved one")


def _check_fit(combiner: Combiner, first: Combiner, name: str, first_name: str) -> None:
    """Refuse statistics that cannot be added to the first ones, and say why."""
    if type(combiner) is not type(first):
        raise InputError(f"{name}: found the method {combiner.name}, expected {first.name} as in {first_name}")
    own, expected = _parameters(combiner), _parameters(first)
    for parameter, value in expected.items():
        if own[parameter] != value:
            raise InputError(f"{name}: found {parameter} = {own[parameter]!r}, expected {value!r} as in {first_name}")
    for what in ("models_", "labels_", "clusters_"):
        _check_same(getattr(combiner, what), getattr(first, what), what.removesuffix("s_"), name, first_name)
    for field in Guarantee._fields:
        here, there = (getattr(each.privacy_, field, None) for each in (combiner, first))
        if (here is None) != (there is None) or (here != there and field != "releases"):
            raise InputError(
                f"{name}: found {_private(combiner, field)}, expected {_private(first, field)} as in {first_name}"
            )


def _check_scale(combiner: Combiner, name: str) -> None:
    if combiner.prepared_ is not None:
        raise InputError(
            f"{name}: found scores that were brought to their own panel's scale, expected rescale=False, "
            "since other sites' scores would come to another"
        )


def _check_same(found: Sequence[str], expected: Sequence[str], noun: str, name: str, first_name: str) -> None:
    strange = [one for one in found if one not in set(expected)]
    absent = [one for one in expected if one not in set(found)]
    if strange:
        hint = nearest(strange[0], absent)
        raise InputError(f"{name}: found the {noun} {strange[0]!r}, expected only those of {first_name}{hint}")
    if absent:
        raise InputError(f"{name}: found no {noun} {absent[0]!r}, expected it, as {first_name} has it")


def _private(combiner: Combiner, field: str) -> str:
    if combiner.privacy_ is None:
        return "exact statistics"
    return f"private statistics with {field} = {getattr(combiner.privacy_, field)!r}"


def _order(wanted: Sequence[str], names: Sequence[str]) -> Any:
    place = {name: at for at, name in enumerate(names)}
    return np.array([place[name] for name in wanted], dtype=np.intp)
