"""Predictions of crowds: many models, each of which saw few of the instances.

The rows of a long table become the rows of the predictions, without a table for each
model. The result is the same as that of the tables, also in the order of names.
"""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy import sparse

from ..execution.memory import check_size
from ..predictions import (
    MAX_DENSE_LABELS,
    AnswerRows,
    BoolArray,
    FloatArray,
    IntArray,
    Predictions,
    as_array,
    check_similar_labels,
    find_rare_labels,
)
from ..predictions.table_alignment import FEWEST_FOR_RARE_LABELS
from .label_names import keeps_labels
from .long_table import IndexedPredictions, LoadedFrame, index_predictions
from .options import ReadOptions

# Models that saw fewer than this share of the instances on average are a crowd, if
# there are several of them.
_CROWD_FILL = 0.15
_FEWEST_CROWD_MODELS = 20


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """Rows of a long table, except those in which a model abstains.

    Names are replaced by positions.
    """

    model: IntArray  # (r,)
    instance: IntArray  # (r,)
    label: IntArray  # (r,) -1: the row only lists the instance
    score: FloatArray  # (r,) NaN: missing
    n_models: int
    n_instances: int
    n_labels: int

    def select_named(self) -> "_Answers":
        """Return the rows that name a label."""
        has_label = self.label >= 0
        return replace(
            self,
            model=self.model[has_label],
            instance=self.instance[has_label],
            label=self.label[has_label],
            score=self.score[has_label],
        )


def make_crowd(loaded: LoadedFrame, options: ReadOptions) -> Predictions | None:
    """Make the predictions of a long frame in which each model saw few instances.

    Parameters
    ----------
    loaded : LoadedFrame
        Result of `load_frame`.
    options : ReadOptions
        Options for reading.

    Returns
    -------
    Predictions or None
        ``None`` if this is not a crowd, or if options, names or repeated predictions
        need the table of each model.
    """
    has_label_options = options.aliases or options.vocabulary or options.ignore_case
    if has_label_options or options.all_know_labels:
        return None
    if options.partial or not _is_crowd(loaded):
        return None

    predictions = index_predictions(loaded, options.value_range)
    if _needs_tables(predictions, options):
        return None

    # Models that abstain on all instances are left out.
    answers = _collect_answers(predictions)
    has_answer = np.bincount(answers.model, minlength=answers.n_models) > 0
    new_positions = np.cumsum(has_answer) - 1
    answers = replace(
        answers, model=new_positions[answers.model], n_models=int(has_answer.sum())
    )

    n_cells = answers.n_models * answers.n_labels
    models_and_labels = f"{answers.n_models:,} models about {answers.n_labels:,} labels"
    file = loaded.frame.place.file
    check_size(24 * n_cells, file, f"for the answers of {models_and_labels}", 0.9)

    # Names are in the order of the tables: those of the first model are first.
    covered = _find_covered(answers)
    label_order = np.argsort(covered.argmax(axis=0), kind="stable")
    instance_order = _order_instances(answers)
    rows = _make_rows(
        _reorder(answers, instance_order, label_order), covered[:, label_order]
    )
    if rows is None:
        return None

    assert predictions.models is not None
    models = []
    for name, is_present in zip(predictions.models, has_answer, strict=True):
        if is_present:
            models.append(name)
        else:
            options.log.add("models without an answer left out", name)

    labels = predictions.labels.gather(label_order).to_list()
    check_similar_labels(labels)
    instances = as_array(predictions.instances.gather(instance_order))
    return Predictions.from_answer_rows(models, instances, labels, rows)


def _is_crowd(loaded: LoadedFrame) -> bool:
    """Return whether models saw a small part of the instances on average."""
    rows = loaded.frame.rows
    columns = loaded.frame.columns
    is_long = loaded.is_long and "model" in columns
    if not is_long or not isinstance(rows, pl.DataFrame):
        return False

    models = rows[str(columns.index("model"))]
    instances = rows[str(columns.index("instance"))]
    n_models = models.n_unique()
    if n_models < _FEWEST_CROWD_MODELS:
        return False

    n_seen = pl.DataFrame({"model": models, "instance": instances}).n_unique()
    return n_seen < _CROWD_FILL * n_models * instances.n_unique()


