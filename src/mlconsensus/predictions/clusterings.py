"""Clusterings of the instances: panel members that say who belongs together, and nothing of labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from .alignment import IntArray, Names, is_missing


def cluster_of_each(given: Any, instances: Names, where: str) -> list[str | None]:
    """Return the name of the cluster that each instance is in, ``None`` for those in none.

    Parameters
    ----------
    given
        A sequence in the order of `instances`, or a mapping (or pandas Series) from
        instance to cluster.
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
    if not (listed):
        raise InputError(
            where=where, found=repr(given), expected="the cluster of each instance"
        )
    if getattr(given, "ndim", 1) != 1:
        raise InputError(
            where=where, found="a table", expected="the cluster of each instance"
        )

    names = instances.tolist()
    if isinstance(given, Mapping) or hasattr(given, "iloc"):
        by_name = {str(name): cluster for name, cluster in given.items()}
        if len(by_name) != len(given):
            raise InputError(
                where=where, found="an instance that comes again", expected="each once"
            )

        some = any(str(name) in by_name for name in names)
        if not (some):
            raise InputError(
                where=where,
                found="none of the panel's instances",
                expected=f"some such as {names[0]!r}",
            )

        found = [by_name.get(str(name)) for name in names]
    else:
        # Arrow's
        if hasattr(given, "to_pylist"):
            found = given.to_pylist()
        else:
            found = list(given)

        if len(found) != len(names):
            raise InputError(
                where=where,
                found=f"{len(found)} instances",
                expected=f"{len(names)} as the panel has",
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
    if not (named):
        raise InputError(
            where="clusterings",
            found=type(clusterings).__name__,
            expected="a mapping from name to the cluster of each instance",
        )

    listed = list(clusters)
    columns = [members]
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
    if isinstance(cluster, float) and cluster.is_integer():
        return str(int(cluster))
    return str(cluster)
