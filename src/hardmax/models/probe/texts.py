"""Measurements of one text: attention of every head, tokens at every depth, and the tokens that others attend to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..layer import TransformerLayer
from ..tokenisers import Tokenised
from ..transformer import Transformer
from .rows import FACTORS, SUMS, LayerRows, first_measured, in_sight, layer_rows
from .states import STATE_FIGURES, pulls, state_figures

HEAD_SUMS = (*SUMS, "loyal_rows", "loyalty", "loyalty_chance", "followers", "pull", "pull_chance")
"""Names of the sums per head in a :class:`TextRecord`."""
LAYER_SUMS = (*STATE_FIGURES, "followers", "pull", "pull_chance", "same_cluster", "same_cluster_chance")
"""Names of the figures per depth in a :class:`TextRecord`."""


@dataclass(frozen=True, eq=False)
class TextRecord:
    """Sums of one text, from which tables are made."""

    heads: np.ndarray
    """Shape (layers, heads, sums); the last axis is :data:`HEAD_SUMS`."""
    sharpened: np.ndarray
    """Shape (layers, heads, factors)."""
    layers: np.ndarray
    """Shape (layers + 1, figures); the last axis is :data:`LAYER_SUMS`."""
    leads: np.ndarray
    """Number of pairs (layer, head) in which a token is the argmax of another one, shape (tokens,)."""
    followers: np.ndarray
    """Number of rows, over layers and heads, whose argmax is the token, its own rows apart, shape (tokens,)."""
    received: np.ndarray
    """Mean over layers and heads of the sum of weights that the token receives, shape (tokens,)."""

    def arrays(self) -> dict[str, np.ndarray]:
        """The record as arrays, for files."""
        return dict(vars(self))


def sinks_of(text: Tokenised) -> np.ndarray:
    """True for the first token and for tokens that the tokeniser added, shape (tokens,)."""
    special = np.array(text.special, dtype=bool)
    special[0] = True
    return special


def text_record(
    model: Transformer, text: Tokenised, seed: tuple[int, int], heads: bool, tick: Callable[[], None]
) -> TextRecord:
    """Measurements of one text.

    Parameters
    ----------
    model
        The model.
    text
        A tokenised text of at least two tokens.
    seed
        Seed of the random tokens that pulls are compared with.
    heads
        Whether attention is measured; otherwise its sums are NaN.
    tick
        Called after each layer.

    Returns
    -------
    TextRecord
        Sums.
    """
    depth, count, tokens = len(model.layers), model.heads, len(text)
    generator, special = np.random.default_rng(seed), sinks_of(text)
    by_head = np.full((depth, count, len(HEAD_SUMS)), np.nan)
    by_layer = np.full((depth + 1, len(LAYER_SUMS)), np.nan)
    sharpened = np.full((depth, count, len(FACTORS)), np.nan)
    leads, followers, received = np.zeros(tokens), np.zeros(tokens), np.zeros(tokens)
    before: torch.Tensor | None = None
    earlier: LayerRows | None = None
    for number, state in enumerate(model.states(text)):
        figures, labels = state_figures(state)
        if heads and before is not None and earlier is not None:
            moved = _moves(model.layers[number - 1], earlier, before, state, labels, generator)
            _fill(by_head[number - 1], HEAD_SUMS, moved.by_head)
            _fill(by_layer[number - 1], LAYER_SUMS, moved.by_layer)
        _fill(by_layer[number], LAYER_SUMS, figures)
        if heads and number < depth:
            rows = layer_rows(model.layers[number], state, special)
            _fill(by_head[number], HEAD_SUMS, rows.sums)
            sharpened[number] = rows.sharpened
            if earlier is not None:
                start = first_measured(model.layers[number], tokens)
                _fill(by_head[number - 1], HEAD_SUMS, _loyalty(earlier, rows, start, model.tied))
            counts = _followers(rows.targets)
            leads += (counts > 0).sum(axis=0)
            followers += counts.sum(axis=0)
            received += rows.received.mean(axis=0) / depth
            earlier = rows
        before = state
        tick()
    return TextRecord(by_head, sharpened, by_layer, leads, followers, received)


def _fill(row: np.ndarray, names: tuple[str, ...], figures: dict[str, np.ndarray] | dict[str, float]) -> None:
    for name, value in figures.items():
        row[..., names.index(name)] = value


def _followers(targets: np.ndarray) -> np.ndarray:
    """Number of other tokens whose argmax each token is, shape (heads, tokens)."""
    heads, tokens = targets.shape
    others = targets != np.arange(tokens)
    return np.stack([np.bincount(targets[head][others[head]], minlength=tokens) for head in range(heads)])


def _loyalty(earlier: LayerRows, rows: LayerRows, start: int, tied: bool) -> dict[str, np.ndarray]:
    """Rows with the same argmax in the next layer: in the same head of tied models, else in a head drawn at random."""
    old, new = earlier.targets[:, start:], rows.targets[:, start:]
    heads, measured = old.shape
    tokens = earlier.targets.shape[1]
    used = np.stack([np.bincount(one, minlength=tokens) for one in old]) / measured
    next_used = np.stack([np.bincount(one, minlength=tokens) for one in new]) / measured
    if tied:
        agreed, chance = (old == new).mean(axis=1), (used * next_used).sum(axis=1)
    else:
        agreed = np.array([(one == new).mean() for one in old])
        chance = (used @ next_used.T).mean(axis=1)
    rows_each = np.full(heads, float(measured))
    return {"loyal_rows": rows_each, "loyalty": measured * agreed, "loyalty_chance": measured * chance}


@dataclass(frozen=True, eq=False)
class _Moved:
    by_head: dict[str, np.ndarray]
    by_layer: dict[str, float]


def _moves(
    layer: TransformerLayer,
    rows: LayerRows,
    before: torch.Tensor,
    after: torch.Tensor,
    labels: np.ndarray,
    generator: np.random.Generator,
) -> _Moved:
    """Pull of followers towards their argmax, and clusters that they share with it, beside a random token in sight.

    A follower is a measured row whose argmax is another token. ``labels`` are the clusters after the layer.
    """
    heads, tokens = rows.targets.shape
    start = first_measured(layer, tokens)
    points = before.to(torch.float64)
    moves = after.to(torch.float64) - points
    random = random_others(layer, tokens, heads, generator)
    outputs = layer.attention.output.to(torch.float64)
    width = layer.attention.width
    sums = {name: np.zeros(heads) for name in ("followers", "pull", "pull_chance")}
    totals = dict.fromkeys(("followers", "pull", "pull_chance", "same_cluster", "same_cluster_chance"), 0.0)
    for head in range(heads):
        at = np.flatnonzero((rows.targets[head] != np.arange(tokens)) & (np.arange(tokens) >= start))
        target, other = rows.targets[head][at], random[head][at]
        added = rows.mixed[head][at] @ outputs[:, head * width : (head + 1) * width].T
        sums["followers"][head] = len(at)
        sums["pull"][head] = float(pulls(added, points[at], points[target]).sum())
        sums["pull_chance"][head] = float(pulls(added, points[at], points[other]).sum())
        totals["followers"] += len(at)
        totals["pull"] += float(pulls(moves[at], points[at], points[target]).sum())
        totals["pull_chance"] += float(pulls(moves[at], points[at], points[other]).sum())
        totals["same_cluster"] += float((labels[at] == labels[target]).sum())
        totals["same_cluster_chance"] += float((labels[at] == labels[other]).sum())
    return _Moved(sums, totals)


def random_others(layer: TransformerLayer, tokens: int, heads: int, generator: np.random.Generator) -> np.ndarray:
    """A random token that each row sees, other than itself where there is one, shape (heads, tokens)."""
    first, last = in_sight(layer, tokens)
    drawn = first + np.floor(generator.random((heads, tokens)) * np.maximum(last - first, 1)).astype(np.int64)
    return np.where(last > first, drawn + (drawn >= np.arange(tokens)), np.arange(tokens))
