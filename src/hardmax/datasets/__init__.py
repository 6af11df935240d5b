"""Tokens and matrices to try things on: made by a named law, or chosen to show something."""

from .clustering import Configuration as Configuration
from .clustering import four_configurations as four_configurations
from .clustering import half_space_example as half_space_example
from .laws import LAWS as LAWS
from .laws import make_tokens as make_tokens
from .matrices import MATRICES as MATRICES
from .matrices import make_matrix as make_matrix
