"""Llama and its relatives: causal, pre-norm with root mean squares, rotary places, shared keys, gated feed-forward.

Folders and GGUF files give the same settings; tensors have other names, and queries and keys another order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..layer import AttentionWeights, FeedForwardWeights, TransformerLayer
from ..rotary import Rotary
from ..stored import Settings, Weights
from ..transformer import Embedding
from .parts import MOST_LAYERS, Built, activation, refuse, rms_norm


@dataclass(frozen=True)
class _Names:
    """Names of tensors, which differ between folders and GGUF files."""

    words: str
    layer: str
    query: str
    key: str
    value: str
    output: str
    attention_norm: str
    gate: str
    up: str
    down: str
    feed_forward_norm: str
    final_norm: str
    unembedding: str


_FOLDER = _Names(
    words="embed_tokens.weight",
    layer="layers.",
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    output="self_attn.o_proj",
    attention_norm="input_layernorm",
    gate="mlp.gate_proj",
    up="mlp.up_proj",
    down="mlp.down_proj",
    feed_forward_norm="post_attention_layernorm",
    final_norm="norm",
    unembedding="lm_head.weight",
)
_GGUF = _Names(
    words="token_embd.weight",
    layer="blk.",
    query="attn_q",
    key="attn_k",
    value="attn_v",
    output="attn_output",
    attention_norm="attn_norm",
    gate="ffn_gate",
    up="ffn_up",
    down="ffn_down",
    feed_forward_norm="ffn_norm",
    final_norm="output_norm",
    unembedding="output.weight",
)
# Tables of angles that old files hold beside weights.
_HARMLESS = ("rotary_emb.inv_freq",)


@dataclass(frozen=True)
class _Sizes:
    """Settings that every layer needs."""

    d: int
    heads: int
    key_heads: int
    width: int
    units: int
    activation: str
    epsilon: float
    rotary: Rotary


def llama(settings: Settings, weights: Weights) -> Built:
    """Llama, SmolLM, Mistral and Qwen2 from a folder; biases are used where there are any."""
    return _built(settings, weights, _FOLDER, interleaved=False)


def llama_gguf(settings: Settings, weights: Weights) -> Built:
    """Llama from a GGUF file, where the coordinates of queries and keys that turn together are neighbours."""
    return _built(settings, weights, _GGUF, interleaved=True)


def qwen2_gguf(settings: Settings, weights: Weights) -> Built:
    """Qwen2 from a GGUF file, where coordinates are ordered as in folders."""
    return _built(settings, weights, _GGUF, interleaved=False)


def _built(settings: Settings, weights: Weights, names: _Names, interleaved: bool) -> Built:
    d = settings.count("hidden_size", most=2**20)
    own = weights.behind(names.words)
    sizes = _sizes(settings, weights, d, interleaved)
    words = own.take(names.words, settings.count("vocab_size"), d)
    count = settings.count("num_hidden_layers", most=MOST_LAYERS)
    windows = _windows(settings, count)
    layers = tuple(
        _layer(own.under(f"{names.layer}{number}."), names, sizes, number, windows[number]) for number in range(count)
    )
    own.refuse_unused(names.layer, _HARMLESS)
    return Built(
        Embedding(words),
        layers,
        settings.count("max_position_embeddings"),
        final_norm=rms_norm(own, names.final_norm, d, sizes.epsilon),
        unembedding=_unembedding(settings, weights, names.unembedding, words),
    )


def _sizes(settings: Settings, weights: Weights, d: int, interleaved: bool) -> _Sizes:
    heads = settings.count("num_attention_heads", most=2**16)
    key_heads = settings.count("num_key_value_heads", default=heads, most=heads)
    if heads % key_heads:
        raise settings.error("num_key_value_heads", key_heads, f"must divide the {heads} heads")
    if settings.values.get("head_dim") is None and d % heads:
        raise settings.error("num_attention_heads", heads, f"must divide the {d} coordinates of a token")
    width = settings.count("head_dim", default=d // heads, least=2, most=2**16)
    return _Sizes(
        d,
        heads,
        key_heads,
        width,
        settings.count("intermediate_size", most=2**24),
        activation(settings, "hidden_act", default="silu"),
        settings.number("rms_norm_eps", default=1e-6),
        Rotary(_frequencies(settings, weights, width), interleaved),
    )


def _layer(weights: Weights, names: _Names, sizes: _Sizes, number: int, window: int | None) -> TransformerLayer:
    d, units = sizes.d, sizes.units
    queries, keys = sizes.heads * sizes.width, sizes.key_heads * sizes.width
    attention = AttentionWeights(
        query=weights.take(f"{names.query}.weight", queries, d),
        key=weights.take(f"{names.key}.weight", keys, d),
        value=weights.take(f"{names.value}.weight", keys, d),
        output=weights.take(f"{names.output}.weight", d, queries),
        heads=sizes.heads,
        key_heads=sizes.key_heads,
        scale=sizes.width**-0.5,
        query_bias=weights.maybe(f"{names.query}.bias", queries),
        key_bias=weights.maybe(f"{names.key}.bias", keys),
        value_bias=weights.maybe(f"{names.value}.bias", keys),
        output_bias=weights.maybe(f"{names.output}.bias", d),
        rotary=sizes.rotary,
    )
    network = FeedForwardWeights(
        up=weights.take(f"{names.up}.weight", units, d),
        down=weights.take(f"{names.down}.weight", d, units),
        activation=sizes.activation,
        gate=weights.take(f"{names.gate}.weight", units, d),
    )
    return TransformerLayer(
        attention,
        rms_norm(weights, names.attention_norm, d, sizes.epsilon),
        network,
        rms_norm(weights, names.feed_forward_norm, d, sizes.epsilon),
        pre_norm=True,
        causal=True,
        window=window,
        number=number,
    )


def _unembedding(settings: Settings, weights: Weights, name: str, words: torch.Tensor) -> torch.Tensor | None:
    if name in weights.shapes and not settings.flag("tie_word_embeddings"):
        return weights.take(name, *words.shape)
    if settings.flag("tie_word_embeddings"):
        return words
    made = settings.values.get("architectures")
    if isinstance(made, list) and any(str(one).endswith("ForCausalLM") for one in made):
        return weights.take(name, *words.shape)  # missing: the error names it
    return None


def _windows(settings: Settings, count: int) -> list[int | None]:
    """Number of tokens in sight of each layer, None for all."""
    if settings.values.get("sliding_window") is None or not settings.flag("use_sliding_window", default=True):
        return [None] * count
    window = settings.count("sliding_window")
    kinds = settings.values.get("layer_types")
    if kinds is None:
        # Layers of Qwen2 before this one see all tokens; Mistral has no such setting.
        first = settings.count("max_window_layers", default=0, least=0)
        return [window if number >= first else None for number in range(count)]
    known = {"full_attention": None, "sliding_attention": window}
    if not isinstance(kinds, list) or len(kinds) != count or not all(isinstance(one, str) for one in kinds):
        raise settings.error("layer_types", kinds, f"must be a list of {count} names")
    for kind in kinds:
        if kind not in known:
            refuse(settings, "layer_types", kind, "full or sliding attention")
    return [known[kind] for kind in kinds]


def _frequencies(settings: Settings, weights: Weights, width: int) -> torch.Tensor:
    """Angle per place of each pair of coordinates."""
    ropes = settings.part("rope_parameters") or settings.part("rope_scaling") or Settings(settings.path, {})
    base = ropes.number("rope_theta", default=settings.number("rope_theta", default=10_000.0))
    turned = settings.count("rope_dimension_count", default=width, least=2, most=width)
    if turned % 2:
        raise settings.error("rope_dimension_count", turned, "must be even")
    share = ropes.number("partial_rotary_factor", default=settings.number("partial_rotary_factor", default=1.0))
    if share != 1:
        refuse(settings, "partial_rotary_factor", share, "rotary places in every coordinate")
    found = Rotary.of_base(base, turned).frequencies
    kind = ropes.word("rope_type", "type", default="default")
    if kind == "linear":
        found = found / ropes.number("factor")
    elif kind == "llama3":
        found = _llama3(ropes, found)
    elif kind not in ("default", "none"):
        refuse(settings, "rope_scaling", kind, '"default", "linear" or "llama3" rotary places')
    if "rope_freqs.weight" in weights.shapes:
        found = found / weights.take("rope_freqs.weight", turned // 2).to(torch.float64)
    if not bool(torch.isfinite(found).all()):
        raise settings.error("rope_theta", base, "must give finite angles")
    return found


def _llama3(ropes: Settings, frequencies: torch.Tensor) -> torch.Tensor:
    """Frequencies of Llama 3.1: slow ones are divided by a factor, those in between gradually."""
    factor, low, high = (ropes.number(name) for name in ("factor", "low_freq_factor", "high_freq_factor"))
    before = ropes.count("original_max_position_embeddings")
    if high <= low:
        raise ropes.error("high_freq_factor", high, f"must be above the low_freq_factor {low:g}")
    turns = before * frequencies / (2 * math.pi)
    share = ((turns - low) / (high - low)).clamp(0, 1)
    return share * frequencies + (1 - share) * frequencies / factor
