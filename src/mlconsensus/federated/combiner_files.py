"""Write fitted combiners to files, and read them.

The header of a file has one of three kinds. ``statistics`` are merged with those of
other sites, a ``round`` is the state that the next pass over the data needs, and a
``model`` is applied without any statistics.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from .. import __version__
from ..combiners.base import BaseCombiner
from ..combiners.registry import COMBINERS
from ..errors import InputError, nearest
from ..io.files import AnyPath, atomic_write, display, get_first_line
from ..predictions import Array, Predictions
from .privacy.mechanism import Guarantee, read_guarantee
from .statistics_files import (
    Arrays,
    Header,
    from_arrays,
    read_state,
    reorder_record,
    to_arrays,
    write_state,
)

# Names of the models, labels and clusters, under these three words.
NamesByAxis = dict[str, tuple[str, ...]]

_AXES = ("models", "labels", "clusters")
_KINDS = ("statistics", "round", "model")
_STATE_PREFIX = "known:"  # of the names of a state's arrays in a file
_MAX_PAIRS = 2**24  # models × labels: as many scores as a block may have
_MAX_INSTANCES = 2**53
_DIGEST_LENGTH = 16


@dataclass(frozen=True, kw_only=True)
class _CheckedHeader:
    """The values of a file's header, after they were checked."""

    kind: str
    names: NamesByAxis
    n_instances: int | None  # None: it is private
    n_completed: int  # passes over the data before this one
    guarantee: Guarantee | None
    where: str  # the file, for error messages

    @property
    def sizes(self) -> Mapping[str, int]:
        """Sizes of the axes that `Axes` names."""
        n_models = len(self.names["models"])
        n_labels = len(self.names["labels"])
        return {
            "m": n_models,
            "l": n_labels,
            "c": len(self.names["clusters"]),
            "ml": n_models * n_labels,
        }


