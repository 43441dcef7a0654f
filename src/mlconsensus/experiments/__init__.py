"""The paper's protocol and its tables."""

from .claims import Judged, judge_claims
from .learners import LEARNERS
from .protocol import Figure, Results, reproduce
from .render import as_json, as_markdown, as_text
from .settings import Settings

__all__ = [
    "LEARNERS",
    "Figure",
    "Judged",
    "Results",
    "Settings",
    "as_json",
    "as_markdown",
    "as_text",
    "judge_claims",
    "reproduce",
]
