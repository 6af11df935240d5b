r"""The published layer, started from TD-DMD and trained by variable projection.

The start holds TD-DMD (:mod:`.td_dmd_layer`) and random feed-forward units that act on the samples of the window: the
state of the layer holds the samples times a small number :math:`\delta`, so units with weights of size
:math:`1/\delta` are those of an MLP on the window. The inner weights :math:`\theta` are then trained by L-BFGS on

.. math:: \log\min_C \bigl(\|D - \Phi(\theta)\,C\|^2 + \lambda\|C\|^2\bigr)

with the readout :math:`C` solved exactly at every step; its derivative does not enter, because it is optimal. Window
noise, ridge and the set of inner weights are selected on validation rollouts, TD-DMD itself among them, and the readout
is solved on all data in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import torch

from ...errors import InputError
from ...scalars import as_choice, as_count
from ...threads import one_thread
from ..data.delay_windows import lags
from ..data.series import Units, as_windows, read_for_tuning
from ..features.feature_map import FeatureMap
from ..features.lag_network import NAMES, LagNetwork, new_network
from ..protocol import FloatArray
from ..rollout import Fade, Member, roll
from ..search.model_search import plan_for
from ..search.readout_search import RIDGES, Learner
from ..search.refit import data_range, stays_bounded
from ..search.time_budget import TimeBudget
from ..search.validation import Fold, make_folds
from ..settings import Settings
from .published import LayerSizes, published_features, published_window, train_published
from .td_dmd import TimeDelayedDMD
from .td_dmd_layer import (
    MOST_ORDER,
    carried_td_dmd,
    layer_features,
    layer_network,
    linear_operator,
    smallest_error_scale,
)

Variant = Literal["attention", "uniform", "mlp"]
_CEILING = 1e6
"""Forecasts are clipped at this many standard deviations, so that a divergence does not overflow."""
_DELTAS = (1e-3, 0.3)
"""Sizes of the scores at the start: nearly linear in the samples, and clearly nonlinear."""
_WINDOWS = (5, 17)
"""Samples in the windows that are tried where the caller does not choose; 17 as in the published recipe."""
_WIDEST = 80
"""Width of the start above which a longer window is not tried: the value matrices grow with its square."""
_ROWS = 1500
"""Windows that the inner weights are trained on at most: the cost of an iteration is linear in them."""
_STEPS = 250
"""Iterations of L-BFGS per start."""
_HISTORY = 50
"""Pairs that L-BFGS stores: many, because an evaluation costs much more than the update."""
_RIDGE = 1e-12
"""Ridge in training, relative to the rows: near rounding, so that the loss stays defined for dependent features."""
_PROBES = 8
"""Random vectors from which the size of the derivative in each weight is estimated."""
_NOISES = (0.0, 1e-3, 1e-2)
"""Levels of window noise for the readout, in standard deviations."""
_RANGE = 0.3
"""Standard deviation of the weights of random units per lag, and the size at which tanh becomes nonlinear."""
_AS_IT_IS = "TD-DMD as it is"
"""Label of the candidate that carries TD-DMD."""
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
        Number of units of the feed-forward layer.
    heads
        Number of attention heads; None takes one, or with ``"variable projection"`` one per channel, which is what
        TD-DMD needs.
    width
        Width of the embedding; None takes 16, or with ``"variable projection"`` that of the start.
    steps
        Number of optimiser steps per start; None takes 250 of L-BFGS or 4,000 of AdamW.
    rate
        Learning rate of AdamW at the start.
    restarts
        Number of random draws of the feed-forward units.
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
        restarts: int = 1,
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
        """Units of the data, and the layer with its readout in these units, of a trained layer."""
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
        budget = TimeBudget(self._settings.seconds)
        # Of the longest window of TD-DMD, which is tuned on its own.
        plan = plan_for(rows, replace(self._settings, delays=None))
        windows = self._windows(rows)
        context = max(plan.longest, *windows)
        fold = make_folds(rows, channels, context, plan.horizon)[0]
        candidates: list[_Candidate] = []
        if self._variant != "uniform":
            candidates.append(_td_dmd(fold, self._settings, carried=self._variant == "attention"))
        for restart in range(self._restarts):
            for window in windows:
                for delta in _DELTAS if self._variant == "attention" else (1.0,):
                    if candidates and not budget.within(1.0):
                        break
                    generator = np.random.default_rng([self._settings.seed, 41, restart])
                    start = self._start(window, channels, delta, generator)
                    features = _trained(
                        start,
                        fold.training,
                        channels,
                        noise=_NOISES[restart % 2],
                        frozen=("queries", "keys") if self._variant == "uniform" else (),
                        steps=self._sizes.steps,
                        generator=generator,
                        may_continue=lambda: budget.within(1.0),
                    )
                    label = f"{window} samples, scores of size {delta:g} at the start"
                    candidates += _scored(label, features, fold, channels, self._settings.seed)
        return _selected(candidates, rows, fold, channels, self._settings)

    def _windows(self, rows: Sequence[FloatArray]) -> list[int]:
        if self._delays is not None:
            return [published_window(rows, self._settings)]
        shortest, channels = min(len(z) for z in rows), rows[0].shape[1]
        found = sorted({min(window, max(2, shortest // 4)) for window in _WINDOWS})
        return [w for w in found if channels * (w + 1) <= _WIDEST] or found[:1]

    def _start(self, window: int, channels: int, delta: float, generator: np.random.Generator) -> FeatureMap:
        hidden = self._sizes.hidden
        if self._variant == "mlp":
            network = new_network("mlp", window, channels, generator, width=0, hidden=hidden, start=_RANGE)
            return replace(layer_features(network), linear=lags(channels, window))
        if self._variant == "uniform":
            network = new_network("shared", window, channels, generator, width=16, hidden=hidden, start=_RANGE)
            network.weights["queries"][:] = 0.0
            return layer_features(network)
        return layer_features(_with_random_units(window, channels, delta, hidden, generator))


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


def _with_random_units(
    window: int, channels: int, delta: float, hidden: int, generator: np.random.Generator
) -> LagNetwork:
    """The start of order 1 with random units on the samples, relative to their mean, and on the latest sample."""
    block = window + 1
    eps = delta * float(np.sqrt(block))
    network = layer_network(channels, window, eps, 1)
    to_hidden = np.zeros((channels * block, hidden))
    bias = 0.5 * generator.standard_normal(hidden)
    for j in range(channels):
        first = j * block
        # The state there is eps times the latest sample plus the mean.
        to_hidden[first] = _RANGE * generator.standard_normal(hidden) / eps
        weights = _RANGE * generator.standard_normal((window, hidden)) * (window / delta)
        to_hidden[first + 1 : first + block] = weights
        # Without samples the shares are 1 / window, plus one on the axis of the latest position.
        bias = bias - weights.sum(axis=0) / window - (weights[-1] if j == 0 else 0.0)
    return replace(network, weights=network.weights | {"hidden": to_hidden, "bias": bias})


def _td_dmd(fold: Fold, settings: Settings, *, carried: bool) -> _Candidate:
    """TD-DMD tuned on the training part, with its score; carried by the layer, or as the linear path itself."""
    tuned = TimeDelayedDMD(seconds=settings.seconds, random_state=settings.seed).fit(fold.training, 1.0)
    units, linear = tuned.fitted()
    member = published_layer_from_td_dmd(tuned).fitted()[1] if carried else linear
    paths = units.restore(roll([member], units.normalise(fold.windows), fold.horizon)[0])
    return _Candidate(_AS_IT_IS, member.features, 0.0, 0.0, member, float(fold.score(paths[None])[0]))


class _Loss:
    """Logarithm of the projected loss and its gradient, in scaled inner weights."""

    def __init__(
        self, features: FeatureMap, rows: FloatArray, targets: FloatArray, frozen: tuple[str, ...], seed: int
    ) -> None:
        (self._network,) = features.networks
        self._names = [name for name in NAMES[self._network.kind] if name not in frozen]
        assert features.tokens is not None  # noqa: S101 (a layer has tokens)
        self._tokens = torch.from_numpy(np.ascontiguousarray(features.tokens(rows)))
        base = np.empty((len(rows), 0)) if features.linear is None else features.linear(rows)
        self._base = base - base.mean(axis=0)
        linear = rows - rows.mean(axis=0)
        residual = targets - targets.mean(axis=0)
        residual = residual - linear @ np.linalg.lstsq(linear, residual, rcond=1e-12)[0]
        self._targets = targets - targets.mean(axis=0)
        # Each channel counts in units of what a linear model of the same window leaves.
        self._targets = self._targets / np.maximum(residual.std(axis=0), 1e-9 * targets.std(axis=0) + 1e-300)
        self.start = self._vector(self._network.weights)
        self._draw = torch.Generator().manual_seed(seed)
        self.rescale(self.start)

    def rescale(self, vector: FloatArray) -> None:
        """Set the units of features and of inner weights by their sizes at ``vector``."""
        features, part = self._features(vector)
        values = features.detach().numpy()
        self._sizes = np.concatenate([self._base.std(axis=0), values.std(axis=0)]) + 1e-300
        readout, _ = self._solve(values)
        squares = np.zeros_like(vector)
        for _ in range(_PROBES):
            signs = torch.randint(0, 2, (len(values), readout.shape[1]), generator=self._draw, dtype=torch.float64)
            probe = (2 * signs - 1) @ torch.from_numpy(readout[self._base.shape[1] :].T.copy())
            found = torch.autograd.grad(features, part, probe, retain_graph=True)
            squares += np.concatenate([g.numpy().reshape(-1) for g in found]) ** 2 / _PROBES
        typical = float(np.sqrt(squares.mean())) + 1e-300
        # Weights without influence get the units of those with little.
        self.unit = 1.0 / (np.sqrt(squares) + 1e-3 * typical)
        self.origin = vector.copy()

    def __call__(self, scaled: FloatArray) -> tuple[float, FloatArray]:
        """Loss and gradient at ``origin + unit * scaled``."""
        features, part = self._features(self.origin + self.unit * scaled)
        values = features.detach().numpy()
        if not np.isfinite(values).all():
            return 1e10, np.zeros_like(scaled)
        readout, error = self._solve(values)
        penalty = _RIDGE * len(error) * float(((readout * self._sizes[:, None]) ** 2).sum())
        square = float((error**2).sum()) + penalty
        pull = torch.from_numpy((-2.0 / square) * (error @ readout[self._base.shape[1] :].T))
        found = torch.autograd.grad(features, part, pull)
        gradient = np.concatenate([g.numpy().reshape(-1) for g in found]) * self.unit
        return float(np.log(square / error.size)), gradient

    def network(self, vector: FloatArray) -> LagNetwork:
        """Network with the weights of a vector."""
        weights, at = dict(self._network.weights), 0
        for name in self._names:
            like = weights[name]
            weights[name] = vector[at : at + like.size].reshape(like.shape).copy()
            at += like.size
        return replace(self._network, weights=weights)

    def _vector(self, weights: dict[str, FloatArray]) -> FloatArray:
        return np.concatenate([weights[name].reshape(-1) for name in self._names])

    def _features(self, vector: FloatArray) -> tuple[torch.Tensor, list[torch.Tensor]]:
        network = self.network(vector)
        part = {name: torch.tensor(value, requires_grad=name in self._names) for name, value in network.weights.items()}
        return published_features(network, part, self._tokens), [part[name] for name in self._names]

    def _solve(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Readout on base and network features, in their own units, and the errors that it leaves."""
        centred = np.concatenate([self._base, values - values.mean(axis=0)], axis=1)
        factor_q, factor = np.linalg.qr(centred / self._sizes)
        left, singular, right = np.linalg.svd(factor)
        shrunk = singular / (singular**2 + _RIDGE * len(values))
        scaled = right.T @ (shrunk[:, None] * (left.T @ (factor_q.T @ self._targets)))
        return scaled / self._sizes[:, None], self._targets - (centred / self._sizes) @ scaled


