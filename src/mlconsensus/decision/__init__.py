"""From scores to label sets: thresholds, expected F1, risk control and calibration.

The names are listed in ``__init__.pyi``. Each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
