"""The methods, one a file, and the names they are called by."""

from .base import Combiner
from .bgcm import BGCM
from .dawid_skene import DawidSkene
from .majority_vote import MajorityVote
from .mlcm_a import MLCMa
from .mlcm_r import MLCMr
from .rater_filter import RaterFilter

# Every method by the name that tables, files and the command line use. A new combiner adds one line.
COMBINERS: dict[str, type[Combiner]] = {
    "MV": MajorityVote,
    "DS": DawidSkene,
    "BGCM": BGCM,
    "MLCM-r": MLCMr,
    "MLCM-a": MLCMa,
    "Filter": RaterFilter,
}


def name_of(combiner: Combiner) -> str:
    """Return the name that tables, files and the command line use.

    Examples
    --------
    >>> name_of(MLCMr(alpha=3.0))
    'MLCM-r'
    """
    return next((name for name, kind in COMBINERS.items() if type(combiner) is kind), type(combiner).__name__)


__all__ = ["BGCM", "COMBINERS", "Combiner", "DawidSkene", "MLCMa", "MLCMr", "MajorityVote", "RaterFilter", "name_of"]
