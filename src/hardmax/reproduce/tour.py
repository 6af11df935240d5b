"""The tour of ``hardmax demo``: a list of stops, each a section of one page.

A part of the library that has something to show adds its stops to :data:`STOPS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..threads import one_thread
from . import clustering_stops as clustering
from .forecasting_stops import show_forecast
from .interpolation_stops import show_compilation
from .meanfield_stops import show_three_phases
from .report import Report, Section
from .sentiment_stops import show_reasons

_LEAD = (
    "Tokens are points and layers are time: in every layer a token listens to the token that scores highest and moves "
    "towards it. This page was made on your machine just now; every picture and number on it is computed, none is "
    "stored."
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
    Stop("Who leads, who follows", clustering.show_leaders),
    Stop("A million tokens at infinite depth", clustering.show_a_million),
    Stop("A late leader, and tokens that end on a face", clustering.show_ties),
    Stop("From softmax to hardmax", clustering.show_softmax),
    Stop("The theorem, tried on random systems", clustering.show_facts),
    Stop("Why a review is good or bad", show_reasons),
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
    """Take every stop and write the page; ``arrive(number, count, title)`` is called before each."""
    report = Report("A tour of hardmax", lead=_LEAD)
    with one_thread():
        for number, stop in enumerate(stops, start=1):
            if arrive is not None:
                arrive(number, len(stops), stop.title)
            stop.show(report.section(stop.title))
    report.section("To try next").text("On the command line, and in Python.").code(_NEXT)
    report.write(output)
    return report
