"""Sections of the tour on hardmax attention: leaders, limits, ties, softmax and the theorem."""

from __future__ import annotations

import time
from typing import cast

import numpy as np
from matplotlib.figure import Figure

from ..attention.layer import HardmaxLayer, SoftmaxLayer
from ..datasets import Configuration, four_configurations, make_tokens
from ..dynamics.equilibrium import Equilibrium, equilibrium
from ..dynamics.simulate import simulate
from ..figures import draw_panels, draw_tokens, figure_bytes, new_figure
from ..geometry.leaders import leaders
from .random_systems import facts_table, run_systems
from .report import Section
from .tables import Table

# Sharp on a screen with a small file; sizes that run in seconds.
_DPI = 130
_MILLION = 10**6
_BETAS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
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
    ends = {beta: simulate(tokens, SoftmaxLayer(0.5, beta=beta), depth=_SOFTMAX_DEPTH).final for beta in _BETAS}
    gaps = [float(np.abs(np.asarray(end) - np.asarray(hard)).max()) for end in ends.values()]
    figure = new_figure(10.4, 3.4)
    first, second, third, plot = figure.subplots(1, 4)
    for ax, beta in zip((first, second, third), (_BETAS[0], _BETAS[2], _BETAS[4]), strict=True):
        ax.scatter(*np.asarray(tokens).T, s=12, color="#c9d0d6")
        ax.scatter(*np.asarray(ends[beta]).T, s=22, color="#0072B2")
        ax.scatter(*np.asarray(hard).T, s=52, facecolors="none", edgecolors="#D55E00")
        ax.set_aspect("equal")
        ax.set_title(f"beta = {beta:g}", loc="left")
    plot.loglog(_BETAS, np.maximum(gaps, 1e-16), "o-", color="#0072B2")
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
