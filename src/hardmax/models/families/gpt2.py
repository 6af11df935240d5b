"""GPT-2: causal, pre-norm, learned places, and one matrix for queries, keys and values."""

from __future__ import annotations

from ..layer import AttentionWeights, FeedForwardWeights, TransformerLayer
from ..stored import Settings, Weights
from ..transformer import Embedding
from .parts import MOST_LAYERS, Built, activation, layer_norm

# Tables that files hold beside weights: the causal mask and the score of hidden tokens.
_HARMLESS = (".attn.bias", ".attn.masked_bias")


def gpt2(settings: Settings, weights: Weights) -> Built:
    """GPT-2; matrices are stored transposed, because its layers multiply from the right."""
    d = settings.count("n_embd", most=2**20)
    heads = settings.heads(d, "n_head")
    units = settings.count("n_inner", default=4 * d, most=2**24)
    epsilon = settings.number("layer_norm_epsilon", default=1e-5)
    unit = activation(settings, "activation_function", default="gelu_new")
    longest = settings.count("n_positions", "n_ctx")
    own = weights.behind("wte.weight")
    words = own.take("wte.weight", settings.count("vocab_size"), d)
    places = own.take("wpe.weight", longest, d)
    scale = (d // heads) ** -0.5 if settings.flag("scale_attn_weights", default=True) else 1.0
    by_depth = settings.flag("scale_attn_by_inverse_layer_idx")

    def layer(number: int) -> TransformerLayer:
        at = own.under(f"h.{number}.")
        fused = at.take("attn.c_attn.weight", d, 3 * d).T.contiguous()
        query, key, value = (part.clone() for part in fused.chunk(3))
        query_bias, key_bias, value_bias = (part.clone() for part in at.take("attn.c_attn.bias", 3 * d).chunk(3))
        attention = AttentionWeights(
            query=query,
            key=key,
            value=value,
            output=at.take("attn.c_proj.weight", d, d).T.contiguous(),
            heads=heads,
            key_heads=heads,
            scale=scale / (number + 1) if by_depth else scale,
            query_bias=query_bias,
            key_bias=key_bias,
            value_bias=value_bias,
            output_bias=at.take("attn.c_proj.bias", d),
        )
        network = FeedForwardWeights(
            up=at.take("mlp.c_fc.weight", d, units).T.contiguous(),
            down=at.take("mlp.c_proj.weight", units, d).T.contiguous(),
            activation=unit,
            up_bias=at.take("mlp.c_fc.bias", units),
            down_bias=at.take("mlp.c_proj.bias", d),
        )
        norms = layer_norm(at, "ln_1", d, epsilon), layer_norm(at, "ln_2", d, epsilon)
        return TransformerLayer(attention, norms[0], network, norms[1], pre_norm=True, causal=True, number=number)

    layers = tuple(layer(number) for number in range(settings.count("n_layer", most=MOST_LAYERS)))
    own.refuse_unused("h.", _HARMLESS)
    tied = settings.flag("tie_word_embeddings", default=True) or "lm_head.weight" not in weights.shapes
    return Built(
        Embedding(words, places),
        layers,
        longest,
        final_norm=layer_norm(own, "ln_f", d, epsilon),
        unembedding=words if tied else weights.take("lm_head.weight", *words.shape),
    )
