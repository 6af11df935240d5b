"""Trained transformers as dynamical systems: layers of real models under the verbs of this library."""

from .attention_targets import AttentionTargets as AttentionTargets
from .attention_targets import attention_targets as attention_targets
from .layer import TransformerLayer as TransformerLayer
from .random_weights import random_transformer as random_transformer
from .rules import ZeroAttention as ZeroAttention
from .rules import as_rule as as_rule
from .tokeniser import AbstractTokeniser as AbstractTokeniser
from .tokeniser import Tokenised as Tokenised
from .transformer import Transformer as Transformer
