"""Inspect predictions without ground truth: agreement, flagged models, explanations.

The names are listed in ``__init__.pyi``. Each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