def _trained(
    features: FeatureMap,
    pieces: Sequence[FloatArray],
    outputs: int,
    *,
    noise: float,
    frozen: tuple[str, ...],
    steps: int,
    generator: np.random.Generator,
    may_continue: Callable[[], bool],
) -> FeatureMap:
    """The features with inner weights trained on windows of the pieces; the start where training finds nothing."""
    from scipy.optimize import minimize  # not imported to forecast from a file

    plain = FeatureMap(features.channels, lags(features.channels, features.window))
    rows, targets = Learner(pieces, outputs, 0).design(plain, noise)
    chosen = np.sort(generator.permutation(len(rows))[:_ROWS])
    loss = _Loss(features, rows[chosen][:, 1:], targets[chosen], frozen, int(generator.integers(2**31)))
    best = [(np.inf, loss.start)]

    def evaluate(scaled: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(all="ignore"):
            try:
                value, gradient = loss(scaled)
            except np.linalg.LinAlgError:
                return 1e10, np.zeros_like(scaled)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return 1e10, np.zeros_like(scaled)
        if value < best[0][0]:
            best[0] = (value, loss.origin + loss.unit * scaled)
        return value, gradient

    def check_time(_: FloatArray) -> None:
        if not may_continue():
            raise StopIteration

    # Two rounds: the sizes of the derivatives change as the weights move away from the start.
    for share in (steps - steps // 2, steps // 2):
        options = {"maxiter": share, "maxcor": _HISTORY, "ftol": 1e-9, "gtol": 1e-12}
        if share and may_continue():
            zero = np.zeros_like(loss.start)
            minimize(evaluate, zero, jac=True, method="L-BFGS-B", callback=check_time, options=options)  # type: ignore[call-overload]
            loss.rescale(best[0][1])
    return replace(features, networks=(loss.network(best[0][1]),))


def _readouts(features: FeatureMap, learner: Learner, noise: float, ridges: FloatArray) -> FloatArray:
    """Readouts, shape (ridges, features, outputs), with features centred and scaled and a constant without ridge.

    The state of the layer varies little about a mean, so a ridge on the constant would act as a strong one.
    """
    rows, targets = learner.design(features, noise)
    inner = rows[:, 1:]
    middle, sizes = inner.mean(axis=0), inner.std(axis=0)
    # Features without variation, up to rounding, have no weight.
    usable = sizes > 1e-14 * np.abs(middle) + 1e-300
    sizes = np.where(usable, sizes, 1.0)
    factor_q, factor = np.linalg.qr((inner - middle) * (usable / sizes))
    left, singular, right = np.linalg.svd(factor)
    mean = targets.mean(axis=0)
    rotated = left.T @ (factor_q.T @ (targets - mean))
    cut = singular > singular[0] * 1e-15
    shrunk = np.where(cut, singular / np.where(cut, singular**2 + ridges[:, None] * len(rows), 1.0), 0.0)
    weights = (right.T @ (shrunk[:, :, None] * rotated)) * (usable / sizes)[:, None]
    constant = mean - middle @ weights
    return np.concatenate([constant[:, None], weights], axis=1)


def _scored(label: str, features: FeatureMap, fold: Fold, outputs: int, seed: int) -> list[_Candidate]:
    learner = Learner(fold.training, outputs, seed)
    found = []
    for noise in _NOISES:
        try:
            readouts = _readouts(features, learner, noise, RIDGES)
        except np.linalg.LinAlgError:
            continue
        scores = fold.score(roll([Member(features, readouts)], fold.windows, fold.horizon))
        found += [
            _Candidate(label, features, noise, float(ridge), Member(features, readout[None]), float(score))
            for ridge, readout, score in zip(RIDGES, readouts, scores, strict=True)
            if np.isfinite(readout).all()
        ]
    return found


def _selected(
    candidates: list[_Candidate], rows: Sequence[FloatArray], fold: Fold, outputs: int, settings: Settings
) -> _Candidate:
    """The best candidate whose long rollouts stay bounded, with its readout on all data; or the best one."""
    ranked = sorted(candidates, key=lambda c: c.score)
    fade, learner = Fade(*data_range(rows, outputs)), Learner(rows, outputs, settings.seed)
    first: _Candidate | None = None
    for candidate in ranked[:_CHECKED]:
        found = _refitted(candidate, rows, learner, settings)
        first = found if first is None else first
        # As in the default recipe, TD-DMD may grow where the record does.
        if candidate.label == _AS_IT_IS or stays_bounded([found.member], fold.windows, fade):
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
    readout = _readouts(candidate.features, learner, candidate.noise, np.array([candidate.ridge]))
    return replace(candidate, member=Member(candidate.features, readout))
