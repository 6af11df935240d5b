r"""The limit of infinite depth, in closed form.

A token that listens to one leader alone does so for ever (see :mod:`hardmax.dynamics.process`), so the limit of the
whole system costs about one attention layer.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, overload

import numpy as np
import torch

from ..attention.layer import HardmaxLayer
from ..distributed import ALONE, Processes
from ..errors import InputError
from ..inputs import Kind, as_count, as_positive, as_tokens, as_weights, plain
from ..outcomes import Ending, Outcome, counted
from ..polytopes import Polytope
from ..progress import Progress, Ticker
from ..shapes import Array, ArrayLike, ArrayT_co
from ..threads import one_thread
from .assumptions import Assumptions
from .closed_form import same_limits
from .execution import TokenProcess, execution_on
from .family import ExactFamilyProcess, FamilyProcess
from .leadership import Leadership, Ties, counted_reasons
from .process import SMALLEST_ALPHA

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Equilibrium(Generic[ArrayT_co]):
    """Limit of every token under a hardmax layer, returned by :func:`hardmax.equilibrium`."""

    positions: ArrayT_co
    """Limit of each token, shape (tokens, d)."""
    leadership: Leadership[ArrayT_co]
    """Leaders, followers and ties."""
    layers: int
    """Number of layers that were run until every token was decided."""
    outcome: Outcome
    """How the run ended."""
    assumptions: Assumptions
    """Which assumptions of Theorem 1.1 hold for these tokens and this layer."""
    layer: HardmaxLayer
    """Layer of which this is the limit."""
    weights: ArrayT_co | None = None
    """Weight per token, shape (tokens,), when weights were given; otherwise None."""
    head_choices: ArrayT_co | None = None
    """Leader of each token in each head, shape (heads, tokens); None where all heads have the leaders ``follows``."""
    reasons: ArrayT_co | None = None
    """Code of the reason why each token is undecided (:class:`Undecided`), 0 where it is decided, shape (tokens,);
    None where every token is decided."""

    @property
    def leaders(self) -> ArrayT_co:
        """Indices of the leaders, ascending, shape (leaders,)."""
        return self.leadership.leaders

    @property
    def emerged_at(self) -> ArrayT_co:
        """Layer at which each leader first listened to itself alone, shape (leaders,)."""
        return self.leadership.emerged_at

    @property
    def follows(self) -> ArrayT_co:
        """Leader of each token, shape (tokens,): the lowest where several tie, -1 where undecided."""
        return self.leadership.follows

    @property
    def ties(self) -> Ties:
        """All leaders of each token that follows several for ever."""
        return self.leadership.ties

    @property
    def decided_at(self) -> ArrayT_co:
        """Layer from which the future of each token is in closed form, shape (tokens,); -1 where undecided."""
        return self.leadership.decided_at

    @property
    def choices(self) -> ArrayT_co:
        """Leader of each token in each head, shape (heads, tokens): the lowest where several tie, -1 if undecided."""
        if self.head_choices is not None:
            return self.head_choices
        heads = len(self.layer.heads)
        follows = self.follows
        repeated = follows.expand(heads, -1) if isinstance(follows, torch.Tensor) else np.tile(follows, (heads, 1))
        return repeated  # type: ignore[return-value]  # the same kind of array as follows

    @property
    def undecided_reasons(self) -> dict[str, int]:
        """Number of undecided tokens for each reason, by sentence."""
        return {} if self.reasons is None else counted_reasons(plain(self.reasons))

    @property
    def limit_points(self) -> np.ndarray:
        """Finite set S of distinct limit points, shape (points, d): those of the leaders first, in their order."""
        return self._limits[0]

    @property
    def limit_point_of(self) -> np.ndarray:
        """Row of ``limit_points`` to which each token converges, shape (tokens,)."""
        return self._limits[1]

    @property
    def on_faces(self) -> np.ndarray:
        """Whether each limit point is not a vertex but a point of a face, or the position of an undecided token."""
        return np.arange(len(self.limit_points)) >= len(self.leaders)

    @cached_property
    def polytope(self) -> Polytope:
        """Convex hull of the limits of the leaders, K in Theorem 1.1."""
        if len(self.leaders) == 0:
            raise InputError(
                "polytope", "no leader", "needs at least one leader", "see the outcome of this equilibrium"
            )
        return Polytope.of(plain(self.positions)[plain(self.leaders)])

    @cached_property
    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        positions, leaders = plain(self.positions), plain(self.leaders)
        follows, ties = plain(self.follows), self.ties
        tied = np.zeros(len(positions), dtype=bool)
        tied[ties.tokens] = True
        tied |= follows < 0
        if not self.layer.is_basic and len(leaders):
            # A token that follows several heads, or stops short of its leader, has a limit of its own.
            size = float(np.abs(positions).max())
            away = np.abs(positions - positions[np.maximum(follows, 0)]).max(axis=1)
            tied |= away > max(1e-12, 8 * float(np.finfo(positions.dtype).eps)) * size
        row = np.searchsorted(leaders, follows) if len(leaders) else np.zeros(len(positions), dtype=np.int64)
        others = np.flatnonzero(tied)
        unit = float(np.finfo(positions.dtype).eps)
        first, which = same_limits(positions[others].astype(np.float64), float(np.abs(positions).max()), unit)
        row[others] = len(leaders) + which
        return np.concatenate([positions[leaders], positions[others[first]]]), row

    def __str__(self) -> str:
        n, d = self.positions.shape
        faces = int(self.on_faces.sum())
        return (
            f"Equilibrium of {counted(n, 'token')} in {counted(d, 'dimension')}: "
            f"{counted(len(self.leaders), 'leader')}, {counted(faces, 'limit point')} on faces; {self.outcome}"
        )

    def __repr__(self) -> str:
        return f"<{self}>"

    def to_xarray(self) -> xarray.Dataset:
        """Limit as an :class:`xarray.Dataset` with labelled axes ``token``, ``coordinate`` and ``leader``.

        Returns
        -------
        xarray.Dataset
            Variables ``positions``, ``follows``, ``decided_at``, ``emerged_at``, and ``weights`` where they were given;
            the outcome is in the attributes.
        """
        import xarray

        positions = plain(self.positions)
        data: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
            "positions": (("token", "coordinate"), positions),
            "follows": (("token",), plain(self.follows)),
            "decided_at": (("token",), plain(self.decided_at)),
            "emerged_at": (("leader",), plain(self.emerged_at)),
        }
        if self.weights is not None:
            data["weights"] = (("token",), plain(self.weights))
        coordinates = {
            "token": np.arange(positions.shape[0]),
            "coordinate": np.arange(positions.shape[1]),
            "leader": plain(self.leaders),
        }
        return xarray.Dataset(data, coords=coordinates, attrs={**self.outcome.attributes(), "rule": str(self.layer)})


@overload
def equilibrium(  # type: ignore[overload-overlap]  # all but tensors come back as NumPy arrays
    tokens: torch.Tensor,
    layer: HardmaxLayer | None = None,
    *,
    weights: ArrayLike | None = None,
    max_layers: int = 10_000,
    seconds: float | None = None,
    processes: Processes | None = None,
    progress: Progress = None,
) -> Equilibrium[torch.Tensor]: ...


@overload
def equilibrium(
    tokens: ArrayLike,
    layer: HardmaxLayer | None = None,
    *,
    weights: ArrayLike | None = None,
    max_layers: int = 10_000,
    seconds: float | None = None,
    processes: Processes | None = None,
    progress: Progress = None,
) -> Equilibrium[np.ndarray]: ...


def equilibrium(
    tokens: ArrayLike,
    layer: HardmaxLayer | None = None,
    *,
    weights: ArrayLike | None = None,
    max_layers: int = 10_000,
    seconds: float | None = None,
    processes: Processes | None = None,
    progress: Progress = None,
) -> Equilibrium:
    """Limit of every token under infinitely many hardmax layers, in closed form.

    Parameters
    ----------
    tokens
        Shape (tokens, d). The result has the same kind of array, dtype and device.
    layer
        A :class:`HardmaxLayer` whose value matrix is the identity in every head; it may be causal, have several heads
        and steps that depend on the layer. ``HardmaxLayer(alpha=0.5)`` when left out.
    weights
        Positive weight per token, shape (tokens,); all equal when left out. It weighs the token in means over several
        tokens.
    max_layers
        Largest number of layers to run; tokens that are still undecided then are reported by the outcome.
    seconds
        Time limit; tokens that are still undecided then are reported by the outcome. No limit when left out.
    processes
        Group of processes that share the work, see :func:`hardmax.processes`; ``tokens`` and ``weights`` are then those
        of this process (``processes.share(tokens)``), and every process returns the whole result.
    progress
        Progress bar: True, False, or None (only when the run takes long and there is a terminal); or a function called
        as ``progress(stage, done, total)``.

    Returns
    -------
    Equilibrium
        Limits of shape (tokens, d), leaders and followers, and the outcome.

    Examples
    --------
    >>> limit = equilibrium([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], HardmaxLayer(alpha=0.5))
    >>> limit.leaders, limit.follows, limit.positions[1]
    (array([0, 2]), array([0, 0, 2]), array([2., 0.]))
    """
    layer = HardmaxLayer() if layer is None else layer
    if not isinstance(layer, HardmaxLayer):
        raise InputError(
            "layer",
            str(layer),
            "must be a HardmaxLayer: other layers have no closed form",
            "use simulate(depth=…)",
        )
    if layer.why_no_limit is not None:
        raise InputError("layer", str(layer), layer.why_no_limit, "use simulate(depth=…)")
    ranks = ALONE if processes is None else processes
    with ranks.together():
        tensor, kind = as_tokens(tokens)
        mass = as_weights(weights, tensor.shape[0], tensor.device)
        max_layers = as_count("max_layers", max_layers)
        limit = None if seconds is None else as_positive("seconds", seconds)
    ranks.agree(coordinates=tensor.shape[1], dtype=kind.dtype, layer=layer, max_layers=max_layers, seconds=limit)
    began = time.monotonic()
    with one_thread():
        started = execution_on(ranks).start(tensor.to(torch.float64), mass, layer)
        process = started.process
        with Ticker("layers until decided", progress=progress if ranks.first else False) as ticker:
            for _ in _layers_until_decided(started, ranks, max_layers, limit, began):
                ticker.advance(note=f"{len(process.active)} undecided")
        gathered = None if weights is None else kind.give_back(ranks.gather(mass))
        return _equilibrium_of(started, kind, layer, max_layers, gathered)


def equilibrium_and_layers(
    tokens: np.ndarray,
    layer: HardmaxLayer,
    layers: Sequence[int],
    *,
    max_layers: int = 10_000,
    seconds: float | None = None,
    progress: Progress = None,
) -> tuple[Equilibrium[np.ndarray], np.ndarray]:
    """The equilibrium and the tokens at ``layers``, shape (len(layers), token, coordinate), from one run.

    Both are the same as those of :func:`equilibrium` and :func:`hardmax.simulate`, which would each run the process.
    """
    tensor, kind = as_tokens(tokens)
    wanted, began = set(layers), time.monotonic()
    with one_thread():
        mass = as_weights(None, tensor.shape[0], tensor.device)
        started = execution_on(ALONE).start(tensor.to(torch.float64), mass, layer)
        process = started.process
        states = {0: started.positions(0).clone()}
        with Ticker("layers until decided", progress=progress) as ticker:
            for number in _layers_until_decided(started, ALONE, max_layers, seconds, began):
                if number in wanted:
                    states[number] = started.positions(number).clone()
                ticker.advance(note=f"{len(process.active)} undecided")
        limit = _equilibrium_of(started, kind, layer, max_layers, None)
        # Decided tokens are in closed form at later layers; others move on, in a copy that leaves the limit as it is.
        rest = started if process.done else copy.deepcopy(started)
        for number in sorted(wanted - states.keys()):
            while rest.process.layer < number and not rest.process.done:
                rest.process.move()
            states[number] = rest.positions(number).clone()
    return limit, kind.give_back(torch.stack([states[number] for number in layers]))  # type: ignore[return-value]


def _layers_until_decided(
    started: TokenProcess, ranks: Processes, max_layers: int, seconds: float | None, began: float
) -> Iterator[int]:
    """Numbers of the layers, each after it was run, until every token is decided or nothing more can be done."""
    process = started.process
    while not (process.done or process.stuck or started.settled or process.recurring) and process.layer < max_layers:
        if seconds is not None and ranks.largest(time.monotonic() - began) > seconds:
            return
        process.move()
        yield process.layer


def _equilibrium_of(
    started: TokenProcess, kind: Kind, layer: HardmaxLayer, max_layers: int, weights: Array | None
) -> Equilibrium:
    choices = started.choices()
    return Equilibrium(
        positions=kind.give_back(started.limit()),
        leadership=started.leadership(kind),
        layers=started.process.layer,
        outcome=_outcome(started, max_layers, float(layer.alpha_at(0))),
        assumptions=started.assumptions,
        layer=layer,
        weights=weights,
        head_choices=None if choices is None else kind.give_back(choices),
        reasons=kind.give_back(started.reasons()) if not started.process.done else None,
    )


def _outcome(started: TokenProcess, max_layers: int, alpha: float) -> Outcome:
    process, undecided = started.process, started.undecided()
    if process.done:
        leaders = int((process.emerged_at >= 0).sum())
        return Outcome(Ending.DECIDED, f"{counted(leaders, 'leader')}, every token decided by layer {process.layer}")
    if process.stuck:
        return Outcome(
            Ending.UNDECIDED,
            f"{counted(undecided, 'token')} cannot be decided in floating point: alpha = {alpha:g} is lost in rounding",
            f'pass alpha of at least {SMALLEST_ALPHA:.1g}, or tolerance="exact"',
        )
    why = _why(started)
    if started.settled:
        doubt = "" if process.certain else 'scores came to differ by rounding errors alone, see tolerance="exact"; '
        return Outcome(
            Ending.SETTLED,
            f"{counted(undecided, 'token')} stopped moving at layer {process.layer} without following a leader{why}",
            f"their positions are where they stopped; {doubt}{started.assumptions}",
        )
    if process.recurring:
        return Outcome(
            Ending.UNDECIDED,
            f"{counted(undecided, 'token')} return to the same positions for ever, seen by layer {process.layer}{why}",
            "they have no limit; their positions are those of the last layer",
        )
    if process.layer >= max_layers:
        return Outcome(
            Ending.UNDECIDED,
            f"{undecided} tokens were still undecided after {process.layer} layers{why}",
            f"raise max_layers; {started.assumptions}",
        )
    return Outcome(
        Ending.OUT_OF_TIME,
        f"{undecided} tokens were still undecided after {process.layer} layers{why}",
        "allow more seconds",
    )


def _why(started: TokenProcess) -> str:
    """The reasons of undecided tokens with their counts, as the end of a sentence; empty where no reason is known."""
    if not isinstance(started.process, (FamilyProcess, ExactFamilyProcess)):
        return ""
    found = counted_reasons(started.reasons().tolist())
    return ": " + ", ".join(f"{count} {reason}" for reason, count in found.items())
