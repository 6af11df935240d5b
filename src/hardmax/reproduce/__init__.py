"""Figures and tables of the papers, made again and written as one page each.

Each function is imported when it is first used, so that one paper does not import what another needs.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .all_papers import reproduce_all as reproduce_all
    from .clustering import reproduce_clustering as reproduce_clustering
    from .forecasting import reproduce_forecasting as reproduce_forecasting
    from .forecasting_study import draw_forecasting_summary as draw_forecasting_summary
    from .forecasting_study import run_forecasting_study as run_forecasting_study
    from .forecasting_study import write_forecasting_summary as write_forecasting_summary
    from .forecasting_study_cases import study_systems as study_systems
    from .interpolation import reproduce_interpolation as reproduce_interpolation
    from .meanfield import reproduce_meanfield as reproduce_meanfield
    from .recorded import recorded_runs as recorded_runs
    from .sentiment import reproduce_sentiment as reproduce_sentiment
    from .tour import take_tour as take_tour

_MODULE_OF = {
    "draw_forecasting_summary": ".forecasting_study",
    "recorded_runs": ".recorded",
    "reproduce_all": ".all_papers",
    "reproduce_clustering": ".clustering",
    "reproduce_forecasting": ".forecasting",
    "reproduce_interpolation": ".interpolation",
    "reproduce_meanfield": ".meanfield",
    "reproduce_sentiment": ".sentiment",
    "run_forecasting_study": ".forecasting_study",
    "study_systems": ".forecasting_study_cases",
    "take_tour": ".tour",
    "write_forecasting_summary": ".forecasting_study",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(_MODULE_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
