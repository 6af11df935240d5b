"""Transformers with random weights: the control of every measurement on a trained one."""

from __future__ import annotations

import numpy as np
import torch

from ..errors import InputError
from ..inputs import as_number
from ..randomness import seeded
from ..scalars import as_choice, as_count
from .layer import AttentionWeights, FeedForwardWeights, Norm, TransformerLayer
from .rotary import Rotary
from .transformer import Embedding, Transformer

# Texts of a random model may be this long; places are embedded at random as well.
_LONGEST = 512


def random_transformer(
    *,
    family: str = "bert",
    layers: int = 6,
    heads: int = 12,
    d: int = 384,
    vocabulary: int = 1000,
    scale: float = 0.02,
    random_state: int | np.random.Generator | None = None,
) -> Transformer:
    """Transformer of a family with Gaussian weights, as before training; it takes numbers of tokens.

    Parameters
    ----------
    family
        ``"bert"`` (encoder, post-norm, GELU), ``"gpt2"`` (causal, pre-norm, GELU) or ``"llama"`` (causal, pre-norm,
        rotary positions, gated SiLU).
    layers, heads, d
        Depth, heads per layer and coordinates of a token; ``heads`` divides ``d``.
    vocabulary
        Number of different tokens.
    scale
        Standard deviation of the weights.
    random_state
        Seed or generator.

    Returns
    -------
    Transformer
        In float32, on the CPU.

    Examples
    --------
    >>> model = random_transformer(layers=2, heads=2, d=8, vocabulary=20, random_state=0)
    >>> model([3, 1, 4]).shape
    (3, 8)
    """
    as_choice("family", family, ("bert", "gpt2", "llama"))
    layers, heads, d = as_count("layers", layers, 1), as_count("heads", heads, 1), as_count("d", d, 2)
    vocabulary = as_count("vocabulary", vocabulary, 1)
    deviation = as_number("scale", scale, lambda x: x > 0, "must be positive", "pass for example 0.02")
    if d % heads or (family == "llama" and d // heads % 2):
        raise InputError("heads", heads, f"must divide d = {d}, into even widths for llama", "pass heads=4, d=32")
    generator = seeded(random_state).generator

    def drawn(*shape: int) -> torch.Tensor:
        return torch.from_numpy(generator.normal(0.0, deviation, shape)).to(torch.float32)

    rms = family == "llama"
    causal, width = family != "bert", d // heads

    def norm() -> Norm:
        return Norm("rms" if rms else "layer", torch.ones(d), None if rms else torch.zeros(d), 1e-6 if rms else 1e-12)

    def layer(number: int) -> TransformerLayer:
        attention = AttentionWeights(
            query=drawn(d, d),
            key=drawn(d, d),
            value=drawn(d, d),
            output=drawn(d, d),
            heads=heads,
            key_heads=heads,
            scale=width**-0.5,
            rotary=Rotary.of_base(10_000.0, width) if rms else None,
        )
        network = FeedForwardWeights(
            drawn(4 * d, d), drawn(d, 4 * d), "silu" if rms else "gelu", drawn(4 * d, d) if rms else None
        )
        return TransformerLayer(attention, norm(), network, norm(), causal, causal, number=number)

    words = drawn(vocabulary, d)
    return Transformer(
        name="random weights",
        family=family,
        embedding=Embedding(words, None if rms else drawn(_LONGEST, d), kind=None, norm=None if causal else norm()),
        layers=tuple(layer(number) for number in range(layers)),
        final_norm=norm() if causal else None,
        unembedding=words if causal else None,
        tokeniser=None,
        longest=_LONGEST,
    )