def _needs_tables(predictions: IndexedPredictions, options: ReadOptions) -> bool:
    """Return whether names of labels or instances have to be looked at by model."""
    labels = predictions.labels.to_list()
    if not 0 < len(labels) <= MAX_DENSE_LABELS or not keeps_labels(labels, options):
        return True

    # Names that differ in spaces are compared between models.
    instances = predictions.instances
    has_spaces = instances.str.starts_with(" ") | instances.str.ends_with(" ")
    return bool(has_spaces.any())


def _collect_answers(predictions: IndexedPredictions) -> _Answers:
    """Return the rows in which a model does not abstain."""
    models = []
    instances = []
    labels = []
    scores = []
    for batch in predictions.iterate():
        models.append(batch.model)
        instances.append(batch.instance)
        labels.append(batch.label)
        scores.append(batch.score)

    model = np.concatenate(models, dtype=np.int64)
    instance = np.concatenate(instances, dtype=np.int64)
    label = np.concatenate(labels, dtype=np.int64)
    score = np.concatenate(scores)

    # A model abstains if a row has neither a label nor a score.
    is_answer = (label >= 0) | ~np.isnan(score)
    assert predictions.models is not None
    return _Answers(
        model=model[is_answer],
        instance=instance[is_answer],
        label=label[is_answer],
        score=score[is_answer],
        n_models=len(predictions.models),
        n_instances=len(predictions.instances),
        n_labels=len(predictions.labels),
    )


def _find_covered(answers: _Answers) -> BoolArray:
    """Return which labels each model predicts, shape (m, l)."""
    is_listed = np.zeros((answers.n_models, answers.n_labels), dtype=np.bool_)
    named = answers.select_named()
    is_listed[named.model, named.label] = True

    # A model without any label has predicted 0 for all labels of the others.
    has_no_label = ~is_listed.any(axis=1, keepdims=True)
    return is_listed | (is_listed.any(axis=0) & has_no_label)


def _order_instances(answers: _Answers) -> IntArray:
    """Return the order of instances by their first model, shape (n,).

    If all models abstain on an instance, the order is that of the file.
    """
    first_model = np.full(answers.n_instances, answers.n_models)
    np.minimum.at(first_model, answers.instance, answers.model)
    if (first_model == answers.n_models).any():
        return np.arange(answers.n_instances)
    return np.argsort(first_model, kind="stable")


def _reorder(
    answers: _Answers, instance_order: IntArray, label_order: IntArray
) -> _Answers:
    """Return the same answers for another order of instances and labels."""
    new_instance = np.argsort(instance_order)
    new_label = np.append(np.argsort(label_order), -1)  # no label remains no label
    return replace(
        answers,
        instance=new_instance[answers.instance],
        label=new_label[answers.label],
    )


def _make_rows(answers: _Answers, covered: BoolArray) -> AnswerRows | None:
    """Return a row for each instance of each model, None if a prediction is repeated.

    Rows are in the order of instances, then of models.
    """
    n_models = answers.n_models
    keys = answers.instance * n_models + answers.model
    row_keys, row = np.unique(keys, return_inverse=True)
    row_instance, row_model = np.divmod(row_keys, n_models)

    named = answers.select_named()
    entries = (named.score, (row[answers.label >= 0], named.label))
    shape = (len(row_keys), answers.n_labels)
    scores = sparse.coo_array(entries, shape=shape).tocsr()
    if scores.nnz < len(named.score):
        return None
    scores.eliminate_zeros()

    # A label that is rare may be known to models that never predict it.
    if answers.n_instances >= FEWEST_FOR_RARE_LABELS:
        is_positive = named.score > 0
        cells = (named.model[is_positive], named.label[is_positive])
        counts = np.zeros(covered.shape, dtype=np.int64)
        np.add.at(counts, cells, 1)
        n_instances_by_model = np.bincount(row_model, minlength=n_models)
        covered = covered | find_rare_labels(counts, n_instances_by_model, covered)

    return AnswerRows(
        scores=scores,
        model=row_model,
        instance=row_instance,
        n_models=n_models,
        n_instances=answers.n_instances,
        covered=covered,
    )
