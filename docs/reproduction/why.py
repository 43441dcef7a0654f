"""Two tables of docs/reproduction/README.md: what ties and what empty instances do to the figures.

python docs/reproduction/why.py [--cache FOLDER] [DATASET]...  # after `mlconsensus
reproduce`, with its base models
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np

import mlconsensus as mlc
from mlconsensus.datasets.registry import cache_folder, entry, registry
from mlconsensus.metrics.ranking import (
    average_precision,
    micro_auc,
    one_error,
    ranking_loss,
)
from mlconsensus.reproduction import Settings
from mlconsensus.reproduction.base_models import base_predictions
from mlconsensus.reproduction.paper import tables


def ties(name: str, truth: np.ndarray, repeats: list[np.ndarray]) -> None:
    """Print BM and MV with ties counted one half, and with ties broken in the labels' order, beside the paper's."""
    place = np.arange(truth.shape[1]) / truth.shape[1] / 1000  # less than any vote
    judged = {
        how: {
            "BM": np.mean(
                [
                    _judge(truth, model + shift)
                    for models in repeats
                    for model in models.astype(float)
                ],
                axis=0,
            ),
            "MV": np.mean(
                [_judge(truth, models.mean(axis=0) + shift) for models in repeats],
                axis=0,
            ),
        }
        for how, shift in (
            ("one half", 0.0),
            ("first label first", -place),
            ("last label first", place),
        )
    }
    for method in ("BM", "MV"):
        printed = tables()[name].cells[method]
        row = [
            printed["one_error"],
            printed["ranking_loss"],
            printed["average_precision"],
        ]
        cells = [*(judged[how][method] for how in judged), row]
        print(
            f"| {name} | {method} | {' | '.join(' '.join(f'{value:.4f}' for value in cell) for cell in cells)} |"
        )


def empty(name: str, truth: np.ndarray, repeats: list[np.ndarray]) -> None:
    """Print MLCM-r with the label prior for instances that no model predicts a label for, with zeros, and MLCM-a."""
    rows = []
    for models in repeats:
        silent = ~models.any(axis=(0, 2))
        with_prior, other = mlc.mlcm_r(models), mlc.mlcm_a(models)
        with_zeros = np.where(silent[:, None], 0.0, with_prior)
        scores = (with_prior, with_zeros, other)
        rows.append(
            [
                silent.mean(),
                *(
                    metric(truth, s)
                    for metric in (micro_auc, ranking_loss)
                    for s in scores
                ),
            ]
        )
    mean = np.mean(rows, axis=0)
    print(
        f"| {name} | {mean[0]:.1%} | {' | '.join(f'{value:.4f}' for value in mean[1:])} |"
    )


def _judge(truth: np.ndarray, scores: np.ndarray) -> list[float]:
    return [
        metric(truth, scores) for metric in (one_error, ranking_loss, average_precision)
    ]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--cache", type=Path)
@click.option("--repeats", default=10, show_default=True)
def main(names: tuple[str, ...], cache: Path | None, repeats: int) -> None:
    """Print both tables as Markdown."""
    settings = Settings(repeats=repeats).checked()
    folder = cache or cache_folder() / "base-models"
    for table in (ties, empty):
        for name in names or registry():
            data = mlc.datasets.load(name).first(entry(name).paper)
            table(
                name,
                data.labels.toarray(),
                list(base_predictions(data, settings, folder)),
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
