"""One method on one input, measured with the version of the package on the path.

    python -m suite.version_case '{"input": "bool small", "method": "mlcm_a"}'

`benchmarks/against_commit.py` runs this for two versions. Prints one JSON object.
"""

import json
import resource
import sys

import numpy as np
from scipy import sparse

from . import case, panels

# Parameters that both versions need to compute the same.
PARAMETERS = {"mlcm_a": {"n_iter": 1}}
MAX_MEMORY = 12 * 2**30


def make_votes(n_models, n_instances, n_labels):
    """Return votes, bool (m, n, l)."""
    votes, _ = panels.load((n_models, n_instances, n_labels))
    return votes


def make_scores(n_models, n_instances, n_labels, missing=0.3):
    """Return scores (m, n, l) in which a model misses some instances (NaN)."""
    rng = np.random.default_rng(0)
    is_true = rng.random((n_instances, n_labels)) < 0.2
    scores = 0.6 * rng.random((n_models, n_instances, n_labels)) + 0.4 * is_true
    is_missing = rng.random((n_models, n_instances)) < missing
    scores[is_missing] = np.nan
    return scores


def make_large_label_space(n_models, n_instances, n_labels, cardinality=8):
    """Return the votes of each model as CSR (n, l): most true labels, and others."""
    rng = np.random.default_rng(0)
    frequency = 1 / (np.arange(n_labels) + 20.0)
    frequency /= frequency.sum()
    true_labels = rng.choice(n_labels, size=(n_instances, cardinality), p=frequency)
    matrices = []
    for _ in range(n_models):
        is_found = rng.random((n_instances, cardinality)) < 0.7
        wrong_labels = rng.choice(n_labels, size=(n_instances, 3), p=frequency)
        instance = np.concatenate(
            [np.nonzero(is_found)[0], np.repeat(np.arange(n_instances), 3)]
        )
        label = np.concatenate([true_labels[is_found], wrong_labels.ravel()])
        ones = np.ones(len(instance))
        shape = (n_instances, n_labels)
        matrix = sparse.coo_array((ones, (instance, label)), shape=shape).tocsr()
        matrix.data[:] = 1.0
        matrices.append(matrix)
    return matrices


INPUTS = {
    "bool small": (make_votes, (10, 5_000, 50)),
    "bool": (make_votes, (10, 100_000, 200)),
    "scores with missing rows": (make_scores, (10, 100_000, 50)),
    "large label space": (make_large_label_space, (5, 50_000, 20_000)),
}


def main():
    arguments = json.loads(sys.argv[1])
    make, shape = INPUTS[arguments["input"]]
    predictions = make(*shape)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))

    import mlconsensus as mlc

    method = arguments["method"]
    function = getattr(mlc, method)
    parameters = PARAMETERS.get(method, {})

    # Import and initialize what is needed at the first use.
    function([matrix[:50] for matrix in predictions], **parameters)
    result = case.measure(predictions, lambda given: function(given, **parameters))
    del result["scores"]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
