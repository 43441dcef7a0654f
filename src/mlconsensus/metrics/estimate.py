"""An estimate with its standard error and interval."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate with its standard error and 90 % interval."""

    value: float
    standard_error: float
    low: float
    high: float
    # Number of gold instances that would have given the same standard error without
    # expected metrics; None: not an estimate from gold labels.
    effective_gold: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}–{self.high:.3f})"

    @property
    def is_significant(self) -> bool:
        """Whether the interval of a difference excludes 0."""
        return self.low > 0 or self.high < 0

    def format_difference(self) -> str:
        """Format a difference with its sign, and with ``*`` if it is significant."""
        mark = "*" if self.is_significant else " "
        return f"{self.value:+z.3f} ± {self.high - self.value:.3f}{mark}"

    def to_dict(self) -> dict[str, float]:
        """Return the estimate with the keys of the JSON output."""
        entries = {
            "value": self.value,
            "error": self.standard_error,
            "low": self.low,
            "high": self.high,
        }
        if self.effective_gold is not None:
            entries["worth"] = self.effective_gold

        return entries
