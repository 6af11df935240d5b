"""Tokens, matrices and time series to try things on: made by a named law, chosen to show something, or from a file."""

from .airfoil import TypicalSection as TypicalSection
from .airfoil import airfoil as airfoil
from .chaotic import chaotic_series as chaotic_series
from .chaotic import chaotic_systems as chaotic_systems
from .clustering import Configuration as Configuration
from .clustering import four_configurations as four_configurations
from .clustering import half_space_example as half_space_example
from .clustering import paper_configurations as paper_configurations
from .laws import LAWS as LAWS
from .laws import make_tokens as make_tokens
from .lorenz import lorenz63 as lorenz63
from .matrices import MATRICES as MATRICES
from .matrices import make_matrix as make_matrix
from .series import Series as Series
from .series_files import read_series as read_series
from .signals import sinusoids as sinusoids
from .spiral import spiral as spiral
from .wake import Wake as Wake
from .wake import cylinder_wake as cylinder_wake
