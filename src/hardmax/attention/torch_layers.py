"""Layers from the modules of torch: nn.TransformerEncoderLayer and nn.TransformerDecoderLayer."""

from __future__ import annotations

import torch
from torch import nn

from ..errors import InputError
from ..inputs import as_tokens
from ..shapes import ArrayLike, Tokens
from .attention_layer import AttentionLayer
from .base import AbstractLayer, Block
from .feed_forward import FeedForwardLayer
from .heads import Head
from .moves import ResidualStep
from .norms import LayerNorm
from .weighting import Softmax


def from_torch(
    module: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer,
    *,
    causal: bool | None = None,
    memory: ArrayLike | None = None,
) -> AbstractLayer:
    """Block of layers with the weights of a torch module, in float64, in evaluation mode (no dropout).

    Parameters
    ----------
    module
        A ``torch.nn.TransformerEncoderLayer`` or ``TransformerDecoderLayer``, with pre- or post-norm and ReLU or GELU.
    causal
        Whether self-attention has a causal mask; by default that of a decoder has, that of an encoder has not.
    memory
        Tokens of shape (memory, d) that the cross-attention of a decoder attends to.

    Returns
    -------
    AbstractLayer
        :class:`hardmax.Block` of attention and feed-forward layers.

    Examples
    --------
    >>> layer = from_torch(torch.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16))
    >>> [type(part).__name__ for part in layer.layers]
    ['AttentionLayer', 'FeedForwardLayer']
    """
    if isinstance(module, nn.TransformerEncoderLayer):
        if memory is not None:
            raise InputError("memory", "given", "is for decoder layers", "leave it out for an encoder layer")
        attention = _attention(module.self_attn, module.norm1, module.norm_first, bool(causal), None)
        return Block(attention, _feed_forward(module, module.norm2))
    if isinstance(module, nn.TransformerDecoderLayer):
        if memory is None:
            raise InputError("memory", None, "is needed by the cross-attention of a decoder layer", "pass its tokens")
        seen = as_tokens(memory, argument="memory")[0].to(torch.float64)
        own = _attention(module.self_attn, module.norm1, module.norm_first, causal is not False, None)
        cross = _attention(module.multihead_attn, module.norm2, module.norm_first, False, seen)
        return Block(own, cross, _feed_forward(module, module.norm3))
    raise InputError(
        "module",
        type(module).__name__,
        "must be a TransformerEncoderLayer or a TransformerDecoderLayer of torch.nn",
        "pass one layer, or layer by layer those of a TransformerEncoder",
    )


def _attention(
    module: nn.MultiheadAttention, norm: nn.Module, norm_first: bool, causal: bool, memory: Tokens | None
) -> AttentionLayer:
    d, count = module.embed_dim, module.num_heads
    weights = module.in_proj_weight.detach().to(torch.float64)
    bias = module.in_proj_bias
    shifts = torch.zeros(3 * d, dtype=torch.float64) if bias is None else bias.detach().to(torch.float64)
    out = module.out_proj.weight.detach().to(torch.float64)
    width = d // count
    # Scores are divided by the root of the width of a head; both factors take half of it.
    scale = width**-0.25
    heads = []
    for h in range(count):
        rows = slice(h * width, (h + 1) * width)
        query, key, value = (weights[k * d : (k + 1) * d][rows] for k in range(3))
        of_query, of_key, of_value = (shifts[k * d : (k + 1) * d][rows] for k in range(3))
        heads.append(
            Head(
                Q=scale * query,
                K=scale * key,
                V=out[:, rows] @ value,
                query_bias=scale * of_query,
                key_bias=scale * of_key,
                value_bias=out[:, rows] @ of_value,
            )
        )
    last = module.out_proj.bias
    normal = _norm(norm)
    return AttentionLayer(
        heads,
        weighting=Softmax(1.0),
        move=ResidualStep(1.0),
        causal=causal,
        shares=[1.0] * count,
        pre_norm=normal if norm_first else None,
        post_norm=None if norm_first else normal,
        update_bias=None if last is None else last.detach().to(torch.float64),
        memory=memory,
    )


def _feed_forward(module: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer, norm: nn.Module) -> FeedForwardLayer:
    normal = _norm(norm)
    activation = _activation(module.activation)
    inner, outer = module.linear1, module.linear2
    return FeedForwardLayer(
        inner.weight.detach(),
        torch.zeros(inner.out_features, dtype=torch.float64) if inner.bias is None else inner.bias.detach(),
        outer.weight.detach(),
        c=None if outer.bias is None else outer.bias.detach(),
        activation=activation,
        pre_norm=normal if module.norm_first else None,
        post_norm=None if module.norm_first else normal,
    )


def _activation(function: object) -> str:
    known = {torch.nn.functional.relu: "relu", torch.relu: "relu", torch.nn.functional.gelu: "gelu"}
    if isinstance(function, nn.GELU):
        return "gelu-tanh" if function.approximate == "tanh" else "gelu"
    if isinstance(function, nn.ReLU):
        return "relu"
    for candidate, name in known.items():
        if function is candidate:
            return name
    raise InputError("module", f"activation {function}", "must have the activation relu or gelu", "use one of these")


def _norm(module: nn.Module) -> LayerNorm:
    if not isinstance(module, nn.LayerNorm):
        raise InputError("module", type(module).__name__, "must normalise with nn.LayerNorm", "use nn.LayerNorm")
    gain, bias = module.weight, module.bias
    return LayerNorm(
        None if gain is None else gain.detach().to(torch.float64),
        None if bias is None else bias.detach().to(torch.float64),
        epsilon=module.eps,
    )
