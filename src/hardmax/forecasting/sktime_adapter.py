"""The forecaster with the interface of sktime, where that package is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError
from .forecaster import TimeDelayedTransformer

_INSTALLED = find_spec("sktime") is not None
_Base: Any = import_module("sktime.forecasting.base").BaseForecaster if _INSTALLED else object


class SktimeForecaster(_Base):  # type: ignore[misc]
    """The time-delayed transformer as a forecaster of sktime, with intervals and quantiles.

    Parameters
    ----------
    estimator
        A :class:`~hardmax.TimeDelayedTransformer` with the settings; None takes its defaults. Its parameters are
        reached by ``set_params(estimator__delays=12)``.

    Examples
    --------
    ``sktime_forecaster(hm.TimeDelayedTransformer(random_state=0)).fit(y, fh=[1, 2, 3]).predict_interval(coverage=0.9)``
    """

    _tags = {  # noqa: RUF012 (the name and the kind that sktime asks for)
        "y_inner_mtype": "pd.DataFrame",
        "X_inner_mtype": "pd.DataFrame",
        "scitype:y": "both",
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:insample": False,
        "capability:missing_values": False,
        "requires-fh-in-fit": False,
        "property:randomness": "derandomized",
    }

    def __init__(self, estimator: TimeDelayedTransformer | None = None) -> None:
        if not _INSTALLED:
            raise MissingExtraError("sktime", "sktime", "the interface of sktime")
        self.estimator = estimator
        super().__init__()

    def _fit(self, y: Any, X: Any, fh: Any) -> SktimeForecaster:
        given = TimeDelayedTransformer() if self.estimator is None else self.estimator
        self.estimator_ = TimeDelayedTransformer(**given.get_params())
        self._columns = y.columns
        self.estimator_.fit(y, u=None if X is None else X.to_numpy())
        return self

    def _ahead(self, fh: Any, X: Any) -> tuple[Any, np.ndarray, Any]:
        """Forecast up to the last step asked for, the places of the steps in it, and their index."""
        relative = np.asarray(fh.to_relative(self.cutoff).to_pandas(), dtype=int)
        if (relative < 1).any():
            raise InputError("fh", relative.tolist(), "must lie after the record", "ask for steps from 1 on")
        steps = int(relative.max())
        u = None if X is None else X.to_numpy()
        if u is not None and len(u) < steps:
            raise InputError("X", f"{len(u)} rows", f"must hold the inputs of all {steps} steps", "pass every step")
        index = fh.to_absolute_index(self.cutoff)
        return self.estimator_.forecast(steps, u=None if u is None else u[:steps]), relative - 1, index

    def _predict(self, fh: Any, X: Any) -> Any:
        import pandas as pd

        ahead, places, index = self._ahead(fh, X)
        return pd.DataFrame(ahead.values[places], index=index, columns=self._columns)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> Any:
        import pandas as pd

        ahead, places, index = self._ahead(fh, X)
        found = ahead.quantiles(alpha)[:, places]
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return pd.DataFrame(found.transpose(1, 2, 0).reshape(len(places), -1), index=index, columns=columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for the test suite of sktime.

        Parameters
        ----------
        parameter_set
            Not used.

        Returns
        -------
        list
            Two sets of parameters.
        """
        quick: dict[str, Any] = {"restarts": 1, "seconds": 0.5, "random_state": 0, "progress": False}
        return [{"estimator": TimeDelayedTransformer(2, **quick)}, {"estimator": TimeDelayedTransformer(3, **quick)}]
