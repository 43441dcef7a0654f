"""Fitted combiners as files: statistics to be added up elsewhere, and solved models that need no data to be applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..combiners.statistics import merge as added
from ..errors import InputError, nearest
from ..estimators import COMBINERS, Combiner
from ..io.files import AnyPath, display, first_line, whole_file
from ..panel.predictions import Predictions
from ..parameters import model_weights
from .privacy import guarantee_of, private
from .state_file import Arrays, from_arrays, read_state, reordered, to_arrays, write_state

_NAMED = ("models", "labels", "clusters")
_MOST_CELLS = 2**24  # of one instance: as many as a block of instances may have


def load(path: AnyPath) -> Combiner:
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
    models, labels, clusters = (
        _names(header.get(what), least, f"{where}, {what}")
        for what, least in (("models", 1), ("labels", 1), ("clusters", 0))
    )
    with _saying(f"{where}, parameters"):
        model_weights(combiner.weights, models)
    guarantee = header.get("privacy")
    if guarantee is not None:
        guarantee = guarantee_of(guarantee, type(combiner), f"{where}, privacy")
    n = header.get("instances")
    if not (type(n) is int and 0 < n < 2**53 if guarantee is None else n is None):
        raise InputError(f"{where}, instances: found {n!r}, expected a number above 0, or null where it is private")
    sizes = {"m": len(models), "l": len(labels), "ml": len(models) * len(labels), "c": len(clusters)}
    if sizes["ml"] > _MOST_CELLS:
        raise InputError(f"{where}: found {sizes['m']:,} models × {sizes['l']:,} labels, expected fewer")
    kind = header.get("kind")
    if kind not in ("statistics", "model"):
        raise InputError(f"{where}, kind: found {kind!r}, expected 'statistics' or 'model'")
    fitted: dict[str, Any] = private(combiner, guarantee)
    if kind == "statistics":
        fitted["statistics"] = from_arrays(arrays, combiner.Statistics, sizes, where, noisy=guarantee is not None)
    else:
        fitted["solution"] = from_arrays(arrays, combiner.Solution, sizes, where)
    combiner.take(models, labels, n, clusters=clusters, **fitted)
    if kind == "model":
        _tried_out(combiner, where)
    return combiner


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
    _write(combiner, "model", _tried_out(combiner, "statistics"), path, force)


def merge(combiners: Sequence[Combiner], names: Sequence[str] | None = None) -> Combiner:
    """Add up the statistics of several combiners into a new one, as if it had been fitted to all their data.

    Parameters
    ----------
    combiners
        Fitted combiners of one method, with the same parameters, models and labels; the order of models and labels may
        differ.
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
        _check_alike(combiner, first, name, names[0])
    total = first.statistics_
    for combiner in combiners[1:]:
        orders = {noun[0]: _order(getattr(first, f"{noun}_"), getattr(combiner, f"{noun}_")) for noun in _NAMED}
        total = added(total, reordered(combiner.statistics_, orders))
    n, guarantee = None, first.privacy_
    if guarantee is None:
        n = sum(combiner.n_instances_ or 0 for combiner in combiners)
    else:
        guarantee = guarantee._replace(releases=sum(combiner.privacy_.releases for combiner in combiners))
    together: Combiner = clone(first).set_params(**_parameters(first))
    fitted = private(together, guarantee)
    return together.take(first.models_, first.labels_, n, clusters=first.clusters_, statistics=total, **fitted)


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
        "models": combiner.models_,
        "labels": combiner.labels_,
        "clusters": combiner.clusters_,
        "instances": combiner.n_instances_,
        "privacy": combiner.privacy_ and combiner.privacy_._asdict(),
        "written_by": f"mlconsensus {__version__}",
    }
    with whole_file(path, force) as file:
        write_state(file, header, arrays)


def _parameters(combiner: Combiner) -> dict[str, Any]:
    """Return the parameters as JSON has them, and as they were when it was fitted.

    Weights are by name, since models may stand in another order elsewhere.
    """
    given = combiner.get_params()
    if "weights" in given:
        weights = combiner.weights_
        given["weights"] = None if weights is None else dict(zip(combiner.models_, weights.tolist(), strict=True))
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}


