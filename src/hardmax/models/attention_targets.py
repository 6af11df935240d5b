"""The token that each token attends to most, in every layer and head of a model, under its attention rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas
import torch

from ..attention.weighting import Softmax
from ..errors import InputError
from ..scalars import shown
from .layer import TransformerLayer
from .transformer import TextOrIds, Transformer


@dataclass(frozen=True, eq=False)
class AttentionTargets:
    """Attention of every head of a model on one text; memory grows with the tokens, not with their square."""

    words: tuple[str, ...]
    """Tokens as they are read."""
    sinks: np.ndarray
    """True for tokens that often take attention without meaning: the first one, and those that the tokeniser added;
    shape (tokens,)."""
    targets: np.ndarray
    """Argmax of each token, shape (layers, heads, tokens); -1 where all weights are zero."""
    weights: np.ndarray
    """Weight on the argmax, shape (layers, heads, tokens)."""
    attended: np.ndarray
    """Effective number of tokens attended to, the exponential of the entropy, shape (layers, heads, tokens)."""
    received: np.ndarray
    """Sum of the weights that each token receives, shape (layers, heads, tokens)."""

    def heads(self, layer: int) -> pandas.DataFrame:
        """Table with one row per head of a layer.

        Parameters
        ----------
        layer
            Number of the layer, from 0.

        Returns
        -------
        DataFrame
            ``layer, head``; means over tokens: ``largest_weight``, ``attended`` (effective number of tokens),
            ``special_share`` (argmax is the first or a special token); and ``distinct_targets``.
        """
        if isinstance(layer, bool) or not isinstance(layer, (int, np.integer)) or not 0 <= layer < len(self.targets):
            raise InputError("layer", shown(layer), f"must be a layer from 0 to {len(self.targets) - 1}", "pass 0")
        targets = self.targets[layer]
        return pandas.DataFrame(
            {
                "layer": int(layer),
                "head": np.arange(len(targets)),
                "largest_weight": self.weights[layer].mean(axis=1),
                "attended": self.attended[layer].mean(axis=1),
                "special_share": ((targets >= 0) & self.sinks[targets]).mean(axis=1),
                "distinct_targets": [len(set(row[row >= 0].tolist())) for row in targets],
            }
        )

    def leading_head(self) -> tuple[int, int]:
        """Layer and head with the largest weight on several leaders: tokens, sinks apart, that others attend to.

        Returns
        -------
        tuple of int
            Layer and head.
        """
        counted = np.zeros(self.targets.shape[:2])
        for layer, head in np.ndindex(counted.shape):
            row = self.targets[layer, head]
            others = (row >= 0) & (row != np.arange(len(row))) & ~self.sinks[row]
            followers = np.bincount(row[others], minlength=len(row))
            led = followers[followers > 1]
            # A single leader of all others behaves like a sink and does not count.
            several = 1 - led.max() / led.sum() if len(led) else 0.0
            counted[layer, head] = several * self.weights[layer, head][others & (followers[row] > 1)].sum()
        layer, head = np.unravel_index(int(counted.argmax()), counted.shape)
        return int(layer), int(head)


def attention_targets(model: Transformer, text: TextOrIds) -> AttentionTargets:
    """The token that each token attends to most, in every layer and head, each of shape (layers, heads, tokens).

    Parameters
    ----------
    model
        The model, with the attention rules that :meth:`Transformer.with_attention` gave it.
    text
        A text, or the numbers of its tokens.

    Returns
    -------
    AttentionTargets
        Argmaxes (the lowest index where several tie), their weights, the effective number of tokens attended to, and
        the weight that each token receives.

    Examples
    --------
    >>> import hardmax as hm
    >>> model = hm.models.random_transformer(layers=2, heads=2, d=8, vocabulary=20, random_state=0)
    >>> hm.models.attention_targets(model, [3, 1, 4]).targets.shape
    (2, 2, 3)
    """
    found = _transformer(model).tokenise(text)
    # The state after the last layer has no attention.
    parts = [_of_layer(layer, state) for layer, state in zip(model.layers, model.states(found), strict=False)]
    sinks = np.array(found.special, dtype=bool)
    sinks[0] = True
    return AttentionTargets(found.words, sinks, *(np.stack(part) for part in zip(*parts, strict=True)))


def _transformer(model: object) -> Transformer:
    if not isinstance(model, Transformer):
        raise InputError("model", shown(model), "must be a transformer", "load one with hm.load_transformer(folder)")
    return model


@torch.no_grad()
def _of_layer(layer: TransformerLayer, state: torch.Tensor) -> tuple[np.ndarray, ...]:
    rules = layer.rules or (None,) * layer.heads
    ones = state.new_ones(len(state))
    received = torch.zeros(layer.heads, len(state), dtype=torch.float64, device=state.device)
    found = []
    for block in layer.score_blocks(layer.vectors(state[None])):
        rows = [
            (Softmax(1.0) if rule is None else rule).weights(scores, block.seen, ones)
            for rule, scores in zip(rules, block.scores, strict=True)
        ]
        table = torch.stack(rows).to(torch.float64)
        largest, which = table.max(dim=2)
        received += table.sum(dim=1)
        entropy = -torch.special.xlogy(table, table).sum(dim=2)
        found.append((torch.where(largest > 0, which, -1), largest, entropy.exp()))
    by_row = (torch.cat(part, dim=1) for part in zip(*found, strict=True))
    return tuple(one.cpu().numpy() for one in (*by_row, received))
