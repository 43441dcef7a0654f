"""A peer's answer to a panel of votes, run with the Python of the peer's own environment.

    PEER_PYTHON suite/peer.py crowdkit-ds votes.npy scores.npy LABELS

Works on the first LABELS labels, writes their scores (n, LABELS), and prints one JSON
object: seconds without imports and without bringing votes into the peer's form, scaled
to all labels; peak memory; version.
"""

import importlib.metadata
import json
import resource
import sys
import time

import numpy as np


def crowdkit_mv(votes):
    from crowdkit.aggregation import MajorityVote

    return _crowdkit(votes, MajorityVote())


def crowdkit_ds(votes):
    from crowdkit.aggregation import DawidSkene

    return _crowdkit(votes, DawidSkene(n_iter=100))


def _crowdkit(votes, base):
    import pandas as pd
    from crowdkit.aggregation import BinaryRelevance

    m, n, l = votes.shape
    names = np.arange(l)
    frame = pd.DataFrame(
        {
            "task": np.tile(np.arange(n), m),
            "worker": np.repeat(np.arange(m), n),
            "label": [names[row].tolist() for matrix in votes for row in matrix],
        }
    )
    combiner = BinaryRelevance(base)

    def run():
        combiner.aggregators_.clear()  # shared by all instances of the class
        combiner.fit_predict(frame)

    def scores():
        out = np.zeros((n, l))
        for label, fitted in combiner.aggregators_.items():
            if 1 in fitted.probas_:
                out[fitted.probas_.index, label] = fitted.probas_[1]
        return out

    return run, scores


def crowdlab(votes):
    """CROWDLAB wants a classifier's probabilities beside the votes; the mean of the votes stands in for them."""
    import pandas as pd
    from cleanlab.multiannotator import get_label_quality_multiannotator

    by_label = [
        pd.DataFrame(votes[:, :, j].T.astype(int)) for j in range(votes.shape[2])
    ]
    means = [votes[:, :, j].mean(axis=0) for j in range(votes.shape[2])]
    found = []

    def run():
        found.clear()
        for said, mean in zip(by_label, means, strict=True):
            if said.to_numpy().any():
                answer = get_label_quality_multiannotator(
                    said, np.column_stack([1 - mean, mean]), verbose=False
                )
                found.append(answer["label_quality"])
            else:  # which it refuses
                found.append(None)

    def scores():
        out = np.zeros(votes.shape[1:])
        for j, frame in enumerate(found):
            if frame is not None:
                sure = frame["consensus_quality_score"].to_numpy()
                out[:, j] = np.where(
                    frame["consensus_label"].to_numpy() == 1, sure, 1 - sure
                )
        return out

    return run, scores


def snorkel(votes):
    from snorkel.labeling.model import LabelModel

    by_label = [votes[:, :, j].T.astype(int) for j in range(votes.shape[2])]
    found = []

    def run():
        found.clear()
        for said in by_label:
            model = LabelModel(cardinality=2, verbose=False)
            model.fit(said, seed=0, progress_bar=False)
            found.append(model.predict_proba(said)[:, 1])

    return run, lambda: np.column_stack(found)


# Name: package whose version is told, and what brings votes into the peer's form.
PEERS = {
    "crowdkit-mv": ("crowd-kit", crowdkit_mv),
    "crowdkit-ds": ("crowd-kit", crowdkit_ds),
    "crowdlab": ("cleanlab", crowdlab),
    "snorkel": ("snorkel", snorkel),
}


def main():
    peer, votes_path, scores_path, labels = sys.argv[1:]
    package, prepare = PEERS[peer]
    votes = np.load(votes_path)
    l = votes.shape[2]
    votes = np.ascontiguousarray(votes[:, :, : int(labels)])
    prepare(votes[:, :20])[0]()  # what is imported or set up when first used
    run, scores = prepare(votes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    worked = time.process_time()
    run()
    seconds = time.perf_counter() - began
    cpu = time.process_time() - worked
    beyond = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    np.save(scores_path, scores())
    answer = {
        "seconds": seconds * l / votes.shape[2],
        "cpu": cpu * l / votes.shape[2],
        "labels_measured": votes.shape[2],
        "peak_mib": beyond / 2**10,
        "version": f"{package} {importlib.metadata.version(package)}",
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
