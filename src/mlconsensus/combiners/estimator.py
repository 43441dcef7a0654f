"""The conventions of scikit-learn's estimators: parameters, copies, tags and output.

scikit-learn's own base classes take longer to import than a small consensus takes to
compute. Its functions, such as ``clone``, ``GridSearchCV`` and pipelines, ask for the
methods of `Estimator` and not for a base class.
"""

import inspect
import sys
from copy import deepcopy
from typing import TYPE_CHECKING, Literal, Self

from ..errors import InputError, one_of

if TYPE_CHECKING:
    from sklearn.utils import Tags

# What `transform` returns: the default is an array.
Container = Literal["default", "pandas"]


class Estimator:
    """A transformer with parameters, as scikit-learn's `BaseEstimator`.

    A subclass lists its parameters in ``__init__``, which stores each under its name
    and does nothing else.
    """

    # scikit-learn copies and reads this attribute.
    _sklearn_output_config: dict[str, str | None]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Ignored: combiners do not contain estimators.

        Returns
        -------
        dict of str to object
            Value of each parameter by its name.
        """
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in sorted(names)}

    def set_params(self, **parameters: object) -> Self:
        """Set some parameters.

        Parameters
        ----------
        **parameters : object
            New values by name.

        Returns
        -------
        self : object
        """
        names = list(self.get_params())
        for name, value in parameters.items():
            if name not in names:
                raise InputError(
                    where=type(self).__name__,
                    found=f"the parameter {name!r}",
                    expected=f"one of {', '.join(names)}",
                )
            setattr(self, name, value)
        return self

    def make_unfitted_copy(self) -> Self:
        """Return a new estimator with the same parameters, which is not fitted.

        Returns
        -------
        Estimator
        """
        parameters = {}
        for name, value in self.get_params().items():
            parameters[name] = deepcopy(value)

        copy = type(self)(**parameters)
        if hasattr(self, "_sklearn_output_config"):
            copy._sklearn_output_config = dict(self._sklearn_output_config)
        return copy

    def set_output(self, *, transform: Container | None = None) -> Self:
        """Choose what `transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas"}, default=None
            ``"default"``: an array. ``"pandas"``: a DataFrame with the names of
            instances and labels. None changes nothing.

        Returns
        -------
        self : object
        """
        if transform is not None:
            one_of(transform, ("default", "pandas"), "transform")
            self._sklearn_output_config = {"transform": transform}
        return self

    def _returns_frame(self) -> bool:
        """Return whether `transform` is to return a DataFrame."""
        container: object = None
        if hasattr(self, "_sklearn_output_config"):
            container = self._sklearn_output_config["transform"]
        elif "sklearn" in sys.modules:
            # The user's setting for all transformers: sklearn.set_config.
            from sklearn import get_config

            container = get_config()["transform_output"]
        return container == "pandas"

    def check_is_fitted(self) -> None:
        """Raise scikit-learn's `NotFittedError` if `fit` was not called."""
        if hasattr(self, "models_"):
            return

        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(self).__name__} is not fitted yet. Call 'fit' first."
        )

    def __sklearn_tags__(self) -> "Tags":
        """Return what scikit-learn may assume about this estimator."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(
                two_d_array=False, three_d_array=True, sparse=True, allow_nan=True
            ),
        )

    def __repr__(self) -> str:
        changed = []
        parameters = inspect.signature(type(self)).parameters
        for name, value in self.get_params().items():
            if repr(value) != repr(parameters[name].default):
                changed.append(f"{name}={value!r}")

        return f"{type(self).__name__}({', '.join(changed)})"
