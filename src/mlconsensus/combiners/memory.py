"""Whether a panel of many labels has room in memory, told before the work begins."""

from typing import Any

from ..errors import InputError
from ..execution.memory import available_memory
from ..linalg.label_map import head_size
from ..linalg.sparse_scores import KEPT
from ..text import sizes


def check_fits_memory(method: Any, panel: Any) -> Any:
    """Return a panel of many labels as a method takes it; refuse one that would not fit into memory."""
    m, n, l = (int(size) for size in panel.shape)
    sparsely = method.takes_many and panel.gold is None and not panel.clusters
    named = min(l, panel.n_stored)
    head = head_size(named) * method.pairs_labels
    # Vectors of labels, copies of what was said, what the head has with all named
    # labels, each instance's best.
    per_pair = 250 + 60 * m * method.pairs_models
    held = (
        per_pair * l * m
        + 60 * panel.n_stored
        + head * named * max(20, 5 * m)
        + 24 * KEPT * n
    )
    if sparsely:
        need = held
    else:
        need = 8 * l * (n + 3 * m * l)

    found = f"{sizes(panel.shape)}, which would take {need / 2**30:,.0f} GiB"
    if not sparsely:
        able = "gold and clusterings to have fewer labels"
    else:
        able = "one of MV, DS"

    if not (need < 0.8 * available_memory()):
        raise InputError(where=method.name, found=found, expected=able)
    if sparsely:
        return panel
    return panel.as_block(False)
