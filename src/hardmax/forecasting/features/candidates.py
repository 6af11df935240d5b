"""Candidate feature maps: lags for TD-DMD, polynomials for NG-RC, principal delay coordinates, reservoirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..data.delay_windows import Embedding, lags, principal
from ..protocol import FloatArray
from .feature_map import FeatureMap, monomial_count
from .reservoir import ReservoirDraw

NOISES = (0.0, 1e-3, 1e-2)
"""Levels of noise added to windows in fits, in standard deviations of the data."""
# Roughly geometric, so that few windows and ranks cover all sizes.
_LINEAR_WINDOWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 300)
_RANKS = (2, 3, 4, 6, 8, 10, 12, 16, 24, 32)
_MOST_LINEAR = 400
"""Lags times channels at most in a linear model without truncation: the cost of a fit is quadratic in it."""
_MOST_FEATURES = 330
"""Monomials at most: all of degree up to 4 in 7 coordinates."""


@dataclass(frozen=True)
class Group:
    """Nested feature maps, smallest first: the features of each are the leading features of the next."""

    family: str
    label: str
    nested: tuple[FeatureMap, ...]


class Embeddings:
    """Principal coordinates of the training windows, computed once per window length."""

    def __init__(self, trajectories: Sequence[FloatArray]) -> None:
        self._trajectories = trajectories
        self._widest = lru_cache(maxsize=32)(self._compute)

    def _compute(self, length: int) -> Embedding:
        width = length * self._trajectories[0].shape[1]
        return principal(self._trajectories, length, min(width, max(_RANKS)))

    def principal(self, length: int, rank: int) -> Embedding:
        """Embedding by the leading ``rank`` coordinates of windows of this length."""
        widest = self._widest(length)
        assert widest.matrix is not None  # noqa: S101 (principal coordinates always project)
        return replace(widest, matrix=np.ascontiguousarray(widest.matrix[:, :rank]))


def linear_groups(channels: int, longest: int) -> Iterator[Group]:
    """TD-DMD with windows of many lengths, which are independent of the windows of nonlinear features."""
    for length in sorted({*(w for w in _LINEAR_WINDOWS if w <= longest), longest}):
        if length * channels <= _MOST_LINEAR or length == 1:
            yield Group("linear", f"TD-DMD, window {length}", (FeatureMap(channels, lags(channels, length)),))


def truncated_groups(channels: int, longest: int, embeddings: Embeddings) -> Iterator[Group]:
    """TD-DMD on a few principal coordinates of long windows, which average noise before it is fed back."""
    for length in sorted({max(2, longest // 4), max(2, longest // 2), longest}):
        ranks = [rank for rank in _RANKS if rank < length * channels]
        if not ranks or length > longest or length * channels > 1500:
            continue
        # The latest sample is a feature too, so that its noise can be subtracted from the residual form.
        latest = lags(channels, 1)
        maps = tuple(FeatureMap(channels, latest, embeddings.principal(length, rank)) for rank in ranks)
        yield Group("linear", f"TD-DMD, window {length}, truncated", maps)


def lag_polynomial_groups(channels: int, spacing: int, longest: int) -> Iterator[Group]:
    """NG-RC: monomials of a few lags of several spacings."""
    shapes = [(1, 1)] if channels > 1 else [(1, 1), (2, 1)]
    counts = (2, 3) if channels > 1 else (3, 4, 5, 6, 8)
    gaps = sorted({1, max(1, round(spacing / 4)), max(1, round(spacing / 2)), spacing})
    shapes += [(count, gap) for count in counts for gap in gaps]
    for count, gap in shapes:
        if (count - 1) * gap + 1 > longest:
            continue
        highest = 5 if count == 1 else 4 if channels == 1 else 3
        maps = _degrees(FeatureMap(channels, polynomial=lags(channels, count, gap)), highest)
        if maps:
            yield Group("polynomial", f"polynomials of {count} lags {gap} apart", maps)


def principal_polynomial_groups(channels: int, spacing: int, longest: int, embeddings: Embeddings) -> Iterator[Group]:
    """Monomials of principal delay coordinates."""
    if channels == 1:
        lengths = {max(5, spacing // 2), spacing, 2 * spacing, 3 * spacing}
        ranks: tuple[int, ...] = (3, 4, 5, 6, 8)
    else:
        lengths = {max(4, spacing // 2), max(2, spacing)}
        ranks = (channels, channels + 2, 2 * channels, 2 * channels + 2)
    for length in sorted(length for length in lengths if 2 <= length <= longest):
        for rank in ranks:
            if rank > length * channels or rank > max(_RANKS):
                continue
            coordinates = embeddings.principal(length, rank)
            maps = _degrees(FeatureMap(channels, lags(channels, 1), coordinates), 4)
            if maps:
                yield Group("polynomial", f"polynomials of {rank} principal coordinates of {length} lags", maps)


def _degrees(widest: FeatureMap, highest: int) -> tuple[FeatureMap, ...]:
    assert widest.polynomial is not None  # noqa: S101 (made just above)
    size = widest.polynomial.size
    fitting = [degree for degree in range(2, highest + 1) if monomial_count(size, degree) <= _MOST_FEATURES]
    return tuple(replace(widest, degree=degree) for degree in fitting)


RADII = (0.5, 0.9, 1.2)
"""Spectral radii of reservoirs."""
STRENGTHS = (0.1, 0.4, 1.0)
"""Scales of their input weights."""
LEAKS = (1.0, 0.3)
"""Their leak rates."""
WARM_UP = 100
"""Samples at most from which the state of a reservoir is computed before a forecast."""


def reservoir_groups(
    longest: int, draw: ReservoirDraw, base: FeatureMap, kinds: Iterable[tuple[float, float, float]]
) -> Iterator[Group]:
    """Echo states together with the features of ``base``; ``kinds`` are (radius, input strength, leak)."""
    window = min(longest, WARM_UP)
    beside = "" if base.polynomial is None else f" beside polynomials of degree {base.degree}"
    for radius, strength, leak in kinds:
        features = replace(base, reservoir=draw.scaled(radius, strength, leak, window))
        label = f"{len(draw.bias)} echo states (radius {radius}, input {strength}, leak {leak}){beside}"
        yield Group("reservoir", label, (features,))
