from .diagnostics import Diagnostics, diagnose, examine, leave_one_model_out
from .explanations import Explanation, explain
from .reasons import MethodReason, describe_method

__all__ = [
    "Diagnostics",
    "Explanation",
    "MethodReason",
    "describe_method",
    "diagnose",
    "examine",
    "explain",
    "leave_one_model_out",
]
