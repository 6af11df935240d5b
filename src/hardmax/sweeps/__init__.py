"""A grid of runs: one row a run, written as it finishes, resumed where it stopped."""

from .grid import read_sweep as read_sweep
from .grid import sweep as sweep
