"""Compile a data set into a transformer with rational weights, and prove that it does what it claims."""

from .blocks import Block as Block
from .blocks import Neuron as Neuron
from .blocks import OuterProduct as OuterProduct
from .constructions.interpolate import classify_exactly as classify_exactly
from .constructions.interpolate import interpolate as interpolate
from .data import DataSet as DataSet
from .evaluation.certificate import Certificate as Certificate
from .evaluation.certificate import Failure as Failure
from .evaluation.counts import Counts as Counts
from .evaluation.verification import verify as verify
from .network import ExactTransformer as ExactTransformer
