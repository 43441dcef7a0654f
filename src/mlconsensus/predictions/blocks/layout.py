"""Making a block: the one place where its layout is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..answer_rows import AnswerRows
from ..array_types import Array, BoolArray, FloatArray, IntArray, Matrix
from ..model_scores import AlignedScores
from .base import InstanceInfo, PredictionBlock
from .dense import SPARSE_FILL, DenseBlock
from .pair_values import NamedPairs
from .sparse import SparseBlock

# If models saw fewer than this share of the instances on average, only what they saw
# is stored.
_CROWD_FILL = 0.15
# Groups of instances that were seen by the same models have values for all labels. If
# there would be more values than this, all instances form one group.
_MOST_GROUP_VALUES = 2**24


def make_block(
    parts: Sequence[AlignedScores],
    shape: tuple[int, int, int],
    info: InstanceInfo,
    is_large: bool,
) -> PredictionBlock:
    """Make the block of some aligned predictions in the layout that suits them.

    Parameters
    ----------
    parts : sequence of m AlignedScores
        The predictions of each model.
    shape : tuple of int
        Number of models, instances and labels.
    info : InstanceInfo
        Weights of the models, gold labels and clusterings.
    is_large : bool
        Whether the label space is so large that only named pairs are stored.

    Returns
    -------
    PredictionBlock
    """
    n_models, n_instances, n_labels = shape
    if is_large:
        return _make_named_block(parts, shape, info, is_large=True)

    n_pairs = n_models * n_instances * n_labels
    is_sparse = all(sparse.issparse(part.matrix) for part in parts)
    has_nan = any(part.has_nan for part in parts)
    n_stored = sum(part.n_stored for part in parts)
    has_more = info.gold is not None or info.n_clusters > 0
    is_plain = not (has_nan or has_more)
    if is_sparse and is_plain and n_stored < SPARSE_FILL * n_pairs:
        seen = _list_seen(parts, n_instances)
        groups = _group_instances(seen, n_labels)
        if groups.is_exact:
            return _make_named_block(parts, shape, info, is_large=False)

    n_seen = sum(_count_seen(part, n_instances) for part in parts)
    if n_seen < _CROWD_FILL * n_models * n_instances:
        return make_crowd_block(_collect_rows(parts, n_instances, n_labels), info)

    scores: list[Array] = []
    is_present: list[BoolArray | None] = []
    for part in parts:
        values, mask = part.cells()
        scores.append(values.toarray() if sparse.issparse(values) else values)
        is_present.append(mask)
    return DenseBlock(scores, is_present, info)


def make_crowd_block(rows: AnswerRows, info: InstanceInfo) -> SparseBlock:
    """Make a block that stores what each model saw, with a row for every pair.

    Parameters
    ----------
    rows : AnswerRows
        The predictions of each model for the instances that it saw.
    info : InstanceInfo
        Weights of the models, gold labels and clusterings.

    Returns
    -------
    SparseBlock
    """
    n_labels = rows.n_labels
    sizes = np.diff(rows.scores.indptr)
    label = rows.scores.indices.astype(np.int64)
    pair = np.repeat(rows.instance * n_labels, sizes) + label
    voter = np.repeat(rows.model * n_labels, sizes) + label
    data = rows.scores.data.astype(np.float64)
    shape = (rows.n_instances * n_labels, rows.n_models * n_labels)

    missing = None
    if rows.has_nan:
        is_nan = np.isnan(data)
        positions = (pair[is_nan], voter[is_nan])
        ones = np.ones(len(positions[0]))
        missing = sparse.coo_array((ones, positions), shape=shape).tocsr()
        pair = pair[~is_nan]
        voter = voter[~is_nan]
        data = data[~is_nan]

    # Sort by pair: rows come in the order of instances, so only the labels of an
    # instance have to be sorted, which a counting sort does.
    scores = sparse.coo_array((data, (pair, voter)), shape=shape).tocsr()
    starts = np.searchsorted(rows.instance, np.arange(rows.n_instances + 1))
    seen = sparse.csr_array(
        (np.ones(len(rows.model)), rows.model, starts),
        shape=(rows.n_instances, rows.n_models),
    )
    covered = None
    if not rows.covered.all():
        covered = rows.covered
    return SparseBlock(
        scores, seen, n_labels, covered=covered, missing=missing, info=info
    )


def _collect_rows(
    parts: Sequence[AlignedScores], n_instances: int, n_labels: int
) -> AnswerRows:
    """Return the rows of all models, in the order of instances."""
    models = []
    instances = []
    matrices = []
    for model, part in enumerate(parts):
        seen = _find_seen(part, n_instances)
        values, mask = part.take(seen).cells()
        covered = _get_covered(part, n_labels)
        matrices.append(_mark_missing(values, mask, covered))
        instances.append(seen)
        models.append(np.full(len(seen), model))

    instance = np.concatenate(instances)
    order = np.argsort(instance, kind="stable")
    return AnswerRows(
        scores=sparse.vstack(matrices, format="csr")[order],
        model=np.concatenate(models)[order],
        instance=instance[order],
        n_models=len(parts),
        n_instances=n_instances,
        covered=np.array([_get_covered(part, n_labels) for part in parts]),
    )


def _mark_missing(values: Matrix, mask: BoolArray | None, covered: BoolArray) -> Matrix:
    """Return scores as CSR, with NaN for missing predictions of known labels."""
    matrix = sparse.csr_array(values).astype(np.float64)
    if mask is None:
        return matrix
    row, label = np.nonzero(~mask & covered)
    if len(row) == 0:
        return matrix
    gaps = sparse.coo_array(
        (np.full(len(row), np.nan), (row, label)), shape=matrix.shape
    )
    return (matrix + gaps.tocsr()).tocsr()


def _make_named_block(
    parts: Sequence[AlignedScores],
    shape: tuple[int, int, int],
    info: InstanceInfo,
    is_large: bool,
) -> SparseBlock:
    """Make a block that stores the pairs that some model named.

    Single missing predictions of models that saw the instance count as 0.
    """
    n_models, n_instances, n_labels = shape
    # One row per instance, with the models of a label next to each other.
    joined = sparse.hstack([part.apart()[0] for part in parts], format="csr")
    model, label = np.divmod(joined.indices, n_labels)
    columns = label.astype(np.int64) * n_models + model
    joined = sparse.csr_array((joined.data, columns, joined.indptr), joined.shape)
    joined.sort_indices()
    label, model = np.divmod(joined.indices, n_models)

    # A pair begins where the instance or the label changes.
    is_first = np.ones(len(label), dtype=np.bool_)
    is_first[1:] = label[1:] != label[:-1]
    n_entries = np.diff(joined.indptr)
    is_first[joined.indptr[:-1][n_entries > 0]] = True
    first = np.flatnonzero(is_first)
    pair_label = label[first].astype(np.intp)
    pair_starts = np.searchsorted(first, joined.indptr)
    voters = model.astype(np.int64) * n_labels + label
    scores = sparse.csr_array(
        (joined.data, voters, np.append(first, len(label))),
        shape=(len(first), n_models * n_labels),
    )

    seen = _list_seen(parts, n_instances)
    groups = _group_instances(seen, n_labels)
    n_groups = len(groups.participation)
    sizes = np.bincount(groups.group, minlength=n_groups).astype(np.float64)
    pair_group = np.repeat(groups.group, np.diff(pair_starts))
    n_named = np.bincount(
        pair_group * n_labels + pair_label, minlength=n_groups * n_labels
    )
    n_unnamed = sizes[:, np.newaxis] - n_named.reshape(n_groups, n_labels)

    pairs = NamedPairs(
        label=pair_label,
        starts=pair_starts,
        group=groups.group,
        participation=groups.participation,
        n_unnamed=n_unnamed,
        is_exact=groups.is_exact,
        is_large=is_large,
    )
    covered = _list_covered(parts, n_labels)
    return SparseBlock(scores, seen, n_labels, covered=covered, pairs=pairs, info=info)


@dataclass(frozen=True, kw_only=True)
class _Groups:
    """Instances that were seen by the same models."""

    group: IntArray  # (n,)
    participation: FloatArray  # (g, m)
    is_exact: bool


def _group_instances(seen: Matrix, n_labels: int) -> _Groups:
    """Group instances by the models that saw them; group 0 is seen by all models."""
    n_instances, n_models = seen.shape
    everyone = np.ones((1, n_models))
    if seen.nnz == n_instances * n_models:
        group = np.ones(n_instances, dtype=np.intp)
        participation = np.concatenate([everyone, everyone])
        return _Groups(group=group, participation=participation, is_exact=True)

    table = seen.toarray()
    kinds, group = np.unique(table, axis=0, return_inverse=True)
    is_exact = len(kinds) * n_labels <= _MOST_GROUP_VALUES
    if not is_exact:
        kinds = table.mean(axis=0, keepdims=True)
        group = np.zeros(n_instances, dtype=np.intp)
    return _Groups(
        group=group.ravel() + 1,
        participation=np.concatenate([everyone, kinds]),
        is_exact=is_exact,
    )


def _find_seen(part: AlignedScores, n_instances: int) -> IntArray:
    """Return the positions of the instances that a model saw."""
    if part.rows is None:
        return np.arange(n_instances)
    return np.flatnonzero(part.rows >= 0)


def _count_seen(part: AlignedScores, n_instances: int) -> int:
    """Return the number of instances that a model saw."""
    if part.rows is None:
        return n_instances
    return int(np.count_nonzero(part.rows >= 0))


def _list_seen(parts: Sequence[AlignedScores], n_instances: int) -> Matrix:
    """Return which model saw which instance, CSR (n, m) of ones."""
    seen = [_find_seen(part, n_instances) for part in parts]
    starts = np.append(0, np.cumsum([len(instances) for instances in seen]))
    by_model = sparse.csc_array(
        (np.ones(int(starts[-1])), np.concatenate(seen), starts),
        shape=(n_instances, len(parts)),
    )
    return by_model.tocsr()


def _get_covered(part: AlignedScores, n_labels: int) -> BoolArray:
    """Return which labels a model knows, (l,)."""
    if part.columns is None:
        return np.ones(n_labels, dtype=np.bool_)
    return np.asarray(part.columns != -1)


def _list_covered(parts: Sequence[AlignedScores], n_labels: int) -> BoolArray | None:
    """Return which labels each model knows (m, l), or None if all know all."""
    if all(_get_covered(part, n_labels).all() for part in parts):
        return None
    return np.array([_get_covered(part, n_labels) for part in parts])
