"""Combine predictions of several multilabel models into a better label ranking.

The public names are listed in ``__init__.pyi``. Each is imported when it is first used
(SPEC 1 of scientific Python), so importing the package stays fast.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
