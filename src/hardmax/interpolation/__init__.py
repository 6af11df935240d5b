"""Compile a data set into a transformer with rational weights, and prove that it does what it claims."""

from .blocks import Block as Block
from .blocks import Neuron as Neuron
from .blocks import OuterProduct as OuterProduct
from .certificate import Certificate as Certificate
from .certificate import Failure as Failure
from .classification import classify_exactly as classify_exactly
from .construction import interpolate as interpolate
from .counts import Counts as Counts
from .data import DataSet as DataSet
from .network import ExactTransformer as ExactTransformer
from .verification import verify as verify
