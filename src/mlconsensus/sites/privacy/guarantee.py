"""What a private release guarantees, as its file says it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...errors import InputError
from ...parameters import positive, whole

MECHANISM = "Gaussian noise by OpenDP's make_gaussian"
NEIGHBOURS = "panels that differ by adding or removing one instance"


class Guarantee(NamedTuple):
    """(ε, δ)-differential privacy of statistics, and how it was reached.

    Examples
    --------
    >>> Guarantee(1.0, 1e-6, 4.5, 1.0).total_scale
    4.5
    """

    epsilon: float
    delta: float
    scale: float  # standard deviation of the noise
    sensitivity: float  # the most that one instance adds, in Euclidean norm; `scale` is calibrated to it
    clip: float | None = None  # the norm that each instance's mean prediction is clipped to, where it is
    releases: int = 1  # how many sites' releases were added up, each of its own instances
    mechanism: str = MECHANISM
    neighbours: str = NEIGHBOURS

    @property
    def total_scale(self) -> float:
        """Standard deviation of the noise in the sum of all releases."""
        return self.scale * math.sqrt(self.releases)

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, δ = {self.delta:g}"

    @classmethod
    def from_header(cls, found: Any, where: str) -> Guarantee:
        """Read what a file says.

        Examples
        --------
        >>> Guarantee.from_header(Guarantee(1.0, 1e-6, 4.5, 1.0)._asdict(), "a.stats").epsilon
        1.0
        """
        if not isinstance(found, dict) or set(found) != set(cls._fields):
            raise InputError(f"{where}: found a broken guarantee of privacy, expected {', '.join(cls._fields)}")
        for name in ("epsilon", "delta", "scale", "sensitivity"):
            positive(found[name], f"{where}, {name}")
        if found["clip"] is not None:
            positive(found["clip"], f"{where}, clip")
        whole(found["releases"], f"{where}, releases", 1)
        for name, known in (("mechanism", MECHANISM), ("neighbours", NEIGHBOURS)):
            if found[name] != known:
                raise InputError(f"{where}, {name}: found {found[name]!r}, expected {known!r}")
        return cls(**found)
