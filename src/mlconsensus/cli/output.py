"""What the commands that write a consensus share: their options, checks before the work, and the table to write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import expect
from .options import format_option, print_json, say, together, with_default

if TYPE_CHECKING:
    from ..consensus import Consensus
    from ..panel.sources import Source

_OUTPUT = "Where to write the consensus; - for standard output, as CSV unless --output-format says else."
_DECIDE = (
    "Write label sets (0/1) instead of scores: as many labels for each instance, or instances for each label, as the "
    "models gave on average; or all scores of at least --threshold."
)
_EMPTY = "With --decide: leave an instance without labels, or give it the top one."
_LAYOUT = "One column a label; one row a score; or one row a score from best to worst, with its rank."

force_option = click.option("--force", is_flag=True, help="Replace an existing output.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON on standard output.")
output_options = together(
    with_default("--output", "-o", default="-", metavar="FILE", help=_OUTPUT),
    format_option("--output-format", help="Its format, where the suffix does not tell."),
    click.option("--decide", type=click.Choice(["instances", "labels", "threshold"]), help=_DECIDE),
    with_default("--threshold", type=float, default=0.5, help="For --decide threshold."),
    with_default("--empty", type=click.Choice(["keep", "top"]), default="keep", help=_EMPTY),
    click.option("--top-k", type=click.IntRange(1), metavar="K", help="Keep only the K best labels of an instance."),
    with_default("--layout", type=click.Choice(["wide", "long", "ranked"]), default="wide", help=_LAYOUT),
    force_option,
    json_option,
)


class Output(NamedTuple):
    """Where and in what form to write a consensus."""

    output: str
    output_format: str | None
    decide: str | None
    threshold: float
    empty: Any
    top_k: int | None
    layout: Any
    force: bool
    as_json: bool

    def checked(self, files: Sequence[str]) -> Output:
        """Refuse an output that cannot be written or would replace an input; fill in the format of standard output."""
        from ..io import format_of

        to_screen = self.output == "-"
        expected = "a file for the consensus, as JSON goes to standard output"
        expect(not (self.as_json and to_screen), "--json", "no --output", expected)
        check_place(files, self.output, self.force)
        found = self._replace(output_format=self.output_format or ("csv" if to_screen else None))
        format_of(found.output, found.output_format)
        return found

    def values(self, scores: Any, panel: Any) -> Any:
        """Turn the scores of a panel into what is to be written: scores or label sets, all or the best."""
        import numpy as np

        from ..arithmetic.many import ManyScores
        from ..evaluation import decisions

        if isinstance(scores, ManyScores):
            expect(self.decide in (None, "instances"), f"--decide {self.decide}", "many labels", "--decide instances")
            if self.decide is None:
                return scores.cells(None if self.top_k is None else np.full(len(scores), self.top_k))
            most = len(panel.labels) if self.top_k is None else self.top_k
            counts = np.minimum(decisions.cardinalities(panel), most)
            return decisions.match_instances(scores, counts, empty=self.empty)
        values = scores
        if self.decide == "instances":
            values = decisions.match_instances(scores, decisions.cardinalities(panel), empty=self.empty)
        elif self.decide == "labels":
            values = decisions.match_labels(scores, decisions.frequencies(panel), empty=self.empty)
        elif self.decide == "threshold":
            values = decisions.threshold(scores, self.threshold, empty=self.empty)
        if self.top_k is not None:
            best = decisions.top_k(scores, self.top_k)
            values = values & best if self.decide else np.where(best, scores, np.nan)
        return values

    def check_streamed(self, *in_memory: str) -> None:
        """Refuse what cannot be written block by block, and options that need the panel in memory."""
        from ..io.writing import streamed_format

        streamed_format(self.output, self.output_format)
        for given in ["--decide labels"] * (self.decide == "labels") + list(in_memory):
            expect(False, given, "with a panel to be streamed", "one that fits into memory")

    def write(self, found: Consensus) -> None:
        """Write a consensus that is in memory."""
        from ..io import write_table
        from ..panel.model_tables import ModelTable

        values = self.values(found.scores, found.predictions)
        table = ModelTable(found.method, values, found.instances, found.label_names)
        write_table(self.output, table, format=self.output_format, layout=self.layout, force=self.force)

    def say_done(self, line: str, panel: Source, **facts: Any) -> None:
        """Say what was done, in one line or as JSON."""
        if self.as_json:
            _, n, l = panel.shape
            print_json({"models": panel.models, "instances": n, "labels": l, **facts, "output": self.output})
        else:
            say(line + ("" if self.output == "-" else f" → {self.output}"))


def check_place(files: Sequence[str], output: str, force: bool) -> list[Any]:
    """Refuse a place that cannot be written to, or that an input has; return the inputs, files in place of folders."""
    from ..io.files import check_output
    from ..io.formats import expanded

    check_output(output, force=force)
    inputs = expanded(files)
    same = output != "-" and any(os.path.realpath(file) == os.path.realpath(output) for file in inputs)
    expect(not same, output, "among the input files too", "another place for the output")
    return inputs
