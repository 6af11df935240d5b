"""Trained transformers as dynamical systems: layers of real models under the verbs of this library."""

from .attention_targets import AttentionTargets as AttentionTargets
from .attention_targets import attention_targets as attention_targets
from .layer import TransformerLayer as TransformerLayer
from .loading import InstalledModel as InstalledModel
from .loading import installed_models as installed_models
from .loading import load_transformer as load_transformer
from .probe.interventions import Intervention as Intervention
from .probe.report import ProbeReport as ProbeReport
from .probe.report import load_report as load_report
from .probe.states import continue_depth as continue_depth
from .probe.states import cosine_clusters as cosine_clusters
from .random_weights import random_transformer as random_transformer
from .rules import ZeroAttention as ZeroAttention
from .rules import as_rule as as_rule
from .tokenisers import AbstractTokeniser as AbstractTokeniser
from .tokenisers import Tokenised as Tokenised
from .transformer import Transformer as Transformer
