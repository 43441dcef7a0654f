"""Three rounds of asking an expert: what to ask, what the answers bring, and how sure one is of it.

    python run.py

Six taggers have labelled 500 tickets. An expert answers 25 tickets a round: those that
`ask` chooses, with the answers so far in view. Beside it stands an expert who is asked
about random tickets.
"""

from dataclasses import replace

import numpy as np

import mlconsensus as mlc

ROUNDS, BUDGET = 3, 25
WIDTH = 600  # of a loss of 1, in characters


def main():
    panel, truth = mlc.datasets.make_panel(
        500,
        12,
        6,
        quality=[0.75, 0.7, 0.65, 0.6, 0.55, 0.5],
        shared_errors=0.4,
        random_state=7,
    )
    asked, at_random, rng = None, np.full(truth.shape, np.nan), np.random.default_rng(0)
    show("no answers", mlc.combine(panel), truth, "")
    for round_ in range(1, ROUNDS + 1):
        questions = mlc.ask(panel, BUDGET, gold=asked, seed=round_)
        asked = answered(
            questions, truth
        )  # on the command line: a person fills in questions.csv
        at_random[
            rng.choice(
                np.flatnonzero(np.isnan(at_random).all(axis=1)), BUDGET, replace=False
            )
        ] = 0
        rows = ~np.isnan(at_random).all(axis=1)
        at_random[rows] = truth[rows]
        found = mlc.compare(
            panel,
            asked,
            methods={"MV": mlc.MajorityVote(), "Weighted": mlc.WeightedConsensus()},
        )
        figure = found.figures["Weighted"]["ranking_loss"]
        show(
            f"{round_ * BUDGET} answers",
            mlc.combine(panel, gold=asked),
            truth,
            f"without its own answers {figure}",
        )
        show("  at random", mlc.combine(panel, gold=at_random), truth, "")
    print(
        "\nRanking loss of the consensus over all 500 tickets, answered ones included; the figures in brackets come"
    )
    print(
        "from the answers alone, as they would without the truth that this example has."
    )


def answered(questions, truth):
    """Fill in the table as the expert would: the first column is the inclusion probability, empty rows are new."""
    cells = questions.table.scores.copy()
    cells[: len(questions.at), 1:] = truth[questions.at]
    return replace(questions.table, scores=cells)


def show(what, consensus, truth, more):
    loss = consensus.evaluate(truth)["ranking_loss"]
    print(f"{what:12} {loss:.4f} {'█' * round(WIDTH * loss)} {more}".rstrip())


if __name__ == "__main__":
    main()
