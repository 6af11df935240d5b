"""Evaluation of attention on the sphere; the method depends on shape and temperature, the result does not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.special import betainc, betaincinv

from ..attention import kernels, softmax_rows
from ..errors import InputError
from ..shapes import PerToken, Queries, Square, Tokens
from .fast_attention import GROUP, circle_mean, modes, truncated_mean
from .rows import rows_mean, rows_mean_in_log_domain, symmetric_mean, symmetric_range

Method = Literal["auto", "rows", "symmetric", "sdpa", "circle", "truncated"]
METHODS: tuple[Method, ...] = ("auto", "rows", "symmetric", "sdpa", "circle", "truncated")

# Nanoseconds on one core of an x86-64 server in float64; their ratios decide which method runs.
_PAIR, _SYMMETRIC_PAIR, _TRUNCATED_PAIR, _MODE = 1.3, 0.75, 3.5, 10.5
_CALL, _TRUNCATED_QUERY = 15_000.0, 400.0
# A larger share of pairs is evaluated faster by rows; with fewer coordinates fused attention is slower than rows.
_LARGEST_SHARE = 0.35
_SDPA_COORDINATES = 12
_DEVICE_ENTRIES = 1 << 26  # scores per block: 512 MiB of float64

# The circle's modes grow with the square root of beta |B|: this many take about a minute for a hundred tokens.
_MOST_MODES = 10_000_000


@dataclass(frozen=True)
class Evaluation:
    """Method of evaluation, and precision of scores and exponentials."""

    method: Method = "auto"
    dtype: torch.dtype = torch.float64

    @property
    def tolerance(self) -> float:
        """Largest relative change by a key that is left out."""
        return 1e-15 if self.dtype == torch.float64 else 1e-8

    def mean(self, tokens: Tokens, scores: Square, weights: PerToken, queries: Queries | None = None) -> Queries:
        """Mean of tokens y with weights w exp(<scores x, y>) per query x (the tokens themselves when None)."""
        asking = tokens if queries is None else queries
        limit = torch.finfo(self.dtype).max
        size = float(torch.linalg.matrix_norm(scores.detach(), ord=2))
        if not size < 0.01 * limit:
            raise InputError(
                "beta",
                f"beta |B| = {size:.3g}",
                f"must stay below {0.01 * limit:.3g} for {self.dtype}",
                "pass beta=inf for the zero-temperature field, or SphereHardmaxFlow for finite tokens",
            )
        mass = weights / weights.max()
        if tokens.is_cuda or any(tensor.requires_grad for tensor in (tokens, asking, scores, weights)):
            return _in_torch(asking @ scores.T, tokens, mass, self.dtype).to(tokens.dtype)
        kind = np.float64 if self.dtype == torch.float64 else np.float32
        keys, heavy = tokens.numpy(), mass.numpy()
        logits = (asking @ scores.T).numpy()
        mean = self._on_cpu(keys, heavy, logits, scores.numpy(), queries is None, kind)
        return torch.from_numpy(np.asarray(mean, dtype=np.float64))

    def _on_cpu(
        self,
        keys: np.ndarray,
        mass: np.ndarray,
        logits: np.ndarray,
        scores: np.ndarray,
        own: bool,
        kind: type[np.floating],
    ) -> np.ndarray:
        method = self.method if self.method != "auto" else self._chosen(keys, logits, scores, own)
        if method == "circle":
            if keys.shape[1] != 2:
                raise InputError("evaluation", "circle", "is only for d = 2", 'pass evaluation="auto"')
            count = modes(float(np.hypot(logits[:, 0], logits[:, 1]).max()), 1e-17)
            if count > _MOST_MODES:
                needed = f"{float(count):.3g} modes"
                raise InputError(
                    "evaluation", needed, f'"circle" must need at most {_MOST_MODES}', 'pass evaluation="auto"'
                )
            mean, left = circle_mean(logits, keys, mass)
            if len(left):
                mean[left] = self._dense(logits[left], keys, mass, kind)
            return mean
        if method == "truncated":
            return self._truncated(logits, keys, mass, kind, 1.0 if self.method == "truncated" else _LARGEST_SHARE)
        if method == "symmetric":
            if not own or not _is_symmetric_psd(scores):
                raise InputError(
                    "evaluation",
                    "symmetric",
                    "needs B symmetric positive semi-definite",
                    'pass evaluation="auto"',
                )
            return symmetric_mean(keys.astype(kind), scores.astype(kind), mass.astype(kind))
        if method == "sdpa":
            rows = torch.from_numpy(logits), torch.from_numpy(keys), torch.from_numpy(mass)
            return _scaled_dot_product(*rows, self.dtype).numpy()
        return self._dense(logits, keys, mass, kind)

    def _truncated(
        self, logits: np.ndarray, keys: np.ndarray, mass: np.ndarray, kind: type[np.floating], share: float
    ) -> np.ndarray:
        near = truncated_mean(
            logits.astype(kind),
            keys.astype(kind),
            mass.astype(kind),
            tolerance=self.tolerance,
            largest_share=share,
        )
        return self._dense(logits, keys, mass, kind) if near is None else near

    def _dense(self, logits: np.ndarray, keys: np.ndarray, mass: np.ndarray, kind: type[np.floating]) -> np.ndarray:
        asking, points, heavy = logits.astype(kind), keys.astype(kind), mass.astype(kind)
        if len(asking) * len(points) < 1 << 14:  # tiles cost more than a pass for the maximum
            return rows_mean_in_log_domain(asking, points, heavy)
        return rows_mean(asking, points, heavy)

    def _chosen(self, keys: np.ndarray, logits: np.ndarray, scores: np.ndarray, own: bool) -> Method:
        n, d = keys.shape
        largest = max(float(np.abs(logits).max()), float(np.finfo(np.float64).tiny))
        kappa = largest * np.sqrt(np.einsum("ij,ij->i", logits / largest, logits / largest))
        fast = 0.5 if self.dtype == torch.float32 else 1.0
        pairs = float(len(logits)) * n
        costs: dict[Method, float] = {"rows": fast * _PAIR * pairs}
        if self.dtype == torch.float32 and d >= _SDPA_COORDINATES:
            costs["sdpa"] = 0.9 * costs["rows"]
        largest = 30.0 if self.dtype == torch.float32 else 250.0
        if own and _is_symmetric_psd(scores) and symmetric_range(keys, scores) < largest:
            costs["symmetric"] = fast * _SYMMETRIC_PAIR * pairs
        if d == 2:
            count = modes(float(kappa.max()), 1e-17)
            costs["circle"] = count * (_MODE * len(logits) + _CALL)
        share = _needed_share(n, d, float(np.median(kappa)), math.log(n / self.tolerance))
        if share < _LARGEST_SHARE:
            costs["truncated"] = _TRUNCATED_PAIR * share * pairs + _TRUNCATED_QUERY * len(logits)
        return min(costs, key=costs.__getitem__)


def _needed_share(n: int, d: int, kappa: float, depth: float) -> float:
    """Share of evenly spread tokens that truncated rows evaluate: a cap and the groups that touch it."""
    if d < 2 or n <= 4 * GROUP or kappa <= depth:
        return 1.0
    group = math.asin(math.sqrt(betaincinv(0.5 * (d - 1), 0.5, 2 * GROUP / n)))
    angle = math.acos(1 - depth / kappa) + 2 * group
    return 1.0 if angle >= 0.5 * math.pi else 0.5 * float(betainc(0.5 * (d - 1), 0.5, math.sin(angle) ** 2))


def _is_symmetric_psd(scores: np.ndarray) -> bool:
    if not np.array_equal(scores, scores.T):
        return False
    return bool(np.linalg.eigvalsh(scores)[0] >= 0)


def _scaled_dot_product(logits: Queries, keys: Tokens, mass: PerToken, dtype: torch.dtype) -> Queries:
    """Torch's fused attention; unequal weights enter as logarithms in one more coordinate."""
    if bool((mass == mass[0]).all()):
        # Without that coordinate 16 stay 16, which the kernel is made for.
        query, key = logits.to(dtype)[None, None], keys.to(dtype)[None, None]
        return torch.nn.functional.scaled_dot_product_attention(query, key, key, scale=1.0)[0, 0]
    one = torch.ones_like(logits[:, :1])
    query = torch.cat([logits, one], dim=1).to(dtype)[None, None]
    key = torch.cat([keys, mass.log().clamp_min(-1e30)[:, None]], dim=1).to(dtype)[None, None]
    value = torch.cat([keys, torch.zeros_like(keys[:, :1])], dim=1).to(dtype)[None, None]
    heard = torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=1.0)
    return heard[0, 0, :, :-1]


def _in_torch(logits: Queries, keys: Tokens, mass: PerToken, dtype: torch.dtype) -> Queries:
    """Means by blocks of rows whose scores fit in memory, on a GPU or with gradients."""
    if dtype == torch.float32 and not keys.requires_grad:
        if kernels.usable(keys.device) and softmax_rows.takes(keys.shape[1]):
            alike = bool((mass == mass[0]).all())
            return softmax_rows.softmax_means(logits, keys, None if alike else mass)
        return _scaled_dot_product(logits, keys, mass, dtype)
    rows = max(1, _DEVICE_ENTRIES // len(keys))
    points, log_mass = keys.to(dtype), mass.log().to(dtype)
    blocks = (logits[top : top + rows].to(dtype) for top in range(0, len(logits), rows))
    return torch.cat([torch.softmax(block @ points.T + log_mass, dim=1) @ points for block in blocks])
