"""Make the file of this example: three language models tag the same support tickets, as lists of tags.

Run `python make.py` in this folder; the files come out the same every time. The tags
are drawn from a synthetic panel, and not from real models, so that the example can be
checked against a truth.
"""

import json
from pathlib import Path

import numpy as np

import mlconsensus as mlc

TAGS = [
    "billing",
    "refund",
    "login",
    "password",
    "outage",
    "latency",
    "mobile",
    "export",
    "api",
    "security",
]
TAGS += ["feature-request", "praise"]
MODELS = (
    "terse",
    "chatty",
    "careful",
)  # chatty gives confidences, the others plain lists


def main(folder: Path) -> None:
    rng = np.random.default_rng(7)
    panel, truth = mlc.datasets.make_panel(
        120,
        len(TAGS),
        len(MODELS),
        quality=[0.5, 0.6, 0.7],
        probabilities=True,
        random_state=rng,
    )
    lines = []
    for model, scores in zip(MODELS, panel.to_array(), strict=True):
        for ticket in range(len(scores)):
            if model == "careful" and ticket % 10 == 9:
                continue  # it refused to answer
            kept = [j for j in np.argsort(-scores[ticket]) if scores[ticket, j] > 0.4]
            labels = (
                {TAGS[j]: round(float(scores[ticket, j]), 2) for j in kept}
                if model == "chatty"
                else [TAGS[j] for j in kept]
            )
            lines.append(
                {"instance": f"T-{ticket + 1:03d}", "model": model, "labels": labels}
            )
    (folder / "answers.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    known = [
        {
            "instance": f"T-{ticket + 1:03d}",
            "labels": [TAGS[j] for j in np.flatnonzero(truth[ticket])],
        }
        for ticket in range(len(truth))
    ]
    (folder / "truth.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in known)
    )


if __name__ == "__main__":
    main(Path(__file__).parent)
