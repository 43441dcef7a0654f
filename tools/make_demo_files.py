"""Make the files of `mlconsensus demo`: support tickets, and simulated answers.

Run ``python tools/make_demo_files.py``. The files come out the same every time.

The texts are put together from sentences. No language model was asked: the answers of
six taggers are simulated. Each tagger sees how clearly a ticket mentions a label, plus
errors. A family of taggers shares a part of its errors, as models of one vendor do.
"""

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "src/mlconsensus/datasets/support-tickets"
N_TICKETS = 300
SEED = 29

# For each label, sentences that mention it clearly, and sentences that only hint at it.
SENTENCES = {
    "billing": (
        ["My card was charged twice in {month}.", "The plan costs more than agreed."],
        ["{month} was more expensive than expected."],
    ),
    "invoice": (
        ["Please send the invoice for {month}.", "The invoice shows an old address."],
        ["Our accountant needs a document for {month}."],
    ),
    "refund": (
        ["I want my money back.", "Please refund the last payment."],
        ["I do not see why I should pay for this."],
    ),
    "cancel": (
        ["Please cancel our subscription.", "How do I close the account?"],
        ["We will not need {product} after {month}."],
    ),
    "login": (
        ["I cannot log in to {product}.", "The sign-in page rejects my account."],
        ["Since Monday I only see the start page."],
    ),
    "password": (
        ["The password reset mail never arrives.", "My new password is not accepted."],
        ["The link in your mail has expired."],
    ),
    "outage": (
        ["{product} is down for all of us.", "We get error 503 on every page."],
        ["Our whole office is waiting."],
    ),
    "slow": (
        ["{product} takes a minute to open.", "Search has become very slow."],
        ["I have to wait a lot since the update."],
    ),
    "export": (
        ["The CSV export is missing columns.", "Exporting a report fails at 90 %."],
        ["I cannot get our numbers out of {product}."],
    ),
    "api": (
        ["The API answers 401 with a valid token.", "Your webhook stopped calling us."],
        ["Our script worked until last week."],
    ),
    "feature": (
        ["Please add a dark mode.", "A shared calendar would be a great feature."],
        ["Other tools can do this with one click."],
    ),
    "praise": (
        ["Your support team is excellent.", "I love the new {product}."],
        ["Apart from that we are quite happy."],
    ),
}
LABELS = tuple(SENTENCES)
PRODUCTS = ("Planner", "Inbox", "Reports", "Desk")
MONTHS = ("March", "April", "May", "June")

# Labels of one topic often occur together, and are easily confused.
TOPICS = (
    ("billing", "invoice", "refund", "cancel"),
    ("login", "password", "outage"),
    ("slow", "outage", "export", "api"),
    ("feature", "praise", "export"),
)


@dataclass(frozen=True, kw_only=True)
class Tagger:
    """A simulated language model.

    Attributes
    ----------
    family : str
        Taggers of one family share a part of their errors.
    noise : float
        Standard deviation of the errors; a clear mention counts 2, a hint 1.
    shared : float
        Share of the errors' variance that is common to the family.
    bias : float
        How readily it gives a label.
    """

    family: str
    noise: float
    shared: float
    bias: float


TAGGERS = {
    "aurora-cold": Tagger(family="aurora", noise=0.7, shared=0.92, bias=0.0),
    "aurora-hot": Tagger(family="aurora", noise=0.75, shared=0.92, bias=0.1),
    "birch-1": Tagger(family="birch", noise=0.78, shared=0.9, bias=0.1),
    "birch-2": Tagger(family="birch", noise=0.72, shared=0.9, bias=0.0),
    "cobalt": Tagger(family="cobalt", noise=0.6, shared=0.0, bias=0.05),
    "cobalt-mini": Tagger(family="cobalt", noise=4.0, shared=0.05, bias=-4.0),
}


def draw_labels(rng: np.random.Generator) -> list[str]:
    """Return one to three labels, most of them of one topic."""
    topic = TOPICS[rng.integers(len(TOPICS))]
    n_labels = rng.choice([1, 2, 3], p=[0.4, 0.45, 0.15])
    labels = list(rng.choice(topic, size=min(n_labels, len(topic)), replace=False))
    if rng.random() < 0.1:
        labels.append(str(rng.choice(LABELS)))
    return sorted(set(labels), key=LABELS.index)


def write_text(
    labels: list[str], product: str, rng: np.random.Generator
) -> tuple[str, np.ndarray]:
    """Return the text of a ticket, and how clearly it mentions each label (l,)."""
    sentences = []
    strength = np.zeros(len(LABELS))
    for label in labels:
        clear, hints = SENTENCES[label]
        is_hint = rng.random() < 0.3
        choices = hints if is_hint else clear
        sentences.append(choices[rng.integers(len(choices))])
        strength[LABELS.index(label)] = 1.0 if is_hint else 2.0

    text = " ".join(sentences)
    return text.format(product=product, month=rng.choice(MONTHS)), strength


def add_confusion(strength: np.ndarray) -> np.ndarray:
    """Return strengths (n, l) that are raised a little for labels of the same topic."""
    related = np.zeros((len(LABELS), len(LABELS)))
    for topic in TOPICS:
        positions = [LABELS.index(label) for label in topic]
        related[np.ix_(positions, positions)] = 1

    np.fill_diagonal(related, 0)
    return strength + 0.1 * np.minimum(strength @ related, 3)


def simulate_answers(
    strength: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the labels (n, l) that each tagger gives."""
    seen = add_confusion(strength)
    # Errors are larger for labels of a topic that the ticket is about.
    spread = np.where(seen > 0, 1.0, 0.65)
    families = {tagger.family for tagger in TAGGERS.values()}
    family_errors = {
        family: rng.standard_normal(seen.shape) for family in sorted(families)
    }

    answers = {}
    for name, tagger in TAGGERS.items():
        common = np.sqrt(tagger.shared) * family_errors[tagger.family]
        private = np.sqrt(1 - tagger.shared) * rng.standard_normal(seen.shape)
        errors = tagger.noise * spread * (common + private)
        noisy = seen + tagger.bias + errors
        answers[name] = noisy > 1.15
    return answers


def make_files(folder: Path) -> None:
    """Write `tickets.csv`, `answers.jsonl` and `truth.jsonl`."""
    rng = np.random.default_rng(SEED)
    ids = [f"T-{i:03d}" for i in range(1, N_TICKETS + 1)]

    # Tickets
    labels_of_ticket = [draw_labels(rng) for _ in ids]
    texts = []
    strengths = []
    for labels in labels_of_ticket:
        text, strength = write_text(labels, str(rng.choice(PRODUCTS)), rng)
        texts.append(text)
        strengths.append(strength)

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "tickets.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["instance", "text"])
        writer.writerows(zip(ids, texts, strict=True))

    with (folder / "truth.jsonl").open("w", encoding="utf-8") as file:
        for ticket, labels in zip(ids, labels_of_ticket, strict=True):
            file.write(json.dumps({"instance": ticket, "labels": labels}) + "\n")

    # Answers; one in fifty is missing, as after a timeout.
    answers = simulate_answers(np.array(strengths), rng)
    with (folder / "answers.jsonl").open("w", encoding="utf-8") as file:
        for model, chosen in answers.items():
            for ticket, is_chosen in zip(ids, chosen, strict=True):
                if rng.random() < 0.02:
                    continue
                labels = [LABELS[j] for j in np.flatnonzero(is_chosen)]
                row = {"instance": ticket, "model": model, "labels": labels}
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    make_files(parser.parse_args().folder)
