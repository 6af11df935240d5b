"""Tokens as samples of a measure on the sphere: attention flows, their low-temperature limit, and phases of a run.

The functions are exported by :mod:`hardmax`; this package exports the types of fields of their results. Each name is
imported when it is first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .laplace import BallMasses as BallMasses
    from .laplace import LaplaceCheck as LaplaceCheck
    from .limit import Orbit as Orbit
    from .phases import Fit as Fit
    from .phases import Terminal as Terminal
    from .spectrum import Leading as Leading
    from .terminal import TerminalPhase as TerminalPhase
    from .theorem import FlowAssumptions as FlowAssumptions
    from .theorem import FlowVerdict as FlowVerdict

_MODULE_OF = {
    "BallMasses": "laplace",
    "Fit": "phases",
    "FlowAssumptions": "theorem",
    "FlowVerdict": "theorem",
    "LaplaceCheck": "laplace",
    "Leading": "spectrum",
    "Orbit": "limit",
    "Terminal": "phases",
    "TerminalPhase": "terminal",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
