"""Labels that look like one another: most likely one label under several names."""

from collections.abc import Mapping
from typing import NamedTuple


class Alias(NamedTuple):
    """A name of a label that looks like another one, which is used more often."""

    name: str
    stands_for: str
    similarity: float  # 1: they differ in case, spaces and marks only
    used: int  # how often the name is
    other_used: int  # how often what it stands for is


def similar_labels(used: Mapping[str, int], least: float = 0.87) -> list[Alias]:
    """Find labels that look like one another.

    Names are compared without case, spaces and marks, by the share of letters that they
    have in common in order (rapidfuzz's ``ratio``). Names whose numbers differ are
    different, and so are those of which one is the other with something before it, as
    ``irrelevant``.

    Parameters
    ----------
    used
        The labels, and how often each is used.
    least
        The least similarity, from 0 to 1.

    Returns
    -------
    list of Alias
        Each name at most once, the most similar first; what it stands for is used at
        least as often.

    Examples
    --------
    >>> used = {"color": 9, "colour": 4, "Color ": 1, "relevant": 3, "irrelevant": 3, "part 1": 2, "part 2": 2}
    >>> [(alias.name, alias.stands_for, round(alias.similarity, 2)) for alias in similar_labels(used)]
    [('Color ', 'color', 1.0), ('colour', 'color', 0.91)]
    """
    from rapidfuzz import fuzz, process, utils

    names = sorted(used, key=lambda name: -used[name])
    bare = [utils.default_process(name).replace(" ", "") or name for name in names]
    numbers = ["".join(filter(str.isdigit, name)) for name in bare]
    found: dict[int, Alias] = {}
    for at in range(1, len(names)):
        likeness = process.cdist(
            [bare[at]], bare[:at], scorer=fuzz.ratio, score_cutoff=100 * least
        )[0]
        for other in (
            (-likeness).argsort(kind="stable")[: int((likeness > 0).sum())].tolist()
        ):
            prefixed = bare[at] != bare[other] and (
                bare[at].endswith(bare[other]) or bare[other].endswith(bare[at])
            )
            if other not in found and numbers[at] == numbers[other] and not prefixed:
                counts = used[names[at]], used[names[other]]
                found[at] = Alias(
                    names[at], names[other], float(likeness[other]) / 100, *counts
                )
                break

    return sorted(found.values(), key=lambda alias: -alias.similarity)
