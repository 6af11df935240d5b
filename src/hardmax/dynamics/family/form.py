r"""Closed-form positions of tokens under steps that may depend on the layer.

A token decided at layer t with target T is at layer s at

.. math:: T + \lambda (z(t) - T) + (\rho - \lambda)\, p + \lambda \sum_k e_k q_k, \qquad
          \lambda = \prod_{u=t}^{s-1} \frac{1}{1+\alpha_u}, \quad
          \rho = \prod_{u=t}^{s-1} \frac{1 + \sigma \alpha_u}{1+\alpha_u},

where :math:`e_k` is the k-th elementary symmetric polynomial of the steps :math:`\alpha_t, \dots, \alpha_{s-1}`. Only
tokens that listen for ever to tokens that move have terms p and q (``docs/devdocs/attention-family.rst``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch

from ...attention.choice import Choice
from ...shapes import Indices, PerToken, Points, Square, Tokens
from ..assumptions import is_positive_definite, is_symmetric


class FamilyForm:
    """Positions of all tokens: that of an active token is its anchor, that of a decided one follows the formula."""

    def __init__(
        self, points: Tokens, alpha_at: Callable[[int], float | Fraction], remaining: Callable[[int], float]
    ) -> None:
        count, device = points.shape[0], points.device
        self.anchor = points.clone()
        self.target = points.clone()
        self.decided_at = torch.full((count,), -1, device=device)
        self.straight = torch.ones(count, dtype=torch.bool, device=device)
        self._alpha_at, self._remaining = alpha_at, remaining
        self._steps: list[float] = []
        self._logs = [0.0]  # sums of log(1 + alpha) over the layers before each
        self._bent: dict[int, tuple[float, torch.Tensor, torch.Tensor]] = {}
        self._chances: tuple[tuple[int, int, int], torch.Tensor] = ((-1, -1, -1), points[:0, 0])

    def step(self, layer: int) -> float:
        """Step size of a layer."""
        while len(self._steps) <= layer:
            alpha = float(self._alpha_at(len(self._steps)))
            self._steps.append(alpha)
            self._logs.append(self._logs[-1] + float(torch.log1p(torch.tensor(alpha, dtype=torch.float64))))
        return self._steps[layer]

    def move(self, tokens: Indices, means: Tokens, layer: int, size: PerToken) -> None:
        """Move active tokens by the step of this layer towards the means that they listen to."""
        alpha, before = self.step(layer), self.anchor[tokens]
        after = (before + alpha * means) / (1 + alpha)
        # A token that moved to zero must not be left with the direction of a rounding error.
        rounding = 4 * torch.finfo(after.dtype).eps * size
        lost = (after.abs().amax(dim=1) <= rounding) & (before.abs().amax(dim=1) > rounding)
        self.anchor[tokens] = self.target[tokens] = torch.where(lost[:, None], 0.0, after)

    def settle(self, tokens: Indices, targets: Tokens, layer: int) -> None:
        """Set tokens that from this layer on converge to their targets on straight lines."""
        self.target[tokens] = targets
        self.decided_at[tokens] = layer

    def bend(self, tokens: Indices, share: torch.Tensor, slow: Tokens, resonant: torch.Tensor) -> None:
        r"""Give settled tokens the terms with :math:`\sigma` = ``share``, p = ``slow`` and :math:`q_1, q_2, \dots`.

        ``resonant`` has the shape (terms, tokens, d).
        """
        self.straight[tokens] = False
        for k, token in enumerate(tokens.tolist()):
            self._bent[token] = (float(share[k]), slow[k], resonant[:, k])

    def positions(self, layer: int, which: Indices | None = None) -> Points:
        """Positions of some tokens (of all if None), shape (tokens, d), at a layer not before any decision."""
        anchor = self.anchor if which is None else self.anchor[which]
        if layer == 0:
            return anchor
        target = self.target if which is None else self.target[which]
        decided_at = (self.decided_at if which is None else self.decided_at[which]).clamp_min(0)
        self.step(layer - 1)
        logs = torch.tensor(self._logs[: layer + 1], dtype=anchor.dtype, device=anchor.device)
        share = torch.exp(logs[decided_at] - logs[layer])
        # The distance of a token at rest is zero, and its position stays what it is to the last bit.
        places = target + share[:, None] * (anchor - target)
        if self._bent:
            rows = torch.nonzero(~(self.straight if which is None else self.straight[which]))[:, 0]
            for row in rows.tolist():
                token = row if which is None else int(which[row])
                places[row] += self._bend_of(token, layer, float(share[row]))
        return places

    def limit(self) -> Points:
        """Limit of every token, shape (tokens, d); for an undecided one its position."""
        limit = self.target.clone()
        for layer in torch.unique(self.decided_at[self.decided_at >= 0]).tolist():
            short = self._remaining(layer)
            if short > 0:  # the steps have a finite sum
                rows = self.decided_at == layer
                limit[rows] += short * (self.anchor[rows] - limit[rows])
        return limit

    def _bend_of(self, token: int, layer: int, fast: float) -> torch.Tensor:
        share, slow, resonant = self._bent[token]
        start = int(self.decided_at[token])
        bend = torch.zeros_like(slow)
        if bool(slow.any()):
            steps = torch.tensor(self._steps[start:layer], dtype=torch.float64)
            rate = float(torch.exp((torch.log1p(share * steps) - torch.log1p(steps)).sum()))
            bend = (rate - fast) * slow
        return bend + (self._weights_of_rounds(start, layer, len(resonant))[:, None] * resonant).sum(dim=0)

    def _weights_of_rounds(self, start: int, layer: int, count: int) -> torch.Tensor:
        """Weights lambda e_1, …, lambda e_count, shape (count,).

        They are the probabilities of 1, …, count successes where layer u succeeds with alpha_u / (1 + alpha_u).
        """
        if self._chances[0] != (start, layer, count):
            chances = [1.0] + [0.0] * count
            for alpha in self._steps[start:layer]:
                success = alpha / (1 + alpha)
                for k in range(count, 0, -1):
                    chances[k] += success * (chances[k - 1] - chances[k])
                chances[0] *= 1 - success
            weights = torch.tensor(chances[1:], dtype=torch.float64, device=self.anchor.device)
            self._chances = ((start, layer, count), weights)
        return self._chances[1]


@dataclass(frozen=True, eq=False)
class FamilySystem:
    """Tokens with their closed form, and the heads, shares, mask and tolerance that move them."""

    form: FamilyForm
    weights: PerToken
    matrices: tuple[Square, ...]
    """Score matrix of each head."""
    shares: tuple[float, ...]
    causal: bool
    """Whether token i sees the tokens up to i; otherwise every token sees all."""
    tolerance: float
    search: Callable[..., Choice]
    """Search for the points of the largest score in sight."""
    remaining: Callable[[int], float]
    """Share of the distance to its target that a token decided at this layer never covers."""
    sizes: PerToken
    """Largest coordinate that each token saw at the start; rounding errors are relative to it."""
    zero_at_start: torch.Tensor
    definite: bool
    """Whether rounding errors stay small relative to the tokens, because no token ever gets shorter."""

    @staticmethod
    def of(
        points: Tokens,
        weights: PerToken,
        matrices: Sequence[Square],
        shares: Sequence[float],
        alpha_at: Callable[[int], float | Fraction],
        remaining: Callable[[int], float],
        causal: bool,
        tolerance: float,
        search: Callable[..., Choice],
    ) -> FamilySystem:
        """The system of these tokens at layer 0."""
        sizes = points.abs().amax(dim=1)
        return FamilySystem(
            form=FamilyForm(points, alpha_at, remaining),
            weights=weights,
            matrices=tuple(matrices),
            shares=tuple(shares),
            causal=causal,
            tolerance=tolerance,
            search=search,
            remaining=remaining,
            sizes=sizes.cummax(dim=0).values if causal else sizes.max().expand(len(sizes)),
            zero_at_start=sizes == 0,
            # With one symmetric positive definite matrix the norm that belongs to it never decreases.
            definite=len(matrices) == 1 and is_symmetric(matrices[0]) and is_positive_definite(matrices[0]),
        )

    def mean_of_heads(self, means: Sequence[Tokens]) -> Tokens:
        """Sum over the heads of their means, weighed by the shares, in the order of the heads."""
        if len(means) == 1:
            return means[0]
        total = self.shares[0] * means[0]
        for share, mean in zip(self.shares[1:], means[1:], strict=True):
            total = total + share * mean
        return total
