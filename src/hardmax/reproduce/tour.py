"""The tour of ``hardmax demo``: a list of stops (:data:`STOPS`), each a section of one page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from matplotlib.figure import Figure

from ..datasets.chaotic import lorenz63
from ..dynamics.simulate import simulate
from ..figures import draw_angles, draw_backtest, draw_distances, draw_forecast, figure_bytes, new_figure
from ..figures.interpolation import draw_construction
from ..figures.text_layers import draw_layers
from ..forecasting.forecaster import TimeDelayedTransformer
from ..interpolation import interpolate
from ..meanfield.flow import SphereFlow
from ..meanfield.measures import circle_quantiles
from ..meanfield.phases import phases
from ..text.pretrained import shipped_model
from ..threads import one_thread
from . import tour_clustering as clustering
from .interpolation import example
from .report import Report, Section
from .tables import Table

# Samples to learn from, and steps to forecast.
_LEARNED, _AHEAD = 2500, 300


def show_forecast(section: Section) -> None:
    """Section on a forecast of the Lorenz system, with its backtest."""
    series = lorenz63(_LEARNED + _AHEAD)
    seen, later = series.values[:_LEARNED, :1], series.values[_LEARNED:, :1]
    model = TimeDelayedTransformer(seconds=2.0, random_state=0, progress=False).fit(seen, dt=series.dt)
    ahead = model.forecast(_AHEAD)
    record = model.backtest(200, starts=10)
    apart = np.abs(ahead.values - later)[:, 0] / seen.std() > 0.4
    good = int(apart.argmax()) if apart.any() else _AHEAD
    section.text(
        "Attention also forecasts: the tokens are the last samples of a series, the latest one is the query, and an "
        "explicit linear path (time-delayed DMD) models the linear part. The model is trained on one coordinate of the "
        "Lorenz system and does not know its equations. After Alcalde, Widhalm and Yılmaz (arXiv 2602.08478)."
    ).picture(
        figure_bytes(draw_forecast(seen, ahead, dt=series.dt, names=("x",), truth=later), dpi=130),
        f"The forecast stays within 0.4 standard deviations of the true future for {good} steps.",
    ).text(str(model.report_)).picture(
        figure_bytes(draw_backtest(record), dpi=130),
        "Backtest on the held-out last quarter, with the simplest baselines.",
    ).code(
        "model = hm.TimeDelayedTransformer().fit(series, dt=0.02)\n"
        "ahead = model.forecast(200)          # values, spread, times, outcome\n"
        "print(model.backtest().text())\n\nhardmax forecast data.csv --steps 200 --figure out.png"
    )


def show_compilation(section: Section) -> None:
    """Section on three sequences that are mapped to their targets exactly."""
    network = interpolate(*example())
    certificate = network.certify()
    section.text(
        "Three overlapping sequences of tokens, and a set of targets for each. The transformer below was not trained "
        "but compiled from the data; its weights are rational numbers, and exact arithmetic proves that every sequence "
        f"is mapped to its targets. It has {len(network.blocks)} blocks where the published bound for such data "
        f"(arXiv 2502.02270) is {network.counts.published}."
    ).picture(
        figure_bytes(cast(Figure, draw_construction(network)), dpi=130),
        "Five stages, one colour per sequence; rings are the targets.",
    ).code(str(certificate)).code(
        "net = hm.interpolate(inputs, outputs)\nnet.certify()\nnet.to_torch(); net.save('net')"
    )


_B, _V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])
_BETAS = (10.0, 30.0, 100.0)


def show_three_phases(section: Section) -> None:
    """Section on concentration, metastability and the terminal phase on the circle."""
    tokens = circle_quantiles(600, lambda angle: 1 + np.sin(angle) / 2).points
    runs = [simulate(tokens, SphereFlow(_B, _V, beta), time=14.0, step=0.1) for beta in _BETAS]
    found = [phases(run) for run in runs]
    last = found[-1]
    figure = new_figure(11.4, 4.2)
    left, right = figure.subplots(1, 2)
    draw_distances(found, ax=left)
    marks = {"closest approach": last.approach_time, **({"escape": last.escape_time} if last.escape_time else {})}
    draw_angles(runs[-1], ax=right, marks=marks)
    rows = [(name, value, error, expected) for name, value, error, expected in last.rows()]
    section.text(
        "With softmax instead of argmax, and layer normalisation, tokens move on a sphere. For many tokens at a low "
        "temperature they first concentrate at the image of a linear map, here at the angles 0 and pi; they stay there "
        "for a time that grows like log beta; then each cluster attends only to itself and moves to the leading "
        "direction of V. After Alcalde, Bungert, Riedl and Roith (arXiv 2605.10931)."
    ).picture(
        figure_bytes(figure, dpi=130),
        "Left: the distance to the limit law through time. Right: the angle of every token at beta = 100.",
    ).table(
        Table(
            "Found in the run at beta = 100",
            ("", "found", "standard error", "theory"),
            rows,
            "Times of the theory hold to leading order in log beta; only their slopes can be compared with runs.",
        )
    ).code(
        "run = hm.simulate(tokens, hm.SphereFlow(B, V, beta=100.0), time=14.0)\n"
        "print(hm.phases(run))\n\nhardmax meanfield --beta 10,30,100 --figure phases.png"
    )


_REVIEW = (
    "A dull plot and a wooden lead, two hours too long; and yet it is saved by a wonderful cast, a superb score and "
    "one great scene near the end that I will not forget."
)


def show_reasons(section: Section) -> None:
    """Section on a review classified by the shipped model, with the explanation."""
    model = shipped_model()
    why = model.explain(_REVIEW)
    rows = [
        (
            leader.word,
            ", ".join(why.words[place] for place in leader.followers[:6]) or None,
            leader.share,
            float(leader.contribution[0]),
        )
        for leader in why.leaders
    ]
    total = float(why.logits[0])
    section.text(
        "Here the tokens are words with learned embeddings. In every layer each word of a review follows the word with "
        "the highest score, until all are close to a few leaders, and a linear decoder classifies their mean. The "
        "contributions of the leaders add up to the logit exactly, so they explain the answer."
    ).text(f"“{_REVIEW}”").numbers(
        {
            "answer": str(why.prediction),
            "probability": round(float(why.probabilities.max()), 3),
            "words of the model": len(model.words()),
            "leaders of this review": len(why.leaders),
        }
    ).picture(
        figure_bytes(draw_layers(why), dpi=110),
        "The words of the review at three layers. Star: leader; dashed: the boundary of the decoder; diamond: the mean "
        "that it reads.",
    ).table(
        Table(
            "Leaders and their contributions",
            ("leader", "followed by", "share of the mass", "contribution"),
            rows,
            f"The contributions and the bias {float(why.bias[0]):.4f} add up to the logit {total:.4f}.",
        )
    ).code(
        'model = hm.LeaderClassifier().fit(texts, labels)\nprint(model.explain("…"))\n\n'
        'hardmax sentiment explain "A dull plot, saved by a wonderful cast."'
    )


_LEAD = (
    "Tokens are points and layers are time: in every layer a token listens to the token of the highest score and moves "
    "towards it. All figures and numbers on this page were computed on your machine just now."
)
_NEXT = """
hardmax simulate --limit --figure limit.png       # 200 random tokens at infinite depth
hardmax simulate your-points.csv                  # your own tokens, one per line
hardmax simulate --depth 20 --animate run.gif     # a film, layer by layer
hardmax reproduce clustering                      # the figures of the paper and a table
hardmax sentiment explain "A dull plot, saved by a wonderful cast."
hardmax meanfield --beta 10,100 --figure w2.png   # tokens on the sphere at low temperature
hardmax forecast data.csv --figure ahead.png      # your own series, with its past record

