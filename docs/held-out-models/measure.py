"""Compare what held-out raters say of each method with what the truth says, on panels with truth.

    python docs/held-out-models/measure.py [FOLDER WITH PANELS]        ../shared/panels unless
    told

One line a panel, four figures each (microAUC, one error, ranking loss, average
precision): rank correlation, over methods, of held-out and true gains over voting; how
many held-out gains are beyond two standard errors, and at how many of these the true
gain has the other sign beyond two of its own; both gains of the filter; what the
verdict names, were it asked for each metric, and its true gain; the doubt, if there is
one. Then the same by kinds of panels, with how often the verdict leaves voting, is
behind it, and is so by more than two standard errors. It takes two minutes. Before
that, the same of simulated raters whose answers depend on nothing but the truth
(conditional independence) and of some that find the same cells hard.
"""

import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

import mlconsensus as mlc
from mlconsensus.combiners.registry import list_by_name
from mlconsensus.metrics import _rank_counts

METRICS = mlc.metrics.RANKING_METRICS


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predictions (m, n, l), NaN for silence, the truth (n, l) and where it is known (n, l)."""
    z = np.load(path, allow_pickle=False)
    if "P" in z.files:  # packed bits
        shape = tuple(z["shape"])
        panel = np.unpackbits(z["P"])[: np.prod(shape)].reshape(shape)
        truth = np.unpackbits(z["Z"])[: shape[1] * shape[2]].reshape(shape[1:])
    else:
        panel, truth = z["predictions"], z["truth"]
    masks = [
        z[name].astype(bool)
        for name in ("truth_mask", "verified_mask")
        if name in z.files
    ]
    known = masks[-1] if masks else np.ones(truth.shape, dtype=bool)
    return panel.astype(np.float64), truth.astype(bool) & known, known


def by_truth(scores: np.ndarray, truth: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the four metrics, up is better, without each twentieth of the instances and with all (21, 4)."""
    relevant, labels = truth.sum(axis=1), known.sum(axis=1)
    pairs = (relevant > 0) & (relevant < labels)
    g = _rank_counts.find_tie_groups(truth, np.where(known, scores, -np.inf))
    silent = (truth.shape[1] - relevant) / np.maximum(labels - relevant, 1)
    each = np.stack(
        [
            -_rank_counts.compute_one_error(g),
            -_rank_counts.compute_ranking_loss(g) * silent,
            _rank_counts.compute_average_precision(g),
        ],
        axis=1,
    )
    found = []
    for part in range(21):
        kept = np.arange(len(truth)) % 20 != part
        cells = known & kept[:, None]
        auc = mlc.metrics.micro_auc(truth[cells][None], scores[cells][None])
        found.append([auc, *each[pairs & kept].mean(axis=0)])
    return np.array(found)


class Measured(NamedTuple):
    """Held-out and true gains of one panel (methods, 4), their standard errors, and which methods verdicts name."""

    said: np.ndarray
    said_error: np.ndarray
    true: np.ndarray
    true_error: np.ndarray
    verdicts: list[int]  # for each metric; -1: voting

    @property
    def clear(self) -> np.ndarray:
        """Which held-out gains are beyond two standard errors."""
        return np.abs(self.said) > 2 * self.said_error

    @property
    def wrong(self) -> np.ndarray:
        """Which of these have the other sign by the truth, beyond two standard errors too."""
        return (
            self.clear
            & (self.said * self.true < 0)
            & (np.abs(self.true) > 2 * self.true_error)
        )

    @property
    def verdict_gains(self) -> list[tuple[float, float]]:
        """True gain of what each verdict names, with its standard error."""
        named = enumerate(self.verdicts)
        return [
            (self.true[k, at], self.true_error[k, at]) if k >= 0 else (0.0, 0.0)
            for at, k in named
        ]


def measure(
    panel: np.ndarray, truth: np.ndarray, known: np.ndarray
) -> tuple[Measured | None, str]:
    """Measure one panel; return why there is no verdict, too."""
    found = mlc.compare_on_held_out_models(panel)
    if not found.gains:
        return None, found.sentence
    vote = by_truth(mlc.majority_vote(panel), truth, known)
    gains = [
        by_truth(list_by_name()[name]().fit_transform(panel), truth, known) - vote
        for name in found.gains
    ]
    errors = np.array([np.sqrt(19 * gain[:20].var(axis=0)) for gain in gains])
    figures = np.array(
        [
            [list(own[metric].to_dict().values()) for metric in METRICS]
            for own in found.gains.values()
        ]
    )
    said, error, low, _ = np.moveaxis(figures, 2, 0)
    ahead = np.where(
        low > 0, said, 0
    )  # as the verdict would choose, were it asked for each metric
    verdicts = [
        int(best) if most > 0 else -1
        for best, most in zip(ahead.argmax(axis=0), ahead.max(axis=0), strict=True)
    ]
    doubt = found.sentence if found.sentence.startswith("No recommendation") else ""
    return Measured(
        said, error, np.array([gain[20] for gain in gains]), errors, verdicts
    ), doubt


