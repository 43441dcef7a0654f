from .diagnostics import Diagnostics, diagnose, examine, leave_one_model_out
from .explanations import Explanation, explain

__all__ = [
    "Diagnostics",
    "Explanation",
    "diagnose",
    "examine",
    "explain",
    "leave_one_model_out",
]