import hardmax as hm
limit = hm.equilibrium(tokens, hm.HardmaxLayer(alpha=0.5))
limit.leaders, limit.follows, limit.positions, limit.polytope
hm.draw(limit)
"""


@dataclass(frozen=True)
class Stop:
    """One stop of the tour: a title, and a function that fills its section."""

    title: str
    show: Callable[[Section], None]


STOPS: tuple[Stop, ...] = (
    Stop("Leaders and followers", clustering.show_leaders),
    Stop("A million tokens at infinite depth", clustering.show_a_million),
    Stop("A late leader, and tokens that end on a face", clustering.show_ties),
    Stop("From softmax to hardmax", clustering.show_softmax),
    Stop("The theorem checked on random systems", clustering.show_facts),
    Stop("Why a review is classified as positive or negative", show_reasons),
    Stop("A data set compiled into a transformer", show_compilation),
    Stop("Three phases at low temperature", show_three_phases),
    Stop("A forecast from delay windows", show_forecast),
)


def take_tour(
    output: str | os.PathLike[str],
    *,
    stops: Sequence[Stop] = STOPS,
    arrive: Callable[[int, int, str], None] | None = None,
) -> Report:
    """The page of ``hardmax demo``: every stop of the tour, written to ``output``.

    Parameters
    ----------
    output
        The HTML file to write.
    stops
        The stops to take.
    arrive
        Called with the number, the count and the title before each stop.

    Returns
    -------
    Report
        The page.
    """
    report = Report("A tour of hardmax", lead=_LEAD)
    with one_thread():
        for number, stop in enumerate(stops, start=1):
            if arrive is not None:
                arrive(number, len(stops), stop.title)
            stop.show(report.section(stop.title))
    report.section("Next steps").text("On the command line, and in Python.").code(_NEXT)
    report.write(output)
    return report
