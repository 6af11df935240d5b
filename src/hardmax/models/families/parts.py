"""Parts that several architectures share: norms, biases, activations, and the result of building a model."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...errors import FileError
from ..layer import Norm, TransformerLayer
from ..stored import Settings, Weights
from ..transformer import Embedding

# More layers than any published model has; a bound on time, since layers with shared weights take no memory.
MOST_LAYERS = 4096
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


@dataclass(frozen=True, eq=False)
class Built:
    """Layers of a model with what comes before and after them."""

    embedding: Embedding
    layers: tuple[TransformerLayer, ...]
    longest: int
    """Largest number of tokens of a text."""
    final_norm: Norm | None = None
    unembedding: torch.Tensor | None = None


def layer_norm(weights: Weights, name: str, d: int, epsilon: float) -> Norm:
    """Layer normalisation with its gain and bias."""
    return Norm("layer", weights.take(f"{name}.weight", d), weights.take(f"{name}.bias", d), epsilon)


def rms_norm(weights: Weights, name: str, d: int, epsilon: float) -> Norm:
    """Root-mean-square normalisation with its gain."""
    return Norm("rms", weights.take(f"{name}.weight", d), None, epsilon)


def activation(settings: Settings, *names: str, default: str) -> str:
    """Activation of the feed-forward network, by the name that the library has for it."""
    word = settings.word(*names, default=default)
    if word not in _ACTIVATIONS:
        known = ", ".join(sorted(_ACTIVATIONS))
        raise FileError(settings.path, f"the activation {word!r} is not known", f"known are {known}")
    return _ACTIVATIONS[word]


def refuse(settings: Settings, name: str, value: object, usual: str) -> None:
    """Raise a FileError for a setting that is not supported."""
    problem = f"the setting {name!r} is {str(value)[:60]!r}, which is not supported"
    raise FileError(settings.path, problem, f"pass a model with {usual}")
