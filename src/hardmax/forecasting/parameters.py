"""The parameters of an estimator as scikit-learn asks for them, without importing it.

Forecasting from a saved model needs NumPy only, so the estimator cannot inherit from ``sklearn.base.BaseEstimator``;
``sklearn.clone`` and whatever else goes by ``get_params`` works with this class as well.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from ..errors import InputError


class Parameters:
    """Base of estimators whose ``__init__`` stores each of its arguments under its own name and does nothing else."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that the estimator was made with, by name; ``deep`` makes no difference here."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name; they count from the next call on."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise InputError(name, repr(value), "is no parameter", f"choose among {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
