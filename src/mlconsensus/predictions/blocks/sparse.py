"""The sparse layout of a block: one CSR matrix, pairs x voters.

A pair is an instance-label pair, and a voter is a (model, label) combination. A sum
over the models of a pair is this matrix times a vector of weights; a sum over the
pairs of a model is its transpose times the values of the pairs. Time and memory are
proportional to the number of predictions: a thousand annotators of whom five see each
instance cost as much as five annotators.

For crowds, the matrix has a row for each pair. For large label spaces, it has rows
for the pairs that some model named, and the others are treated together
(`NamedPairs`).
"""

from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..array_types import Array, BoolArray, FloatArray, IntArray, Matrix
from .answer_table import AnswerTable
from .base import (
    ClusterSums,
    InstanceInfo,
    ModelProducts,
    PairwiseProducts,
    PredictionBlock,
)
from .pair_values import DenseValues, NamedPairs, NamedValues, PairValues
from .vote_patterns import VotePatterns


class SparseBlock(PredictionBlock):
    """Predictions as one CSR matrix, pairs x voters.

    Parameters
    ----------
    scores : CSR matrix of shape (p, m * l)
        Scores in [0, 1] of each pair's voters. Column ``k * l + j`` is model k's
        prediction of label j.
    seen : CSR matrix of shape (n, m)
        1 where a model saw an instance.
    n_labels : int
    covered : ndarray of shape (m, l) of bool, default=None
        Which labels each model knows. By default all models know all labels.
    missing : CSR matrix of shape (p, m * l), default=None
        1 for single predictions that are missing although the model saw the instance.
    pairs : NamedPairs, default=None
        The pairs that are stored. By default all n * l are, in this order.
    info : InstanceInfo, default=None
        Weights of the models, gold labels and clusterings.
    """

    def __init__(
        self,
        scores: Matrix,
        seen: Matrix,
        n_labels: int,
        *,
        covered: BoolArray | None = None,
        missing: Matrix | None = None,
        pairs: NamedPairs | None = None,
        info: InstanceInfo | None = None,
    ) -> None:
        self.n_instances, self.n_models = seen.shape
        self.n_labels = n_labels
        self.info = info or InstanceInfo()
        self._scores = scores
        self._seen = seen
        self._covered = covered
        self._missing = missing
        self._pairs = pairs

    def sum_scores(self, weights: FloatArray | None = None) -> PairValues:
        voter_weights = self._make_voter_weights(weights)
        sums = self._scores @ voter_weights.ravel()
        if self._pairs is None:
            return DenseValues(sums.reshape(self.n_instances, self.n_labels))
        return NamedValues(self._pairs, sums, np.zeros_like(self._pairs.n_unnamed))

    def count_predictions(self, weights: FloatArray | None = None) -> PairValues:
        voter_weights = self._make_voter_weights(weights)
        if self._covered is not None:
            voter_weights = voter_weights * self._covered

        if self._pairs is not None:
            other = self._pairs.participation @ voter_weights
            return NamedValues(self._pairs, self._spread(voter_weights, other), other)

        count = np.asarray(self._seen @ voter_weights)
        if self._missing is not None:
            n_missing = self._missing @ voter_weights.ravel()
            count = count - n_missing.reshape(count.shape)
            count[self._is_uncovered] = 0  # where rounding leaves something
        return DenseValues(count)

    def sum_scores_by_model(self, values: PairValues | None = None) -> FloatArray:
        sums = self._scores.T @ self._get_stored(values)
        return self._weigh_by_model(sums)

    def count_predictions_by_model(
        self, values: PairValues | None = None
    ) -> FloatArray:
        if self._pairs is not None:
            sums = self._count_named_by_model(values)
        else:
            pair_values = np.ones((self.n_instances, self.n_labels))
            if values is not None:
                pair_values = values.to_array()
            sums = np.asarray(self._seen.T @ pair_values)
            if self._missing is not None:
                n_missing = self._missing.T @ pair_values.ravel()
                sums = sums - n_missing.reshape(sums.shape)
        if self._covered is not None:
            sums = sums * self._covered
        return self._weigh_by_model(sums)

    def multiply_models(self, values: PairValues) -> ModelProducts:
        scores = self._by_label_and_model(self._scores)
        presence = self._by_label_and_model(self._make_presence())
        stored_values = self._get_stored(values)
        weighted_scores = _scale_rows(scores, stored_values)
        weighted_presence = _scale_rows(presence, stored_values)

        presence_products = self._collect_blocks(weighted_presence.T @ presence)
        if self._pairs is not None:
            presence_products = presence_products + self._multiply_unnamed(values)

        model_weights = np.outer(self.weights, self.weights)
        products = self._collect_blocks(weighted_scores.T @ scores)
        mixed = self._collect_blocks(weighted_presence.T @ scores)
        return ModelProducts(
            scores=products * model_weights,
            presence_and_score=mixed * model_weights,
            presence=presence_products * model_weights,
        )

    def sum_squares_by_model(self) -> FloatArray:
        squares = self._scores.copy()
        squares.data = squares.data**2
        return _sum_columns(squares).reshape(self.n_models, self.n_labels)

    def pairwise_products(self, means: FloatArray) -> PairwiseProducts:
        if self._pairs is None:
            return self._answer_table.multiply_pairs(means)

        # Stored pairs: centered scores and presence, pairs x models.
        presence = self._make_presence()
        centered = self._scores - _scale_columns(presence, means.ravel())
        by_model = _by_model(centered, self)
        presence_by_model = _by_model(presence, self)
        squares = by_model.copy()
        squares.data = squares.data**2

        products = (by_model.T @ by_model).toarray()
        square_sums = (squares.T @ presence_by_model).toarray()
        n_pairs = (presence_by_model.T @ presence_by_model).toarray()

        # Pairs that no model named: each score is 0.
        for group, n_unnamed in enumerate(self._pairs.n_unnamed):
            presence_of_group = self._get_group_presence(group)
            mean_of_group = presence_of_group * means
            products += (mean_of_group * n_unnamed) @ mean_of_group.T
            square_sums += (mean_of_group**2 * n_unnamed) @ presence_of_group.T
            n_pairs += (presence_of_group * n_unnamed) @ presence_of_group.T
        return PairwiseProducts(products=products, squares=square_sums, n_pairs=n_pairs)

    def sum_label_products(self, weights: FloatArray, means: FloatArray) -> FloatArray:
        if self._pairs is None:
            answers = self._answer_table
            weighted = answers.center(means) * answers.spread(weights)
            return np.asarray(weighted.T @ weighted)

        weighted = _scale_columns(self._scores, weights.ravel())
        products = self._multiply_labels(weighted)

        # Products of centered scores, multiplied out.
        n_seen = np.asarray(self._seen.sum(axis=0)).ravel()[:, np.newaxis]
        weighted_means = weights * means
        if self._covered is not None:
            weighted_means = weighted_means * self._covered
        score_sum = _sum_columns(weighted).reshape(weights.shape)
        cross = weighted_means.T @ (score_sum - n_seen / 2 * weighted_means)
        return products - cross - cross.T

    def count_label_products(self, weights: FloatArray) -> FloatArray:
        if self._missing is not None:
            present_weights = self._answer_table.spread(weights)
            return np.asarray(present_weights.T @ present_weights)

        n_seen = np.asarray(self._seen.sum(axis=0)).ravel()[:, np.newaxis]
        covered = weights
        if self._covered is not None:
            covered = weights * self._covered
        return np.asarray(covered.T @ (n_seen * covered))

    def raise_scores(self, power: int) -> Self:
        if self.info.weights is None and (self._scores.data == 1).all():
            return self
        raised = self._scores.copy()
        raised.data = raised.data**power
        return self._with_scores(raised)

    def merge_models(self, shares: Matrix) -> Self:
        if _is_identity(shares):
            return self._with_scores(self._scores)

        shares = sparse.csr_array(shares)
        labels = sparse.eye_array(self.n_labels)
        to_families = sparse.kron(shares.T, labels, format="csr")
        scores = (self._scores @ to_families).tocsr()

        # Divide by the shares of the members that made the prediction.
        presence = self._make_presence()
        present_share = (presence @ abs(to_families)).tocsr()
        inverse = present_share.copy()
        inverse.data = 1 / inverse.data
        scores = scores.multiply(inverse).tocsr()

        is_member = (shares != 0).astype(np.float64)
        seen = (self._seen @ is_member.T).tocsr()
        seen.data = np.ones_like(seen.data)
        covered = None
        if self._covered is not None:
            covered = is_member @ self._covered > 0
        pairs = None
        if self._pairs is not None:
            participation = self._pairs.participation @ is_member.T
            pairs = replace(self._pairs, participation=np.minimum(participation, 1))

        families = type(self)(
            scores,
            seen,
            self.n_labels,
            covered=covered,
            pairs=pairs,
            info=replace(self.info, weights=None),
        )
        if self._missing is None and self._covered is None:
            return families

        # A family misses what it saw and knows, and none of its members predicted.
        is_present = present_share.copy()
        is_present.data = np.ones_like(is_present.data)
        missing = (families._make_presence() - is_present).tocsr()
        missing.eliminate_zeros()
        if missing.nnz > 0:
            families._missing = missing
        return families

    def sum_by_cluster(self, values: PairValues) -> ClusterSums:
        adder = self.membership_matrix().T.tocsr()
        stored_values = self._get_stored(values)
        shape = (self.n_clusters, self.n_models, self.n_labels)
        weights = self.weights[np.newaxis, :, np.newaxis]

        def sum_entries(matrix: Matrix) -> FloatArray:
            weighted = self._join_pairs(_scale_rows(matrix, stored_values))
            sums = (adder @ weighted).toarray().reshape(shape)
            return np.asarray(sums.transpose(2, 1, 0) * weights)

        return ClusterSums(
            scores=sum_entries(self._scores),
            presence=sum_entries(self._make_presence()),
        )

    def connection_matrix(self, dtype: DTypeLike = np.float64) -> Matrix:
        edges = self._join_pairs(self._scores.astype(dtype))
        if self.info.weights is not None:
            model = edges.indices // self.n_labels
            edges.data = (edges.data * self.info.weights[model]).astype(dtype)
        return edges

    def vote_patterns(self, is_selected: BoolArray | None = None) -> VotePatterns:
        # 1 where a model votes no, 2 where it votes yes.
        presence = self._make_presence()
        is_yes = self._scores >= 0.5
        votes = _by_model(presence, self) + _by_model(is_yes, self)
        columns = votes.indices + self.n_models * (votes.data < 1.5)
        shape = (votes.shape[0], 2 * self.n_models)
        ones = np.ones(len(columns), dtype=np.int8)
        votes = sparse.csr_array((ones, columns, votes.indptr), shape=shape)

        labels = self._pair_labels
        counts = np.ones(len(labels))
        if is_selected is not None:
            rows = np.flatnonzero(is_selected)
            labels = labels[rows]
            votes = votes[rows]
            counts = counts[rows]
        patterns = VotePatterns.join(labels, votes, counts, self.n_labels)
        if self._pairs is None:
            return patterns
        return patterns + self._count_unnamed_patterns(self._pairs)

    def binarize(self) -> Self:
        return self._with_scores((self._scores >= 0.5).astype(np.float64))

    def _with_scores(self, scores: Matrix) -> Self:
        """Return a block of other scores of the same predictions, without weights."""
        return type(self)(
            scores,
            self._seen,
            self.n_labels,
            covered=self._covered,
            missing=self._missing,
            pairs=self._pairs,
            info=replace(self.info, weights=None),
        )

    def get_instance(self, instance: int) -> tuple[FloatArray, FloatArray]:
        shape = (self.n_models, self.n_labels)
        rows = slice(self._pair_starts[instance], self._pair_starts[instance + 1])
        scores = _sum_columns(self._scores[rows]).reshape(shape)
        is_seen = self._seen[[instance]].toarray().T
        presence = np.repeat(is_seen, self.n_labels, axis=1).astype(np.float64)
        if self._covered is not None:
            presence = presence * self._covered
        if self._missing is not None:
            presence = presence - _sum_columns(self._missing[rows]).reshape(shape)
        weights = self.weights[:, np.newaxis]
        return scores * weights, presence * weights

    @property
    def is_large(self) -> bool:
        return self._pairs is not None and self._pairs.is_large

    def _make_voter_weights(self, weights: FloatArray | None) -> FloatArray:
        """Return the weight of each voter, (m, l)."""
        voter_weights = self._weigh(weights)
        if voter_weights is None:
            return np.ones((self.n_models, self.n_labels))
        return voter_weights

    def _weigh_by_model(self, sums: Array) -> FloatArray:
        """Return sums of voters (m, l) times the weights of the models."""
        by_model = np.asarray(sums).reshape(self.n_models, self.n_labels)
        return by_model * self.weights[:, np.newaxis]

    def _get_stored(self, values: PairValues | None) -> FloatArray:
        """Return values of the stored pairs, (p,)."""
        if values is None:
            return np.ones(self._scores.shape[0])
        if isinstance(values, NamedValues):
            return np.asarray(values.values)
        return values.to_array().ravel()

    def _spread(self, voter_weights: FloatArray, other: FloatArray) -> FloatArray:
        """Sum weights over the models that saw the instance of each named pair."""
        pairs = self._get_pairs()
        if pairs.is_exact:
            return np.asarray(other[pairs.pair_group, pairs.label])

        viewers = self._seen[pairs.instance]
        label = np.repeat(pairs.label, np.diff(viewers.indptr))
        viewer_weights = voter_weights[viewers.indices, label]
        matrix = sparse.csr_array(
            (viewer_weights, viewers.indices, viewers.indptr), shape=viewers.shape
        )
        return np.asarray(matrix.sum(axis=1)).ravel()

    def _count_named_by_model(self, values: PairValues | None) -> FloatArray:
        """Sum values over the instances that each model saw, (m, l)."""
        pairs = self._get_pairs()
        if values is None:
            n_seen = np.asarray(self._seen.sum(axis=0)).ravel()
            return np.repeat(n_seen[:, np.newaxis], self.n_labels, axis=1)

        if not isinstance(values, NamedValues):
            return np.asarray(self._seen.T @ values.to_array())
        if pairs.is_exact:
            return np.asarray(pairs.participation.T @ values.sum_by_group())

        viewers = self._seen[pairs.instance]
        row = np.repeat(np.arange(len(pairs.label)), np.diff(viewers.indptr))
        target = viewers.indices.astype(np.int64) * self.n_labels + pairs.label[row]
        n_voters = self.n_models * self.n_labels
        named = np.bincount(target, values.values[row], minlength=n_voters)
        unnamed = pairs.participation.T @ (pairs.n_unnamed * values.other)
        return named.reshape(self.n_models, self.n_labels) + unnamed

    def _join_pairs(self, matrix: Matrix) -> Matrix:
        """Return a matrix (p, m * l) with one row per instance, (n, m * l)."""
        # The pairs of an instance are consecutive rows.
        starts = matrix.indptr[self._pair_starts]
        shape = (self.n_instances, self.n_models * self.n_labels)
        return sparse.csr_array((matrix.data, matrix.indices, starts), shape=shape)

    def _make_presence(self) -> Matrix:
        """Return 1 for each prediction of the stored pairs, CSR (p, m * l)."""
        labels = self._pair_labels
        viewers = self._seen[self._pair_instances]
        label = np.repeat(labels, np.diff(viewers.indptr))
        columns = viewers.indices.astype(np.int64) * self.n_labels + label
        data = np.ones(len(columns))
        if self._covered is not None:
            data = self._covered[viewers.indices, label].astype(np.float64)

        presence = sparse.csr_array(
            (data, columns, viewers.indptr), shape=self._scores.shape
        )
        if self._missing is not None:
            presence = presence - self._missing
        presence.eliminate_zeros()
        return presence

    def _by_label_and_model(self, matrix: Matrix) -> Matrix:
        """Return a matrix (p, m * l) with the columns of a label next to each other."""
        model, label = np.divmod(matrix.indices, self.n_labels)
        columns = label * self.n_models + model
        parts = (matrix.data.astype(np.float64), columns, matrix.indptr)
        return sparse.csr_array(parts, shape=matrix.shape)

    def _collect_blocks(self, products: Matrix) -> FloatArray:
        """Return the diagonal blocks of products (l * m, l * m) as (l, m, m)."""
        n_models = self.n_models
        entries = products.tocoo()
        blocks = np.zeros((self.n_labels, n_models, n_models))
        label = entries.row // n_models
        blocks[label, entries.row % n_models, entries.col % n_models] = entries.data
        return blocks

    def _multiply_labels(self, voter_values: Matrix) -> FloatArray:
        """Sum the products of two labels' values within each answer, (l, l).

        An answer is what one model predicted for one instance; `voter_values` is a
        matrix pairs x voters.
        """
        row = np.repeat(self._pair_instances, np.diff(voter_values.indptr))
        model, label = np.divmod(voter_values.indices, self.n_labels)
        answer = row * self.n_models + model
        _, answer = np.unique(answer, return_inverse=True)
        n_answers = int(answer.max(initial=-1)) + 1
        shape = (n_answers, self.n_labels)
        rows = sparse.coo_array((voter_values.data, (answer, label)), shape=shape)
        rows = rows.tocsr()
        return np.asarray((rows.T @ rows).toarray())

    def _get_group_presence(self, group: int) -> FloatArray:
        """Return the share of a group's instances that each model predicted, (m, l)."""
        seen = self._get_pairs().participation[group][:, np.newaxis]
        if self._covered is None:
            return np.repeat(seen, self.n_labels, axis=1)
        return np.asarray(seen * self._covered)

    def _multiply_unnamed(self, values: PairValues) -> FloatArray:
        """Sum values times the presence of two models over unnamed pairs, (l, m, m)."""
        pairs = self._get_pairs()
        assert isinstance(values, NamedValues)
        unnamed = pairs.n_unnamed * values.other
        covered = np.ones((self.n_models, self.n_labels))
        if self._covered is not None:
            covered = self._covered.astype(np.float64)

        products = np.zeros((self.n_labels, self.n_models, self.n_models))
        for group in np.flatnonzero(unnamed.any(axis=1)):
            presence = (pairs.participation[group][:, np.newaxis] * covered).T
            products += (
                unnamed[group][:, np.newaxis, np.newaxis]
                * presence[:, :, np.newaxis]
                * presence[:, np.newaxis]
            )
        return products

    def _count_unnamed_patterns(self, pairs: NamedPairs) -> VotePatterns:
        """Return the patterns of unnamed pairs: all models that saw them vote no."""
        group, label = np.nonzero(pairs.n_unnamed)
        is_no = pairs.participation[group] > 0
        if self._covered is not None:
            is_no = is_no & self._covered.T[label]
        counts = pairs.n_unnamed[group, label]
        is_yes = np.zeros_like(is_no)
        return VotePatterns.from_votes(label, is_yes, is_no, counts, self.n_labels)

    def _get_pairs(self) -> NamedPairs:
        """Return the index of the named pairs."""
        assert self._pairs is not None
        return self._pairs

    @cached_property
    def _answer_table(self) -> AnswerTable:
        """What each model predicted for each instance that it saw; for crowds."""
        seen = self._seen.sorted_indices()
        model = seen.indices
        n_answers = np.diff(seen.indptr)
        instance = np.repeat(np.arange(self.n_instances), n_answers)
        numbers = instance * self.n_models + model

        scores = np.zeros((len(model), self.n_labels))
        answer, label = self._locate_answers(self._scores, numbers)
        scores[answer, label] = self._scores.data

        is_present = None
        if self._covered is not None:
            is_present = self._covered[model]
        if self._missing is not None:
            if is_present is None:
                is_present = np.ones(scores.shape, dtype=np.bool_)
            answer, label = self._locate_answers(self._missing, numbers)
            is_present[answer, label] = False
        return AnswerTable(
            model=model,
            starts=seen.indptr,
            scores=scores,
            is_present=is_present,
            n_models=self.n_models,
        )

    def _locate_answers(
        self, voters: Matrix, numbers: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the answer and the label of each entry of pairs x voters.

        `numbers` are those of the answers (a,), instance by instance.
        """
        instance = np.repeat(self._pair_instances, np.diff(voters.indptr))
        model, label = np.divmod(voters.indices, self.n_labels)
        answer = np.searchsorted(numbers, instance * self.n_models + model)
        return answer, label

    @cached_property
    def _pair_starts(self) -> IntArray:
        """Where the stored pairs of each instance begin, (n + 1,)."""
        if self._pairs is not None:
            return self._pairs.starts
        return np.arange(self.n_instances + 1) * self.n_labels

    @cached_property
    def _pair_instances(self) -> IntArray:
        """Instance of each stored pair, (p,)."""
        if self._pairs is not None:
            return self._pairs.instance
        return np.repeat(np.arange(self.n_instances), self.n_labels)

    @cached_property
    def _pair_labels(self) -> IntArray:
        """Label of each stored pair, (p,)."""
        if self._pairs is not None:
            return self._pairs.label
        return np.tile(np.arange(self.n_labels), self.n_instances)

    @cached_property
    def _is_uncovered(self) -> BoolArray:
        """Pairs without any prediction, (n, l)."""
        covered = np.ones((self.n_models, self.n_labels))
        if self._covered is not None:
            covered = self._covered.astype(np.float64)
        count = np.asarray(self._seen @ covered)
        if self._missing is not None:
            ones = np.ones(self._missing.shape[1])
            count = count - (self._missing @ ones).reshape(count.shape)
        return np.asarray(np.round(count) == 0)


def _by_model(matrix: Matrix, block: SparseBlock) -> Matrix:
    """Return a matrix pairs x voters as pairs x models."""
    models = matrix.indices // block.n_labels
    shape = (matrix.shape[0], block.n_models)
    parts = (matrix.data.astype(np.float64), models, matrix.indptr)
    return sparse.csr_array(parts, shape=shape)


def _is_identity(shares: Matrix) -> bool:
    """Return whether every family is the model of the same number, with share 1."""
    n_families, n_models = shares.shape
    if n_families != n_models:
        return False
    difference = sparse.csr_array(shares - sparse.eye_array(n_models))
    return int(difference.nnz) == 0


def _scale_rows(matrix: Matrix, factors: FloatArray) -> Matrix:
    """Return a CSR matrix with each row multiplied by its factor."""
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _scale_columns(matrix: Matrix, factors: FloatArray) -> Matrix:
    """Return a CSR matrix with each column multiplied by its factor."""
    data = matrix.data * factors[matrix.indices]
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _sum_columns(matrix: Matrix) -> FloatArray:
    """Return the column sums of a CSR matrix as an array."""
    return np.asarray(matrix.sum(axis=0), dtype=np.float64).ravel()
