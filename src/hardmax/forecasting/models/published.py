r"""The published model, trained the published way (recipe ``"paper"``).

One self-attention layer with one head and one query, the latest sample; keys and values from the window with a
time-indexed positional encoding; one feed-forward layer; residual form; AdamW on the increments:

.. math:: z_{k+1} = z_k + W_o\,\bigl(h + W_2\tanh(W_1 h + b_1)\bigr) + b_o, \qquad h = e_k + \sum_i a_i V e_{k-i}.

:math:`W_o` and :math:`W_o W_2` are learned as one readout of :math:`[\tanh(W_1 h + b_1);\ h]`, which is the same set
of maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import cos, pi, sqrt

import numpy as np
import torch

from ...progress import in_stages
from ..data.delay_windows import flat_windows, lags
from ..error_growth import ErrorGrowth, measure_growth
from ..features.feature_map import FeatureMap
from ..features.lag_network import Kind, LagNetwork, new_network
from ..protocol import FloatArray
from ..rollout import FORECAST_CEILING, Fade, Member, Predictor, roll
from ..search.model_search import folds_for_errors, plan_for
from ..search.refit import data_range
from ..search.time_budget import TimeBudget
from ..settings import Settings
from .td_dmd import least_squares_with_inputs

LABEL = "the published layer, by AdamW"
DELAYS = 16
"""Samples before the latest where the caller does not choose."""
# Optimiser steps of the training; the time budget may end it earlier.
_STEPS = 4000
_BATCH = 256
"""Optimiser steps and windows per batch: some seconds of training on one core."""
_RATE = 3e-3
"""Learning rate at the start; it decays to 1e-6 by a cosine."""
_DECAY = 1e-6
"""Weight decay of AdamW, almost none."""
_WIDTH, _HIDDEN = 16, 48
"""Width of the embedding and units of the feed-forward layer."""


@dataclass(frozen=True)
class LayerSizes:
    """Sizes and training of the layer.

    Attributes
    ----------
    width
        Width of the embedding.
    hidden
        Units of the feed-forward layer.
    heads
        Attention heads.
    steps
        Optimiser steps of AdamW.
    rate
        Learning rate of AdamW at the start.
    """

    width: int = _WIDTH
    hidden: int = _HIDDEN
    heads: int = 1
    steps: int = _STEPS
    rate: float = _RATE


STAGES = {"AdamW without validation data": 1.0, "AdamW on all data": 1.0}
"""Stages of a fit with their relative times; both trainings take as many steps."""


def published_features(network: LagNetwork, part: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    """Features of a ``LagNetwork`` of kind "shared" or "mlp" by torch, shape (rows, features), differentiable."""
    if network.kind == "mlp":
        return torch.tanh(tokens @ part["hidden"] + part["bias"])
    shaped = tokens.reshape(len(tokens), network.lags, network.channels)
    embedded = shaped @ part["embed"] + part["positions"]
    latest, width = embedded[:, -1], embedded.shape[2]
    if network.heads == 1:
        # In this order of operations: training is sensitive to rounding, and results of the recipe stay as they were.
        key_query = (latest @ part["queries"]) @ part["keys"].T
        scores = (embedded @ key_query[:, :, None])[:, :, 0] / sqrt(width)
        shares = torch.softmax(scores, dim=1)
        pooled = (shares[:, None, :] @ embedded)[:, 0]
    else:
        query = (latest @ part["queries"]).reshape(len(tokens), network.heads, -1).transpose(0, 1)
        keys = part["keys"].reshape(width, network.heads, -1).permute(1, 2, 0)
        scores = embedded @ (query @ keys).permute(1, 2, 0) / sqrt(width // network.heads)
        shares = torch.softmax(scores, dim=1)
        pooled = (shares.transpose(1, 2) @ embedded).reshape(len(tokens), -1)
    state = latest + pooled @ part["values"]
    if not network.feed_forward:
        return state
    return torch.cat([torch.tanh(state @ part["hidden"] + part["bias"]), state], dim=1)


def fit_paper(trajectories: Sequence[FloatArray], outputs: int, settings: Settings) -> tuple[Predictor, bool]:
    """Published layer trained by AdamW on increments.

    The layer is trained twice, each time with half of the time budget: without the last part of the data, to measure
    the growth of its errors there, and on all data.

    Parameters
    ----------
    trajectories
        Normalised arrays (samples, channels).
    outputs
        Number of channels to forecast; the channels after them are exogenous inputs.
    settings
        Settings of the fit.

    Returns
    -------
    predictor : Predictor
        The trained model in normalised units.
    ended : bool
        Whether a time budget ended the training.
    """
    linear = least_squares_with_inputs(trajectories, published_window(trajectories, settings), outputs)
    fade = Fade(*data_range(trajectories, outputs))
    budgets = [TimeBudget(_half(settings.seconds), _half(settings.budget))]
    with in_stages("fit", STAGES, progress=settings.progress, most=settings.budget) as stages:
        stages.begin("AdamW without validation data")
        errors = _validation_errors(trajectories, outputs, settings, fade, budgets[0], stages.beat)
        stages.begin("AdamW on all data")
        # The second half of the budget starts here.
        budgets.append(TimeBudget(_half(settings.seconds), _half(settings.budget)))
        member = train_published(trajectories, outputs, settings, time_budget=budgets[1], report_progress=stages.beat)
    # The published model does not fade; the linear one is there for spectra and comparisons.
    return Predictor(outputs, (member,), linear, fade, errors), any(time_budget.ended for time_budget in budgets)


def _half(time: float | None) -> float | None:
    return None if time is None else time / 2


def _validation_errors(
    trajectories: Sequence[FloatArray],
    outputs: int,
    settings: Settings,
    fade: Fade,
    time_budget: TimeBudget,
    report_progress: Callable[[float], None],
) -> ErrorGrowth:
    """Error growth of the layer over validation rollouts."""
    # The window that the whole record allows, so that the evaluated model is the same as the final one.
    window = published_window(trajectories, settings)
    fold = folds_for_errors(trajectories, outputs, replace(plan_for(trajectories, settings), longest=window))[0]
    same = replace(settings, delays=window - 1)
    member = train_published(fold.training, outputs, same, time_budget=time_budget, report_progress=report_progress)
    paths = roll([member], fold.windows, fold.horizon, future=fold.future, fade=fade, ceiling=FORECAST_CEILING)[0]
    return measure_growth([paths], [fold.truth])


def published_window(trajectories: Sequence[FloatArray], settings: Settings) -> int:
    """Window of the layer in samples: as set, or shorter where a trajectory is short."""
    shortest = min(len(z) for z in trajectories)
    return min((DELAYS if settings.delays is None else settings.delays) + 1, max(2, shortest - 6))


def train_published(
    trajectories: Sequence[FloatArray],
    outputs: int,
    settings: Settings,
    *,
    kind: Kind = "shared",
    feed_forward: bool = True,
    attentive: bool = True,
    time_budget: TimeBudget | None = None,
    report_progress: Callable[[float], None] | None = None,
    sizes: LayerSizes | None = None,
) -> Member:
    """The published layer, or a variant: an MLP in its place, no feed-forward layer, uniform attention.

    ``sizes`` are those of the published recipe where it is None. Without ``attentive`` the queries are fixed at zero,
    so that attention is uniform over the lags. ``time_budget`` ends the training; None takes the one of the settings.
    ``report_progress`` is called with the share of the steps or of the time that is done.
    """
    time_budget = TimeBudget(settings.seconds, settings.budget) if time_budget is None else time_budget
    channels, window = trajectories[0].shape[1], published_window(trajectories, settings)
    tokens = lags(channels, window)
    generator = np.random.default_rng([settings.seed, 29])
    sizes = LayerSizes() if sizes is None else sizes
    start = new_network(
        kind,
        window,
        channels,
        generator,
        width=sizes.width,
        hidden=sizes.hidden,
        start=0.3,
        feed_forward=feed_forward,
        heads=sizes.heads,
    )
    if not attentive:
        start.weights["queries"][:] = 0.0
    rows = np.concatenate([flat_windows(z, window) for z in trajectories])
    increments = np.concatenate([(z[window:] - z[window - 1 : -1])[:, :outputs] for z in trajectories])
    scale = np.maximum(increments.std(axis=0), 1e-12)
    frozen = () if attentive else ("queries", "keys")
    network, readout = _adamw(
        start, rows, increments / scale, settings.seed, frozen, time_budget, report_progress, sizes
    )
    features = FeatureMap(
        channels,
        tokens=tokens,
        networks=(network,),
        scales=(np.ones(network.size),),
        token_lags=tuple(range(window))[::-1],
    )
    return Member(features, (readout * scale)[None])


def _adamw(
    start: LagNetwork,
    rows: FloatArray,
    increments: FloatArray,
    seed: int,
    frozen: tuple[str, ...],
    time_budget: TimeBudget,
    report_progress: Callable[[float], None] | None,
    sizes: LayerSizes,
) -> tuple[LagNetwork, FloatArray]:
    part = {name: torch.tensor(value, requires_grad=name not in frozen) for name, value in start.weights.items()}
    readout = torch.zeros((start.size + 1, increments.shape[1]), dtype=torch.float64, requires_grad=True)
    inputs, targets = torch.from_numpy(np.ascontiguousarray(rows)), torch.from_numpy(increments)
    optimiser = _AdamW([*part.values(), readout])
    draw = torch.Generator().manual_seed(seed)
    for step in range(sizes.steps):
        spent = max(step / sizes.steps, time_budget.used())
        if spent >= 1:
            time_budget.ended = True
            break
        chosen = torch.randint(len(inputs), (min(_BATCH, len(inputs)),), generator=draw)
        features = published_features(start, part, inputs[chosen])
        ahead = features @ readout[1:] + readout[0]
        loss = ((ahead - targets[chosen]) ** 2).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step(1e-6 + sizes.rate * 0.5 * (1 + cos(pi * spent)))
        if report_progress is not None:
            report_progress(spent)
    weights = {name: value.detach().numpy().copy() for name, value in part.items()}
    return replace(start, weights=weights), readout.detach().numpy().copy()


class _AdamW:
    """AdamW as published (Loshchilov and Hutter); importing torch's own takes seconds for its compiler."""

    def __init__(self, weights: list[torch.Tensor]) -> None:
        self._weights = weights
        self._means = [torch.zeros_like(part) for part in weights]
        self._squares = [torch.zeros_like(part) for part in weights]
        self._steps = 0

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Take one step along the gradients, and clear them."""
        self._steps += 1
        first, second = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        for part, mean, square in zip(self._weights, self._means, self._squares, strict=True):
            gradient = part.grad
            if gradient is None:
                continue
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            part.mul_(1 - rate * _DECAY)
            part.addcdiv_(mean / first, (square / second).sqrt_().add_(1e-8), value=-rate)
            part.grad = None
