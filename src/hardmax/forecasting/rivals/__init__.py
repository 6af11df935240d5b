"""Other people's forecasters behind our methods, each tuned on held-out rollouts within a given time.

They need the extra ``rivals``; persistence and the multilayer perceptron need nothing.
"""

from .echo_state import EchoState as EchoState
from .hodmd import HigherOrderDMD as HigherOrderDMD
from .perceptron import Perceptron as Perceptron
from .persistence import Persistence as Persistence
from .sindy import Sindy as Sindy
