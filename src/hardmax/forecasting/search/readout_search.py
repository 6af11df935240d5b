r"""Ridge readouts of many feature maps, solved exactly and compared by validation rollouts.

For features :math:`F` and increments :math:`D` over :math:`N` windows, :math:`B_\lambda` minimises
:math:`\|F B - D\|^2 + \lambda N\|B\|^2`. With :math:`F = QR` and :math:`R = U S V^\top` all :math:`\lambda` cost one
factorisation, and the leading columns of :math:`F` alone (a lower degree) cost a smaller one of a corner of
:math:`R`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..data.delay_windows import Embedding, flat_windows
from ..features.candidates import Group
from ..features.feature_map import FeatureMap
from ..protocol import FloatArray
from ..rollout import Member, roll
from .time_budget import TimeBudget
from .validation import Fold

RIDGES: FloatArray = 10.0 ** np.array([-28.0, -24, -20, -17, -15, -13, -11, -9, -8, -7, -6, -5, -4, -3, -2])
"""Ridges from below rounding (no regularisation) up to strong shrinkage, denser where noisy data need them."""
BY_MODES = -1.0
"""Marker in place of a ridge: the readout of :func:`through_modes`."""
_ROUNDING = 1e-15
"""Singular values below this share of the largest are rounding."""
_GRAM_ROUNDING = 1e-14
"""Eigenvalues of a Gram matrix below this share of the largest are rounding."""


def triangle(features: FloatArray, targets: FloatArray) -> FloatArray:
    r"""Triangular factor of ``[features, targets]``, which is sufficient for the solution."""
    both = np.concatenate([features, targets], axis=1)
    return np.asarray(np.linalg.qr(both, mode="r"))


def merge_triangles(triangles: Sequence[FloatArray]) -> FloatArray:
    """Triangular factor of stacked data from the factors of its parts."""
    stacked = np.concatenate(list(triangles), axis=0)
    return stacked if len(triangles) == 1 else np.asarray(np.linalg.qr(stacked, mode="r"))


def gram(features: FloatArray, targets: FloatArray) -> FloatArray:
    """Gram matrix of ``[features, targets]``: cheaper than the factor, and precise enough for noisy windows."""
    both = np.concatenate([features, targets], axis=1)
    return np.asarray(both.T @ both)


def ridge_path_of_gram(products: FloatArray, size: int, outputs: int, rows: int, ridges: FloatArray) -> FloatArray:
    """Readouts as by :func:`ridge_path`, from the Gram matrix; ridges below its rounding have no effect."""
    values, vectors = np.linalg.eigh(products[:size, :size])
    rotated = vectors.T @ products[:size, -outputs:]
    values = np.maximum(values, max(float(values[-1]), 1e-300) * _GRAM_ROUNDING)
    shrunk = 1.0 / (values + ridges[:, None] * rows)
    return np.asarray(vectors @ (shrunk[:, :, None] * rotated))


def through_modes(coordinates: Sequence[FloatArray], latest: FloatArray, channels: int, outputs: int) -> FloatArray:
    r"""Readout on ``[1, latest sample, coordinates]`` that evolves a few coordinates of the whole window.

    With windows :math:`w_k \approx V a_k` the operator :math:`K` of :math:`a_{k+1} = K a_k` is found by least squares
    (as in higher-order DMD), and the next sample is the last block of :math:`V K a_k`. All samples of the window enter
    :math:`K`, so it is less sensitive to noise than a regression on the next sample alone. ``latest`` is the last
    block of the pseudo-inverse map from coordinates to windows, ``(coordinates, channels)``.
    """
    before = np.concatenate([part[:-1] for part in coordinates])
    after = np.concatenate([part[1:] for part in coordinates])
    ones = np.ones((len(before), 1))
    operator = np.linalg.lstsq(np.concatenate([ones, before], axis=1), after, rcond=None)[0]
    return mode_readout(operator, latest, channels, outputs)


def mode_readout(operator: FloatArray, latest: FloatArray, channels: int, outputs: int) -> FloatArray:
    """Readout of :func:`through_modes` from the operator (1 + coordinates, coordinates), its offset first."""
    readout = np.zeros((1 + channels + operator.shape[1], outputs))
    readout[0] = operator[0] @ latest[:, :outputs]
    readout[1 : 1 + outputs] = -np.eye(outputs)
    readout[1 + channels :] = operator[1:] @ latest[:, :outputs]
    return readout


def ridge_path(factor: FloatArray, size: int, outputs: int, rows: int, ridges: FloatArray) -> FloatArray:
    """Readouts on the first ``size`` features, shape (ridges, size, outputs)."""
    targets = factor[:, -outputs:]
    corner = factor[:size, :size]
    left, singular, right = np.linalg.svd(corner, full_matrices=False)
    rotated = left.T @ targets[:size]
    usable = singular > max(float(singular[0]), 1e-300) * _ROUNDING
    squares = singular**2 + ridges[:, None] * rows
    shrunk = np.where(usable, singular / np.where(usable, squares, 1.0), 0.0)
    return np.asarray(right.T @ (shrunk[:, :, None] * rotated))


_ROWS = 4000
"""Windows up to which copies with fresh noise are added, at most four copies."""


@dataclass(frozen=True)
class Candidate:
    """Features, window noise and ridge, the readout on the first fold, and its score there (lower is better)."""

    family: str
    label: str
    features: FeatureMap
    noise: float
    ridge: float
    readout: FloatArray
    score: float

    @property
    def identity(self) -> tuple[str, int, float]:
        """Key of the model; candidates that differ in the ridge only share it."""
        return (self.label, self.features.size, self.noise)

    @property
    def member(self) -> Member:
        """Member for rollouts."""
        return Member(self.features, self.readout[None])


@dataclass
class Learner:
    """Readouts from pieces of trajectories; window noise is drawn once per level, so that results are reproducible."""

    pieces: Sequence[FloatArray]
    outputs: int
    seed: int
    _noisy: dict[float, list[FloatArray]] = field(default_factory=dict)

    def noisy(self, noise: float) -> list[FloatArray]:
        """The pieces with noise on every sample, in several copies where data are few."""
        if noise not in self._noisy:
            copies = 1 if noise == 0 else int(np.clip(_ROWS // max(1, sum(map(len, self.pieces))), 1, 4))
            generator = np.random.default_rng([self.seed, int(noise * 1e9)])
            self._noisy[noise] = [
                piece + noise * generator.standard_normal(piece.shape) for _ in range(copies) for piece in self.pieces
            ]
        return self._noisy[noise]

    def design(self, features: FeatureMap, noise: float) -> tuple[FloatArray, FloatArray]:
        """Features of noisy windows (rows, features), and increments to the clean next sample (rows, outputs)."""
        rows, targets = [], []
        for index, noisy in enumerate(self.noisy(noise)):
            clean = self.pieces[index % len(self.pieces)]
            if len(noisy) <= features.window:
                continue
            rows.append(features.along(noisy))
            latest = noisy[features.window - 1 : -1, : self.outputs]
            targets.append(clean[features.window :, : self.outputs] - latest)
        if not rows:
            return np.empty((0, features.size)), np.empty((0, self.outputs))
        return np.concatenate(rows), np.concatenate(targets)

    def readouts(self, nested: Sequence[FeatureMap], noise: float, ridges: FloatArray) -> list[FloatArray]:
        """Readouts per feature map, each of shape (ridges, features, outputs), from one factorisation."""
        if (ridges == BY_MODES).any():
            # These are few and are solved in another way than ridge readouts.
            modes = [self._by_modes(part)[None] for part in nested]
            rest = self.readouts(nested, noise, ridges[ridges != BY_MODES]) if (ridges != BY_MODES).any() else []
            if not rest:
                return [np.repeat(part, len(ridges), axis=0) for part in modes]
            full = [np.empty((len(ridges), *part.shape[1:])) for part in modes]
            for whole, part, other in zip(full, modes, rest, strict=True):
                whole[ridges == BY_MODES], whole[ridges != BY_MODES] = part, other
            return full
        rows, targets = self.design(nested[-1], noise)
        if len(rows) < 2:
            return []
        if noise > 0:
            products = gram(rows, targets)
            return [ridge_path_of_gram(products, part.size, self.outputs, len(rows), ridges) for part in nested]
        step = max(4096, 4 * rows.shape[1])
        factor = merge_triangles(
            [triangle(rows[i : i + step], targets[i : i + step]) for i in range(0, len(rows), step)]
        )
        return [ridge_path(factor, part.size, self.outputs, len(rows), ridges) for part in nested]

    def _by_modes(self, features: FeatureMap) -> FloatArray:
        embedding = features.polynomial
        assert embedding is not None  # noqa: S101 (called for principal coordinates only)
        assert embedding.matrix is not None  # noqa: S101
        length = embedding.window
        parts = [embedding(_all_windows(z, length)) for z in self.pieces if len(z) > length]
        return through_modes(parts, latest_of_modes(embedding, features.channels), features.channels, self.outputs)


def latest_of_modes(embedding: Embedding, channels: int) -> FloatArray:
    """Last block of the pseudo-inverse map from coordinates to windows, shape (coordinates, channels)."""
    assert embedding.matrix is not None  # noqa: S101 (called for principal coordinates only)
    back = embedding.matrix / (embedding.matrix**2).sum(axis=0)
    return np.asarray(back[-channels:].T)


def _all_windows(trajectory: FloatArray, length: int) -> FloatArray:
    """Windows with and without a successor, shape (samples - length + 1, length * channels)."""
    return flat_windows(np.concatenate([trajectory, trajectory[-1:]]), length)


class Search:
    """Candidates fitted and ranked on the first fold."""

    def __init__(self, fold: Fold, outputs: int, seed: int, time_budget: TimeBudget) -> None:
        self.fold = fold
        self.outputs = outputs
        self.learner = Learner(fold.training, outputs, seed)
        self.time_budget = time_budget
        self.screened: list[Candidate] = []
        self.candidates: list[Candidate] = []
        self.short = max(2, fold.horizon // 4)
        self._few = fold.every(2)
        self.tried = 0

    def screen(
        self,
        groups: Iterable[Group],
        noises: Sequence[float],
        *,
        share: float = 1.0,
        ridges: FloatArray = RIDGES,
        at_least_one: bool = False,
    ) -> None:
        """Fit and score candidates on short rollouts, until this share of the time budget is used.

        ``at_least_one`` tries the first group however little time is left; the first call of all does so as well.
        """
        for group in groups:
            for noise in noises:
                needed = at_least_one or not (self.screened or self.candidates)
                if not self.time_budget.within(share) and not needed:
                    return
                at_least_one = False
                # Window noise acts as a ridge, so that the smallest ridges make no difference.
                self._screen_one(group, noise, ridges if noise == 0 else ridges[ridges > 1e-16], share)

    def _screen_one(self, group: Group, noise: float, ridges: FloatArray, share: float) -> None:
        """Candidates of a group, smallest features first, until the time is over; the first in any case."""
        try:
            solved = self.learner.readouts(group.nested, noise, ridges)
        except np.linalg.LinAlgError:
            return
        for place, (features, readouts) in enumerate(zip(group.nested, solved, strict=bool(solved))):
            if place and not self.time_budget.within(share):
                return
            paths = roll([Member(features, readouts)], self._few.windows, self.short, future=self._few.future)
            scores = self._few.score(paths, self.short)
            label = f"{group.label}, degree {features.degree}" if group.family == "polynomial" else group.label
            self.tried += len(ridges)
            self.screened += [
                Candidate(group.family, label, features, noise, float(ridge), readout, float(score))
                for ridge, readout, score in zip(ridges, readouts, scores, strict=True)
                if np.isfinite(readout).all()
            ]

    def evaluate_best(self, count: int, *, in_time: bool = True) -> list[Candidate]:
        """The best screened candidates of every family, scored over the whole horizon; the others are dropped.

        With ``in_time`` so are those for which the time of the search does not suffice: the least accurate on short
        rollouts; the best candidate of every family is scored in any case.
        """
        ranked = sorted(self.screened, key=lambda c: c.score)
        count = self.time_budget.affordable(count, 8)
        families = {c.family for c in ranked}
        chosen = ranked[:count]
        for family in sorted(families):
            chosen += [c for c in ranked if c.family == family][: count // 4]
        self.screened = []
        unique = {id(c): c for c in chosen}
        found = list(unique.values())
        first = {next(id(c.features) for c in ranked if c.family == family) for family in families}
        scores = score_together(
            self.fold,
            [c.member for c in found],
            lambda member: not in_time or id(member.features) in first or self.time_budget.within(),
        )
        evaluated = [replace(c, score=score) for c, score in zip(found, scores, strict=True) if score is not None]
        self.candidates = sorted([*self.candidates, *evaluated], key=lambda c: c.score)
        return evaluated

    def best(self, family: str | None = None) -> Candidate | None:
        """The best candidate so far, of one family or of all; None where there is none."""
        return next((c for c in self.candidates if family in (None, c.family)), None)


def score_together(
    fold: Fold, members: Sequence[Member], wanted: Callable[[Member], bool] = lambda member: True
) -> list[float | None]:
    """Scores over the whole horizon, one per member, with one rollout for all readouts of the same features.

    ``wanted`` is asked with the first member of the same features; where it returns False the scores are None.
    """
    by_features: dict[int, list[int]] = {}
    for index, member in enumerate(members):
        by_features.setdefault(id(member.features), []).append(index)
    scores: list[float | None] = [None] * len(members)
    for indices in by_features.values():
        if not wanted(members[indices[0]]):
            continue
        stacked = np.concatenate([members[i].readouts for i in indices])
        together = Member(members[indices[0]].features, stacked)
        found = fold.score(roll([together], fold.windows, fold.horizon, future=fold.future))
        for i, score in zip(indices, found, strict=True):
            scores[i] = float(score)
    return scores