def _unfitted(header: Mapping[str, Any], where: str) -> Combiner:
    method, parameters = header.get("method"), header.get("parameters")
    if not isinstance(method, str) or method not in COMBINERS:
        raise InputError(
            f"{where}, method: found {method!r}, expected one of {', '.join(COMBINERS)}"
            f"{nearest(str(method), COMBINERS)} (written by {header.get('written_by')!r})"
        )
    known = COMBINERS[method]().get_params()
    if not isinstance(parameters, dict) or not set(parameters) <= set(known):
        raise InputError(f"{where}, parameters: found {parameters!r}, expected an object of {', '.join(known)}")
    if not isinstance(weights := parameters.get("weights"), dict | None):
        raise InputError(f"{where}, parameters: found weights = {weights!r}, expected an object of models, or null")
    combiner = COMBINERS[method](**parameters)
    with _saying(f"{where}, parameters"):
        combiner.check()
    return combiner


def _names(found: Any, least: int, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise InputError(f"{where}: found {str(found)[:40]!r}, expected a list of names")
    if len(set(found)) < len(found) or len(found) < least:
        raise InputError(
            f"{where}: found {len(found):,} names, {len(set(found)):,} of them different, expected each "
            f"once and at least {least}"
        )
    return tuple(found)


def _tried_out(combiner: Combiner, where: str) -> Arrays:
    """Solve, apply the solution to instances of which all models say yes, no and nothing, and return its arrays.

    What gives no finite numbers is refused.
    """
    m, l = len(combiner.models_), len(combiner.labels_)
    said = np.stack([np.ones((m, l)), np.zeros((m, l)), np.full((m, l), np.nan)], axis=1)
    reason = "numbers that are not finite"
    try:
        with np.errstate(all="ignore"):
            arrays = to_arrays(combiner.solution_)
            apply = combiner.applying()
            scores = [apply(Predictions(some, combiner.models_, combiner.labels_)) for some in (said[:, :2], said)]
        if all(np.isfinite(array).all() for array in [*arrays.values(), *scores]):
            return arrays
    except InputError:
        raise
    except (ValueError, TypeError, IndexError, ArithmeticError) as fault:  # numpy's LinAlgError is a ValueError
        reason = first_line(fault)
    raise InputError(f"{where}: found no solution that gives scores ({reason}), expected one")


def _check_alike(combiner: Combiner, first: Combiner, name: str, first_name: str) -> None:
    """Refuse statistics that cannot be added to the first ones, and say why."""
    own = _described(combiner)
    for what, value in _described(first).items():
        if own.get(what) != value:
            raise InputError(f"{name}: found {what} = {own.get(what)!r}, expected {value!r} as in {first_name}")
    for noun in _NAMED:
        found, expected = (dict.fromkeys(getattr(each, f"{noun}_")) for each in (combiner, first))
        strange = [one for one in found if one not in expected]
        absent = [one for one in expected if one not in found]
        if strange:
            hint = nearest(strange[0], absent)
            raise InputError(f"{name}, {noun}: found {strange[0]!r}, expected only those of {first_name}{hint}")
        if absent:
            raise InputError(f"{name}, {noun}: found no {absent[0]!r}, expected it, as {first_name} has it")


def _described(combiner: Combiner) -> dict[str, Any]:
    """Return all in which statistics have to be alike, the most important first."""
    guarantee = combiner.privacy_
    release = {} if guarantee is None else guarantee._replace(releases=1)._asdict()
    kind = "exact" if guarantee is None else "private"
    return {"method": combiner.name, **_parameters(combiner), "statistics": kind, **release}


def _check_scale(combiner: Combiner, name: str) -> None:
    if combiner.prepared_ is not None:
        raise InputError(
            f"{name}: found scores that were brought to their own panel's scale, expected rescale=False, "
            "since other sites' scores would come to another"
        )


def _order(wanted: Sequence[str], names: Sequence[str]) -> NDArray[np.intp]:
    place = {name: at for at, name in enumerate(names)}
    return np.array([place[name] for name in wanted], dtype=np.intp)
