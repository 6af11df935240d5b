"""The tour of ``hardmax demo``: a list of stops (:data:`STOPS`), each a section of one page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from matplotlib.figure import Figure

from ..attention.layer import HardmaxLayer, SoftmaxLayer
from ..datasets import Configuration, four_configurations, make_tokens
from ..datasets.chaotic import lorenz63
from ..dynamics.equilibrium import Equilibrium, equilibrium
from ..dynamics.simulate import simulate
from ..figures import (
    draw_angles,
    draw_backtest,
    draw_distances,
    draw_forecast,
    draw_panels,
    draw_tokens,
    figure_bytes,
    new_figure,
)
from ..figures.interpolation import draw_construction
from ..figures.text_layers import draw_layers
from ..forecasting.forecaster import TimeDelayedTransformer
from ..geometry.leaders import leaders
from ..interpolation import interpolate
from ..meanfield.flow import SphereFlow
from ..meanfield.measures import circle_quantiles
from ..meanfield.phases import phases
from ..text.pretrained import shipped_model
from ..threads import one_thread
from .clustering import facts_table, run_systems
from .interpolation import example
from .report import Report, Section, Table

# Sharp on a screen with a small file; sizes that run in seconds.
_DPI = 130
_MILLION = 10**6
_SOFTMAX_BETAS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
_SOFTMAX_DEPTH = 6


def show_leaders(section: Section) -> None:
    """Section on a small system, layer by layer."""
    configuration = _configuration("cloud")
    layer = HardmaxLayer(configuration.alpha)
    run = simulate(configuration.tokens, layer, depth=configuration.layers[-1], keep=configuration.layers)
    limit = equilibrium(configuration.tokens, layer)
    found = leaders(limit)
    rows = [
        (int(token), int(layer_of), int(followers), f"({x:.3g}, {y:.3g})")
        for token, layer_of, followers, (x, y) in zip(
            found.index, found.emerged_at, found.followers, found.positions, strict=True
        )
    ]
    section.text(
        f"{len(configuration.tokens)} tokens in the plane, alpha = {configuration.alpha:g}, A the identity. "
        f"{configuration.says} Theorem 1.1 of Alcalde, Fantuzzi and Zuazua (arXiv 2407.01602) says that, "
        "if A is symmetric positive definite and the tokens are distinct and nonzero, the leaders are the vertices of "
        "a polytope and every other token converges to its boundary."
    ).picture(
        figure_bytes(draw_panels(run, configuration.layers), dpi=_DPI),
        "Stars: leaders, which listen to themselves alone. Colours: the token that a token listens to. Shaded: the "
        "polytope.",
    ).table(Table("The leaders", ("token", "since layer", "followers", "stays at"), rows)).code(
        "run = hm.simulate(tokens, hm.HardmaxLayer(alpha=0.5), depth=40)\nhm.draw_panels(run)\nhm.leaders(run)"
    )


def show_a_million(section: Section) -> None:
    """Section on a million tokens at infinite depth."""
    tokens = make_tokens("gaussian", _MILLION, 2, random_state=1)
    began = time.perf_counter()
    limit = equilibrium(tokens, HardmaxLayer(0.5), progress=False)
    seconds = time.perf_counter() - began
    numbers = np.ascontiguousarray(tokens[:, 0])
    began = time.perf_counter()
    np.sort(numbers)
    sorting = time.perf_counter() - began
    section.text(
        "Once a token follows one leader alone it does so for ever, and its path is known in closed form. The limit of "
        "infinitely many layers therefore costs about as much as one layer. In one layer only vertices of the convex "
        "hull can have the largest score, so that not all pairs are compared."
    ).numbers(
        {
            "tokens": _MILLION,
            "seconds to infinite depth": round(seconds, 2),
            "times as long as sorting them": round(seconds / sorting, 1),
            "leaders": len(limit.leaders),
            "layers until all are decided": limit.layers,
        }
    ).picture(
        figure_bytes(cast(Figure, draw_tokens(limit, start=tokens).figure), dpi=_DPI),
        "Every token at its start, in the colour of the leader at which it ends.",
        narrow=True,
    ).code("hardmax simulate --n 1000000 --limit --figure million.png")


def show_ties(section: Section) -> None:
    """Section on late leaders and on ties that last."""
    late, equals = _configuration("late-leader"), _configuration("equals")
    for configuration in (late, equals):
        run = simulate(
            configuration.tokens,
            HardmaxLayer(configuration.alpha),
            depth=configuration.layers[-1],
            keep=configuration.layers,
        )
        section.text(configuration.says).picture(
            figure_bytes(draw_panels(run, configuration.layers), dpi=_DPI), configuration.title + "."
        )
    rounded = equilibrium(equals.tokens, HardmaxLayer(equals.alpha))
    exact = equilibrium(equals.tokens, HardmaxLayer(equals.alpha, tolerance="exact"))
    rows = [
        (token, " and ".join(map(str, members)), "({:g}, {:g})".format(*np.asarray(exact.positions)[token]))
        for token, members in exact.ties.items()
    ]
    section.text(
        "In floating point, scores within a few units in the last place count as tied. In exact mode the same run is "
        "computed in rational arithmetic without any tolerance, which certifies the result."
    ).numbers(
        {
            "tokens tied for ever": len(exact.ties),
            "exact run agrees with the rounded one": _same(rounded, exact),
            "late leader emerges at layer": int(
                np.max(np.asarray(equilibrium(late.tokens, HardmaxLayer(late.alpha)).emerged_at))
            ),
        }
    ).table(Table("Tokens that end on a face", ("token", "follows", "ends at"), rows)).code(
        'hm.equilibrium(tokens, hm.HardmaxLayer(alpha=0.5, tolerance="exact")).ties'
    )


def show_softmax(section: Section) -> None:
    """Section on the convergence of softmax to hardmax attention as beta grows."""
    tokens = _configuration("cloud").tokens
    hard = simulate(tokens, HardmaxLayer(0.5), depth=_SOFTMAX_DEPTH).final
    ends = {beta: simulate(tokens, SoftmaxLayer(0.5, beta=beta), depth=_SOFTMAX_DEPTH).final for beta in _SOFTMAX_BETAS}
    gaps = [float(np.abs(np.asarray(end) - np.asarray(hard)).max()) for end in ends.values()]
    figure = new_figure(10.4, 3.4)
    first, second, third, plot = figure.subplots(1, 4)
    for ax, beta in zip((first, second, third), (_SOFTMAX_BETAS[0], _SOFTMAX_BETAS[2], _SOFTMAX_BETAS[4]), strict=True):
        ax.scatter(*np.asarray(tokens).T, s=12, color="#c9d0d6")
        ax.scatter(*np.asarray(ends[beta]).T, s=22, color="#0072B2")
        ax.scatter(*np.asarray(hard).T, s=52, facecolors="none", edgecolors="#D55E00")
        ax.set_aspect("equal")
        ax.set_title(f"beta = {beta:g}", loc="left")
    plot.loglog(_SOFTMAX_BETAS, np.maximum(gaps, 1e-16), "o-", color="#0072B2")
    plot.set_xlabel("beta")
    plot.set_title("distance to hardmax", loc="left")
    section.text(
        "Transformers use softmax. At a small inverse temperature beta it averages over all tokens; as beta grows the "
        "largest score dominates, and the run converges to the hardmax run. The same "
        f"{len(tokens)} tokens after {_SOFTMAX_DEPTH} layers:"
    ).picture(
        figure_bytes(figure, dpi=_DPI),
        "Grey: start. Blue: softmax. Rings: hardmax. On the right the largest distance between the two.",
    ).code("hm.simulate(tokens, hm.SoftmaxLayer(alpha=0.5, beta=16), depth=6)")


def show_facts(section: Section) -> None:
    """Section on facts 1 to 6, checked numerically."""
    began = time.perf_counter()
    trials = run_systems(2, 2, progress=False)
    seconds = time.perf_counter() - began
    findings = [finding for trial in trials for finding in trial.findings if finding.holds is not None]
    section.text(
        "The proof of the theorem rests on six facts. They and the conclusions of the theorem are checked numerically "
        "on random systems, half in general position and half with many exact ties."
    ).numbers(
        {
            "systems": len(trials),
            "statements measured": len(findings),
            "violations": sum(finding.holds is False for finding in findings),
            "seconds": round(seconds, 1),
        }
    ).table(facts_table(trials)).code("hm.check_theorem(tokens, hm.HardmaxLayer(alpha=0.5, A=A))")


def _configuration(name: str) -> Configuration:
    return next(c for c in four_configurations() if c.name == name)


def _same(one: Equilibrium, other: Equilibrium) -> bool:
    """Whether two limits have the same leaders, followers and ties."""
    ties = {t: m.tolist() for t, m in one.ties.items()} == {t: m.tolist() for t, m in other.ties.items()}
    follows = np.array_equal(np.asarray(one.follows), np.asarray(other.follows))
    return ties and follows and np.array_equal(np.asarray(one.leaders), np.asarray(other.leaders))


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
    Stop("Leaders and followers", show_leaders),
    Stop("A million tokens at infinite depth", show_a_million),
    Stop("A late leader, and tokens that end on a face", show_ties),
    Stop("From softmax to hardmax", show_softmax),
    Stop("The theorem checked on random systems", show_facts),
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
