"""Transformers as dynamical systems: tokens are points, layers are time.

>>> import hardmax as hm
>>> limit = hm.equilibrium([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5))
>>> limit.leaders, limit.follows
(array([0, 2]), array([0, 0, 2]))

Every public name is here, and the packages that hold more (``hm.datasets``, ``hm.figures``, ``hm.text`` …). Each is
imported when it is first used, so ``import hardmax`` costs nothing.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from ._moved import install as _install
from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import attention as attention
    from . import datasets as datasets
    from . import dynamics as dynamics
    from . import figures as figures
    from . import forecasting as forecasting
    from . import geometry as geometry
    from . import interpolation as interpolation
    from . import meanfield as meanfield
    from . import models as models
    from . import reproduce as reproduce
    from . import storage as storage
    from . import sweeps as sweeps
    from . import text as text
    from . import zoo as zoo
    from .attention.attention_layer import AttentionLayer as AttentionLayer
    from .attention.base import AbstractLayer as AbstractLayer
    from .attention.base import Block as Block
    from .attention.base import Context as Context
    from .attention.base import LayerSequence as LayerSequence
    from .attention.choice import Choice as Choice
    from .attention.feed_forward import FeedForwardLayer as FeedForwardLayer
    from .attention.heads import AbstractBias as AbstractBias
    from .attention.heads import Head as Head
    from .attention.heads import LinearBias as LinearBias
    from .attention.heads import TableBias as TableBias
    from .attention.index import LeaderIndex as LeaderIndex
    from .attention.layer import HardmaxLayer as HardmaxLayer
    from .attention.layer import SoftmaxLayer as SoftmaxLayer
    from .attention.masks import Mask as Mask
    from .attention.moves import AbstractMove as AbstractMove
    from .attention.moves import AbstractSteps as AbstractSteps
    from .attention.moves import ConvexStep as ConvexStep
    from .attention.moves import GeometricSteps as GeometricSteps
    from .attention.moves import ImplicitStep as ImplicitStep
    from .attention.moves import NoSkip as NoSkip
    from .attention.moves import PowerSteps as PowerSteps
    from .attention.moves import ResidualStep as ResidualStep
    from .attention.moves import SphereStep as SphereStep
    from .attention.norms import AbstractNorm as AbstractNorm
    from .attention.norms import LayerNorm as LayerNorm
    from .attention.norms import RmsNorm as RmsNorm
    from .attention.norms import UnitNorm as UnitNorm
    from .attention.torch_layers import from_torch as from_torch
    from .attention.weighting import AbstractWeighting as AbstractWeighting
    from .attention.weighting import DoublyStochastic as DoublyStochastic
    from .attention.weighting import Exponential as Exponential
    from .attention.weighting import Hardmax as Hardmax
    from .attention.weighting import Linear as Linear
    from .attention.weighting import Sigmoid as Sigmoid
    from .attention.weighting import Softmax as Softmax
    from .attention.weighting import TopK as TopK
    from .citations import citation as citation
    from .datasets.random_tokens import make_matrix as make_matrix
    from .datasets.random_tokens import make_tokens as make_tokens
    from .distributed import Processes as Processes
    from .distributed import processes as processes
    from .dynamics.assumptions import Assumptions as Assumptions
    from .dynamics.attention_flow import AttentionFlow as AttentionFlow
    from .dynamics.equilibrium import Equilibrium as Equilibrium
    from .dynamics.equilibrium import equilibrium as equilibrium
    from .dynamics.equilibrium_certificate import EquilibriumCertificate as EquilibriumCertificate
    from .dynamics.equilibrium_certificate import TokenFate as TokenFate
    from .dynamics.equilibrium_certificate import equilibrium_certificate as equilibrium_certificate
    from .dynamics.flows import AbstractFlow as AbstractFlow
    from .dynamics.flows import CallableFlow as CallableFlow
    from .dynamics.flows import EuclideanFlow as EuclideanFlow
    from .dynamics.integrator_steps import Adaptive as Adaptive
    from .dynamics.keep_and_stop_rules import Bound as Bound
    from .dynamics.keep_and_stop_rules import Decided as Decided
    from .dynamics.keep_and_stop_rules import Every as Every
    from .dynamics.leadership import Leadership as Leadership
    from .dynamics.leadership import Ties as Ties
    from .dynamics.leadership import Undecided as Undecided
    from .dynamics.modified_flows import MomentumFlow as MomentumFlow
    from .dynamics.modified_flows import NoisyFlow as NoisyFlow
    from .dynamics.modified_flows import TimeDependentFlow as TimeDependentFlow
    from .dynamics.simulate import choose as choose
    from .dynamics.simulate import simulate as simulate
    from .dynamics.trajectory import Trajectory as Trajectory
    from .errors import FileError as FileError
    from .errors import HardmaxError as HardmaxError
    from .errors import InputError as InputError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import ProcessError as ProcessError
    from .figures.clustering import draw_attention_geometry as draw_attention_geometry
    from .figures.save import save_figure as save_figure
    from .figures.tokens import animate_tokens as animate_tokens
    from .figures.tokens import draw as draw
    from .figures.tokens import draw_panels as draw_panels
    from .figures.tokens import draw_tokens as draw_tokens
    from .forecasting.diagnostics.backtest import Backtest as Backtest
    from .forecasting.forecast import Forecast as Forecast
    from .forecasting.forecaster import TimeDelayedTransformer as TimeDelayedTransformer
    from .forecasting.forecaster import load_forecaster as load_forecaster
    from .geometry.clusters import Cluster as Cluster
    from .geometry.clusters import Clusters as Clusters
    from .geometry.clusters import clusters as clusters
    from .geometry.findings import Finding as Finding
    from .geometry.findings import TheoremReport as TheoremReport
    from .geometry.leaders import Attention as Attention
    from .geometry.leaders import Leaders as Leaders
    from .geometry.leaders import attention_at as attention_at
    from .geometry.leaders import leaders as leaders
    from .geometry.theorem import check_assumptions as check_assumptions
    from .interpolation.constructions.interpolate import classify_exactly as classify_exactly
    from .interpolation.constructions.interpolate import interpolate as interpolate
    from .interpolation.evaluation.certificate import Certificate as Certificate
    from .interpolation.evaluation.certificate import verify as verify
    from .interpolation.transformer import ExactTransformer as ExactTransformer
    from .meanfield.density import SphereDensity as SphereDensity
    from .meanfield.density import axial_density as axial_density
    from .meanfield.density import circle_density as circle_density
    from .meanfield.density_flow import DensityRun as DensityRun
    from .meanfield.density_flow import simulate_density as simulate_density
    from .meanfield.energy import Lyapunov as Lyapunov
    from .meanfield.energy import lyapunov as lyapunov
    from .meanfield.exact import zero_temperature_solution as zero_temperature_solution
    from .meanfield.flow import SphereFlow as SphereFlow
    from .meanfield.flow import SphereHardmaxFlow as SphereHardmaxFlow
    from .meanfield.laplace import check_laplace as check_laplace
    from .meanfield.laplace import laplace_error as laplace_error
    from .meanfield.limit import LowTemperatureLimit as LowTemperatureLimit
    from .meanfield.limit import low_temperature_limit as low_temperature_limit
    from .meanfield.measures import FewTokensWarning as FewTokensWarning
    from .meanfield.measures import Measure as Measure
    from .meanfield.measures import Occupancy as Occupancy
    from .meanfield.measures import circle_quantiles as circle_quantiles
    from .meanfield.measures import fibonacci_sphere as fibonacci_sphere
    from .meanfield.measures import kernel_occupancy as kernel_occupancy
    from .meanfield.measures import sphere_quadrature as sphere_quadrature
    from .meanfield.measures import sphere_sample as sphere_sample
    from .meanfield.phases import Phases as Phases
    from .meanfield.phases import phases as phases
    from .meanfield.rates import Rates as Rates
    from .meanfield.rates import rates as rates
    from .meanfield.spectrum import NoLimit as NoLimit
    from .meanfield.spectrum import NoLimitError as NoLimitError
    from .meanfield.theorem import FlowTheorem as FlowTheorem
    from .meanfield.theorem import check_theorem as check_theorem
    from .meanfield.transport import Transport as Transport
    from .meanfield.transport import wasserstein as wasserstein
    from .models.layer import TransformerLayer as TransformerLayer
    from .models.loading import load_transformer as load_transformer
    from .models.probe.interventions import Intervention as Intervention
    from .models.probe.measure import probe as probe
    from .models.probe.report import ProbeReport as ProbeReport
    from .models.probe.states import continue_depth as continue_depth
    from .models.transformer import Transformer as Transformer
    from .outcomes import Ending as Ending
    from .outcomes import Outcome as Outcome
    from .polytopes import Polytope as Polytope
    from .storage.trajectories import ToDisk as ToDisk
    from .storage.trajectories import load as load
    from .storage.trajectories import save as save
    from .sweeps import read_sweep as read_sweep
    from .sweeps import sweep as sweep
    from .sweeps.phase_diagram import PhaseDiagram as PhaseDiagram
    from .sweeps.phase_diagram import phase_diagram as phase_diagram
    from .text.classifier import LeaderClassifier as LeaderClassifier
    from .text.explaining.explanation import Explanation as Explanation

_MODULE_OF = {
    "AbstractBias": "attention.heads",
    "AbstractFlow": "dynamics.flows",
    "AbstractLayer": "attention.base",
    "AbstractMove": "attention.moves",
    "AbstractNorm": "attention.norms",
    "AbstractSteps": "attention.moves",
    "AbstractWeighting": "attention.weighting",
    "Adaptive": "dynamics.integrator_steps",
    "Assumptions": "dynamics.assumptions",
    "Attention": "geometry.leaders",
    "AttentionFlow": "dynamics.attention_flow",
    "AttentionLayer": "attention.attention_layer",
    "Backtest": "forecasting.diagnostics.backtest",
    "Block": "attention.base",
    "Bound": "dynamics.keep_and_stop_rules",
    "CallableFlow": "dynamics.flows",
    "Certificate": "interpolation.evaluation.certificate",
    "Choice": "attention.choice",
    "Cluster": "geometry.clusters",
    "Clusters": "geometry.clusters",
    "Context": "attention.base",
    "ConvexStep": "attention.moves",
    "Decided": "dynamics.keep_and_stop_rules",
    "DensityRun": "meanfield.density_flow",
    "DoublyStochastic": "attention.weighting",
    "Ending": "outcomes",
    "Equilibrium": "dynamics.equilibrium",
    "EquilibriumCertificate": "dynamics.equilibrium_certificate",
    "EuclideanFlow": "dynamics.flows",
    "Every": "dynamics.keep_and_stop_rules",
    "ExactTransformer": "interpolation.transformer",
    "Explanation": "text.explaining.explanation",
    "Exponential": "attention.weighting",
    "FeedForwardLayer": "attention.feed_forward",
    "FewTokensWarning": "meanfield.measures",
    "FlowTheorem": "meanfield.theorem",
    "FileError": "errors",
    "Finding": "geometry.findings",
    "Forecast": "forecasting.forecast",
    "GeometricSteps": "attention.moves",
    "Hardmax": "attention.weighting",
    "HardmaxError": "errors",
    "HardmaxLayer": "attention.layer",
    "Head": "attention.heads",
    "ImplicitStep": "attention.moves",
    "InputError": "errors",
    "Intervention": "models.probe.interventions",
    "LayerNorm": "attention.norms",
    "LayerSequence": "attention.base",
    "LeaderClassifier": "text.classifier",
    "LeaderIndex": "attention.index",
    "Leaders": "geometry.leaders",
    "Leadership": "dynamics.leadership",
    "Linear": "attention.weighting",
    "LinearBias": "attention.heads",
    "LowTemperatureLimit": "meanfield.limit",
    "Lyapunov": "meanfield.energy",
    "Mask": "attention.masks",
    "Measure": "meanfield.measures",
    "MissingExtraError": "errors",
    "MomentumFlow": "dynamics.modified_flows",
    "NoLimit": "meanfield.spectrum",
    "NoLimitError": "meanfield.spectrum",
    "NoSkip": "attention.moves",
    "NoisyFlow": "dynamics.modified_flows",
    "Occupancy": "meanfield.measures",
    "Outcome": "outcomes",
    "PhaseDiagram": "sweeps.phase_diagram",
    "Phases": "meanfield.phases",
    "Polytope": "polytopes",
    "PowerSteps": "attention.moves",
    "ProbeReport": "models.probe.report",
    "ProcessError": "errors",
    "Processes": "distributed",
    "Rates": "meanfield.rates",
    "ResidualStep": "attention.moves",
    "RmsNorm": "attention.norms",
    "Sigmoid": "attention.weighting",
    "Softmax": "attention.weighting",
    "SoftmaxLayer": "attention.layer",
    "SphereDensity": "meanfield.density",
    "SphereFlow": "meanfield.flow",
    "SphereHardmaxFlow": "meanfield.flow",
    "SphereStep": "attention.moves",
    "TableBias": "attention.heads",
    "TheoremReport": "geometry.findings",
    "Ties": "dynamics.leadership",
    "TimeDelayedTransformer": "forecasting.forecaster",
    "TimeDependentFlow": "dynamics.modified_flows",
    "ToDisk": "storage.trajectories",
    "TokenFate": "dynamics.equilibrium_certificate",
    "TopK": "attention.weighting",
    "Trajectory": "dynamics.trajectory",
    "Transformer": "models.transformer",
    "TransformerLayer": "models.layer",
    "Transport": "meanfield.transport",
    "Undecided": "dynamics.leadership",
    "UnitNorm": "attention.norms",
    "animate_tokens": "figures.tokens",
    "attention_at": "geometry.leaders",
    "axial_density": "meanfield.density",
    "check_assumptions": "geometry.theorem",
    "check_laplace": "meanfield.laplace",
    "check_theorem": "meanfield.theorem",
    "choose": "dynamics.simulate",
    "circle_density": "meanfield.density",
    "circle_quantiles": "meanfield.measures",
    "citation": "citations",
    "classify_exactly": "interpolation.constructions.interpolate",
    "clusters": "geometry.clusters",
    "continue_depth": "models.probe.states",
    "draw": "figures.tokens",
    "draw_attention_geometry": "figures.clustering",
    "draw_panels": "figures.tokens",
    "draw_tokens": "figures.tokens",
    "equilibrium": "dynamics.equilibrium",
    "equilibrium_certificate": "dynamics.equilibrium_certificate",
    "fibonacci_sphere": "meanfield.measures",
    "from_torch": "attention.torch_layers",
    "interpolate": "interpolation.constructions.interpolate",
    "kernel_occupancy": "meanfield.measures",
    "leaders": "geometry.leaders",
    "load": "storage.trajectories",
    "load_forecaster": "forecasting.forecaster",
    "load_transformer": "models.loading",
    "laplace_error": "meanfield.laplace",
    "low_temperature_limit": "meanfield.limit",
    "lyapunov": "meanfield.energy",
    "make_matrix": "datasets.random_tokens",
    "make_tokens": "datasets.random_tokens",
    "phase_diagram": "sweeps.phase_diagram",
    "phases": "meanfield.phases",
    "probe": "models.probe.measure",
    "processes": "distributed",
    "rates": "meanfield.rates",
    "read_sweep": "sweeps",
    "save": "storage.trajectories",
    "save_figure": "figures.save",
    "simulate": "dynamics.simulate",
    "simulate_density": "meanfield.density_flow",
    "sphere_quadrature": "meanfield.measures",
    "sphere_sample": "meanfield.measures",
    "sweep": "sweeps",
    "verify": "interpolation.evaluation.certificate",
    "wasserstein": "meanfield.transport",
    "zero_temperature_solution": "meanfield.exact",
}

# Packages that are reached as attributes too: hm.datasets.four_configurations().
_PACKAGES = (
    "attention",
    "datasets",
    "dynamics",
    "figures",
    "forecasting",
    "geometry",
    "interpolation",
    "meanfield",
    "models",
    "reproduce",
    "storage",
    "sweeps",
    "text",
    "zoo",
)

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return _import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


_install()


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
