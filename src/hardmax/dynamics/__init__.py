"""Many layers: tokens taken through a layer repeatedly, along a flow, or to the limit of infinite depth.

The functions are exported by :mod:`hardmax`; this package exports integrators, and the interfaces of rules,
integrators and spaces. Each name is imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .integrators import FlowStep as FlowStep
    from .keep_and_stop_rules import KeepRule as KeepRule
    from .keep_and_stop_rules import Moment as Moment
    from .keep_and_stop_rules import StopRule as StopRule
    from .runge_kutta import AbstractIntegrator as AbstractIntegrator
    from .runge_kutta import Heun as Heun
    from .runge_kutta import ProjectedEuler as ProjectedEuler
    from .runge_kutta import ResidualNormalise as ResidualNormalise
    from .runge_kutta import RungeKutta4 as RungeKutta4
    from .spaces import AbstractSpace as AbstractSpace
    from .spaces import EuclideanSpace as EuclideanSpace
    from .spaces import UnitSphere as UnitSphere
    from .stochastic_integrators import AbstractStochasticIntegrator as AbstractStochasticIntegrator
    from .stochastic_integrators import EulerMaruyama as EulerMaruyama
    from .stochastic_integrators import NoiseSplitting as NoiseSplitting
    from .stochastic_integrators import StochasticHeun as StochasticHeun

_MODULE_OF = {
    "AbstractIntegrator": "runge_kutta",
    "AbstractSpace": "spaces",
    "AbstractStochasticIntegrator": "stochastic_integrators",
    "EuclideanSpace": "spaces",
    "EulerMaruyama": "stochastic_integrators",
    "FlowStep": "integrators",
    "Heun": "runge_kutta",
    "KeepRule": "keep_and_stop_rules",
    "Moment": "keep_and_stop_rules",
    "NoiseSplitting": "stochastic_integrators",
    "ProjectedEuler": "runge_kutta",
    "ResidualNormalise": "runge_kutta",
    "RungeKutta4": "runge_kutta",
    "StochasticHeun": "stochastic_integrators",
    "StopRule": "keep_and_stop_rules",
    "UnitSphere": "spaces",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
