"""Clusterings of the instances: panel members that say who belongs together, and nothing of labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import expect
from .alignment import IntArray, Names, is_missing


def cluster_of_each(given: Any, instances: Names, where: str) -> list[str | None]:
    """Return the name of the cluster that each instance is in, ``None`` for those in none.

    Parameters
    ----------
    given
        A sequence in the order of `instances`, or a mapping (or pandas Series) from instance to cluster.
    instances
        The panel's.
    where
        Says in error messages what was given.

    Examples
    --------
    >>> import numpy as np
    >>> cluster_of_each({"b": 3}, np.array(["a", "b"]), "clustering 'k-means'")
    [None, '3']
    """
    listed = hasattr(given, "__len__") and not isinstance(given, str)
    expect(listed, where, repr(given), "the cluster of each instance")
    expect(
        getattr(given, "ndim", 1) == 1, where, "a table", "the cluster of each instance"
    )
    names = instances.tolist()
    if isinstance(given, Mapping) or hasattr(given, "iloc"):
        by_name = {str(name): cluster for name, cluster in given.items()}
        expect(
            len(by_name) == len(given),
            where,
            "an instance that comes again",
            "each once",
        )
        some = any(str(name) in by_name for name in names)
        expect(
            some, where, "none of the panel's instances", f"some such as {names[0]!r}"
        )
        found = [by_name.get(str(name)) for name in names]
    else:
        found = (
            given.to_pylist() if hasattr(given, "to_pylist") else list(given)
        )  # Arrow's
        expect(
            len(found) == len(names),
            where,
            f"{len(found)} instances",
            f"{len(names)} as the panel has",
        )
    return [_name(cluster) for cluster in found]


def with_more(
    clusters: tuple[str, ...],
    members: IntArray,
    instances: Names,
    clusterings: Mapping[str, Any],
) -> tuple[tuple[str, ...], IntArray]:
    """Add clusterings by name to the clusters that there are (c,) and to which of them each instance is in (n, …)."""
    named = hasattr(clusterings, "items")
    expect(
        named,
        "clusterings",
        type(clusterings).__name__,
        "a mapping from name to the cluster of each instance",
    )
    listed, columns = list(clusters), [members]
    for name, given in clusterings.items():
        found = cluster_of_each(given, instances, f"clustering {name!r}")
        names = list(dict.fromkeys(cluster for cluster in found if cluster is not None))
        place = {cluster: len(listed) + at for at, cluster in enumerate(names)} | {
            None: -1
        }
        columns.append(
            np.array([[place[cluster]] for cluster in found], dtype=np.int64)
        )
        listed += [f"{name}: {cluster}" for cluster in names]
    return tuple(listed), np.concatenate(columns, axis=1)


def _name(cluster: Any) -> str | None:
    if is_missing(cluster):
        return None
    return (
        str(int(cluster))
        if isinstance(cluster, float) and cluster.is_integer()
        else str(cluster)
    )
