r"""Attention of one layer on one text: sums over rows in every head, computed block by block of rows.

A row is a token that attends. Its scores :math:`s_{ij}` over the :math:`n_i` tokens in sight give softmax weights
:math:`p_{ij}`; the argmax, the token of the largest score, is the lowest index where several tie. Nothing of size
(tokens, tokens) is held for more than a block of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ...attention.choice import TIE_UNITS
from ...attention.weighting import Hardmax
from ..layer import ScoreBlock, TransformerLayer

# Scores in float64 that are worked on at once: 2^20 numbers are 8 MB, and some ten arrays of this size exist at a time.
_MOST_AT_ONCE = 2**20
# Rounding of a mean of values in float64, relative to the largest of them: some hundreds of units in the last place.
_ROUNDING = 1e-13
# Rows of a causal model that see fewer tokens have a large weight by necessity and are left out of the statistics.
FEWEST_IN_SIGHT = 16
# Factors on the inverse temperature at which the largest weight is evaluated: two per octave, from 1/16 to 1024.
FACTORS = 2.0 ** (np.arange(-8, 21) / 2)

SUMS = (
    "rows",
    "tau",
    "largest_weight",
    "largest_weight_chance",
    "attended",
    "entropy",
    "effective_beta",
    "error",
    "bound",
    "size",
    "bound_violations",
    "sink_share",
    "special_share",
    "self_share",
    "ends_in_leader",
    "ends_in_pair",
    "ends_in_cycle",
    "ends_in_leader_chance",
    "ends_in_cycle_chance",
    "distinct_targets",
    "distinct_targets_chance",
)
"""Names of the sums over rows, per head."""


@dataclass(frozen=True, eq=False)
class LayerRows:
    """Attention of one layer on one text."""

    sums: dict[str, np.ndarray]
    """Sum over the measured rows by name, each of shape (heads,); see :data:`SUMS`."""
    sharpened: np.ndarray
    """Sum over rows of the largest weight at each of :data:`FACTORS`, shape (heads, factors)."""
    targets: np.ndarray
    """Argmax of each row, shape (heads, tokens)."""
    weights: np.ndarray
    """Largest weight of each row, shape (heads, tokens)."""
    received: np.ndarray
    """Sum of the weights that each token receives, shape (heads, tokens)."""
    mixed: torch.Tensor
    """Weighted mean of the values, per head and row, float64, shape (heads, tokens, width)."""


def first_measured(layer: TransformerLayer, tokens: int) -> int:
    """First row that enters the statistics: 0 without a causal mask."""
    return min(FEWEST_IN_SIGHT, tokens // 2) if layer.causal else 0


def in_sight(layer: TransformerLayer, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """First and last token that each row sees, each of shape (tokens,)."""
    rows = np.arange(tokens)
    if not layer.causal:
        return np.zeros_like(rows), np.full_like(rows, tokens - 1)
    return np.zeros_like(rows) if layer.window is None else np.maximum(0, rows - layer.window + 1), rows


def layer_rows(layer: TransformerLayer, state: torch.Tensor, special: np.ndarray) -> LayerRows:
    """Attention of one layer on one text.

    Parameters
    ----------
    layer
        The layer; its own softmax is measured, whatever rules it has.
    state
        Tokens before the layer, shape (tokens, d).
    special
        True for the first token and for tokens that the tokeniser added, shape (tokens,).

    Returns
    -------
    LayerRows
        Sums over rows, argmaxes and weights.
    """
    vectors = layer.vectors(state[None])
    heads, tokens = vectors.keys.shape[1:3]
    start = first_measured(layer, tokens)
    sums = {name: np.zeros(heads) for name in SUMS}
    sharpened = np.zeros((heads, len(FACTORS)))
    targets, weights = np.zeros((heads, tokens), dtype=np.int64), np.zeros((heads, tokens))
    values = vectors.values[0].to(torch.float64)
    received, missed = values.new_zeros(heads, tokens), values.new_zeros(tokens)
    mixed = torch.empty_like(values)
    marked = torch.as_tensor(special, device=values.device)
    for block in layer.score_blocks(vectors):
        for part in _small_parts(block):
            found = _Rows(part, values)
            rows = part.rows
            targets[:, rows], weights[:, rows] = found.target.cpu().numpy(), found.largest.cpu().numpy()
            received += found.weights.sum(dim=1)
            mixed[:, rows] = found.soft
            measured = torch.arange(rows.start, rows.stop, device=values.device) >= start
            if not bool(measured.any()):
                continue
            for name, one in found.figures(marked).items():
                sums[name] += one[:, measured].sum(dim=1).cpu().numpy()
            sharpened += found.sharpened(measured).cpu().numpy()
            # Logarithm of the chance that no measured row selects a token, were targets drawn at random.
            miss = torch.log1p(-1 / found.count).clamp_min(-1e9)[measured, None]
            missed += torch.where(part.seen[measured], miss, 0.0).sum(dim=0)
    measured_rows = tokens - start
    sums["rows"] += measured_rows
    norms = layer.attention.scale * vectors.queries[0].norm(dim=-1).mean(1) * vectors.keys[0].norm(dim=-1).mean(1)
    sums["effective_beta"] += measured_rows * norms.to(torch.float64).cpu().numpy()
    sums["distinct_targets"] += [len(np.unique(row[start:])) for row in targets]
    sums["distinct_targets_chance"] += float((1 - missed.exp()).sum())
    leader, pair = _chain_ends(targets[:, start:], targets)
    sums["ends_in_leader"] += leader.sum(axis=1)
    sums["ends_in_pair"] += pair.sum(axis=1)
    sums["ends_in_cycle"] += (~leader & ~pair).sum(axis=1)
    chance = _chain_chances(tokens) if not layer.causal else (1.0, 0.0)
    sums["ends_in_leader_chance"] += measured_rows * chance[0]
    sums["ends_in_cycle_chance"] += measured_rows * chance[1]
    return LayerRows(sums, sharpened, targets, weights, received.cpu().numpy(), mixed)


def _small_parts(block: ScoreBlock) -> Iterator[ScoreBlock]:
    heads, rows, tokens = block.scores.shape
    size = max(1, _MOST_AT_ONCE // (heads * tokens))
    for first in range(0, rows, size):
        last = min(first + size, rows)
        places = slice(block.rows.start + first, block.rows.start + last)
        yield ScoreBlock(places, block.scores[:, first:last], block.seen[first:last])


class _Rows:
    """Softmax and hardmax of some rows in every head, in float64."""

    def __init__(self, part: ScoreBlock, values: torch.Tensor) -> None:
        heads, rows, tokens = part.scores.shape
        self._rows, self._values = part.rows, values
        self.seen = part.seen
        self.count = part.seen.sum(dim=1).to(torch.float64)
        ones = part.scores.new_ones(tokens)
        # The rule of the interventions, in the precision of the model: ties are decided in the same way.
        flat = part.scores.reshape(heads * rows, tokens)
        self._tied = (Hardmax().weights(flat, part.seen.repeat(heads, 1), ones) > 0).reshape(heads, rows, tokens)
        self.target = self._tied.to(torch.uint8).argmax(dim=2)
        self._scores = part.scores.to(torch.float64).masked_fill(~part.seen, -torch.inf)
        self._rounding = TIE_UNITS * torch.finfo(part.scores.dtype).eps
        self._top = self._scores.amax(dim=2)
        self.weights = torch.softmax(self._scores, dim=2)
        self.largest = self.weights.amax(dim=2)
        self.soft = self.weights @ values

    def figures(self, special: torch.Tensor) -> dict[str, torch.Tensor]:
        """Statistics of each row by name, each of shape (heads, rows)."""
        places = torch.arange(self._rows.start, self._rows.stop, device=self.target.device)
        entropy = torch.special.entr(self.weights).sum(dim=2)
        most = self.count.log()
        # A row that sees one token has one weight: its entropy is relative to itself, and its scores have no spread.
        relative = torch.where(self.count > 1, entropy / most.clamp_min(1e-300), 1.0)
        error, bound, violated = self._hardmax_error()
        return {
            "tau": self._tau(most),
            "largest_weight": self.largest,
            "largest_weight_chance": (1 / self.count).expand_as(self.largest),
            "attended": entropy.exp(),
            "entropy": relative,
            "error": error,
            "bound": bound,
            "size": self.soft.norm(dim=2),
            "bound_violations": violated.to(torch.float64),
            "sink_share": (self.target == 0).to(torch.float64),
            "special_share": special[self.target].to(torch.float64),
            "self_share": (self.target == places).to(torch.float64),
        }

    def _tau(self, most: torch.Tensor) -> torch.Tensor:
        below = torch.where(self.seen, self._scores - self._top[..., None], 0.0)
        mean = below.sum(dim=2) / self.count
        squares = torch.where(self.seen, below - mean[..., None], 0.0).square().sum(dim=2)
        spread = (squares / (self.count - 1).clamp_min(1)).sqrt()
        return torch.where(self.count > 1, spread / (2 * most).clamp_min(1e-300).sqrt(), 0.0)

    def _hardmax_error(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        r"""Distance of soft and hard attention, its bound, and where the bound fails, each of shape (heads, rows).

        With the set T of tokens that tie for the largest score,
        :math:`|soft - hard| \le (1 - p(T)) \max_j |v_j - hard|`.
        """
        middle = self._values.mean(dim=1, keepdim=True)
        values = self._values - middle
        squares = values.square().sum(dim=2)
        spread = squares.amax(dim=1).sqrt()[:, None]
        share = self._tied.to(torch.float64)
        hard = (share / share.sum(dim=2, keepdim=True)) @ values
        error = (self.soft - middle - hard).norm(dim=2)
        distances = squares[:, None] - 2 * hard @ values.transpose(1, 2) + hard.square().sum(dim=2, keepdim=True)
        farthest = distances.masked_fill(~self.seen, 0.0).amax(dim=2).clamp_min(0).sqrt()
        rest = (self.weights * ~self._tied).sum(dim=2)
        bound = rest * farthest
        # Scores that tie differ by rounding, and so do their weights; distances lose half of the digits.
        largest = torch.where(self.seen, self._scores, 0.0).abs().amax(dim=2)
        ties = torch.expm1((self._rounding * largest).clamp_max(1.0))
        # Where all values agree their spread is rounding itself, which is relative to their size.
        size = self._values.norm(dim=2).amax(dim=1)[:, None]
        allowed = spread * (1e-7 * rest + 2 * ties + 1e-12) + _ROUNDING * size
        return error, bound, error > bound + allowed

    def sharpened(self, measured: torch.Tensor) -> torch.Tensor:
        """Sum over rows of the largest weight at each factor on the inverse temperature, shape (heads, factors)."""
        below = self._scores[:, measured] - self._top[:, measured, None]
        found: list[torch.Tensor | None] = [None] * len(FACTORS)
        for first in range(2):
            powers = (FACTORS[first] * below).exp()
            for k in range(first, len(FACTORS), 2):
                found[k] = (1 / powers.sum(dim=2)).sum(dim=1)
                # The next factor of this chain is twice as large.
                powers = powers.square_()
        return torch.stack([one for one in found if one is not None], dim=1)


def _chain_ends(rows: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether the chain of argmaxes from each row ends in one token, or in a pair that attend to each other."""
    last = targets
    for _ in range(max(1, math.ceil(math.log2(targets.shape[1])))):
        last = np.take_along_axis(last, last, axis=1)
    ends = np.take_along_axis(last, rows, axis=1)
    once = np.take_along_axis(targets, ends, axis=1)
    twice = np.take_along_axis(targets, once, axis=1)
    return once == ends, (once != ends) & (twice == ends)


