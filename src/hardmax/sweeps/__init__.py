"""Grids of runs: one row per run, written as it finishes, resumed where it stopped."""

from .grid import read_sweep as read_sweep
from .grid import sweep as sweep
from .phase_diagram import PhaseDiagram as PhaseDiagram
from .phase_diagram import phase_diagram as phase_diagram
from .spec import Spec as Spec
from .spec import read_spec as read_spec
