"""Forecasters that the time-delayed transformer is compared with.

They need the extra ``rivals``; persistence and the multilayer perceptron need nothing.
"""

from .baselines import HigherOrderDMD as HigherOrderDMD
from .baselines import Perceptron as Perceptron
from .baselines import Persistence as Persistence
from .baselines import Sindy as Sindy
from .echo_state import EchoState as EchoState
