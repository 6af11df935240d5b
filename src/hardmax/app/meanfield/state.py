"""The Mean field page as data: a law on the circle or the sphere, a flow, and the phases of its run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

import hardmax as hm

from ...progress import Progress
from ..page import different, number, whole, written

# Time between two stored states, which are the frames of the animation.
STEP = 0.1
_PIECE = 1.0
"""Time between two updates of the page while the flow is simulated."""
# The cost of a step grows with the square of the number of tokens.
MOST_TOKENS = 2_000


@dataclass(frozen=True)
class MeanFieldState:
    """Values of the controls; an address stores those that differ from their defaults."""

    d: int = 2
    n: int = 400
    tilt: float = 0.5
    beta: float = 30.0
    time: float = 12.0
    b1: float = 4.0
    b2: float = 1.0
    b3: float = 1.0
    v1: float = 1.0
    v2: float = 2.0
    v3: float = 0.5
    turn: float = 0.0
    """Angle in degrees between the first axes of V and B."""

    @property
    def score(self) -> np.ndarray:
        """The score matrix B, diagonal, shape (d, d)."""
        return np.diag([self.b1, self.b2, self.b3][: self.d])

    @property
    def value(self) -> np.ndarray:
        """The value matrix V, symmetric, shape (d, d)."""
        angle = math.radians(self.turn)
        axes = np.eye(self.d)
        axes[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        return (axes @ np.diag([self.v1, self.v2, self.v3][: self.d]) @ axes.T).round(12)

    @property
    def law(self) -> hm.Measure:
        """Initial tokens: deterministic points of the density 1 + tilt x, where x is the last coordinate."""
        if self.d == 2:
            return hm.circle_quantiles(self.n, lambda angle: 1 + self.tilt * np.sin(angle))
        return hm.fibonacci_sphere(self.n, axis=(0.05, -0.05, 1.0)).reweighted(lambda x: 1 + self.tilt * x[:, -1])

    @property
    def flow(self) -> hm.SphereFlow:
        """The flow; the page itself notes too few tokens, instead of a warning."""
        return hm.SphereFlow(self.score, self.value, self.beta, few_tokens="ignore")

    def changed(self, **values: object) -> MeanFieldState:
        """The state with other settings."""
        return replace(self, **values)  # type: ignore[arg-type]

    def to_query(self) -> dict[str, str]:
        """The part of the address that stores the state."""
        return different(asdict(self), asdict(MeanFieldState()))

    @classmethod
    def from_query(cls, state: Mapping[str, str]) -> MeanFieldState:
        """A state from an address."""
        d = cls()
        return cls(
            d=whole(state, "d", d.d, 2, 3),
            n=whole(state, "n", d.n, 10, MOST_TOKENS),
            tilt=number(state, "tilt", d.tilt, -0.95, 0.95),
            beta=number(state, "beta", d.beta, 0.1, 1_000.0),
            time=number(state, "time", d.time, 1.0, 40.0),
            turn=number(state, "turn", d.turn, -90.0, 90.0),
            **{f"b{k}": number(state, f"b{k}", getattr(d, f"b{k}"), 0.1, 6.0) for k in (1, 2, 3)},
            **{f"v{k}": number(state, f"v{k}", getattr(d, f"v{k}"), -3.0, 6.0) for k in (1, 2, 3)},
        )

    def code(self) -> str:
        """Python that reproduces the view."""
        if self.d == 2:
            law = f"hm.circle_quantiles({self.n}, lambda angle: 1 + {written(self.tilt)} * np.sin(angle))"
        else:
            points = f"hm.fibonacci_sphere({self.n}, axis=(0.05, -0.05, 1.0))"
            law = f"{points}.reweighted(lambda x: 1 + {written(self.tilt)} * x[:, -1])"
        return (
            "import hardmax as hm\nimport numpy as np\nfrom hardmax.figures import draw_distances\n\n"
            f"B = np.array({self.score.tolist()})\nV = np.array({self.value.tolist()})\n"
            f"law = {law}\n"
            f'flow = hm.SphereFlow(B, V, beta={written(self.beta)}, few_tokens="ignore")\n'
            f"run = hm.simulate(law.points, flow, time={written(self.time)}, step={STEP:g}, weights=law.weights)\n"
            "found = hm.phases(run)\nprint(found)\nprint(found.limit)\n"
            'hm.save_figure(draw_distances(found).figure, "phases.png")\n'
        )


@dataclass(frozen=True, eq=False)
class Followed:
    """The run so far."""

    state: MeanFieldState
    run: hm.Trajectory
    limit: hm.LowTemperatureLimit
    found: hm.Phases | None
    """The phases of the run so far; None where they are computed only at the end."""
    finished: bool

    def words(self) -> tuple[str, ...]:
        """Sentences to show beside the plots."""
        words = [str(self.limit).capitalize() + "."]
        if self.found is None:
            words.append("The distance to a limit of more than two points is computed at the end.")
            return tuple(words)
        if not self.finished:
            words.append(f"Simulated until t = {self.run.times[-1]:.3g} so far." if self.run.times is not None else "")
        crowd = self.found.occupancy
        if crowd.smallest < 10:
            few = f"{crowd.smallest:.2g}"
            share = "token shares" if few == "1" else "tokens share"
            words.append(
                f"Only {few} {share} an attention kernel, too few for the mean-field limit "
                f"({crowd.enough:,} tokens would be enough)."
            )
        return tuple(words)


def follow(
    state: MeanFieldState, progress: Progress = False, show: Callable[[Followed], None] | None = None
) -> Followed:
    """The run of a state; ``show`` gets the run so far after every piece."""
    law, flow = state.law, state.flow
    limit = hm.low_temperature_limit(law.points, state.score, state.value, weights=law.weights)
    hm.rates(limit)  # refused where tokens turn for ever: there is no law to compare with
    pieces = max(1, math.ceil(state.time / _PIECE - 1e-9))
    length = state.time / pieces
    states, times = [law.points[None]], [np.zeros(1)]
    for k in range(pieces):
        run = hm.simulate(states[-1][-1], flow, time=length, step=STEP, weights=law.weights, progress=progress)
        assert run.times is not None  # noqa: S101 - a flow has times
        states.append(np.asarray(run.tokens[1:]))
        times.append(k * length + run.times[1:])
        moments = np.concatenate(times)
        so_far = replace(run, tokens=np.concatenate(states), times=moments, layers=np.arange(len(moments)))
        last = k + 1 == pieces or not run.outcome.ok
        # Distances to two points take a sort; all others are linear programs, solved once at the end.
        found = hm.phases(so_far, limit) if last or limit.dimension == 1 else None
        seen = Followed(state, so_far, limit, found, last)
        if callable(progress):
            progress(f"t = {moments[-1]:.3g} of {state.time:g}", k + 1, pieces)
        if show is not None and not last:
            show(seen)
        if last:
            break
    return seen
