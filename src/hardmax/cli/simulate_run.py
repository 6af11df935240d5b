"""The work of ``hardmax simulate``: read, run, draw, save, summarise."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..attention.attention_layer import AttentionLayer
from ..attention.base import AbstractLayer
from ..attention.layer import HardmaxLayer, SoftmaxLayer
from ..attention.moves import AbstractSteps, ConvexStep, GeometricSteps, PowerSteps, ResidualStep
from ..attention.weighting import AbstractWeighting, DoublyStochastic, Hardmax, Linear, Sigmoid, Softmax, TopK
from ..datasets import MATRICES, make_matrix, make_tokens
from ..distributed import processes
from ..dynamics.equilibrium import Equilibrium, equilibrium
from ..dynamics.equilibrium_certificate import equilibrium_certificate
from ..dynamics.keep_and_stop_rules import Every, Keep, keeping
from ..dynamics.simulate import simulate
from ..dynamics.trajectory import Trajectory
from ..errors import FileError, InputError
from ..files import require_writable
from ..geometry.theorem import check_theorem
from ..storage.token_tables import read_matrix, read_tokens, read_weights
from ..storage.trajectories import ToDisk
from . import standard_input
from .options import RULES, waiting
from .simulate_report import Summary, is_zarr, require_targets, write_files

_SOFTMAX_DEPTH = 20
"""Layers of a softmax run by default: it has no closed form for infinite depth."""
_SMALL_RUN = 2 * 10**7
"""Numbers of a run of which every layer is stored by default: 160 MB in float64."""


@dataclass(frozen=True)
class Request:
    """The options of the command; see its help."""

    tokens: Path | None = None
    random: str | None = None
    n: int | None = None
    dim: int | None = None
    seed: int | None = None
    weights: Path | None = None
    alpha: float | Fraction = 0.5
    matrix: str | None = None
    softmax: float | None = None
    rule: str | None = None
    causal: bool = False
    window: int | None = None
    heads: int | None = None
    steps: str | None = None
    exact: bool = False
    depth: int | None = None
    limit: bool = False
    keep: str | None = None
    seconds: float | None = None
    theorem: bool = False
    figure: Path | None = None
    animate: Path | None = None
    save: Path | None = None
    certificate: Path | None = None
    as_json: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        _refuse_contradictions(self)

    @property
    def wants_limit(self) -> bool:
        """Whether infinite depth is requested, which is the default for hardmax without a depth."""
        return self.limit or (self.depth is None and self.softmax is None and self.rule in (None, "hardmax"))


def run(request: Request) -> None:
    """Run the command."""
    require_targets(request.figure, request.animate, request.save)
    if request.certificate is not None:
        require_writable(request.certificate)
    tokens, source = _tokens(request)
    layer = _layer(request, tokens.shape[1])
    weights = None if request.weights is None else read_weights(request.weights)
    keep = None if request.wants_limit else _keep(request, tokens)
    if keep is not None:
        keeping(keep, _depth(request), tokens.shape)  # refuses what does not fit in memory, before any work
    report = None
    if request.theorem:
        report = check_theorem(tokens, _hardmax(layer), require_assumptions=True)
    began = time.perf_counter()
    result: Trajectory | Equilibrium
    with processes() as ranks:
        mine = ranks.share(tokens)
        mine_weigh = None if weights is None else ranks.share(weights)
        if keep is None:
            with waiting("finding every token's leader", request.quiet or not ranks.first):
                result = equilibrium(
                    mine,
                    _hardmax(layer),
                    weights=mine_weigh,
                    seconds=request.seconds,
                    processes=ranks,
                    progress=False,
                )
        else:
            result = simulate(
                mine,
                layer,
                depth=_depth(request),
                keep=keep,
                weights=mine_weigh,
                seconds=request.seconds,
                processes=ranks,
                progress=False if request.quiet else None,
            )
    seconds = time.perf_counter() - began
    if not ranks.first:
        raise typer.Exit(0 if result.outcome.ok and (report is None or report.holds) else 1)
    streamed = isinstance(keep, ToDisk)
    files = write_files(
        result,
        tokens,
        weights,
        table=None if streamed else request.save,
        figure=request.figure,
        animation=request.animate,
        quiet=request.quiet,
    )
    if streamed:
        files.insert(0, str(request.save))
    if request.certificate is not None:
        with waiting("proving the limit in exact arithmetic", request.quiet):
            proof = equilibrium_certificate(tokens, _hardmax(layer), weights=weights, progress=False)
        files.append(str(proof.save(request.certificate)))
    if ranks.count > 1:
        source = f"{source}, in {ranks.count} processes"
    summary = Summary(tokens, source, result, seconds, report, files)
    if request.as_json:
        typer.echo(json.dumps(summary.data(), allow_nan=False))
    elif not request.quiet:
        summary.print()
    if not result.outcome.ok or (report is not None and not report.holds):
        raise typer.Exit(1)


def _refuse_contradictions(request: Request) -> None:
    together = (
        ("--random", request.random is not None, "a file of tokens", request.tokens is not None),
        ("--n", request.n is not None, "a file of tokens", request.tokens is not None),
        ("--dim", request.dim is not None, "a file of tokens", request.tokens is not None),
        ("--depth", request.depth is not None, "--limit", request.limit),
        ("--softmax", request.softmax is not None, "--limit", request.limit),
        ("--softmax", request.softmax is not None, "--exact", request.exact),
        ("--softmax", request.softmax is not None, "--theorem", request.theorem),
        ("--softmax", request.softmax is not None, "--rule", request.rule is not None),
        ("--rule", request.rule not in (None, "hardmax"), "--limit", request.limit),
        ("--rule", request.rule not in (None, "hardmax"), "--exact", request.exact),
        ("--matrix", request.matrix is not None, "--heads", request.heads is not None),
        ("--certificate", request.certificate is not None, "--depth", request.depth is not None),
        ("--certificate", request.certificate is not None, "--softmax", request.softmax is not None),
        ("--certificate", request.certificate is not None, "--rule", request.rule not in (None, "hardmax")),
        ("--certificate", request.certificate is not None, "--causal", request.causal),
        ("--certificate", request.certificate is not None, "--window", request.window is not None),
        ("--certificate", request.certificate is not None, "--heads", request.heads is not None),
        ("--certificate", request.certificate is not None, "--steps", request.steps is not None),
        ("--theorem", request.theorem, "--causal", request.causal),
        ("--theorem", request.theorem, "--window", request.window is not None),
        ("--theorem", request.theorem, "--heads", request.heads is not None),
        ("--theorem", request.theorem, "--steps", request.steps is not None),
        ("--keep", request.keep is not None, "infinite depth", request.wants_limit),
        ("--quiet", request.quiet, "--json", request.as_json),
    )
    for option, given, other, also in together:
        if given and also:
            remedy = "add --depth K to run layers" if option == "--keep" else "give one of the two"
            raise InputError(option, f"{option} with {other}", f"does not go with {other}", remedy)


def _tokens(request: Request) -> tuple[np.ndarray, str]:
    if request.tokens is not None:
        return read_tokens(request.tokens), standard_input.name_of(request.tokens)
    described = (request.random, request.n, request.dim, request.seed)
    if all(option is None for option in described):
        waits, remark = standard_input.offered()
        if waits:
            with standard_input.as_file(standard_input.read_all()) as path:
                return read_tokens(path), standard_input.NAME
        if remark and not request.quiet:
            typer.echo(f"note: {remark}", err=True)
    law, n, d = request.random or "gaussian", request.n, request.dim
    n, d = 200 if n is None else n, 2 if d is None else d
    return make_tokens(law, n, d, random_state=_seed(request)), f"{law}, seed {_seed(request)}"


def _seed(request: Request) -> int:
    return 0 if request.seed is None else request.seed


def _layer(request: Request, dimension: int) -> AbstractLayer:
    sight: dict[str, Any] = {"causal": request.causal, "window": request.window}
    A, heads = _matrix(request, dimension), _heads(request, dimension)
    alpha = _steps(request)
    if request.softmax is not None:
        step = alpha if isinstance(alpha, AbstractSteps) else float(alpha)
        return SoftmaxLayer(step, A, beta=request.softmax, heads=heads, **sight)
    weighting = None if request.rule is None else _weighting(request.rule)
    if weighting is None or isinstance(weighting, Hardmax):
        return HardmaxLayer(alpha, A, tolerance="exact" if request.exact else None, heads=heads, **sight)
    matrices = heads if heads is not None else None if A is None else [A]
    step = alpha if isinstance(alpha, AbstractSteps) else float(alpha)
    # A convex step needs weights that sum to one.
    move = ConvexStep(step) if weighting.averages else ResidualStep(step)
    return AttentionLayer(matrices, weighting=weighting, move=move, **sight)


def _heads(request: Request, dimension: int) -> list[np.ndarray] | None:
    if request.heads is None:
        return None
    return [make_matrix("random-spd", dimension, random_state=_seed(request) + h) for h in range(request.heads)]


def _steps(request: Request) -> float | Fraction | AbstractSteps:
    """The step size, or one per layer."""
    if request.steps is None:
        return request.alpha
    kind, _, value = request.steps.partition(":")
    number = _number("--steps", request.steps, value, "power:1")
    if kind == "power" and number is not None:
        return PowerSteps(float(request.alpha), power=number)
    if kind == "geometric" and number is not None:
        return GeometricSteps(float(request.alpha), ratio=number)
    raise InputError("--steps", request.steps, "is not understood", "pass for example power:1 or geometric:0.9")


def _weighting(rule: str) -> AbstractWeighting:
    """The weighting that ``--rule`` names, such as ``topk:4``."""
    kind, *values = rule.split(":")
    numbers = [_number("--rule", rule, value, "topk:4") for value in values]
    given = [number for number in numbers if number is not None]
    if kind == "hardmax" and not given:
        return Hardmax()
    if kind == "topk" and given and given[0] == int(given[0]):
        return TopK(int(given[0]), *given[1:])
    simple: dict[str, Callable[..., AbstractWeighting]] = {
        "softmax": Softmax,
        "sigmoid": Sigmoid,
        "linear": Linear,
        "sinkhorn": DoublyStochastic,
    }
    if kind in simple and len(given) <= 1:
        return simple[kind](*given)
    raise InputError("--rule", rule, "is not understood", f"pass one of {', '.join(RULES)}")


def _number(flag: str, whole: str, value: str, example: str) -> float | None:
    if not value:
        return None
    try:
        return float(value)
    except ValueError:
        raise InputError(flag, whole, f"has {value!r} where a number belongs", f"pass for example {example}") from None


def _hardmax(layer: AbstractLayer) -> HardmaxLayer:
    if not isinstance(layer, HardmaxLayer):
        raise InputError("--softmax", str(layer), "has no infinite depth in closed form", "give --depth K")
    if layer.why_no_limit is not None:
        raise InputError("--window", str(layer), layer.why_no_limit, "give --depth K")
    return layer


def _matrix(request: Request, dimension: int) -> np.ndarray | None:
    name = request.matrix
    if name is None:
        return None
    if name in MATRICES:
        return make_matrix(name, dimension, random_state=_seed(request))
    if not Path(name).exists():
        names = ", ".join(MATRICES)
        raise FileError(name, "is neither a file nor the name of a matrix", f"give a file or one of {names}")
    return read_matrix(name)


def _depth(request: Request) -> int:
    return _SOFTMAX_DEPTH if request.depth is None else request.depth


def _keep(request: Request, tokens: np.ndarray) -> Keep:
    keep = request.keep
    small = (_depth(request) + 1) * tokens.size <= _SMALL_RUN
    if keep is None:
        keep = "all" if small else "last"
    every = 1 if keep == "all" else _every(keep)
    only_saved = request.figure is None and request.animate is None
    if every is not None and not small and only_saved and is_zarr(request.save):
        return ToDisk(request.save, every=every)  # type: ignore[arg-type]
    if keep in ("all", "last"):
        return keep  # type: ignore[return-value]
    return Every(every) if every is not None else _listed(keep)


def _every(keep: str) -> int | None:
    if not keep.startswith("every:"):
        return None
    step = keep.removeprefix("every:")
    if not step.isdecimal() or int(step) < 1:
        raise InputError("--keep", repr(keep), "must name a step of at least 1", "pass for example --keep every:10")
    return int(step)


def _listed(keep: str) -> list[int]:
    try:
        return [int(layer) for layer in keep.split(",")]
    except ValueError:
        remedy = "pass all, last, every:10, or layers such as 0,1,5"
        raise InputError("--keep", repr(keep), "is not understood", remedy) from None