def _chain_chances(tokens: int) -> tuple[float, float]:
    """Chances that a chain ends in one token, and in a cycle of three or more, where targets are drawn at random.

    In a random map of n points the chain from a point visits m different points with probability
    m (n)_m / n^(m + 1), and its cycle has each length from 1 to m with the same probability.
    """
    steps = np.arange(1, tokens + 1)
    visits = np.cumprod(1 - (steps - 1) / tokens) / tokens
    alone = float(visits.sum())
    return alone, max(0.0, 1 - alone - float(visits[1:].sum()))


def factor_for(sharpened: np.ndarray, rows: np.ndarray, wanted: float = 0.9) -> np.ndarray:
    """Factor on the inverse temperature at which the mean largest weight is ``wanted``, shape (heads,).

    Interpolated in the logarithm between the :data:`FACTORS`; the smallest of them where it is enough, infinity where
    the largest is not.
    """
    found = np.full(len(sharpened), np.inf)
    for head, row in enumerate(sharpened / rows[:, None]):
        reached = row >= wanted
        if not reached.any():
            continue
        k = int(reached.argmax())
        if k == 0:
            found[head] = FACTORS[0]
            continue
        share = (wanted - row[k - 1]) / (row[k] - row[k - 1])
        found[head] = FACTORS[k - 1] * (FACTORS[k] / FACTORS[k - 1]) ** share
    return found