def line(name: str, found: list[Measured], note: str) -> str:
    """Write one row of the table: means over panels, and sums of counts."""
    correlation = [
        [stats.spearmanr(own.said[:, at], own.true[:, at]).statistic for at in range(4)]
        for own in found
    ]
    together = " ".join(f"{value:.2f}" for value in np.nanmean(correlation, axis=0))
    wrong, clear = (
        np.sum([getattr(own, what).sum(axis=0) for own in found], axis=0)
        for what in ("wrong", "clear")
    )
    counts = " ".join(f"{w}/{c}" for w, c in zip(wrong, clear, strict=True))
    of_filter = [
        _gains(np.mean([getattr(own, what)[-1] for own in found], axis=0))
        for what in ("said", "true")
    ]
    of_verdict = _gains(
        np.mean([[gain for gain, _ in own.verdict_gains] for own in found], axis=0)
    )
    return f"| {name} | {together} | {counts} | {of_filter[0]} | {of_filter[1]} | {of_verdict} | {note} |"


def _gains(values: np.ndarray) -> str:
    return " ".join(f"{value:+.3f}" for value in values)


def simulate() -> None:
    """Measure simulated raters: independent ones with their hit and false-alarm rates, and some with hard cells."""
    kinds = {
        "alike": ((0.7, 0.7), (0.1, 0.1)),
        "different": ((0.4, 0.95), (0.02, 0.2)),
        "timid": ((0.3, 0.5), (0.01, 0.02)),
    }
    for m in (4, 6, 10):
        for name, (hit, alarm) in kinds.items():
            found = []
            for seed in range(4):
                rng = np.random.default_rng(seed)
                _, truth = mlc.datasets.make_panel(
                    1500, 15, 1, cardinality=3, random_state=seed
                )
                hits, alarms = (
                    rng.uniform(*rate, m)[:, None, None] for rate in (hit, alarm)
                )
                drawn = rng.random((m, *truth.shape))
                found.append(
                    measure(
                        np.where(truth, drawn < hits, drawn < alarms),
                        truth,
                        np.ones_like(truth),
                    )[0]
                )
            print(
                line(
                    f"independent, {name}, m = {m}",
                    [own for own in found if own],
                    _verdicts(found),
                ),
                flush=True,
            )
        found = []
        for seed in range(4):
            panel, truth = mlc.datasets.make_panel(
                1500, 15, m, quality=0.5, shared_errors=0, random_state=seed
            )
            found.append(measure(panel.to_array(), truth, np.ones_like(truth))[0])
        print(
            line(
                f"hard cells, m = {m}", [own for own in found if own], _verdicts(found)
            ),
            flush=True,
        )


def _verdicts(found: list[Measured | None]) -> str:
    gains = [pair for own in found if own for pair in own.verdict_gains]
    left, behind = (
        sum(gain != 0 for gain, _ in gains),
        sum(gain < 0 for gain, _ in gains),
    )
    clearly = sum(gain < -2 * error for gain, error in gains)
    return f"of {len(gains)} cells, {left} leave voting, {behind} are behind it, {clearly} by more than 2 s.e."


def main(folder: Path) -> None:
    """Measure all panels of a folder."""
    warnings.simplefilter("ignore")
    kinds: dict[str, list[Measured]] = defaultdict(list)
    print(
        "| panel | rank correlation | wrong / clear | filter, held out | filter, truth | verdict, truth | doubt |"
    )
    print("|---|---|---|---|---|---|---|")
    simulate()
    methods = [name for name in list_by_name() if name != "MV"]
    for path in sorted(folder.rglob("*.npz")):
        found, doubt = measure(*read(path))
        if found is None:
            print(f"| {path.stem} | | | | | | {doubt} |", flush=True)
            continue
        kinds["no verdict" if doubt else "verdict"].append(found)
        named = " ".join(methods[k] if k >= 0 else "MV" for k in found.recommendeds)
        print(line(path.stem, [found], doubt or named), flush=True)
    for kind, found in kinds.items():
        print(line(f"{kind} ({len(found)} panels)", found, _verdicts(found)))


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).parents[2].parent / "shared" / "panels"
    )
