"""Tokens, matrices and time series to try things on: made by a named law, chosen to show something, or from a file."""

from .airfoil import TypicalSection as TypicalSection
from .airfoil import airfoil as airfoil
from .chaotic import chaotic_series as chaotic_series
from .chaotic import chaotic_systems as chaotic_systems
from .chaotic import lorenz63 as lorenz63
from .configurations import Configuration as Configuration
from .configurations import four_configurations as four_configurations
from .configurations import half_space_example as half_space_example
from .configurations import paper_configurations as paper_configurations
from .cylinder_wake import Wake as Wake
from .cylinder_wake import cylinder_wake as cylinder_wake
from .random_tokens import LAWS as LAWS
from .random_tokens import MATRICES as MATRICES
from .random_tokens import make_matrix as make_matrix
from .random_tokens import make_tokens as make_tokens
from .series import Series as Series
from .series_files import read_series as read_series
from .signals import sinusoids as sinusoids
from .signals import spiral as spiral
