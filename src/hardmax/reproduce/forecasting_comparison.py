"""Comparison of the published layer, as trained in the paper and as well as it can be, with TD-DMD and the default."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from ..datasets.chaotic import LYAPUNOV_EXPONENT
from ..drawing.style import INK, NOBODY, PALETTE, new_figure, style_axes, styled
from ..figures.forecasting import FAN, draw_forecast
from ..forecasting.data.series import Units
from ..forecasting.diagnostics.skill import histogram_distance
from ..forecasting.diagnostics.spectrum import lyapunov_exponent
from ..forecasting.forecaster import TimeDelayedTransformer
from ..forecasting.models.ng_rc import NextGenerationReservoir
from ..forecasting.models.published_layer import PublishedLayer
from ..forecasting.models.td_dmd import TimeDelayedDMD
from ..forecasting.protocol import AbstractForecaster
from ..forecasting.rollout import Fade, Predictor
from ..forecasting.search.refit import data_range
from .forecasting_cases import ForecastCase
from .report import Table

OURS, DMD = "ours", "TD-DMD, tuned"
PAPER, WELL = "published layer, AdamW as published", "published layer, well trained"
UNIFORM, MLP = "the same with uniform attention", "a linear path and an MLP in its place"
_COLOURS = {OURS: PALETTE[0], WELL: PALETTE[2], PAPER: PALETTE[6], DMD: PALETTE[1]}
_CLIMATE_STEPS = 3000
"""Steps of the long rollouts: about 54 Lyapunov times of Lorenz '63 at dt = 0.02."""
_PORTRAIT_LAG = 6
"""Samples between the axes of the portraits of one channel: a sixth of an orbit of Lorenz '63 at dt = 0.02."""


def models(*, seconds: float | None) -> dict[str, AbstractForecaster]:
    """The models that are compared, by name; ``seconds`` of processor time end each search, None none."""
    return {
        DMD: TimeDelayedDMD(seconds=seconds),
        "NG-RC, tuned": NextGenerationReservoir(seconds=seconds),
        PAPER: TimeDelayedTransformer(recipe="paper", seconds=seconds, random_state=0, progress=False),
        WELL: PublishedLayer(seconds=seconds),
        OURS: TimeDelayedTransformer(seconds=seconds, random_state=0, progress=False),
    }


def attention_variants(*, seconds: float | None) -> dict[str, AbstractForecaster]:
    """The well trained layer without attention, by name: uniform attention, and an MLP in place of the layer."""
    return {
        UNIFORM: PublishedLayer(variant="uniform", seconds=seconds),
        MLP: PublishedLayer(variant="mlp", seconds=seconds),
    }


def overlay(case: ForecastCase, fitted: Mapping[str, AbstractForecaster]) -> Figure:
    """Figure of the forecasts from the start in the middle and the true future, at most three channels.

    The default forecast is drawn with its intervals, the others as lines.
    """
    k, shown = len(case.windows) // 2, min(3, case.truth.shape[2])
    steps = min(case.horizon, 300)
    ours = fitted[OURS]
    assert isinstance(ours, TimeDelayedTransformer)  # noqa: S101 (made so above)
    ahead = ours.forecast(steps, window=case.windows[k])
    few = replace(
        ahead,
        values=ahead.values[:, :shown],
        spread=ahead.spread[:, :shown],
        left_range_at=int(np.asarray(ahead.left_range_at)),
    )
    figure = draw_forecast(
        case.windows[k][:, :shown], few, dt=case.dt, names=case.names[:shown], truth=case.truth[k][:, :shown]
    )
    with styled():
        for name in (DMD, PAPER, WELL):
            if name not in fitted:
                continue
            values = fitted[name].roll(case.windows[k : k + 1], steps)[0]
            for j, ax in enumerate(figure.axes[:shown]):
                low, high = ax.get_ylim()
                # A forecast that leaves the panel is cut off there; in full it would flatten the others.
                path = np.where((values[:, j] > low) & (values[:, j] < high), values[:, j], np.nan)
                ax.plot(few.times, path, color=_COLOURS[name], lw=1.1, label=name, gid=name)
                ax.set_ylim(low, high)
        # The legend stands above the panel, which needs no room for it any more.
        first = figure.axes[0]
        low, high = first.get_ylim()
        curves = [np.asarray(line.get_ydata(), dtype=np.float64) for line in first.lines]
        top = max(float(np.nanmax(curve)) for curve in curves if len(curve) > 2)  # two points: a vertical line
        first.set_ylim(low, min(high, top + 0.05 * (top - low)))
        bands = [fan for fan in reversed(first.collections) if fan.get_gid() == FAN]
        handles = [*(line for line in first.lines if not str(line.get_label()).startswith("_")), *bands]
        first.get_legend().remove()  # type: ignore[union-attr]
        first.legend(
            handles,
            ["ours" if handle.get_label() == "forecast" else str(handle.get_label()) for handle in handles],
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=3,
            frameon=False,
            borderaxespad=0.2,
        )
    return figure


