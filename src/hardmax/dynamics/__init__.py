"""Many layers: tokens taken through a layer repeatedly, along a flow, or to the limit of infinite depth.

The functions are exported by :mod:`hardmax`; this package exports integrators, and the interfaces of rules,
integrators and spaces. Each name is imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .integrator_steps import AbstractIntegrator as AbstractIntegrator
    from .integrator_steps import AbstractStochasticIntegrator as AbstractStochasticIntegrator
    from .integrator_steps import EulerMaruyama as EulerMaruyama
    from .integrator_steps import Heun as Heun
    from .integrator_steps import NoiseSplitting as NoiseSplitting
    from .integrator_steps import ProjectedEuler as ProjectedEuler
    from .integrator_steps import ResidualNormalise as ResidualNormalise
    from .integrator_steps import RungeKutta4 as RungeKutta4
    from .integrator_steps import StochasticHeun as StochasticHeun
    from .integrators import FlowStep as FlowStep
    from .keep_and_stop_rules import KeepRule as KeepRule
    from .keep_and_stop_rules import Moment as Moment
    from .keep_and_stop_rules import StopRule as StopRule
    from .spaces import AbstractSpace as AbstractSpace
    from .spaces import EuclideanSpace as EuclideanSpace
    from .spaces import UnitSphere as UnitSphere

_MODULE_OF = {
    "AbstractIntegrator": "integrator_steps",
    "AbstractSpace": "spaces",
    "AbstractStochasticIntegrator": "integrator_steps",
    "EuclideanSpace": "spaces",
    "EulerMaruyama": "integrator_steps",
    "FlowStep": "integrators",
    "Heun": "integrator_steps",
    "KeepRule": "keep_and_stop_rules",
    "Moment": "keep_and_stop_rules",
    "NoiseSplitting": "integrator_steps",
    "ProjectedEuler": "integrator_steps",
    "ResidualNormalise": "integrator_steps",
    "RungeKutta4": "integrator_steps",
    "StochasticHeun": "integrator_steps",
    "StopRule": "keep_and_stop_rules",
    "UnitSphere": "spaces",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
