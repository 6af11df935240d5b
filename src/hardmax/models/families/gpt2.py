"""GPT-2: causal, pre-norm, learned places, and one matrix for queries, keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..layer import AttentionWeights, FeedForwardWeights, TransformerLayer
from ..stored import Settings, Weights
from ..transformer import Embedding
from .parts import MOST_LAYERS, Built, activation, layer_norm

# Tables that files hold beside weights: the causal mask and the score of hidden tokens.
_HARMLESS = (".attn.bias", ".attn.masked_bias")


@dataclass(frozen=True)
class _Names:
    """Names of tensors, which differ between folders and GGUF files."""

    words: str
    places: str
    layer: str
    attention_norm: str
    fused: str
    output: str
    feed_forward_norm: str
    up: str
    down: str
    final_norm: str
    unembedding: str
    transposed: bool
    """Whether matrices are stored with inputs as rows, because the layers multiply from the right."""

    def matrix(self, weights: Weights, name: str, rows: int, columns: int) -> torch.Tensor:
        """Matrix of shape (rows, columns), one row per output."""
        if self.transposed:
            return weights.take(f"{name}.weight", columns, rows).T.contiguous()
        return weights.take(f"{name}.weight", rows, columns)


_FOLDER = _Names(
    words="wte.weight",
    places="wpe.weight",
    layer="h.",
    attention_norm="ln_1",
    fused="attn.c_attn",
    output="attn.c_proj",
    feed_forward_norm="ln_2",
    up="mlp.c_fc",
    down="mlp.c_proj",
    final_norm="ln_f",
    unembedding="lm_head.weight",
    transposed=True,
)
_GGUF = _Names(
    words="token_embd.weight",
    places="position_embd.weight",
    layer="blk.",
    attention_norm="attn_norm",
    fused="attn_qkv",
    output="attn_output",
    feed_forward_norm="ffn_norm",
    up="ffn_up",
    down="ffn_down",
    final_norm="output_norm",
    unembedding="output.weight",
    transposed=False,
)


def gpt2(settings: Settings, weights: Weights) -> Built:
    """GPT-2 from a folder."""
    return _built(settings, weights, _FOLDER)


def gpt2_gguf(settings: Settings, weights: Weights) -> Built:
    """GPT-2 from a GGUF file."""
    return _built(settings, weights, _GGUF)


def _built(settings: Settings, weights: Weights, names: _Names) -> Built:
    d = settings.count("n_embd", most=2**20)
    heads = settings.heads(d, "n_head")
    units = settings.count("n_inner", default=4 * d, most=2**24)
    epsilon = settings.number("layer_norm_epsilon", default=1e-5)
    unit = activation(settings, "activation_function", default="gelu_new")
    longest = settings.count("n_positions", "n_ctx")
    own = weights.behind(names.words)
    words = own.take(names.words, settings.count("vocab_size"), d)
    places = own.take(names.places, longest, d)
    scale = (d // heads) ** -0.5 if settings.flag("scale_attn_weights", default=True) else 1.0
    by_depth = settings.flag("scale_attn_by_inverse_layer_idx")

    def layer(number: int) -> TransformerLayer:
        at = own.under(f"{names.layer}{number}.")
        query, key, value = (part.clone() for part in names.matrix(at, names.fused, 3 * d, d).chunk(3))
        query_bias, key_bias, value_bias = (part.clone() for part in at.take(f"{names.fused}.bias", 3 * d).chunk(3))
        attention = AttentionWeights(
            query=query,
            key=key,
            value=value,
            output=names.matrix(at, names.output, d, d),
            heads=heads,
            key_heads=heads,
            scale=scale / (number + 1) if by_depth else scale,
            query_bias=query_bias,
            key_bias=key_bias,
            value_bias=value_bias,
            output_bias=at.take(f"{names.output}.bias", d),
        )
        network = FeedForwardWeights(
            up=names.matrix(at, names.up, units, d),
            down=names.matrix(at, names.down, d, units),
            activation=unit,
            up_bias=at.take(f"{names.up}.bias", units),
            down_bias=at.take(f"{names.down}.bias", d),
        )
        norms = (
            layer_norm(at, names.attention_norm, d, epsilon),
            layer_norm(at, names.feed_forward_norm, d, epsilon),
        )
        return TransformerLayer(attention, norms[0], network, norms[1], pre_norm=True, causal=True, number=number)

    layers = tuple(layer(number) for number in range(settings.count("n_layer", most=MOST_LAYERS)))
    own.refuse_unused(names.layer, _HARMLESS)
    tied = settings.flag("tie_word_embeddings", default=True) or names.unembedding not in weights.shapes
    return Built(
        Embedding(words, places),
        layers,
        longest,
        final_norm=layer_norm(own, names.final_norm, d, epsilon),
        unembedding=words if tied else weights.take(names.unembedding, *words.shape),
    )
