"""The token that each token attends to most, in every layer and head of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas
import torch

from ..attention.weighting import Softmax
from ..errors import InputError
from .layer import TransformerLayer
from .transformer import TextOrIds, Transformer


@dataclass(frozen=True, eq=False)
class WhoAttends:
    """What every head of a model attends to on one text, per token: memory grows with the tokens, not their square."""

    words: tuple[str, ...]
    """Each token as it is read."""
    sinks: np.ndarray
    """True for tokens that often take attention without meaning: special tokens, and the first token of a causal
    model; shape (tokens,)."""
    attended: np.ndarray
    """Token that each token attends to most, shape (layers, heads, tokens); -1 where all weights are zero."""
    weights: np.ndarray
    """Weight of that token, shape (layers, heads, tokens)."""
    numbers: np.ndarray
    """Effective number of tokens attended to, the exponential of the entropy, shape (layers, heads, tokens)."""

    def heads(self, layer: int) -> pandas.DataFrame:
        """Table with one row per head of a layer.

        Parameters
        ----------
        layer
            Number of the layer, from 0.

        Returns
        -------
        DataFrame
            Columns ``layer``, ``head``, ``largest_weight`` (mean over tokens), ``attended_to`` (mean effective number),
            ``sink_share`` (share of tokens that attend most to a sink) and ``targets`` (number of different tokens that
            are attended to most).
        """
        if isinstance(layer, bool) or not isinstance(layer, (int, np.integer)) or not 0 <= layer < len(self.attended):
            problem = f"must be a layer from 0 to {len(self.attended) - 1}"
            raise InputError("layer", repr(layer), problem, "pass layer=0")
        attended = self.attended[layer]
        at_sink = (attended >= 0) & self.sinks[attended]
        return pandas.DataFrame(
            {
                "layer": int(layer),
                "head": np.arange(len(attended)),
                "largest_weight": self.weights[layer].mean(axis=1),
                "attended_to": self.numbers[layer].mean(axis=1),
                "sink_share": at_sink.mean(axis=1),
                "targets": [len(set(row[row >= 0].tolist())) for row in attended],
            }
        )


def who_attends(model: Transformer, text: TextOrIds) -> WhoAttends:
    """Token that each token attends to most, its weight and the effective number attended to, by layer and head.

    Parameters
    ----------
    model
        A transformer; attention rules set by :meth:`Transformer.with_attention` are respected.
    text
        A text, or the numbers of its tokens.

    Returns
    -------
    WhoAttends
        Arrays of shape (layers, heads, tokens).

    Examples
    --------
    >>> import hardmax as hm
    >>> model = hm.models.random_transformer(layers=2, heads=2, d=8, vocabulary=20, random_state=0)
    >>> found = who_attends(model, [3, 1, 4])
    >>> found.attended.shape, bool((found.weights <= 1).all())
    ((2, 2, 3), True)
    """
    if not isinstance(model, Transformer):
        raise InputError("model", type(model).__name__, "must be a transformer", "pass hm.load_transformer(path)")
    tokenised = model.tokenise(text)
    # The state after the last layer has no attention.
    parts = [_of_layer(layer, state) for layer, state in zip(model.layers, model.states(tokenised), strict=False)]
    attended, weights, numbers = (np.stack(part) for part in zip(*parts, strict=True))
    sinks = np.array(tokenised.special, dtype=bool)
    sinks[0] |= model.causal
    return WhoAttends(tokenised.words, sinks, attended, weights, numbers)


@torch.no_grad()
def _of_layer(layer: TransformerLayer, state: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rules = layer.rules or (None,) * layer.heads
    ones = state.new_ones(len(state))
    found = []
    for block in layer.score_blocks(layer.vectors(state[None])):
        own = [
            (Softmax(1.0) if rule is None else rule).weights(scores, block.seen, ones)
            for rule, scores in zip(rules, block.scores, strict=True)
        ]
        table = torch.stack(own).to(torch.float64)
        largest, which = table.max(dim=2)
        entropy = -torch.special.xlogy(table, table).sum(dim=2)
        found.append((torch.where(largest > 0, which, -1), largest, entropy.exp()))
    return tuple(torch.cat(part, dim=1).cpu().numpy() for part in zip(*found, strict=True))  # type: ignore[return-value]
