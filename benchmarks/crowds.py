"""Measure crowds: many annotators, each of whom saw few of the instances.

    python benchmarks/crowds.py [small|large] [--skip NAME ...]

`small` has 1,000 annotators and 100,000 instances, `large` 100,000 annotators and
200,000 instances; both have 20 labels and 5 annotators per instance. Times are CPU
times in scatter-adds of the same process: one adds the rows of all answers, an array
(answers, labels), to the instances with `numpy.add.at`, counts them and divides. Memory
is the peak of the process so far, which includes the table.
"""

import argparse
import resource
import time

import numpy as np
import polars as pl

import mlconsensus as mlc

SIZES = {"small": (1_000, 100_000), "large": (100_000, 200_000)}
N_LABELS = 20
ANSWERS_PER_INSTANCE = 5
METHODS = {
    "vote": mlc.MajorityVote,
    "Dawid-Skene": mlc.DawidSkene,
    "MLCM-a": mlc.MLCMa,
    "MLCM-r": mlc.MLCMr,
    "default": mlc.WeightedConsensus,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("size", nargs="?", choices=SIZES, default="small")
    parser.add_argument("--skip", nargs="+", default=[], choices=METHODS)
    options = parser.parse_args()
    n_models, n_instances = SIZES[options.size]
    model, instance, votes, truth = make_answers(n_models, n_instances)
    numbers = make_table(model, instance, votes)
    names = numbers.select(
        pl.format("annotator {}", "model").alias("model"),
        pl.format("item-{}", "instance").alias("instance"),
        pl.format("label_{}", "label").alias("label"),
    )

    expected, unit = measure(lambda: scatter_add(instance, votes, n_instances), 3)
    print(f"one scatter-add: {unit:.3f} s, {get_peak_memory():.2f} GiB so far")
    _, seconds = measure(lambda: mlc.from_long(names), 2)
    print_row("read strings", seconds / unit)
    predictions, seconds = measure(lambda: mlc.from_long(numbers), 2)
    print_row("read integers", seconds / unit)

    # The order of instances and labels is that of the table.
    rows = np.array([int(name) for name in predictions.instances])
    columns = np.array([int(name) for name in predictions.labels])
    true_labels = truth[np.ix_(rows, columns)]
    for name, method in METHODS.items():
        if name in options.skip:
            continue
        n_runs = 3 if name == "vote" else 1
        scores, seconds = measure(
            lambda method=method: method().fit_transform(predictions), n_runs
        )
        if name == "vote":
            np.testing.assert_allclose(scores, expected[np.ix_(rows, columns)])
        auc = mlc.metrics.micro_auc(true_labels, scores)
        print_row(name, seconds / unit, f"microAUC {auc:.4f}")


def make_answers(n_models, n_instances, seed=0):
    """Return the model and instance (a,) and the votes (a, l) of answers, and truth."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_instances, N_LABELS)) < 0.15
    instance = np.repeat(np.arange(n_instances), ANSWERS_PER_INSTANCE)

    # Different models for each instance: one from each fifth of all models.
    n_group = n_models // ANSWERS_PER_INSTANCE
    shape = (n_instances, ANSWERS_PER_INSTANCE)
    group = np.arange(ANSWERS_PER_INSTANCE) * n_group
    model = (rng.integers(0, n_group, shape) + group).ravel()

    hit_rate = rng.uniform(0.6, 0.95, (n_models, 1))
    specificity = rng.uniform(0.85, 0.99, (n_models, 1))
    chance = rng.random((len(model), N_LABELS))
    is_hit = chance < hit_rate[model]
    is_false_alarm = chance > specificity[model]
    votes = np.where(truth[instance], is_hit, is_false_alarm)
    return model, instance, votes, truth


def make_table(model, instance, votes):
    """Return a long table: a row for each yes, and for each answer without any."""
    answer, label = np.nonzero(votes)
    empty = np.flatnonzero(~votes.any(axis=1))
    rows = np.concatenate([answer, empty])
    labels = np.concatenate([label, np.full(len(empty), -1)])
    table = pl.DataFrame(
        {"model": model[rows], "instance": instance[rows], "label": labels}
    )
    return table.with_columns(pl.col("label").replace(-1, None))


def scatter_add(instance, votes, n_instances):
    """Vote with the fewest operations: add the rows of all answers to the instances."""
    total = np.zeros((n_instances, votes.shape[1]))
    count = np.zeros((n_instances, 1))
    np.add.at(total, instance, votes)
    np.add.at(count, instance, 1)
    return total / np.maximum(count, 1)


def measure(function, n_runs):
    """Return the result of a function, and its smallest CPU time."""
    seconds = np.inf
    for _ in range(n_runs):
        start = time.process_time()
        result = function()
        seconds = min(seconds, time.process_time() - start)
    return result, seconds


def get_peak_memory():
    """Return the peak memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def print_row(name, scatter_adds, note=""):
    """Print what was measured."""
    print(
        f"{name:15s}{scatter_adds:7.2f} scatter-adds, "
        f"{get_peak_memory():.2f} GiB so far {note}",
        flush=True,
    )


if __name__ == "__main__":
    main()