def attention_table(found: Mapping[str, Mapping[str, float]], higher_is_better: Collection[str] = ()) -> Table:
    """Table of the layer with and without attention, from one number per case and model.

    The numbers are errors, or valid times for the cases named in ``higher_is_better``.
    """
    names = (DMD, PAPER, UNIFORM, WELL, MLP)
    rows: list[tuple[object, ...]] = []
    for case, by_model in found.items():
        without = [by_model[name] for name in (MLP, DMD) if name in by_model]
        gain = None
        if WELL in by_model and without:
            better = case in higher_is_better
            gain = by_model[WELL] / max(without) if better else min(without) / by_model[WELL]
        measure = "valid time" if case in higher_is_better else "NRMSE"
        rows.append((f"{case}, {measure}", *(by_model.get(name) for name in names), gain))
    return Table(
        "What attention adds",
        ("case", *names, "gain of attention"),
        rows,
        "NRMSE of rollouts; for the chaotic case the valid time in Lyapunov times. In the published layer attention is "
        "the only way by which samples before the latest enter one by one: with uniform attention it sees their mean "
        "only. The gain compares the well trained layer with the better one of TD-DMD and of a linear path with an MLP "
        "on the same window, trained by the same solver: above 1 attention helps.",
    )


def climate(case: ForecastCase, fitted: Mapping[str, AbstractForecaster]) -> tuple[Figure, Table]:
    """Figure of long rollouts (attractor and histogram), and table of histogram distance and Lyapunov exponent.

    The rollouts start at the middle start; the truth is the training record.
    """
    truth = case.training[0]
    k = len(case.windows) // 2
    named = [name for name in (OURS, WELL, PAPER, DMD) if name in fitted]
    paths = {name: fitted[name].roll(case.windows[k : k + 1], _CLIMATE_STEPS)[0] for name in named}
    rows: list[tuple[object, ...]] = [("the system", 0.0, LYAPUNOV_EXPONENT)]
    for name in named:
        units, predictor = _predictor(fitted[name], case)
        exponent = lyapunov_exponent(predictor, units.normalise(case.windows[k : k + 1]), case.dt, _CLIMATE_STEPS, 0)
        rows.append((name, histogram_distance(paths[name], truth), exponent))
    table = Table(
        f"Long rollouts of {_CLIMATE_STEPS:,} steps",
        ("model", "distance of histograms", "Lyapunov exponent"),
        rows,
        "Total variation distance between the histogram of the rollout and that of the record: 0 for equal, 1 for "
        "disjoint ones. Two halves of the true record differ by "
        f"{histogram_distance(truth[: len(truth) // 2], truth[len(truth) // 2 :]):.2g}.",
    )
    return _draw_climate(truth, paths), table


def _predictor(model: AbstractForecaster, case: ForecastCase) -> tuple[Units, Predictor]:
    """Units and predictor of a fitted model."""
    if isinstance(model, TimeDelayedTransformer):
        assert model.predictor_ is not None  # noqa: S101 (the cases vary)
        return model.units_, model.predictor_
    assert isinstance(model, (TimeDelayedDMD, PublishedLayer))  # noqa: S101 (the models compared above)
    units, member = model.fitted()
    rows = [units.normalise(z) for z in case.training]
    return units, Predictor(rows[0].shape[1], (member,), member, Fade(*data_range(rows, rows[0].shape[1])))


def _draw_climate(truth: np.ndarray, paths: Mapping[str, np.ndarray]) -> Figure:
    low, high = float(truth[:, 0].min()), float(truth[:, 0].max())
    margin = 0.15 * (high - low)
    bins = np.linspace(low - margin, high + margin, 61)
    with styled():
        figure = new_figure(11.0, 4.8)
        axes = figure.subplots(2, len(paths), squeeze=False)
        for column, (name, path) in enumerate(paths.items()):
            colour = _COLOURS[name]
            above, below = axes[:, column]
            for ax in (above, below):
                style_axes(ax)
                ax.set_xlim(bins[0], bins[-1])
            above.plot(truth[:-_PORTRAIT_LAG, 0], truth[_PORTRAIT_LAG:, 0], color=NOBODY, lw=0.5, alpha=0.7)
            above.plot(path[:-_PORTRAIT_LAG, 0], path[_PORTRAIT_LAG:, 0], color=colour, lw=0.6)
            above.set_ylim(bins[0], bins[-1])
            above.set_title(name.replace(", ", ",\n", 1), color=INK, fontsize=9.5)
            below.hist(truth[:, 0], bins=bins, density=True, color=NOBODY, alpha=0.7)
            inside = np.clip(path[:, 0], bins[0], bins[-1])
            below.hist(inside, bins=bins, density=True, histtype="step", color=colour, lw=1.4)
            below.set_ylim(0, 2.5 * np.histogram(truth[:, 0], bins, density=True)[0].max())
            below.set_xlabel("x")
        axes[0, 0].set_ylabel(f"x, {_PORTRAIT_LAG} samples later")
        axes[1, 0].set_ylabel("density")
    return figure
