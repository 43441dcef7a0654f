"""The paper's protocol and its tables."""

from .base_models import Settings
from .protocol import judge_claims, reproduce
from .render import as_json, as_markdown, as_text

__all__ = ["Settings", "as_json", "as_markdown", "as_text", "judge_claims", "reproduce"]
