"""Forecasts of dynamical systems from delay windows, with baselines, backtests and diagnostics.

Each name is imported when it is first used, so that forecasting from a saved model does not import torch.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .data.delay_windows import lag_spacing as lag_spacing
    from .diagnostics.ablation import Ablation as Ablation
    from .diagnostics.ablation import AblationRow as AblationRow
    from .diagnostics.backtest import Backtest as Backtest
    from .diagnostics.backtest import BacktestRow as BacktestRow
    from .diagnostics.report import Report as Report
    from .diagnostics.skill import Comparison as Comparison
    from .diagnostics.skill import Interval as Interval
    from .diagnostics.skill import compare as compare
    from .diagnostics.skill import confidence as confidence
    from .diagnostics.skill import error_curves as error_curves
    from .diagnostics.skill import histogram_distance as histogram_distance
    from .diagnostics.skill import mean_ranks as mean_ranks
    from .diagnostics.skill import spectrum_distance as spectrum_distance
    from .diagnostics.skill import valid_times as valid_times
    from .diagnostics.spectrum import LagAttention as LagAttention
    from .diagnostics.spectrum import Spectrum as Spectrum
    from .error_growth import ErrorGrowth as ErrorGrowth
    from .forecast import Band as Band
    from .forecast import ErrorDistribution as ErrorDistribution
    from .forecast import Forecast as Forecast
    from .forecaster import TimeDelayedTransformer as TimeDelayedTransformer
    from .forecaster import load_forecaster as load_forecaster
    from .learned import NotFittedError as NotFittedError
    from .models.baselines import Analogue as Analogue
    from .models.baselines import HigherOrderDMD as HigherOrderDMD
    from .models.baselines import Mean as Mean
    from .models.baselines import Perceptron as Perceptron
    from .models.baselines import Persistence as Persistence
    from .models.baselines import SeasonalNaive as SeasonalNaive
    from .models.baselines import Sindy as Sindy
    from .models.baselines import find_season as find_season
    from .models.echo_state import EchoState as EchoState
    from .models.ng_rc import NextGenerationReservoir as NextGenerationReservoir
    from .models.published import fit_paper as fit_paper
    from .models.published_layer import PublishedLayer as PublishedLayer
    from .models.published_layer import published_layer_from_td_dmd as published_layer_from_td_dmd
    from .models.td_dmd import TimeDelayedDMD as TimeDelayedDMD
    from .online import Drift as Drift
    from .protocol import AbstractForecaster as AbstractForecaster
    from .rollout import Fade as Fade
    from .settings import Settings as Settings
    from .several_series import FittedSeries as FittedSeries
    from .several_series import fit_each as fit_each
    from .several_series import sktime_forecaster as sktime_forecaster

_MODULE_OF = {
    "Ablation": "diagnostics.ablation",
    "AblationRow": "diagnostics.ablation",
    "AbstractForecaster": "protocol",
    "Analogue": "models.baselines",
    "Backtest": "diagnostics.backtest",
    "BacktestRow": "diagnostics.backtest",
    "Band": "forecast",
    "Comparison": "diagnostics.skill",
    "Drift": "online",
    "EchoState": "models.echo_state",
    "ErrorDistribution": "forecast",
    "ErrorGrowth": "error_growth",
    "Fade": "rollout",
    "FittedSeries": "several_series",
    "Forecast": "forecast",
    "HigherOrderDMD": "models.baselines",
    "Interval": "diagnostics.skill",
    "LagAttention": "diagnostics.spectrum",
    "Mean": "models.baselines",
    "NextGenerationReservoir": "models.ng_rc",
    "NotFittedError": "learned",
    "Perceptron": "models.baselines",
    "Persistence": "models.baselines",
    "PublishedLayer": "models.published_layer",
    "Report": "diagnostics.report",
    "SeasonalNaive": "models.baselines",
    "Settings": "settings",
    "Sindy": "models.baselines",
    "Spectrum": "diagnostics.spectrum",
    "TimeDelayedDMD": "models.td_dmd",
    "TimeDelayedTransformer": "forecaster",
    "compare": "diagnostics.skill",
    "confidence": "diagnostics.skill",
    "error_curves": "diagnostics.skill",
    "find_season": "models.baselines",
    "fit_each": "several_series",
    "fit_paper": "models.published",
    "histogram_distance": "diagnostics.skill",
    "lag_spacing": "data.delay_windows",
    "load_forecaster": "forecaster",
    "mean_ranks": "diagnostics.skill",
    "sktime_forecaster": "several_series",
    "published_layer_from_td_dmd": "models.published_layer",
    "spectrum_distance": "diagnostics.skill",
    "valid_times": "diagnostics.skill",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
