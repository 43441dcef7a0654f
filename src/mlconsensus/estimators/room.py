"""Whether a panel of many labels has room in memory, told before the work begins."""

from typing import Any

from ..combiners import METHODS, Method
from ..engines.machine import available_memory
from ..errors import expect
from ..terminal import sizes


def that_fits(method: Method, panel: Any) -> Any:
    """Return a panel of many labels as a method takes it; refuse one that would not fit into memory."""
    m, n, l = (int(size) for size in panel.shape)
    sparsely = method.takes_many and panel.gold is None and not panel.clusters
    pairs = min(l**2, panel.n_said**2 // (4 * n)) if method.pairs_labels else 0
    need = 4 * pairs + 100 * l * m if sparsely else 8 * l * (n + 3 * m * l)
    found = f"{sizes(panel.shape)}, which would take {need / 2**30:,.0f} GiB"
    others = [own.name for own in METHODS if own.takes_many and not own.pairs_labels]
    able = "gold, clusterings and MLCM-r to have fewer labels" if not sparsely else f"one of {', '.join(others)}"
    expect(need < available_memory() / 2, method.name, found, able)
    return panel if sparsely else panel.as_block(False)
