"""Draw the small pictures of the README, one per capability: ``python docs/make_cards.py``."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import hardmax as hm
from hardmax.figures import figure_bytes, new_figure
from hardmax.files import write_bytes

STATIC = Path(__file__).parent / "_static"
GALLERY = Path(__file__).parents[1] / "gallery"


def _limit() -> Figure:
    tokens = hm.make_tokens("gaussian", 1500, 2, random_state=4)
    figure = new_figure(4.2, 3.1)
    ax = figure.subplots()
    hm.draw_tokens(hm.simulate(tokens, hm.HardmaxLayer(alpha=0.5), depth=2), ax=ax)
    ax.set_axis_off()
    return figure


def _text() -> Figure:
    review = "The plot is hardly new and the first half hour is dull, but the cast is wonderful, funny and warm."
    why = hm.text.shipped_model().explain(review)
    effects = dict(zip(why.words, why.effects[:, 0], strict=True))
    shown = sorted(sorted(effects, key=lambda word: -abs(effects[word]))[:8], key=effects.get)
    figure = new_figure(4.2, 3.1)
    ax = figure.subplots()
    ax.barh(shown, [effects[word] for word in shown], color=["#D55E00" if effects[w] < 0 else "#009E73" for w in shown])
    ax.axvline(0, color="#5b6770", lw=1)
    ax.set(xlabel="exact effect on the logit", title=f"{why.prediction} ({why.probabilities.max():.0%})")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(left=False)
    return figure


def _forecast() -> Figure:
    series = hm.datasets.lorenz63(1800)
    seen, later = series.values[:1500, :1], series.values[1500:, :1]
    ahead = hm.TimeDelayedTransformer(seconds=3.0, random_state=0).fit(seen, dt=series.dt).forecast(300)
    figure = new_figure(4.2, 3.1)
    ax = figure.subplots()
    lower, upper = ahead.interval(0.9)
    time = series.dt * np.arange(-200, 300)
    ax.plot(time[:200], seen[-200:, 0], color="#5b6770", lw=1.2)
    ax.plot(time[200:], later[:, 0], color="#5b6770", lw=1.2, ls="--", label="record")
    ax.fill_between(time[200:], lower[:, 0], upper[:, 0], color="#0072B2", alpha=0.2, lw=0, label="90 % interval")
    ax.plot(time[200:], ahead.values[:, 0], color="#0072B2", lw=1.6, label="forecast")
    ax.set(xlabel="time", ylabel="x", ylim=(-24, 30))
    ax.legend(frameon=False, ncols=3, fontsize=7, loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def _network() -> Figure:
    counts = (2, 4, 8, 16, 32)
    rng = np.random.default_rng(0)
    figure = new_figure(4.2, 3.1)
    ax = figure.subplots()
    built, published = [], []
    for n in counts:
        inputs = [np.unique(rng.integers(-8, 9, (6, 2)), axis=0).tolist() for _ in range(n)]
        net = hm.interpolate(inputs, [rng.integers(-8, 9, (1, 2)).tolist() for _ in range(n)])
        built.append(net.counts.blocks)
        published.append(net.counts.published)
    ax.loglog(counts, published, "o--", color="#5b6770", label="published bound")
    ax.loglog(counts, built, "o-", color="#D55E00", label="built and proved")
    ax.set(xlabel="sequences", ylabel="blocks", xticks=counts, xticklabels=counts)
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def _meanfield() -> Figure:
    B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
    law = hm.circle_quantiles(520, lambda angle: 1 + np.sin(angle) / 2)
    figure = new_figure(4.2, 3.1)
    ax = figure.subplots()
    run = hm.simulate(law.points, hm.SphereFlow(B, V, 100.0), time=14.0, step=0.1)
    hm.figures.draw_angles(run, ax=ax)
    ax.set_title("")
    return figure


def _models() -> Figure:
    found = json.loads((GALLERY / "models" / "measured.json").read_text(encoding="utf-8"))["leaders"]
    figure = new_figure(4.2, 3.1)
    ax = figure.subplots()
    hm.figures.draw_who_attends(found["words"], found["targets"], found["weights"], sinks=found["sinks"], ax=ax)
    ax.set_title("")
    return figure


def _field() -> Figure:
    grid = hm.phase_diagram(
        "long_context",
        x=("rho", np.linspace(0.0, 0.6, 13)),
        y=("gamma", np.linspace(0.25, 3.0, 12)),
        measure="own_weight",
        fixed={"n": 100},
        seeds=1,
    )
    figure = new_figure(4.2, 3.1)
    grid.draw(ax=figure.subplots())
    return figure


CARDS: dict[str, Callable[[], Figure]] = {
    "tokens": _limit,
    "text": _text,
    "forecasting": _forecast,
    "networks": _network,
    "meanfield": _meanfield,
    "models": _models,
    "zoo": _field,
}


def main() -> None:
    for name, draw in CARDS.items():
        with Image.open(io.BytesIO(figure_bytes(draw(), dpi=110))) as picture:
            small = picture.convert("RGB").quantize(96, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        buffer = io.BytesIO()
        small.save(buffer, format="png", optimize=True)
        write_bytes(STATIC / f"card-{name}.png", buffer.getvalue())


if __name__ == "__main__":
    main()