def load(path: AnyPath) -> BaseCombiner:
    """Read a combiner from a file of statistics or of a solved model.

    Nothing in the file is executed. A solved model can be applied, and has no
    statistics to add to.

    Parameters
    ----------
    path : str or path-like
        A file that `save_statistics` or `save` wrote.

    Returns
    -------
    BaseCombiner
        The fitted combiner.

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
    combiner = _make_combiner(header, where)
    checked = _check_header(header, combiner, where)
    records = _read_records(arrays, combiner, checked)

    try:
        combiner.take(
            checked.n_instances,
            **checked.names,
            solution=records.get("solution"),
            statistics=records.get("statistics"),
            state=records.get("state"),
            privacy=checked.guarantee,
        )
    except InputError as error:
        raise InputError(f"{where}, parameters, {error}") from None

    if checked.kind == "model":
        _solve_and_check(combiner, where)
    elif checked.kind == "statistics":
        parts = _check_names(header.get("parts", []), f"{where}, parts")
        combiner.parts_ = parts or (compute_digest(combiner),)

    return combiner


def save_statistics(
    combiner: BaseCombiner, path: AnyPath, *, force: bool = False
) -> None:
    """Write a fitted combiner's statistics, for `load` and `merge`.

    Parameters
    ----------
    combiner : BaseCombiner
        A fitted combiner.
    path : str or path-like
        The file to write. It appears when it is complete.
    force : bool, default=False
        Whether to replace an existing file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> predictions, _ = mlc.datasets.make_panel(random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.stats"
    >>> mlc.save_statistics(mlc.MLCMr().fit(predictions), path)
    >>> mlc.load(path).n_instances_
    1000
    """
    _check_combiner(combiner)
    check_statistics(combiner, "statistics")

    state = combiner.state_
    n_completed = combiner.count_passes(state)
    arrays = to_arrays(combiner.statistics_)
    if n_completed > 0:
        arrays |= make_state_arrays(state)

    header = _make_header(combiner, "statistics", n_completed)
    _write_file(path, header, arrays, force)


def save(combiner: BaseCombiner, path: AnyPath, *, force: bool = False) -> None:
    """Write all that `transform` needs, without the statistics, for `load`.

    The combiner is solved first, if it was not. If passes over the data are still to
    come, the state that the next one needs is written instead.

    Parameters
    ----------
    combiner : BaseCombiner
        A fitted combiner.
    path : str or path-like
        The file to write. It appears when it is complete.
    force : bool, default=False
        Whether to replace an existing file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mlconsensus as mlc
    >>> predictions, _ = mlc.datasets.make_panel(random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "consensus.model"
    >>> combiner = mlc.MLCMr().fit(predictions)
    >>> mlc.save(combiner, path)
    >>> scores = mlc.load(path).transform(predictions)
    >>> (scores == combiner.transform(predictions)).all()
    np.True_
    """
    _check_combiner(combiner)
    if combiner.unfinished and hasattr(combiner, "statistics_"):
        n_completed = combiner.count_passes(combiner.state_) + 1
        header = _make_header(combiner, "round", n_completed)
        arrays = _solve_pass(combiner)
    else:
        header = _make_header(combiner, "model", n_completed=0)
        arrays = _solve_and_check(combiner, "statistics")

    _write_file(path, header, arrays, force)


def get_names(combiner: BaseCombiner) -> NamesByAxis:
    """Return the names of the models, labels and clusters of a fitted combiner.

    Parameters
    ----------
    combiner : BaseCombiner
        A fitted combiner.

    Returns
    -------
    dict of str to tuple of str
        Under ``models``, ``labels`` and ``clusters``.
    """
    if not isinstance(combiner, BaseCombiner):
        raise InputError(
            where="combiner",
            found=repr(combiner),
            expected="a fitted one, as mlc.load gives it",
        )

    combiner.check_is_fitted()
    return {
        "models": combiner.models_,
        "labels": combiner.labels_,
        "clusters": combiner.clusters_,
    }


def get_parameters(combiner: BaseCombiner) -> dict[str, object]:
    """Return the parameters that a combiner was fitted with, as JSON can hold them.

    Parameters
    ----------
    combiner : BaseCombiner
        A fitted combiner.

    Returns
    -------
    dict of str to object
        Weights are by name, because the order of models may differ elsewhere.
    """
    parameters: dict[str, object] = {}
    for name, value in combiner.get_params().items():
        if isinstance(value, np.generic):
            value = value.item()
        parameters[name] = value

    if "weights" in parameters:
        weights = combiner.weights_
        if weights is None:
            parameters["weights"] = None
        else:
            parameters["weights"] = dict(
                zip(combiner.models_, weights.tolist(), strict=True)
            )

    return parameters


def check_statistics(combiner: BaseCombiner, where: str) -> None:
    """Check that a combiner has statistics that can be added to those of others.

    Parameters
    ----------
    combiner : BaseCombiner
        A fitted combiner.
    where : str
        Its name in error messages.
    """
    if not hasattr(combiner, "statistics_"):
        raise InputError(
            where=where,
            found="a solved model, which has no statistics",
            expected="a combiner that was fitted, or its statistics",
        )

    if combiner._solved is not None:
        _, solution = combiner._solved
        if getattr(solution, "learned", None) is not None:
            raise InputError(
                where=where,
                found="what known answers taught, which its sums do not hold",
                expected="a combiner fitted without gold",
            )


def make_state_arrays(state: object) -> Arrays:
    """Return the arrays of a state from earlier passes, named as in a file.

    Parameters
    ----------
    state : dataclass, NamedTuple or None
        None if this is the first pass.

    Returns
    -------
    dict of str to ndarray
    """
    if state is None:
        return {}

    arrays = {}
    for name, array in to_arrays(state).items():
        arrays[_STATE_PREFIX + name] = array

    return arrays


def compute_digest(combiner: BaseCombiner) -> str:
    """Compute a name of statistics from their content.

    The order of models, labels and instances does not change it: numbers are rounded
    to float32.

    Parameters
    ----------
    combiner : BaseCombiner
        A combiner with statistics.

    Returns
    -------
    str
    """
    names = get_names(combiner)
    sorted_names = {axis: sorted(axis_names) for axis, axis_names in names.items()}
    content = repr((sorted_names, combiner.n_instances_))
    digest = hashlib.sha256(content.encode(errors="surrogatepass"))

    statistics = reorder_record(combiner.statistics_, names, sorted_names)
    with np.errstate(over="ignore"):
        for name, array in to_arrays(statistics).items():
            # Adding 1 makes numbers equal to 0 that are nearly 0.
            rounded = (array + 1).astype(np.float32)
            digest.update(name.encode() + rounded.tobytes())

    return digest.hexdigest()[:_DIGEST_LENGTH]


def _make_combiner(header: Header, where: str) -> BaseCombiner:
    """Make the combiner of a header's method and parameters."""
    method = header.get("method")
    if not isinstance(method, str) or method not in COMBINERS:
        suggestion = nearest(str(method), COMBINERS)
        writer = f"(written by {header.get('written_by')!r})"
        raise InputError(
            where=f"{where}, method",
            found=repr(method),
            expected=f"one of {', '.join(COMBINERS)}{suggestion} {writer}",
        )

    combiner_type = COMBINERS[method]
    parameters = header.get("parameters")
    valid_names = combiner_type().get_params()
    is_valid = (
        isinstance(parameters, dict)
        and set(parameters) <= set(valid_names)
        and isinstance(parameters.get("weights"), dict | None)
    )
    if not is_valid or not isinstance(parameters, dict):
        raise InputError(
            where=f"{where}, parameters",
            found=parameters,
            expected=f"an object of {', '.join(valid_names)}, with weights by model",
        )

    return combiner_type(**parameters)


def _check_header(header: Header, combiner: BaseCombiner, where: str) -> _CheckedHeader:
    """Check all values of a header except method and parameters."""
    names: NamesByAxis = {}
    for axis in _AXES:
        names[axis] = _check_names(header.get(axis), f"{where}, {axis}")

    _check_n_pairs(names, where)

    guarantee = None
    if header.get("privacy") is not None:
        guarantee = read_guarantee(
            header["privacy"], type(combiner), f"{where}, privacy"
        )

    return _CheckedHeader(
        names=names,
        guarantee=guarantee,
        n_instances=_check_n_instances(header, guarantee, where),
        kind=_check_kind(header, where),
        n_completed=_check_n_completed(header, len(combiner.passes), where),
        where=where,
    )


def _check_names(names: object, where: str) -> tuple[str, ...]:
    """Check a list of unique names."""
    is_valid = isinstance(names, list) and all(
        isinstance(name, str) and name for name in names
    )
    if not is_valid or not isinstance(names, list):
        raise InputError(
            where=where, found=repr(str(names)[:40]), expected="a list of names"
        )

    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            where=where, found=f"{repeated[:1]} twice", expected="each name once"
        )

    return tuple(names)


def _check_n_pairs(names: NamesByAxis, where: str) -> None:
    """Check that there are models and labels, and not more than in a block."""
    n_models = len(names["models"])
    n_labels = len(names["labels"])
    if not 0 < n_models * n_labels <= _MAX_PAIRS:
        raise InputError(
            where=where,
            found=f"{n_models:,} models × {n_labels:,} labels",
            expected=f"some, and at most {_MAX_PAIRS:,} pairs",
        )


def _check_n_instances(
    header: Header, guarantee: Guarantee | None, where: str
) -> int | None:
    """Check the number of instances, which private statistics do not have."""
    n_instances = header.get("instances")
    if guarantee is not None and n_instances is None:
        return None

    if (
        guarantee is not None
        or not isinstance(n_instances, int)
        or isinstance(n_instances, bool)
        or not 0 < n_instances < _MAX_INSTANCES
    ):
        raise InputError(
            where=f"{where}, instances",
            found=repr(n_instances),
            expected="a number above 0, or null where it is private",
        )

    return n_instances


def _check_kind(header: Header, where: str) -> str:
    """Check the kind of a file."""
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(
            where=f"{where}, kind",
            found=repr(kind),
            expected=f"one of {', '.join(_KINDS)}",
        )

    return kind


def _check_n_completed(header: Header, n_passes: int, where: str) -> int:
    """Check the number of completed passes; there are `n_passes` before the last."""
    n_completed = header.get("rounds", 0)
    if (
        not isinstance(n_completed, int)
        or isinstance(n_completed, bool)
        or not 0 <= n_completed <= n_passes
    ):
        raise InputError(
            where=f"{where}, rounds",
            found=repr(n_completed),
            expected=f"0 to {n_passes}",
        )

    return n_completed


def _read_records(
    arrays: Arrays, combiner: BaseCombiner, header: _CheckedHeader
) -> dict[str, object]:
    """Return statistics, state and solution of a file, under their names in `take`."""
    state_arrays: Arrays = {}
    other_arrays: Arrays = {}
    for name, array in arrays.items():
        if name.startswith(_STATE_PREFIX):
            state_arrays[name.removeprefix(_STATE_PREFIX)] = array
        else:
            other_arrays[name] = array

    records: dict[str, object] = {}
    if header.n_completed > 0 and header.kind != "model":
        last_pass = combiner.passes[header.n_completed - 1]
        records["state"] = from_arrays(
            state_arrays, last_pass.State, sizes=header.sizes, where=header.where
        )

    if header.kind == "statistics":
        if header.n_completed < len(combiner.passes):
            statistics_type = combiner.passes[header.n_completed].Statistics
        else:
            statistics_type = combiner.Statistics

        records["statistics"] = from_arrays(
            other_arrays,
            statistics_type,
            sizes=header.sizes,
            where=header.where,
            has_noise=header.guarantee is not None,
        )
    elif header.kind == "model":
        records["solution"] = from_arrays(
            other_arrays, combiner.Solution, sizes=header.sizes, where=header.where
        )

    return records


def _make_header(combiner: BaseCombiner, kind: str, n_completed: int) -> Header:
    """Return the header of a combiner's file."""
    if COMBINERS.get(combiner.identifier) is not type(combiner):
        raise InputError(
            where="method",
            found=f"{combiner.identifier}, which files have no name for",
            expected=f"one of {', '.join(COMBINERS)}",
        )

    # The digest of statistics that were not merged is computed by `load`.
    parts: tuple[str, ...] = ()
    if len(combiner.parts_) > 1:
        parts = combiner.parts_

    privacy = None
    if combiner.privacy_ is not None:
        privacy = asdict(combiner.privacy_)

    return {
        "kind": kind,
        "method": combiner.identifier,
        "parameters": get_parameters(combiner),
        **get_names(combiner),
        "instances": combiner.n_instances_,
        "parts": parts,
        "rounds": n_completed,
        "privacy": privacy,
        "written_by": f"mlconsensus {__version__}",
    }


def _write_file(path: AnyPath, header: Header, arrays: Arrays, force: bool) -> None:
    """Write a file that appears when it is complete."""
    with atomic_write(path, force) as file:
        write_state(file, header, arrays)


def _solve_pass(combiner: BaseCombiner) -> Arrays:
    """Solve the statistics of a pass before the last; return the state's arrays."""
    with np.errstate(all="ignore"):
        arrays = make_state_arrays(combiner.next_state())

    if not _are_finite(list(arrays.values())):
        raise InputError(
            where="statistics",
            found="sums that give no finite numbers",
            expected="sums of scores in [0, 1]",
        )

    return arrays


def _solve_and_check(combiner: BaseCombiner, where: str) -> Arrays:
    """Solve, check that the solution gives finite scores, and return its arrays."""
    reason = "numbers that are not finite"
    try:
        with np.errstate(all="ignore"):
            arrays = to_arrays(combiner.solution_)
            scores = _apply_to_examples(combiner)

        if _are_finite([*arrays.values(), *scores]):
            return arrays
    except InputError:
        raise
    except (ValueError, TypeError, IndexError, ArithmeticError) as error:
        reason = get_first_line(error)  # also a LinAlgError, which is a ValueError

    raise InputError(
        where=where,
        found=f"no solution that gives scores ({reason})",
        expected="one",
    )


def _apply_to_examples(combiner: BaseCombiner) -> list[Array]:
    """Return scores of instances with all labels, no label, and nothing predicted."""
    shape = (len(combiner.models_), len(combiner.labels_))
    examples = [np.ones(shape), np.zeros(shape), np.full(shape, np.nan)]
    complete = np.stack(examples[:2], axis=1)
    incomplete = np.stack(examples, axis=1)

    # Methods use other code if no prediction is missing.
    apply = combiner.applying()
    scores = []
    for predictions in (complete, incomplete):
        block = Predictions(predictions, combiner.models_, combiner.labels_)
        scores.append(apply(block))

    return scores


def _are_finite(arrays: list[Array]) -> bool:
    """Return whether all numbers of all arrays are finite."""
    return all(np.isfinite(array).all() for array in arrays)


def _check_combiner(combiner: BaseCombiner) -> None:
    """Check that this is a fitted combiner."""
    if not isinstance(combiner, BaseCombiner):
        raise InputError(
            where="combiner",
            found=f"a {type(combiner).__name__}",
            expected="a fitted combiner, such as MLCMr().fit(panel) (joblib.dump keeps "
            "other estimators, such as ConsensusClassifier)",
        )

    combiner.check_is_fitted()
