r"""One layer of a trained transformer: attention with several heads, then a feed-forward network.

.. math:: \text{post-norm:}\quad y = N_1(z + a(z)),\quad z' = N_2(y + f(y)); \qquad
          \text{pre-norm:}\quad y = z + a(N_1(z)),\quad z' = y + f(N_2(y)) .

Weights keep the dtype in which they are used. Batches of padded sequences are evaluated at once, which is the fast path
of :class:`hardmax.models.Transformer`; :meth:`TransformerLayer.step` evaluates one sequence in float64, so that a layer
is also a layer like any other of this library. :meth:`TransformerLayer.block` writes it in the library's own parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TypeVar

import torch
from torch.nn import functional

from ..attention.attention_layer import AttentionLayer
from ..attention.base import ALL_ROWS, AbstractLayer, Block
from ..attention.choice import Choice
from ..attention.feed_forward import FeedForwardLayer
from ..attention.heads import Head
from ..attention.moves import ResidualStep
from ..attention.norms import AbstractNorm, LayerNorm, RmsNorm
from ..attention.weighting import AbstractWeighting, Hardmax, Softmax
from ..errors import InputError
from ..shapes import PerToken, Tokens
from .rotary import Rotary
from .rules import as_indices, as_rule

# Scores held at once by rules other than softmax, per block of rows: 2^24 numbers are 64 MB in float32.
_MOST_SCORES = 2**24

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu-tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}
"""Activation functions by name."""


@dataclass(frozen=True, eq=False)
class Norm:
    """Normalisation of each token, with its trained gain and bias."""

    kind: str
    """``"layer"`` (mean zero, variance one) or ``"rms"`` (mean square one)."""
    gain: torch.Tensor
    """Factor per coordinate, shape (d,)."""
    bias: torch.Tensor | None
    """Offset per coordinate, shape (d,), or none."""
    epsilon: float
    """Number added to the variance or the mean square."""

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """Normalised tokens, shape (..., d)."""
        shape = (hidden.shape[-1],)
        if self.kind == "layer":
            return functional.layer_norm(hidden, shape, self.gain, self.bias, self.epsilon)
        return functional.rms_norm(hidden, shape, self.gain, self.epsilon)


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """Weights of the attention of one layer; rows of a projection are ordered by head."""

    query: torch.Tensor
    """Shape (heads * width, d)."""
    key: torch.Tensor
    """Shape (key_heads * width, d)."""
    value: torch.Tensor
    """Shape (key_heads * width, d)."""
    output: torch.Tensor
    """Shape (d, heads * width)."""
    heads: int
    """Number of heads."""
    key_heads: int
    """Number of key and value heads; each is shared by ``heads / key_heads`` heads in a row."""
    scale: float
    """Factor of the scores, usually one over the root of the width."""
    query_bias: torch.Tensor | None = None
    key_bias: torch.Tensor | None = None
    value_bias: torch.Tensor | None = None
    output_bias: torch.Tensor | None = None
    rotary: Rotary | None = None
    """Rotation of queries and keys by their places."""

    @property
    def width(self) -> int:
        """Number of coordinates of a query."""
        return len(self.query) // self.heads


@dataclass(frozen=True, eq=False)
class FeedForwardWeights:
    """Weights of the feed-forward network of one layer."""

    up: torch.Tensor
    """Shape (units, d)."""
    down: torch.Tensor
    """Shape (d, units)."""
    activation: str
    """One of :data:`ACTIVATIONS`."""
    gate: torch.Tensor | None = None
    """Shape (units, d): units are multiplied by the activation of the gate."""
    up_bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """Update of each token, shape (..., d)."""
        activation = ACTIVATIONS[self.activation]
        up = functional.linear(hidden, self.up, self.up_bias)
        units = activation(up) if self.gate is None else activation(functional.linear(hidden, self.gate)) * up
        return functional.linear(units, self.down, self.down_bias)


@dataclass(frozen=True, eq=False)
class HeadVectors:
    """Queries, keys and values of every head for a batch of sequences."""

    queries: torch.Tensor
    """Shape (batch, heads, tokens, width), turned by the rotary embedding where there is one."""
    keys: torch.Tensor
    """Shape (batch, heads, tokens, width)."""
    values: torch.Tensor
    """Shape (batch, heads, tokens, width)."""


@dataclass(frozen=True, eq=False)
class ScoreBlock:
    """Scores of some rows of one sequence in every head."""

    rows: slice
    """Tokens that attend."""
    scores: torch.Tensor
    """Scores, the scale included, shape (heads, rows, tokens)."""
    seen: torch.Tensor
    """True where the row sees the column, shape (rows, tokens)."""


@dataclass(frozen=True, eq=False)
class TransformerLayer(AbstractLayer):
    """One layer of a trained transformer.

    Made by :func:`hardmax.load_transformer`; :meth:`with_rule` replaces the softmax of some heads.
    """

    attention: AttentionWeights
    """Projections to queries, keys and values, and back."""
    attention_norm: Norm
    """Normalisation before or after attention."""
    feed_forward: FeedForwardWeights | None
    """None where it was left out on purpose."""
    feed_forward_norm: Norm
    """Normalisation before or after the feed-forward network."""
    pre_norm: bool
    """Whether tokens are normalised before attention and feed-forward (pre-norm) or after them (post-norm)."""
    causal: bool
    """Whether each token sees only itself and the tokens before it."""
    window: int | None = None
    """Number of tokens in sight of a causal layer, the token itself included; None for all."""
    rules: tuple[AbstractWeighting | None, ...] = ()
    """Attention rule of each head; None, or an empty tuple, for the softmax of the model."""
    number: int | None = None
    """Number of the layer in its model, for messages."""

    @property
    def dimension(self) -> int:
        return int(self.attention.query.shape[1])

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.attention.heads

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers in which batches are evaluated."""
        return self.attention.query.dtype

    def to(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> TransformerLayer:
        """The layer with its weights in another dtype or on another device.

        Parameters
        ----------
        dtype
            Type of the weights; unchanged when left out.
        device
            Device of the weights; unchanged when left out.

        Returns
        -------
        TransformerLayer
            The same function.
        """
        return replace(
            self,
            attention=moved(self.attention, dtype, device),
            attention_norm=moved(self.attention_norm, dtype, device),
            feed_forward=None if self.feed_forward is None else moved(self.feed_forward, dtype, device),
            feed_forward_norm=moved(self.feed_forward_norm, dtype, device),
        )

    def with_rule(self, rule: object, heads: int | Sequence[int] | None = None) -> TransformerLayer:
        """The layer with another attention rule in some of its heads.

        Parameters
        ----------
        rule
            ``"hardmax"``, ``"top-4"``, ``"beta=2"``, ``"uniform"``, ``"zero"``, ``"softmax"`` or a weighting.
        heads
            Number of a head, or several; all when left out.

        Returns
        -------
        TransformerLayer
            With the same weights.
        """
        found = as_rule(rule)
        rules = [*(self.rules or (None,) * self.heads)]
        for head in as_indices("heads", heads, self.heads):
            rules[head] = None if found == Softmax(1.0) else found
        return replace(self, rules=tuple(rules))

    def without_feed_forward(self) -> TransformerLayer:
        """The layer with attention alone: no feed-forward network and no normalisation after it.

        Returns
        -------
        TransformerLayer
            With the same attention.
        """
        return replace(self, feed_forward=None)

    def forward(
        self, hidden: torch.Tensor, padding: torch.Tensor | None = None, mass: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Tokens after the layer, for a batch of sequences, shape (batch, tokens, d).

        Parameters
        ----------
        hidden
            Tokens before the layer, in the dtype of the layer, shape (batch, tokens, d).
        padding
            True for tokens that fill up shorter sequences and are not attended to, shape (batch, tokens).
        mass
            Positive weight per token, shape (tokens,); all one when left out.

        Returns
        -------
        Tensor
            Shape (batch, tokens, d). Rows of padding have no meaning.
        """
        vectors = self.vectors(hidden)
        mixed = self._mixed(vectors, padding, mass).transpose(1, 2).flatten(2)
        moved_by = functional.linear(mixed, self.attention.output, self.attention.output_bias)
        hidden = hidden + moved_by if self.pre_norm else self.attention_norm(hidden + moved_by)
        if self.feed_forward is None:
            return hidden
        if self.pre_norm:
            return hidden + self.feed_forward(self.feed_forward_norm(hidden))
        return self.feed_forward_norm(hidden + self.feed_forward(hidden))

    def vectors(self, hidden: torch.Tensor) -> HeadVectors:
        """Queries, keys and values of every head, each of shape (batch, heads, tokens, width).

        Parameters
        ----------
        hidden
            Tokens before the layer, shape (batch, tokens, d).

        Returns
        -------
        HeadVectors
            Keys and values are repeated for the heads that share them.
        """
        own = self.attention
        inputs = self.attention_norm(hidden) if self.pre_norm else hidden
        queries = _by_head(functional.linear(inputs, own.query, own.query_bias), own.heads)
        keys = _by_head(functional.linear(inputs, own.key, own.key_bias), own.key_heads)
        values = _by_head(functional.linear(inputs, own.value, own.value_bias), own.key_heads)
        if own.rotary is not None:
            queries, keys = own.rotary.turned(queries), own.rotary.turned(keys)
        if own.key_heads < own.heads:
            shared = own.heads // own.key_heads
            keys, values = keys.repeat_interleave(shared, dim=1), values.repeat_interleave(shared, dim=1)
        return HeadVectors(queries, keys, values)

    def score_blocks(self, vectors: HeadVectors, sequence: int = 0) -> Iterator[ScoreBlock]:
        """Scores of one sequence of a batch, block by block of rows, so that memory grows with the tokens only.

        Parameters
        ----------
        vectors
            From :meth:`vectors`.
        sequence
            Index in the batch.

        Yields
        ------
        ScoreBlock
            Blocks in the order of the rows; together they cover every row.
        """
        queries, keys = vectors.queries[sequence], vectors.keys[sequence]
        tokens = keys.shape[1]
        size = max(1, _MOST_SCORES // max(1, len(queries) * tokens))
        for first in range(0, tokens, size):
            rows = slice(first, min(first + size, tokens))
            scores = self.attention.scale * (queries[:, rows] @ keys.transpose(1, 2))
            yield ScoreBlock(rows, scores, self._seen(rows, tokens, keys.device))

    def _seen(self, rows: slice, tokens: int, device: torch.device) -> torch.Tensor:
        columns = torch.arange(tokens, device=device)
        places = columns[rows, None]
        seen = columns <= places if self.causal else torch.ones_like(columns > places)
        return seen if self.window is None else seen & (columns > places - self.window)

    def _mixed(self, vectors: HeadVectors, padding: torch.Tensor | None, mass: torch.Tensor | None) -> torch.Tensor:
        """Weighted sums of values, shape (batch, heads, tokens, width)."""
        # Padding comes last, so that no token of a causal layer sees it. It attends to itself: a row that sees nothing
        # would not be a number.
        padding = None if self.causal else padding
        if not any(self.rules) and mass is None:
            return self._softmax(vectors, padding)
        rules = self.rules or (None,) * self.heads
        mixed = torch.empty_like(vectors.values)
        for rule in dict.fromkeys(rules):
            heads = [head for head, one in enumerate(rules) if one == rule]
            part = HeadVectors(vectors.queries[:, heads], vectors.keys[:, heads], vectors.values[:, heads])
            if rule is None and mass is None:
                mixed[:, heads] = self._softmax(part, padding)
            else:
                mixed[:, heads] = self._by_rule(Softmax(1.0) if rule is None else rule, part, padding, mass)
        return mixed

    def _softmax(self, vectors: HeadVectors, padding: torch.Tensor | None) -> torch.Tensor:
        tokens = vectors.keys.shape[2]
        mask = None if padding is None else ~padding[:, None, None, :]
        if self.causal and self.window is not None:
            mask = self._seen(slice(0, tokens), tokens, vectors.keys.device)
        causal = self.causal and mask is None
        return functional.scaled_dot_product_attention(
            vectors.queries, vectors.keys, vectors.values, mask, is_causal=causal, scale=self.attention.scale
        )

    def _by_rule(
        self,
        rule: AbstractWeighting,
        vectors: HeadVectors,
        padding: torch.Tensor | None,
        mass: torch.Tensor | None,
    ) -> torch.Tensor:
        weights = vectors.keys.new_ones(vectors.keys.shape[2]) if mass is None else mass.to(vectors.keys)
        done = []
        for sequence in range(len(vectors.keys)):
            parts = []
            for block in self.score_blocks(vectors, sequence):
                seen = block.seen if padding is None else block.seen & ~padding[sequence]
                heads, rows, tokens = block.scores.shape
                table = rule.weights(
                    block.scores.reshape(heads * rows, tokens), seen.repeat(heads, 1), weights
                ).reshape(heads, rows, tokens)
                parts.append(table @ vectors.values[sequence])
            done.append(torch.cat(parts, dim=1))
        return torch.stack(done)

    def step(self, tokens: Tokens, weights: PerToken) -> Tokens:
        layer = self.to(torch.float64, tokens.device)
        if tokens.shape[1] != self.dimension:
            raise InputError(
                "tokens",
                f"{tokens.shape[1]} coordinates",
                f"must have {self.dimension} coordinates for this layer",
                "use model.tokens(text) of the same model",
            )
        plain = bool((weights == 1).all())
        return layer.forward(tokens[None], mass=None if plain else weights)[0]

    def block(self) -> Block:
        """The layer in the library's own parts: an attention layer and a feed-forward layer, in float64.

        Returns
        -------
        Block
            The same function; slower, because every head has matrices of its own.
        """
        own, rules = self.attention, {*self.rules}
        if own.rotary is not None or self.window is not None or len(rules) > 1:
            what = "rotary positions" if own.rotary is not None else "a window" if self.window else "several rules"
            raise InputError("layer", str(self), f"has {what}, which heads of the library have not", "use the layer")
        rule = next(iter(rules), None)
        attention_norm, feed_forward_norm = _own_norm(self.attention_norm), _own_norm(self.feed_forward_norm)
        attention = AttentionLayer(
            [self._head(head) for head in range(self.heads)],
            weighting=Softmax(1.0) if rule is None else rule,
            move=ResidualStep(1.0),
            causal=self.causal,
            shares=[1.0] * self.heads,
            pre_norm=attention_norm if self.pre_norm else None,
            post_norm=None if self.pre_norm else attention_norm,
            update_bias=None if own.output_bias is None else own.output_bias.to(torch.float64),
        )
        if self.feed_forward is None:
            return Block(attention)
        network = moved(self.feed_forward, torch.float64, None)
        after = FeedForwardLayer(
            network.up,
            network.up.new_zeros(len(network.up)) if network.up_bias is None else network.up_bias,
            network.down,
            c=network.down_bias,
            activation=network.activation,
            gate=network.gate,
            pre_norm=feed_forward_norm if self.pre_norm else None,
            post_norm=None if self.pre_norm else feed_forward_norm,
        )
        return Block(attention, after)

    def score_matrix(self, head: int) -> torch.Tensor:
        r"""Score matrix :math:`A = s K^T Q` of one head, float64, shape (d, d); rotary positions are left out.

        Parameters
        ----------
        head
            Number of the head.

        Returns
        -------
        Tensor
            Scores are :math:`\langle A x_i, x_k\rangle` for normalised inputs x, biases apart.
        """
        own = self.attention
        return own.scale * (_rows(own.key, self._key_head(head), own.width).T @ _rows(own.query, head, own.width))

    def value_matrix(self, head: int) -> torch.Tensor:
        """Value matrix of one head, output projection included, float64, shape (d, d).

        Parameters
        ----------
        head
            Number of the head.

        Returns
        -------
        Tensor
            What the head adds to a token is this matrix times the mean of what it attends to, biases apart.
        """
        own = self.attention
        return _rows(own.output.T, head, own.width).T @ _rows(own.value, self._key_head(head), own.width)

    def _key_head(self, head: int) -> int:
        return head * self.attention.key_heads // self.heads

    def _head(self, head: int) -> Head:
        own, keys = self.attention, self._key_head(head)
        # Both factors of a score take half of its scale.
        factor = own.scale**0.5
        shift = _part(own.value_bias, keys, own.width)
        query_bias, key_bias = _part(own.query_bias, head, own.width), _part(own.key_bias, keys, own.width)
        return Head(
            Q=factor * _rows(own.query, head, own.width),
            K=factor * _rows(own.key, keys, own.width),
            V=self.value_matrix(head),
            query_bias=None if query_bias is None else factor * query_bias,
            key_bias=None if key_bias is None else factor * key_bias,
            value_bias=None if shift is None else _rows(own.output.T, head, own.width).T @ shift,
        )

    @property
    def chooses(self) -> bool:
        return bool(self.rules) and all(isinstance(rule, Hardmax) for rule in self.rules)

    @property
    def has_leaders(self) -> bool:
        # Tokens do not move towards the tokens that they attend to: values and feed-forward take them elsewhere.
        return False

    def choose_heads(self, tokens: Tokens, queries: slice = ALL_ROWS) -> tuple[Choice, ...]:
        if not self.chooses:
            return super().choose_heads(tokens, queries)
        layer = self.to(torch.float64, tokens.device)
        vectors = layer.vectors(tokens[None])
        found: list[list[torch.Tensor]] = [[] for _ in range(self.heads)]
        ones = tokens.new_ones(len(tokens))
        for block in layer.score_blocks(vectors):
            for head, rule in enumerate(self.rules):
                if rule is not None:
                    found[head].append(rule.weights(block.scores[head], block.seen, ones) > 0)
        return tuple(Choice.of(torch.cat(parts)[queries]) for parts in found)

    @property
    def described_in_words(self) -> bool:
        return True

    def __str__(self) -> str:
        where = "layer" if self.number is None else f"layer {self.number}"
        kind = "causal attention" if self.causal else "attention"
        changed = sorted({str(rule) for rule in self.rules if rule is not None})
        rules = f", with {' and '.join(changed)} in some heads" if changed else ""
        if self.chooses:
            rules = ", hardmax"
        network = "no feed-forward" if self.feed_forward is None else f"{len(self.feed_forward.up)} units"
        return f"{where} of a trained transformer: {kind}, {self.heads} heads, d = {self.dimension}, {network}{rules}"


def _by_head(rows: torch.Tensor, heads: int) -> torch.Tensor:
    batch, tokens, size = rows.shape
    return rows.reshape(batch, tokens, heads, size // heads).transpose(1, 2)


def _rows(matrix: torch.Tensor, head: int, width: int) -> torch.Tensor:
    return matrix[head * width : (head + 1) * width].to(torch.float64)


def _part(bias: torch.Tensor | None, head: int, width: int) -> torch.Tensor | None:
    return None if bias is None else bias[head * width : (head + 1) * width].to(torch.float64)


def _own_norm(norm: Norm) -> AbstractNorm:
    if norm.kind == "layer":
        return LayerNorm(norm.gain, norm.bias, norm.epsilon)
    return RmsNorm(norm.gain, norm.epsilon)


Part = TypeVar("Part")


def moved(part: Part, dtype: torch.dtype | None, device: torch.device | str | None) -> Part:
    """A part of a model with its tensors in another dtype or on another device."""
    found = {field.name: getattr(part, field.name) for field in fields(part)}  # type: ignore[arg-type]
    there = {name: one.to(dtype=dtype, device=device) for name, one in found.items() if isinstance(one, torch.Tensor)}
    return replace(part, **there)  # type: ignore[type-var]
