"""Labels with similar names, which are probably one label with several spellings."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..predictions import FloatArray


@dataclass(frozen=True, kw_only=True)
class Alias:
    """A label whose name is similar to that of a more frequent label."""

    name: str
    stands_for: str  # the more frequent label
    similarity: float  # 1: they differ in case, spaces and punctuation only
    used: int  # number of uses of `name`
    other_used: int  # number of uses of `stands_for`


def similar_labels(used: Mapping[str, int], least: float = 0.87) -> list[Alias]:
    """Return the labels whose names are similar to that of a more frequent label.

    Names are compared without case, spaces and punctuation, by rapidfuzz's ``ratio``:
    the share of letters that they have in common in order. Names that contain different
    numbers are different labels. So are names of which one is the other with a prefix,
    such as ``irrelevant``.

    Parameters
    ----------
    used : mapping of str to int
        Number of uses of each label.
    least : float, default=0.87
        Minimum similarity, from 0 to 1.

    Returns
    -------
    list of Alias
        The most similar first. Each name occurs at most once, and `stands_for` is used
        at least as often as `name`.

    Examples
    --------
    >>> used = {"color": 9, "colour": 4, "Color ": 1, "relevant": 3, "irrelevant": 3}
    >>> for alias in similar_labels(used):
    ...     print(repr(alias.name), repr(alias.stands_for), round(alias.similarity, 2))
    'Color ' 'color' 1.0
    'colour' 'color' 0.91
    >>> similar_labels({"part 1": 2, "part 2": 2})
    []
    """
    from rapidfuzz import fuzz, process, utils

    names = sorted(used, key=lambda name: -used[name])
    normalized = [
        utils.default_process(name).replace(" ", "") or name for name in names
    ]
    numbers = ["".join(filter(str.isdigit, name)) for name in normalized]

    aliases: dict[int, Alias] = {}  # by position in `names`
    for rank in range(1, len(names)):
        # Compare with all more frequent labels; below the cutoff, the similarity is 0.
        similarities = process.cdist(
            [normalized[rank]],
            normalized[:rank],
            scorer=fuzz.ratio,
            score_cutoff=100 * least,
        )[0]

        # Take the most similar label that is not an alias itself.
        for other in _order_candidates(similarities):
            is_prefixed = _is_prefixed(normalized[rank], normalized[other])
            has_same_number = numbers[rank] == numbers[other]
            if other not in aliases and has_same_number and not is_prefixed:
                aliases[rank] = Alias(
                    name=names[rank],
                    stands_for=names[other],
                    similarity=float(similarities[other]) / 100,
                    used=used[names[rank]],
                    other_used=used[names[other]],
                )
                break

    return sorted(aliases.values(), key=lambda alias: -alias.similarity)


def _order_candidates(similarities: FloatArray) -> list[int]:
    """Return the positions of positive similarities, the highest first."""
    n_similar = int((similarities > 0).sum())
    order: list[int] = (-similarities).argsort(kind="stable")[:n_similar].tolist()
    return order


def _is_prefixed(name: str, other: str) -> bool:
    """Return whether one of two different names ends with the other."""
    if name == other:
        return False
    return name.endswith(other) or other.endswith(name)
