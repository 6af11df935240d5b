"""Simulation: tokens taken through layers, or along a flow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import overload

import numpy as np
import torch

from ..attention.base import AbstractLayer, Context, LayerSequence, layers_of
from ..attention.choice import Choice
from ..attention.layer import HardmaxLayer
from ..distributed import ALONE, Processes
from ..errors import InputError
from ..inputs import Kind, as_count, as_positive, as_tokens, as_weights
from ..outcomes import Ending, Outcome
from ..progress import Progress, Ticker
from ..randomness import seeded
from ..shapes import Array, ArrayLike, PerToken, Tokens
from ..threads import one_thread
from .execution import TokenProcess, execution_on
from .flows import AbstractFlow
from .integrators import AbstractIntegrator, FlowStep, discretised
from .keep_and_stop_rules import InMemory, Keep, KeepRule, Moment, StopRule, finishing, keeping
from .process_setup import refuse_swapped_axes
from .trajectory import Trajectory

Layers = AbstractLayer | AbstractFlow | Sequence[AbstractLayer] | Callable[[int], AbstractLayer]
"""Argument ``layer`` of a run: a layer or flow, a list of layers, or a function from the number of a layer to it."""


@overload
def simulate(  # type: ignore[overload-overlap]  # all but tensors come back as NumPy arrays
    tokens: torch.Tensor,
    layer: Layers,
    *,
    depth: int | None = None,
    time: float | None = None,
    step: float | None = None,
    integrator: str | AbstractIntegrator | None = None,
    keep: Keep = "all",
    stop: StopRule | Iterable[StopRule] = (),
    weights: ArrayLike | None = None,
    seconds: float | None = None,
    random_state: int | np.random.Generator | None = None,
    labels: ArrayLike | None = None,
    processes: Processes | None = None,
    progress: Progress = None,
) -> Trajectory[torch.Tensor]: ...


@overload
def simulate(
    tokens: ArrayLike,
    layer: Layers,
    *,
    depth: int | None = None,
    time: float | None = None,
    step: float | None = None,
    integrator: str | AbstractIntegrator | None = None,
    keep: Keep = "all",
    stop: StopRule | Iterable[StopRule] = (),
    weights: ArrayLike | None = None,
    seconds: float | None = None,
    random_state: int | np.random.Generator | None = None,
    labels: ArrayLike | None = None,
    processes: Processes | None = None,
    progress: Progress = None,
) -> Trajectory[np.ndarray]: ...


def simulate(
    tokens: ArrayLike,
    layer: Layers,
    *,
    depth: int | None = None,
    time: float | None = None,
    step: float | None = None,
    integrator: str | AbstractIntegrator | None = None,
    keep: Keep = "all",
    stop: StopRule | Iterable[StopRule] = (),
    weights: ArrayLike | None = None,
    seconds: float | None = None,
    random_state: int | np.random.Generator | None = None,
    labels: ArrayLike | None = None,
    processes: Processes | None = None,
    progress: Progress = None,
) -> Trajectory:
    """States of tokens that pass through ``depth`` layers, or follow a flow for a ``time``.

    A :class:`HardmaxLayer` is run only until every token is decided; all later layers are in closed form, so layer 400
    costs no more than the limit.

    Parameters
    ----------
    tokens
        Shape (tokens, d). The result has the same kind of array, dtype and device; computation is in float64. Gradients
        of tensors flow through layers and flows that are run step by step, not through a :class:`HardmaxLayer`, whose
        decided tokens are in closed form: call ``layer(tokens)`` repeatedly for gradients.
    layer
        Layer to repeat, or flow to follow. Layers that differ along depth are given as a list, or as a function of the
        number of the layer, from 0, that returns a layer.
    depth
        Number of layers; required for layers, except for a list, whose length it is when left out.
    time
        Duration, in units of time; required for flows.
    step
        Longest step of a flow; 0.05 when left out. Layers are counted in steps.
    integrator
        Integrator of a flow: ``"euler"``, ``"residual"`` (residual connection and normalisation, as in a transformer),
        ``"heun"``, ``"rk4"``, ``"adaptive"``, or an object such as ``Adaptive(tolerance=1e-10)``; for flows with noise
        ``"euler-maruyama"``, ``"stochastic-heun"`` or ``"noise-splitting"``. Heun's method when left out, and noise
        splitting where the flow has noise.
    keep
        Layers to store: ``"all"``, ``"last"``, ``Every(k)``, a list of layers, or a rule such as ``ToDisk``.
    stop
        Rule or rules that end the run early: ``Decided()``, ``Bound(limit)``.
    weights
        Positive weight per token, shape (tokens,); all equal when left out. It weighs the token in means over several
        tokens.
    seconds
        Time limit; a run that exceeds it ends with the outcome "out of time".
    random_state
        Seed of the random numbers of stochastic layers and flows, or a generator to draw it from. Drawn and stored in
        ``run.seed`` when left out; other layers ignore it.
    labels
        Fixed label per token, shape (tokens,) or (tokens, k), for layers that use labels.
    processes
        Group of processes that share the work, see :func:`hardmax.processes`; ``tokens`` and ``weights`` are then those
        of this process (``processes.share(tokens)``), and every process returns the whole run. A rule that writes to
        disk does so in the first process.
    progress
        Progress bar: True, False, or None (only when the run takes long and there is a terminal); or a function called
        as ``progress(stage, done, total)``.

    Returns
    -------
    Trajectory
        Stored states of shape (states, tokens, d), their layers, the outcome, and leaders and followers under hardmax.

    Examples
    --------
    >>> import numpy as np
    >>> run = simulate(np.array([[1.0, 0.0], [0.5, 0.1], [-1.0, 0.2]]), HardmaxLayer(alpha=1.0), depth=2)
    >>> run.tokens.shape, run.leadership.leaders
    ((3, 3, 2), array([0, 2]))
    """
    chosen: AbstractLayer
    if isinstance(layer, AbstractFlow):
        if depth is not None:
            raise InputError("depth", depth, "is for layers, not for flows", "pass time=8.0 instead")
        chosen, depth = discretised(layer, time, step, integrator)
    elif time is not None or step is not None:
        raise InputError("time", time, "is for flows, not for layers", "pass depth=50 instead")
    else:
        chosen, depth = _layer_and_depth(layer, depth)
    return _simulate(tokens, chosen, depth, keep, stop, weights, seconds, random_state, labels, processes, progress)


def _layer_and_depth(layer: Layers, depth: int | None) -> tuple[AbstractLayer, int]:
    """One layer object for a layer, a list of layers or a rule, and the number of layers to run."""
    if isinstance(layer, Sequence):
        layer = LayerSequence(layer)
    if isinstance(layer, LayerSequence):
        depth = len(layer.layers) if depth is None else as_count("depth", depth)
        if depth > len(layer.layers):
            problem = f"is more than the {len(layer.layers)} layers of the list"
            raise InputError("depth", depth, problem, "leave out depth, or pass a longer list")
        return layer, depth
    depth = as_count("depth", depth)
    if isinstance(layer, AbstractLayer):
        return layer, depth
    if callable(layer) and not isinstance(layer, type):
        return layers_of(layer, depth), depth
    raise InputError("layer", repr(layer), "must be a layer", "pass for example HardmaxLayer(alpha=0.5)")


def _simulate(
    tokens: ArrayLike,
    layer: AbstractLayer,
    depth: int,
    keep: Keep,
    stop: StopRule | Iterable[StopRule],
    weights: ArrayLike | None,
    seconds: float | None,
    random_state: int | np.random.Generator | None,
    labels: ArrayLike | None,
    processes: Processes | None,
    progress: Progress,
) -> Trajectory:
    """States of tokens that pass through ``depth`` layers."""
    ranks = ALONE if processes is None else processes
    with ranks.together():
        tensor, kind = as_tokens(tokens)
        mass = as_weights(weights, tensor.shape[0], tensor.device)
        limit = None if seconds is None else as_positive("seconds", seconds)
        rules = _stop_rules(stop)
        seed = _seed(layer, random_state, several=ranks.count > 1)
        marks = _labels(labels, tensor)
    kept = keep if isinstance(keep, str) else type(keep).__name__
    ranks.agree(
        coordinates=tensor.shape[1], dtype=kind.dtype, layer=layer, depth=depth, keep=kept, seconds=limit, seed=seed
    )
    count = sum(ranks.counts(tensor.shape[0]))
    execution = execution_on(ranks)
    tensor = tensor.to(torch.float64)
    # The closed form has no gradients, so a V that is being trained is repeated even where it is the identity.
    decides = isinstance(layer, HardmaxLayer) and layer.why_no_limit is None and not layer.trains
    if not decides:
        tensor, mass = ranks.gather(tensor), ranks.gather(mass)
        marks = None if marks is None else ranks.gather(marks)
    if isinstance(layer, FlowStep):
        with one_thread():
            tensor = layer.admit(tensor, mass, kind.dtype)
    shape = (count, tensor.shape[1])  # a flow with momentum makes states wider than tokens
    keeper = execution.keeper(keeping(keep, depth, shape))
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    first = Context(0, generator, marks)
    run = _Run(depth, keeper, rules, limit, progress if ranks.first else False, ranks, first)
    started = None
    with one_thread(), finishing(keeper) as finish:
        if isinstance(layer, HardmaxLayer) and decides:
            started = execution.start(tensor, mass, layer)
            outcome = run.follow(started)
            mass = ranks.gather(mass)
        elif isinstance(layer, FlowStep):
            outcome = layer.in_time(run.repeat(execution.split(layer), tensor, mass), depth)
        else:
            refuse_swapped_axes(tensor, layer.dimension is not None)
            outcome = run.repeat(execution.split(layer), tensor, mass)
        layers = np.array(keeper.layers if isinstance(keeper, InMemory) else [], dtype=np.int64)
        return finish(
            Trajectory(
                tokens=_stacked(keeper, kind, tensor.new_zeros((0, *shape))),
                layers=layers,
                outcome=outcome,
                layer=layer,
                times=layer.length * layers if isinstance(layer, FlowStep) else None,
                weights=None if weights is None else kind.give_back(mass),
                leadership=None if started is None else started.leadership(kind),
                assumptions=None if started is None else started.assumptions,
                seed=seed,
            )
        )


# Seeds are drawn from 31 bits, which every generator takes.
_SEEDS = 2**31


def _seed(layer: AbstractLayer, random_state: int | np.random.Generator | None, several: bool) -> int | None:
    """Seed of the random numbers of a run; None where the layer draws none."""
    if not layer.stochastic:
        return None
    if several and (random_state is None or isinstance(random_state, np.random.Generator)):
        given = "None" if random_state is None else "a generator"
        problem = "must be a number where several processes share a run: each has a generator of its own"
        raise InputError("random_state", given, problem, "pass the same seed in every process, random_state=0")
    found = seeded(random_state)
    return int(found.generator.integers(_SEEDS)) if found.seed is None else found.seed


def _labels(labels: ArrayLike | None, tokens: Tokens) -> torch.Tensor | None:
    if labels is None:
        return None
    array = labels if isinstance(labels, torch.Tensor) else torch.as_tensor(np.asarray(labels))
    if array.ndim not in (1, 2) or len(array) != len(tokens):
        problem = f"must have one label per token, {len(tokens)}"
        raise InputError("labels", f"shape {tuple(array.shape)}", problem, "pass an array of shape (tokens,)")
    return array.to(tokens.device)


def _stop_rules(stop: StopRule | Iterable[StopRule]) -> tuple[StopRule, ...]:
    rules = tuple(stop) if isinstance(stop, Iterable) else (stop,)
    for rule in rules:
        if isinstance(rule, type) or not isinstance(rule, StopRule):
            raise InputError("stop", rule, "must be a rule", "pass for example Decided() or Bound(10.0), or a list")
    return rules


def _itself(tokens: Tokens) -> Tokens:
    return tokens


def _unknown() -> None:
    return None


def _stacked(keeper: KeepRule, kind: Kind, nothing: torch.Tensor) -> Array:
    states = keeper.states if isinstance(keeper, InMemory) else []
    return kind.give_back(torch.stack(states) if states else nothing)


class _Run:
    """Loop over the layers of one run: storing states, stop rules and the time limit."""

    def __init__(
        self,
        depth: int,
        keeper: KeepRule,
        rules: tuple[StopRule, ...],
        seconds: float | None,
        progress: Progress,
        ranks: Processes,
        first: Context,
    ) -> None:
        self._first = first
        self._depth, self._keeper, self._rules, self._seconds = depth, keeper, rules, seconds
        self._began = time.monotonic()
        self._progress = progress
        self._ranks = ranks

    def follow(self, started: TokenProcess) -> Outcome:
        """Outcome of running a hardmax process; once every token is decided, later layers are in closed form."""
        process = started.process
        with Ticker("layers", self._depth, progress=self._progress) as ticker:
            for layer in range(self._depth + 1):
                ending = self._at(layer, partial(started.positions, layer), started.undecided)
                if ending is not None:
                    return ending
                if layer < self._depth and not process.done:
                    process.move()
                ticker.advance()
        undecided = started.undecided()
        waiting = "1 token is" if undecided == 1 else f"{undecided} tokens are"
        tail = "every token is decided" if undecided == 0 else f"{waiting} still undecided"
        return Outcome(Ending.DEPTH_REACHED, f"{self._depth} layers were run and {tail}")

    def repeat(self, layer: AbstractLayer, tokens: Tokens, weights: PerToken) -> Outcome:
        """Outcome of repeating a layer that has no closed form."""
        with Ticker("layers", self._depth, progress=self._progress) as ticker:
            for k in range(self._depth + 1):
                ending = self._at(k, partial(_itself, tokens), _unknown)
                if ending is not None:
                    return ending
                if k < self._depth:
                    following = layer.step_at(tokens, weights, replace(self._first, index=k))
                    if not bool(torch.isfinite(following).all()):
                        self._keep_last(k, tokens)
                        return Outcome(
                            Ending.DIVERGED,
                            f"layer {k + 1} is no longer finite; layers up to {k} are returned",
                            "use a smaller V or step, or stop earlier with Bound(limit)",
                        )
                    tokens = following
                ticker.advance()
        return Outcome(Ending.DEPTH_REACHED, f"{self._depth} layers were run")

    def _at(self, layer: int, state: Callable[[], Tokens], undecided: Callable[[], int | None]) -> Outcome | None:
        """Store this layer if the rule selects it; outcome of a run that ends early here, otherwise None."""
        ending = self._ending(layer, state, undecided) if layer < self._depth else None
        if self._keeper.wants(layer, ending is not None or layer == self._depth):
            self._keeper.store(layer, state())
        return ending

    def _ending(self, layer: int, state: Callable[[], Tokens], undecided: Callable[[], int | None]) -> Outcome | None:
        if self._rules:
            moment = Moment(layer, state(), undecided())
            for rule in self._rules:
                reason = rule.reason(moment)
                if reason is not None:
                    return Outcome(Ending.STOPPED, f"at layer {layer} {reason}")
        if self._seconds is not None and self._ranks.largest(time.monotonic() - self._began) > self._seconds:
            return Outcome(
                Ending.OUT_OF_TIME,
                f"{layer} of {self._depth} layers were run in {self._seconds:g} seconds",
                "allow more seconds, or ask for fewer layers",
            )
        return None

    def _keep_last(self, layer: int, tokens: Tokens) -> None:
        if self._keeper.wants(layer, True) and not self._keeper.wants(layer, False):
            self._keeper.store(layer, tokens)


@one_thread()
def choose(tokens: ArrayLike, layer: AbstractLayer) -> Choice:
    """Tokens that each token listens to in one layer that chooses: the sets C_i.

    Parameters
    ----------
    tokens
        Shape (tokens, d).
    layer
        Layer that attends to some tokens alone, such as a :class:`HardmaxLayer` with one head; with several heads use
        ``layer.choose_heads``.

    Returns
    -------
    Choice
        The set of each token; ``choice[i]`` lists the tokens that token i listens to.

    Examples
    --------
    >>> choose([[1.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], HardmaxLayer()).first.tolist()
    [0, 0, 2]
    """
    if not isinstance(layer, AbstractLayer) or not layer.chooses:
        remedy = "pass for example HardmaxLayer(alpha=0.5)"
        raise InputError("layer", str(layer), "must choose: other layers attend to every token", remedy)
    tensor, _ = as_tokens(tokens)
    return layer.choose(tensor.to(torch.float64))
