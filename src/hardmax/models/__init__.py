"""Trained transformers as dynamical systems: layers of real models under the verbs of this library."""

from .installed import InstalledModel as InstalledModel
from .installed import installed_models as installed_models
from .layer import TransformerLayer as TransformerLayer
from .loading import load_transformer as load_transformer
from .random_weights import random_transformer as random_transformer
from .rules import ZeroAttention as ZeroAttention
from .rules import as_rule as as_rule
from .tokeniser import AbstractTokeniser as AbstractTokeniser
from .tokeniser import Tokenised as Tokenised
from .transformer import Transformer as Transformer
