"""Many layers: tokens taken through a layer repeatedly, along a flow, or to the limit of infinite depth.

The functions are exported by :mod:`hardmax`; this package exports the interfaces of rules and integrators. Each name is
imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .integrators import AbstractIntegrator as AbstractIntegrator
    from .integrators import FlowStep as FlowStep
    from .integrators import Heun as Heun
    from .integrators import ProjectedEuler as ProjectedEuler
    from .integrators import ResidualNormalise as ResidualNormalise
    from .integrators import RungeKutta4 as RungeKutta4
    from .keep_and_stop_rules import KeepRule as KeepRule
    from .keep_and_stop_rules import Moment as Moment
    from .keep_and_stop_rules import StopRule as StopRule

_MODULE_OF = {
    "AbstractIntegrator": "integrators",
    "FlowStep": "integrators",
    "Heun": "integrators",
    "KeepRule": "keep_and_stop_rules",
    "Moment": "keep_and_stop_rules",
    "ProjectedEuler": "integrators",
    "ResidualNormalise": "integrators",
    "RungeKutta4": "integrators",
    "StopRule": "keep_and_stop_rules",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
