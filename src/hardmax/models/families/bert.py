"""Encoders: BERT, RoBERTa, DistilBERT and ALBERT. All are post-norm and see every token of a text."""

from __future__ import annotations

from dataclasses import dataclass

from ..layer import AttentionWeights, FeedForwardWeights, TransformerLayer
from ..stored import Settings, Weights
from ..transformer import Embedding
from .parts import MOST_LAYERS, Built, activation, layer_norm, refuse

# Tables that files hold beside weights.
_HARMLESS = ("position_ids",)


@dataclass(frozen=True)
class _Names:
    """Names of the tensors of a layer, which differ between architectures."""

    query: str
    key: str
    value: str
    output: str
    attention_norm: str
    up: str
    down: str
    feed_forward_norm: str


_BERT = _Names(
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
_DISTILBERT = _Names(
    "attention.q_lin",
    "attention.k_lin",
    "attention.v_lin",
    "attention.out_lin",
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.lin2",
    "output_layer_norm",
)
_ALBERT = _Names(
    "attention.query",
    "attention.key",
    "attention.value",
    "attention.dense",
    "attention.LayerNorm",
    "ffn",
    "ffn_output",
    "full_layer_layer_norm",
)


# The same in GGUF files.
_GGUF = _Names(
    "attn_q", "attn_k", "attn_v", "attn_output", "attn_output_norm", "ffn_up", "ffn_down", "layer_output_norm"
)


@dataclass(frozen=True)
class _EmbeddingNames:
    """Names of the tensors of the embedding."""

    words: str = "embeddings.word_embeddings.weight"
    places: str = "embeddings.position_embeddings.weight"
    kinds: str = "embeddings.token_type_embeddings.weight"
    norm: str = "embeddings.LayerNorm"


_FOLDER_EMBEDDING = _EmbeddingNames()
_GGUF_EMBEDDING = _EmbeddingNames("token_embd.weight", "position_embd.weight", "token_types.weight", "token_embd_norm")


@dataclass(frozen=True)
class _Sizes:
    """Settings of an encoder that its layers need."""

    d: int
    heads: int
    units: int
    layers: int
    activation: str
    epsilon: float

    @staticmethod
    def of(settings: Settings) -> _Sizes:
        if settings.flag("is_decoder"):
            refuse(settings, "is_decoder", True, "an encoder")
        if settings.word("position_embedding_type", default="absolute") != "absolute":
            refuse(
                settings,
                "position_embedding_type",
                settings.word("position_embedding_type"),
                "absolute positions",
            )
        d = settings.count("hidden_size", "dim", most=2**20)
        return _Sizes(
            d,
            settings.heads(d, "num_attention_heads", "n_heads"),
            settings.count("intermediate_size", "hidden_dim", most=2**24),
            settings.count("num_hidden_layers", "n_layers", most=MOST_LAYERS),
            activation(settings, "hidden_act", "activation", default="gelu"),
            settings.number("layer_norm_eps", default=1e-12),
        )


def bert(settings: Settings, weights: Weights) -> Built:
    """BERT."""
    return _encoder(settings, weights, first_place=0)


def bert_gguf(settings: Settings, weights: Weights) -> Built:
    """BERT from a GGUF file, which does not name its activation: GELU, as published."""
    sizes = _Sizes.of(settings)
    embedding = _embedding(settings, weights, sizes.d, sizes.epsilon, names=_GGUF_EMBEDDING)
    return Built(embedding, _untied(weights, "blk.", _GGUF, sizes), settings.count("max_position_embeddings"))


def roberta(settings: Settings, weights: Weights) -> Built:
    """RoBERTa: places are counted from the one after that of padding."""
    return _encoder(settings, weights, first_place=settings.count("pad_token_id", default=1, least=0) + 1)


def distilbert(settings: Settings, weights: Weights) -> Built:
    """DistilBERT: other names, and no kinds of segments."""
    sizes = _Sizes.of(settings)
    own = weights.behind("embeddings.word_embeddings.weight")
    embedding = _embedding(settings, own, sizes.d, sizes.epsilon)
    layers = _untied(own, "transformer.layer.", _DISTILBERT, sizes)
    return Built(embedding, layers, settings.count("max_position_embeddings"))


def albert(settings: Settings, weights: Weights) -> Built:
    """ALBERT: words of fewer coordinates than tokens, and the same weights at several depths."""
    sizes = _Sizes.of(settings)
    e = settings.count("embedding_size", default=sizes.d, most=2**20)
    groups = settings.count("num_hidden_groups", default=1, most=sizes.layers)
    inner = settings.count("inner_group_num", default=1, most=MOST_LAYERS)
    own = weights.behind("embeddings.word_embeddings.weight")
    mapping = "encoder.embedding_hidden_mapping_in"
    embedding = _embedding(
        settings,
        own,
        e,
        sizes.epsilon,
        (own.take(f"{mapping}.weight", sizes.d, e), own.take(f"{mapping}.bias", sizes.d)),
    )
    start = "encoder.albert_layer_groups."
    made = [
        [_layer(own.under(f"{start}{group}.albert_layers.{k}."), _ALBERT, sizes, None) for k in range(inner)]
        for group in range(groups)
    ]
    own.refuse_unused(start, _HARMLESS)
    # Group of each depth, as in the published code: depths are shared out evenly.
    layers = [layer for depth in range(sizes.layers) for layer in made[depth * groups // sizes.layers]]
    return Built(embedding, tuple(layers), settings.count("max_position_embeddings"))


def _encoder(settings: Settings, weights: Weights, first_place: int) -> Built:
    sizes = _Sizes.of(settings)
    own = weights.behind("embeddings.word_embeddings.weight")
    embedding = _embedding(settings, own, sizes.d, sizes.epsilon, first_place=first_place)
    layers = _untied(own, "encoder.layer.", _BERT, sizes)
    longest = settings.count("max_position_embeddings", least=first_place + 1) - first_place
    return Built(embedding, layers, longest)


def _embedding(
    settings: Settings,
    weights: Weights,
    size: int,
    epsilon: float,
    projection: tuple[object, object] | None = None,
    first_place: int = 0,
    names: _EmbeddingNames = _FOLDER_EMBEDDING,
) -> Embedding:
    kinds = weights.rows(names.kinds)
    kind = weights.take(names.kinds, kinds, size)[0].clone() if kinds else None
    matrix, bias = projection or (None, None)
    return Embedding(
        words=weights.take(names.words, settings.count("vocab_size"), size),
        places=weights.take(names.places, settings.count("max_position_embeddings"), size),
        first_place=first_place,
        kind=kind,
        norm=layer_norm(weights, names.norm, size, epsilon),
        projection=matrix,  # type: ignore[arg-type]
        projection_bias=bias,  # type: ignore[arg-type]
    )


def _untied(weights: Weights, start: str, names: _Names, sizes: _Sizes) -> tuple[TransformerLayer, ...]:
    layers = tuple(_layer(weights.under(f"{start}{k}."), names, sizes, k) for k in range(sizes.layers))
    weights.refuse_unused(start, _HARMLESS)
    return layers


def _layer(weights: Weights, names: _Names, sizes: _Sizes, number: int | None) -> TransformerLayer:
    d, units = sizes.d, sizes.units
    attention = AttentionWeights(
        query=weights.take(f"{names.query}.weight", d, d),
        key=weights.take(f"{names.key}.weight", d, d),
        value=weights.take(f"{names.value}.weight", d, d),
        output=weights.take(f"{names.output}.weight", d, d),
        heads=sizes.heads,
        key_heads=sizes.heads,
        scale=(d // sizes.heads) ** -0.5,
        query_bias=weights.take(f"{names.query}.bias", d),
        key_bias=weights.take(f"{names.key}.bias", d),
        value_bias=weights.take(f"{names.value}.bias", d),
        output_bias=weights.take(f"{names.output}.bias", d),
    )
    network = FeedForwardWeights(
        up=weights.take(f"{names.up}.weight", units, d),
        down=weights.take(f"{names.down}.weight", d, units),
        activation=sizes.activation,
        up_bias=weights.take(f"{names.up}.bias", units),
        down_bias=weights.take(f"{names.down}.bias", d),
    )
    return TransformerLayer(
        attention,
        layer_norm(weights, names.attention_norm, d, sizes.epsilon),
        network,
        layer_norm(weights, names.feed_forward_norm, d, sizes.epsilon),
        pre_norm=False,
        causal=False,
        number=number,
    )
