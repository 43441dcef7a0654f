"""Judge other libraries on the first repeat of each panel, and write peers.json.

    make bench-peers
    mlconsensus reproduce … --cache FOLDER      (which makes the panels)
    python docs/quality/peers.py FOLDER

Each library runs in the environment of its own that `make bench-peers` made. What is in peers.json already is kept, so
that the script can be stopped and started. snorkel takes a second or more for each label, so it is asked only where
labels are few.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mlconsensus import metrics
from mlconsensus.datasets import load
from mlconsensus.datasets.catalogue import entry
from mlconsensus.experiments import Settings
from mlconsensus.experiments.base_models import base_predictions

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
DATASETS = ("enron", "medical", "slashdot", "bibtex", "rcv1subset1", "rcv1subset2")
PEERS = {"crowdlab": "cleanlab", "snorkel": "snorkel"}
MOST_LABELS = {"snorkel": 60}


def judged(peer, truth, votes, folder):
    """Return the four metrics of a peer's answer; None where it ends with an error."""
    paths = folder / "votes.npy", folder / "scores.npy"
    np.save(paths[0], votes)
    python = BENCHMARKS / ".peers" / PEERS[peer] / "bin" / "python"
    run = [python, BENCHMARKS / "suite" / "peer.py", peer, *paths, str(votes.shape[2])]
    done = subprocess.run(run, stdout=subprocess.DEVNULL)
    if done.returncode:
        return None
    scores = np.load(paths[1])
    return {metric: getattr(metrics, metric)(truth, scores) for metric in metrics.RANKING_METRICS}


def main(cache):
    """Fill in what peers.json lacks."""
    path = HERE / "peers.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for peer in PEERS:
        for learner in ("svm", "trees", "mixed", "views"):
            for name in DATASETS:
                own = found.setdefault(learner, {}).setdefault(name, {})
                data = load(name).first(entry(name).paper)
                truth = data.labels.toarray()
                if peer in own or truth.shape[1] > MOST_LABELS.get(peer, truth.shape[1]):
                    continue
                votes = next(base_predictions(data, Settings(learner, repeats=1).checked(), cache, 1))
                with tempfile.TemporaryDirectory() as folder:
                    own[peer] = judged(peer, truth, votes, Path(folder))
                path.write_text(json.dumps(found, indent=2) + "\n")
                print(peer, learner, name, own[peer], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
