from .comparison import cross_fit

__all__ = [
    "cross_fit",
]
