"""Clusterings of the instances: groups without labels."""

from collections.abc import Mapping

import numpy as np

from ..errors import InputError
from .alignment import is_missing
from .array_types import IntArray, Names, NamesLike


def cluster_of_each(
    clustering: object, instances: Names, where: str
) -> list[str | None]:
    """Return the name of each instance's cluster, ``None``: it is in no cluster.

    Parameters
    ----------
    clustering : sequence, mapping, pandas.Series or pyarrow.Array
        The clusters in the order of `instances`, or a mapping (or pandas Series) from
        instance to cluster.
    instances : ndarray of shape (n,)
        Names of the instances.
    where : str
        Name of the clustering, for error messages.

    Returns
    -------
    list of n str or None

    Examples
    --------
    >>> import numpy as np
    >>> cluster_of_each({"b": 3}, np.array(["a", "b"]), "clustering 'k-means'")
    [None, '3']
    """
    if not hasattr(clustering, "__len__") or isinstance(clustering, str):
        raise InputError(
            where=where,
            found=repr(clustering),
            expected="the cluster of each instance",
        )
    if getattr(clustering, "ndim", 1) != 1:
        raise InputError(
            where=where, found="a table", expected="the cluster of each instance"
        )

    names = instances.tolist()
    if isinstance(clustering, Mapping) or hasattr(clustering, "iloc"):
        clusters = _look_up(clustering, names, where)
    else:
        clusters = _list_clusters(clustering, len(names), where)

    return [_convert_name(cluster) for cluster in clusters]


def _look_up(clustering: NamesLike, names: list[object], where: str) -> list[object]:
    """Return the cluster of each instance from a mapping or a pandas Series."""
    by_name = {}
    for name, cluster in clustering.items():
        by_name[str(name)] = cluster
    if len(by_name) != len(clustering):
        raise InputError(
            where=where, found="an instance that comes again", expected="each once"
        )

    if by_name.keys().isdisjoint(map(str, names)):
        raise InputError(
            where=where,
            found="none of the panel's instances",
            expected=f"some such as {names[0]!r}",
        )

    return [by_name.get(str(name)) for name in names]


def _list_clusters(clustering: NamesLike, n_instances: int, where: str) -> list[object]:
    """Return the cluster of each instance from a sequence or an Arrow array."""
    clusters: list[object]
    if hasattr(clustering, "to_pylist"):
        clusters = clustering.to_pylist()
    else:
        clusters = list(clustering)

    if len(clusters) != n_instances:
        raise InputError(
            where=where,
            found=f"{len(clusters)} instances",
            expected=f"{n_instances} as the panel has",
        )
    return clusters


def with_more(
    clusters: tuple[str, ...],
    members: IntArray,
    instances: Names,
    clusterings: Mapping[str, object],
) -> tuple[tuple[str, ...], IntArray]:
    """Add clusterings to those of some instances.

    Parameters
    ----------
    clusters : tuple of c str
        Names of the clusters so far.
    members : ndarray of shape (n, number of clusterings)
        Cluster of each instance, -1: none.
    instances : ndarray of shape (n,)
        Names of the instances.
    clusterings : mapping
        New clusterings by name, as `cluster_of_each` takes them.

    Returns
    -------
    clusters : tuple of str
    members : ndarray of shape (n, new number of clusterings)
    """
    if not hasattr(clusterings, "items"):
        raise InputError(
            where="clusterings",
            found=type(clusterings).__name__,
            expected="a mapping from name to the cluster of each instance",
        )

    all_clusters = list(clusters)
    columns = [members]
    for name, clustering in clusterings.items():
        position: dict[str | None, int] = {None: -1}
        column = []
        for cluster in cluster_of_each(clustering, instances, f"clustering {name!r}"):
            if cluster not in position:
                position[cluster] = len(all_clusters)
                all_clusters.append(f"{name}: {cluster}")
            column.append(position[cluster])
        columns.append(np.array(column, dtype=np.int64)[:, np.newaxis])

    return tuple(all_clusters), np.concatenate(columns, axis=1)


def _convert_name(cluster: object) -> str | None:
    """Return the name of a cluster as text, None if it is missing."""
    if is_missing(cluster):
        return None
    if isinstance(cluster, float) and cluster.is_integer():
        return str(int(cluster))
    return str(cluster)
