"""What the commands that write a consensus share: their options, checks before the work, and the table to write."""

from functools import partial
from typing import Any

import click

import mlconsensus as mlc

from ..errors import InputError
from .options import (
    Given,
    force_option,
    format_option,
    json_option,
    output_option,
    say_missing,
    tell,
    together,
)

_OUTPUT = "Where to write the consensus; - for standard output, as CSV unless --output-format says else."
_DECIDE = (
    "Write label sets (0/1) instead of scores: as many labels for each instance as the models gave on average; those "
    "of the highest F1 to be expected; or all scores of at least --threshold."
)
_EMPTY = "With --decide: leave an instance without labels, or give it the top one."
_LAYOUT = "One column a label; one row a score; or one row a score from best to worst, with its rank."

done_option = json_option(help="Print what was done as JSON on standard output.")


def check(given: Given) -> None:
    """Refuse options that do not go together; fill in the format of standard output."""
    from ..io.write import check_layout

    to_screen = given.output == "-"
    expected = "a file for the consensus, as JSON goes to standard output"
    if given.as_json and to_screen:
        raise InputError(where="--json", found="no --output", expected=expected)
    if not (given.threshold is None or given.decide == "threshold"):
        raise InputError(
            where="--threshold", found="no --decide threshold", expected="both"
        )
    if not (given.empty == "keep" or given.decide is not None):
        raise InputError(where="--empty", found="no --decide", expected="both")
    if given.threshold is None:
        given.threshold = 0.5
    else:
        given.threshold = given.threshold

    if to_screen and given.output_format is None:
        given.output_format = "csv"

    check_layout(
        mlc.io.format_of(given.output, given.output_format, written=True), given.layout
    )


def values(given: Given, scores: Any, panel: Any, best: Any = None) -> Any:
    """Turn the scores of a panel into what is to be written: scores or label sets, `best` or by another rule."""
    import numpy as np

    from ..linalg.sparse_scores import Cells, SparseScores

    rules = mlc.decision
    most = given.top_k
    if given.decide == "instances":
        counts = np.minimum(rules.cardinalities(panel), most or len(panel.labels))
        return rules.match_instances(scores, counts, empty=given.empty)

    above = best or partial(rules.threshold, scores, given.threshold)
    if isinstance(scores, SparseScores):
        if given.decide is None:
            return scores.cells(most and np.full(len(scores), most))

        chosen = above(empty=given.empty)
        if most is None:
            return chosen
        return rules.match_instances(scores, np.diff(chosen.indptr).clip(max=most))

    kept: Any = True if most is None else rules.top_k(scores, most)
    if (
        given.decide is None and most is not None and given.layout == "long"
    ):  # a row for each that is kept
        return Cells(
            (
                scores[kept],
                np.nonzero(kept)[1],
                np.append(0, np.cumsum(kept.sum(axis=1))),
            ),
            shape=kept.shape,
        )
    if given.decide is None:
        if most is None:
            return scores
        return np.where(kept, scores, np.nan)

    return above(empty=given.empty) & kept


def check_streamed(given: Given, *in_memory: str) -> None:
    """Refuse what cannot be written block by block, and options that need the panel in memory."""
    from ..io.write import streamed_format

    streamed_format(given.output, given.output_format)
    for option in ["--decide f1"] * (given.decide == "f1") + list(
        in_memory
    ):  # which looks at all instances at once
        raise InputError(
            where=option,
            found="with a panel to be streamed",
            expected="one that fits into memory",
        )


def write(given: Given, panel: Any, solved: bool = False, **chosen: Any) -> Any:
    """Combine a panel, or apply the method that is `solved`, and write the consensus: at once or block by block."""
    from ..consensus import Consensus
    from ..execution.memory import available_memory
    from ..predictions import ScoreTable
    from ..streamed import Written

    _, n, l = panel.shape
    fits = (
        not panel.many or given.layout != "wide" or 16 * n * l < available_memory() / 2
    )
    if not (fits):
        raise InputError(
            where="--layout wide",
            found=f"{n:,} × {l:,} scores",
            expected="--layout ranked or long, for example with --top-k 10",
        )

    form = {"format": given.output_format, "layout": given.layout, "force": given.force}
    if not isinstance(panel, mlc.Predictions):
        if given.decide is None and given.top_k is None:
            made = None
        else:
            made = partial(values, given)

        done = mlc.write_consensus(
            panel, given.output, values=made, solved=solved, **form, **chosen
        )
        say_missing(done.n_missing, panel.shape)
        return done

    if solved:
        combiner = chosen["method"]
        names = (panel.instances, panel.labels)
        untaught = panel.with_gold(
            None
        )  # what is known has taught the method, and is in its scores
        found = Consensus(
            combiner.transform(panel), combiner.name, "", combiner, *names, untaught
        )
    else:
        found = mlc.combine(panel, **chosen)

    made = values(
        given,
        found.scores,
        panel,
        found.make_label_indicator if given.decide == "f1" else None,
    )
    mlc.io.write_table(
        given.output,
        ScoreTable(found.method, made, found.instances, found.labels),
        **form,
    )
    return Written(found.method, found.reason, found.combiner, panel.n_missing)


def say_done(given: Given, line: str, panel: Any, **facts: Any) -> None:
    """Say what was done, in one line or as JSON."""
    _, n, l = panel.shape
    size = {"models": panel.models, "instances": n, "labels": l}
    if given.output == "-":
        where = ""
    else:
        where = f" → {given.output}"

    tell(given.as_json, line + where, **size | facts, output=given.output)


output_options = together(
    output_option(default="-", help=_OUTPUT),
    format_option(
        "--output-format", help="Its format, where the suffix does not tell."
    ),
    click.option(
        "--decide", type=click.Choice(["instances", "f1", "threshold"]), help=_DECIDE
    ),
    click.option(
        "--threshold",
        type=click.FloatRange(0, 1),
        help="For --decide threshold: 0.5 unless told.",
    ),
    click.option(
        "--empty", type=click.Choice(["keep", "top"]), default="keep", help=_EMPTY
    ),
    click.option(
        "--top-k",
        type=click.IntRange(1),
        metavar="K",
        help="Keep only the K best labels of an instance.",
    ),
    click.option(
        "--layout",
        type=click.Choice(["wide", "long", "ranked"]),
        default="wide",
        help=_LAYOUT,
    ),
    force_option,
    done_option,
)
