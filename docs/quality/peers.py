"""Judge other libraries on the panels of docs/quality.md, and write peers.json.

    make bench-peers
    mlconsensus reproduce … --cache FOLDER      (which makes the panels)
    python docs/quality/peers.py FOLDER

Each library runs in the environment of its own that `make bench-peers` made. What is in peers.json already is kept, so
that the script can be stopped and started.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mlconsensus.datasets import load
from mlconsensus.datasets.catalogue import entry
from mlconsensus.evaluation import metrics
from mlconsensus.experiments import Settings
from mlconsensus.experiments.base_models import base_predictions

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
DATASETS = ("enron", "medical", "slashdot", "bibtex", "rcv1subset1", "rcv1subset2")
LEARNERS = ("svm", "trees", "mixed", "views")
PEERS = {"crowdlab": "cleanlab", "snorkel": "snorkel"}


def repeats(learner, name):
    """Return how many repeats of a panel are judged."""
    if name.startswith("rcv1"):
        return 1 if learner == "trees" else 3
    return 5


def judged(peer, truth, votes):
    """Return the four metrics of a peer's answer; None where it ends with an error."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "votes.npy"), Path(folder, "scores.npy")
        np.save(paths[0], votes)
        python = BENCHMARKS / ".peers" / PEERS[peer] / "bin" / "python"
        run = [python, BENCHMARKS / "suite" / "peer.py", peer, *paths, str(votes.shape[2])]
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # snorkel's matrices are tiny: half the time
        if subprocess.run(run, stdout=subprocess.DEVNULL, env=one_thread).returncode:
            return None
        scores = np.load(paths[1])
    return {metric: getattr(metrics, metric)(truth, scores) for metric in metrics.RANKING_METRICS}


def main(cache):
    """Fill in what peers.json lacks: for each learner, data set and peer, the metrics of every repeat."""
    path = HERE / "peers.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in DATASETS:
        data = load(name).first(entry(name).paper)
        truth = data.labels.toarray()
        for learner in LEARNERS:
            own = found.setdefault(learner, {}).setdefault(name, {})
            settings = Settings(learner, repeats=repeats(learner, name)).checked()
            for repeat, votes in enumerate(base_predictions(data, settings, cache, 1)):
                for peer in PEERS:
                    runs = own.setdefault(peer, [])
                    if len(runs) == repeat:
                        runs.append(judged(peer, truth, votes))
                        path.write_text(json.dumps(found, indent=1) + "\n")
                        print(name, learner, repeat, peer, runs[-1], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
