r"""The published layer, started from TD-DMD and trained by variable projection.

Training is that of :mod:`.layer_training`. Window noise, ridge and the set of inner weights are selected on validation
rollouts of two folds, TD-DMD itself among them, and the readout is solved on all data in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from ...errors import InputError
from ...scalars import as_choice, as_count
from ...threads import one_thread
from ..data.delay_windows import lags
from ..data.series import Units, as_windows, read_for_tuning
from ..features.feature_map import FeatureMap
from ..features.lag_network import LagNetwork, new_network
from ..protocol import FloatArray
from ..rollout import Fade, Member, roll
from ..search.model_search import plan_for
from ..search.readout_search import RIDGES, Learner
from ..search.refit import data_range, stays_bounded
from ..search.time_budget import TimeBudget
from ..search.validation import Fold, make_folds
from ..settings import Settings
from .layer_training import DELTA, RANGE, centred_readouts, principal_directions, train_layer, with_random_units
from .published import LayerSizes, published_window, train_published
from .td_dmd import TimeDelayedDMD
from .td_dmd_layer import (
    MOST_ORDER,
    carried_td_dmd,
    layer_features,
    linear_operator,
    smallest_error_scale,
)

Variant = Literal["attention", "uniform", "mlp"]
_CEILING = 1e6
"""Forecasts are clipped at this many standard deviations, so that a divergence does not overflow."""
_WINDOWS = (5, 17)
"""Samples in the windows that are tried where the caller does not choose; 17 as in the published recipe."""
_WIDEST = 80
"""Width of the start above which a longer window is not tried: the value matrices grow with its square."""
_STEPS = 200
"""Iterations of L-BFGS per start."""
_TRAINING_NOISES = (1e-3, 0.0, 1e-2)
"""Window noise in training by restart, in standard deviations: samples of a smooth record are nearly collinear, and
without noise the training uses differences of them that forecasts cannot rely on."""
_NOISES = (0.0, 1e-3, 1e-2)
"""Levels of window noise for the readout, in standard deviations."""
_AS_IT_IS = "TD-DMD as it is"
"""Label of the candidate that carries TD-DMD."""
_RANKED = 60
"""Candidates, the best on the first fold, that are ranked by the mean of their scores on two folds: of several spirals
the best on one fold alone had twenty times the error of TD-DMD from new amplitudes."""
_CHECKED = 12
"""Candidates whose long rollouts are checked before the best is taken unchecked."""


@dataclass(frozen=True)
class _Candidate:
    """A feature map with the noise and ridge of its readout, the readout on the training part, and its score."""

    label: str
    features: FeatureMap
    noise: float
    ridge: float
    member: Member
    score: float


class PublishedLayer:
    """The published attention layer as a forecaster, well trained, or trained as published.

    Parameters
    ----------
    delays
        Number of samples before the latest in the window; None tries 4 and 16. The candidate that carries TD-DMD has
        the tuned window of TD-DMD.
    training
        ``"variable projection"`` starts from TD-DMD, trains the inner weights by L-BFGS with the readout solved
        exactly, and selects on validation rollouts; ``"adamw"`` trains all weights from a random start as published.
    variant
        ``"attention"``; ``"uniform"`` for equal attention to all lags; ``"mlp"`` for a linear path and an MLP on the
        same window in its place, trained by the same solver.
    hidden
        Number of units of the feed-forward layer; with ``"variable projection"`` those beside the one per lag and
        channel that TD-DMD needs.
    heads
        Number of attention heads; None takes one, or with ``"variable projection"`` one per channel, which is what
        TD-DMD needs.
    width
        Width of the embedding; None takes 16, or with ``"variable projection"`` that of the start.
    steps
        Number of optimiser steps per start; None takes 200 of L-BFGS or 4,000 of AdamW.
    rate
        Learning rate of AdamW at the start.
    restarts
        Number of random draws of the feed-forward units, with window noise 0.001, 0 and 0.01 in turn.
    seconds
        Budget of processor seconds for the training; None for no limit.
    random_state
        Seed of the random numbers.
    """

    name = "published layer"

    def __init__(
        self,
        delays: int | None = None,
        *,
        training: Literal["variable projection", "adamw"] = "variable projection",
        variant: Variant = "attention",
        hidden: int = 48,
        heads: int | None = None,
        width: int | None = None,
        steps: int | None = None,
        rate: float = 3e-3,
        restarts: int = 3,
        seconds: float | None = None,
        random_state: int = 0,
    ) -> None:
        as_choice("training", training, ("variable projection", "adamw"))
        as_choice("variant", variant, ("attention", "uniform", "mlp"))
        for argument, value in (("heads", heads), ("width", width)):
            if value is not None:
                as_count(argument, value, 1)
                if training == "variable projection":
                    raise InputError(
                        argument, value, "follows from the data for a start from TD-DMD", 'pass training="adamw"'
                    )
        self._sizes = LayerSizes(
            16 if width is None else width,
            as_count("hidden", hidden, 1),
            1 if heads is None else heads,
            as_count("steps", (_STEPS if training == "variable projection" else 4000) if steps is None else steps, 1),
            _positive("rate", rate),
        )
        if self._sizes.width % self._sizes.heads:
            raise InputError("heads", heads, f"must divide the width {self._sizes.width}", "change one of them")
        self._delays = None if delays is None else as_count("delays", delays, 1)
        self._training = training
        self._variant: Variant = variant
        self._restarts = as_count("restarts", restarts, 1)
        budget = None if seconds is None else _positive("seconds", seconds)
        self._settings = Settings(self._delays, None, 1, None, budget, as_count("random_state", random_state, 0), False)
        self.window = 1
        self._units: Units | None = None
        self._member: Member | None = None
        self.selected_ = ""
        """Description of the selected weights, after a fit."""

    @one_thread()
    def fit(self, trajectories: Sequence[FloatArray], dt: float) -> Self:
        """Train the layer.

        Parameters
        ----------
        trajectories
            Arrays (samples, channels) of any lengths.
        dt
            Time between samples.

        Returns
        -------
        PublishedLayer
            The trained layer itself.
        """
        checked, units = read_for_tuning(trajectories, dt)
        rows = [units.normalise(z) for z in checked]
        if self._training == "adamw":
            member = train_published(
                rows,
                rows[0].shape[1],
                self._settings,
                kind="mlp" if self._variant == "mlp" else "shared",
                attentive=self._variant == "attention",
                sizes=self._sizes,
            )
            return self._store(units, member, f"AdamW, {self._sizes.steps} steps")
        found = self._search(rows)
        return self._store(units, found.member, found.label)

    def _store(self, units: Units, member: Member, label: str) -> Self:
        self._units, self._member, self.selected_ = units, member, label
        self.window = member.features.window
        return self

    def fitted(self) -> tuple[Units, Member]:
        """Units of the data, and the layer with its readout in these units, of a trained layer.

        Returns
        -------
        units : Units
            Mean and standard deviation per channel.
        member : Member
            Features and readout.
        """
        if self._units is None or self._member is None:
            raise InputError("layer", "PublishedLayer", "has no weights yet", "call fit(trajectories, dt) first")
        return self._units, self._member

    @property
    def weights(self) -> dict[str, FloatArray]:
        """Inner weights of the layer by name: embed, positions, queries, keys, values, hidden, bias."""
        return dict(self.fitted()[1].features.networks[0].weights)

    @property
    def readout(self) -> FloatArray:
        """Readout of the increment on a constant, hidden units and state, shape (features, channels)."""
        return np.array(self.fitted()[1].readouts[0])

    @property
    def parameters(self) -> int:
        """Number of weights, those of the readout included."""
        member = self.fitted()[1]
        return int(member.readouts[0].size + member.features.inner_parameters)

    def roll(self, windows: FloatArray, steps: int) -> FloatArray:
        """Roll out from each window.

        Parameters
        ----------
        windows
            Samples to start from, shape (starts, samples, channels), oldest first.
        steps
            Number of samples ahead.

        Returns
        -------
        ndarray
            Forecasts, shape (starts, steps, channels).
        """
        units, member = self.fitted()
        return units.restore(roll([member], as_windows(windows, units), steps, ceiling=_CEILING)[0])

    # training by variable projection

    def _search(self, rows: Sequence[FloatArray]) -> _Candidate:
        """The selected candidate with its readout solved on all data."""
        channels = rows[0].shape[1]
        budget = TimeBudget(self._settings.seconds, for_the_search=1.0)
        # Of the longest window of TD-DMD, which is tuned on its own.
        plan = plan_for(rows, replace(self._settings, delays=None))
        windows = self._windows(rows)
        context = max(plan.longest, *windows)
        folds = make_folds(rows, channels, context, plan.horizon)
        fold = folds[0]
        candidates: list[_Candidate] = []
        if self._variant != "uniform":
            candidates.append(_td_dmd(fold, self._settings, carried=self._variant == "attention"))
        for restart in range(self._restarts):
            for window in windows:
                if candidates and not budget.within(1.0):
                    break
                generator = np.random.default_rng([self._settings.seed, 41, restart])
                features = train_layer(
                    self._start(fold.training, window, generator),
                    fold.training,
                    channels,
                    noise=_TRAINING_NOISES[restart % 3],
                    frozen=("queries", "keys") if self._variant == "uniform" else (),
                    steps=self._sizes.steps,
                    generator=generator,
                    may_continue=lambda: budget.within(1.0),
                )
                label = f"{window} samples, restart {restart + 1}"
                candidates += _scored(label, features, fold, channels, self._settings.seed)
        ranked = _ranked(candidates, folds, channels, self._settings)
        return _selected(ranked, rows, fold, channels, self._settings)

    def _windows(self, rows: Sequence[FloatArray]) -> list[int]:
        if self._delays is not None:
            return [published_window(rows, self._settings)]
        shortest, channels = min(len(z) for z in rows), rows[0].shape[1]
        found = sorted({min(window, max(2, shortest // 4)) for window in _WINDOWS})
        return [w for w in found if channels * (w + 1) <= _WIDEST] or found[:1]

    def _start(self, pieces: Sequence[FloatArray], window: int, generator: np.random.Generator) -> FeatureMap:
        hidden, channels = self._sizes.hidden, pieces[0].shape[1]
        if self._variant == "mlp":
            directions = principal_directions(pieces, window)
            mixed = (
                RANGE * generator.standard_normal((hidden, len(directions))) @ directions.reshape(len(directions), -1)
            )
            weights = {"hidden": np.ascontiguousarray(mixed.T), "bias": 0.5 * generator.standard_normal(hidden)}
            network = LagNetwork("mlp", window, channels, weights)
            return replace(layer_features(network), linear=lags(channels, window))
        if self._variant == "uniform":
            network = new_network("shared", window, channels, generator, width=16, hidden=hidden, start=RANGE)
            network.weights["queries"][:] = 0.0
            return layer_features(network)
        return layer_features(
            with_random_units(principal_directions(pieces, window), channels, DELTA, hidden, generator)
        )


def published_layer_from_td_dmd(
    model: TimeDelayedDMD | FloatArray, *, order: int = 3, eps: float | None = None
) -> PublishedLayer:
    r"""The published layer with explicit weights that carry a TD-DMD model.

    Its predictions differ from those of the model by :math:`O(\delta^r)` with :math:`r` the order,
    :math:`\delta = \varepsilon/\sqrt{p+1}` and :math:`p` samples in the window, and by rounding of size
    :math:`10^{-16}/\delta`. The layer has one head per channel, width ``channels * (window + 1)`` and
    ``channels * window * (order - 1)`` hidden units.

    Parameters
    ----------
    model
        A fitted TD-DMD model; or its operator, shape (channels, window, channels), from the samples of a window (the
        latest last) to the next sample, for samples of size about one.
    order
        Order of the error in ``eps``, from 1 (no hidden units) to 5.
    eps
        Size of the embedding; None takes the one where both errors are about equal.

    Returns
    -------
    PublishedLayer
        The layer, ready for rollouts; ``weights`` and ``readout`` hold its numbers.
    """
    order = as_count("order", order, 1)
    if order > MOST_ORDER:
        raise InputError("order", order, f"must be at most {MOST_ORDER}", "rounding dominates beyond")
    if isinstance(model, TimeDelayedDMD):
        units, member = model.fitted()
        operator, offset = linear_operator(member)
    else:
        given = np.asarray(model, dtype=np.float64)
        if given.ndim != 3 or given.shape[0] != given.shape[2] or not given.size or not np.isfinite(given).all():
            raise InputError(
                "model",
                f"an array of shape {given.shape}",
                "must be a finite operator of shape (channels, window, channels)",
                "pass a fitted TimeDelayedDMD, or A with A[:, -1] the matrix of the latest sample",
            )
        channels = given.shape[0]
        units = Units(np.zeros(channels), np.ones(channels), np.ones(channels))
        operator, offset = given.copy(), np.zeros(channels)
        operator[:, -1] -= np.eye(channels)  # the layer predicts increments
    root = float(np.sqrt(operator.shape[1] + 1.0))
    eps = smallest_error_scale(order) * root if eps is None else _positive("eps", eps)
    layer = PublishedLayer(max(1, operator.shape[1] - 1))
    return layer._store(units, carried_td_dmd(operator, offset, eps, order), f"TD-DMD to order {order} in {eps:.3g}")


def _positive(argument: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < float(value) < np.inf:
        raise InputError(argument, repr(value), "must be a positive number", f"pass {argument}=1e-3")
    return float(value)


def _td_dmd(fold: Fold, settings: Settings, *, carried: bool) -> _Candidate:
    """TD-DMD tuned on the training part, with its score; carried by the layer, or as the linear path itself."""
    tuned = TimeDelayedDMD(seconds=settings.seconds, random_state=settings.seed).fit(fold.training, 1.0)
    units, linear = tuned.fitted()
    member = published_layer_from_td_dmd(tuned).fitted()[1] if carried else linear
    paths = units.restore(roll([member], units.normalise(fold.windows), fold.horizon)[0])
    return _Candidate(_AS_IT_IS, member.features, 0.0, 0.0, member, float(fold.score(paths[None])[0]))


def _scored(label: str, features: FeatureMap, fold: Fold, outputs: int, seed: int) -> list[_Candidate]:
    learner = Learner(fold.training, outputs, seed)
    found = []
    for noise in _NOISES:
        try:
            readouts = centred_readouts(features, learner, noise, RIDGES)
        except np.linalg.LinAlgError:
            continue
        scores = fold.score(roll([Member(features, readouts)], fold.windows, fold.horizon))
        found += [
            _Candidate(label, features, noise, float(ridge), Member(features, readout[None]), float(score))
            for ridge, readout, score in zip(RIDGES, readouts, scores, strict=True)
            if np.isfinite(readout).all()
        ]
    return found


def _ranked(candidates: list[_Candidate], folds: Sequence[Fold], outputs: int, settings: Settings) -> list[_Candidate]:
    """Candidates by the mean of their scores over the folds, best first.

    Readouts are solved on the training part of each. Of the trained ones those that are best on the first fold enter.
    """
    first = sorted(candidates, key=lambda c: c.score)
    if len(folds) == 1:
        return first
    fold = folds[1]
    learner = Learner(fold.training, outputs, settings.seed)
    found = []
    for candidate in [c for c in first if c.label != _AS_IT_IS][:_RANKED]:
        try:
            readout = centred_readouts(candidate.features, learner, candidate.noise, np.array([candidate.ridge]))
        except np.linalg.LinAlgError:
            continue
        score = fold.score(roll([Member(candidate.features, readout)], fold.windows, fold.horizon))
        found.append(replace(candidate, score=0.5 * (candidate.score + float(score[0]))))
    for candidate in first:
        if candidate.label == _AS_IT_IS:
            again = _td_dmd(fold, settings, carried=bool(candidate.features.networks))
            found.append(replace(candidate, score=0.5 * (candidate.score + again.score)))
    return sorted(found, key=lambda c: c.score) or first


def _selected(
    ranked: list[_Candidate], rows: Sequence[FloatArray], fold: Fold, outputs: int, settings: Settings
) -> _Candidate:
    """The best candidate whose long rollouts stay bounded, with its readout on all data; or the best one."""
    fade, learner = Fade(*data_range(rows, outputs)), Learner(rows, outputs, settings.seed)
    length = fold.windows.shape[1]
    ends = [(z, int(k)) for z in rows for k in np.linspace(length, len(z), -(-_CHECKED // len(rows)) + 1)]
    starts = np.concatenate([fold.windows, np.stack([z[k - length : k] for z, k in ends])])
    first: _Candidate | None = None
    for candidate in ranked[:_CHECKED]:
        found = _refitted(candidate, rows, learner, settings)
        first = found if first is None else first
        # As in the default recipe, TD-DMD may grow where the record does.
        if candidate.label == _AS_IT_IS or stays_bounded([found.member], starts, fade):
            return found
    assert first is not None  # noqa: S101 (there is at least one candidate)
    return first


def _refitted(candidate: _Candidate, rows: Sequence[FloatArray], learner: Learner, settings: Settings) -> _Candidate:
    if candidate.label == _AS_IT_IS:
        tuned = TimeDelayedDMD(seconds=settings.seconds, random_state=settings.seed).fit(rows, 1.0)
        units, member = tuned.fitted()
        operator, offset = linear_operator(member)
        # From the units of that fit to those of all data, which differ by rounding only.
        operator = operator * (units.scale[:, None, None] / units.scale)
        offset = offset * units.scale - np.einsum("opc,c->o", operator, units.mean)
        if not candidate.features.networks:
            readout = np.concatenate([offset[:, None], operator.reshape(len(offset), -1)], axis=1).T
            plain = FeatureMap(len(offset), lags(len(offset), operator.shape[1]))
            return replace(candidate, member=Member(plain, readout[None]))
        root = float(np.sqrt(operator.shape[1] + 1.0))
        return replace(candidate, member=carried_td_dmd(operator, offset, smallest_error_scale(3) * root, 3))
    readout = centred_readouts(candidate.features, learner, candidate.noise, np.array([candidate.ridge]))
    return replace(candidate, member=Member(candidate.features, readout))
