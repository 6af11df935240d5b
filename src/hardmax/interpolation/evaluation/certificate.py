"""Certificates: proofs in exact arithmetic that a network maps its inputs to its outputs, also for saved networks."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from flint import ctx, fmpq
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from ...inputs import as_count
from ...progress import Progress
from ..arithmetic.exact_evaluation import Margins, State, UndecidedError, evaluate, is_exact
from ..arithmetic.numbers import Vector, brief, to_float, to_floats
from ..data import DataSet
from ..export.files import JSON_NAME, TENSORS_NAME, NetworkReader, json_path, read_network
from ..export.torch_module import TorchTransformer
from ..network import Block, CompiledNetwork, stacked
from .counts import count_blocks

_PRECISIONS = (64, 128, 256, 512, 1024, 2048, 4096, 16384)  # bits of balls, raised until every sign is decided
_REPORTED = 20  # failures that are printed


@dataclass(frozen=True)
class Failure:
    """A sequence whose output is not proved to be its target."""

    sequence: int
    """Index of the sequence in the data."""
    reason: str
    """What differs, in words."""

    def __str__(self) -> str:
        return f"sequence {self.sequence}: {self.reason}"


@dataclass(frozen=True)
class Certificate:
    """Result of a proof: true in a boolean context when everything was proved, otherwise with the failures."""

    proved: bool
    """Whether every sequence is mapped to its target and no claim is wrong."""
    data_hash: str
    """SHA-256 of the data."""
    sequences: int
    """Number of sequences."""
    tokens: int
    """Number of tokens, summed over the sequences."""
    attention: str
    """Attention and temperature, in words."""
    arithmetic: str
    """Arithmetic of the proof, in words."""
    failures: tuple[Failure, ...]
    """Sequences that are not proved."""
    problems: tuple[str, ...]
    """Claims of a file that do not hold, besides the failures; empty for a network certified in memory."""
    blocks: int
    """Number of blocks."""
    parameters: int
    """Number of weights, zeros included."""
    published_bound: int
    """Number of blocks of the theorem in the paper."""
    activation_margin: float
    """Smallest absolute pre-activation that is not zero."""
    score_margin: float
    """Smallest difference between the largest score and the next."""
    conditioning: float
    """Range over smallest gap of the items on the line."""
    float64_error: float
    """Largest error over all outputs of the network in float64."""
    seconds: float
    """Duration of the proof."""

    def __bool__(self) -> bool:
        return self.proved

    def to_dict(self) -> dict[str, object]:
        """Fields as plain values for a JSON file.

        Returns
        -------
        dict
            One entry per field; failures as texts.
        """
        record = asdict(self)
        record["failures"] = [str(failure) for failure in self.failures]
        return record

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        head = (
            f"PROVED in {self.arithmetic}: T(X) = Y for all {self.sequences} sequences ({self.tokens} tokens)"
            if self.proved
            else f"NOT PROVED: {len(self.failures)} of {self.sequences} sequences fail, "
            f"{len(self.problems)} claims are wrong"
        )
        lines = [head, f"  data       sha256 {self.data_hash}", f"  attention  {self.attention}"]
        lines.append(
            f"  size       {self.blocks} blocks (published bound {self.published_bound}), {self.parameters} parameters"
        )
        lines.append(
            f"  margins    smallest pre-activation {self.activation_margin:.3g}, smallest lead of a best score "
            f"{self.score_margin:.3g}, range/gap {self.conditioning:.3g}"
        )
        lines.append(f"  float64    largest error over all outputs {self.float64_error:.3g}")
        lines += [f"  {failure}" for failure in self.failures[:_REPORTED]]
        if len(self.failures) > _REPORTED:
            lines.append(f"  and {len(self.failures) - _REPORTED} more")
        lines += [f"  {problem}" for problem in self.problems]
        return "\n".join(lines)


def certify(
    network: CompiledNetwork,
    *,
    workers: int = 1,
    progress: Progress = None,
    problems: tuple[str, ...] = (),
) -> Certificate:
    """Certificate from the exact evaluation of the network on all of its data, shared by ``workers`` processes."""
    started = time.perf_counter()
    workers = as_count("workers", workers, 1)
    data, heat, counts = network.data, network.temperature, count_blocks(network)
    if workers == 1 or len(data) < 2 * workers:
        proof = prove(network.blocks, data, heat, progress)
    else:
        proof = _prove_in_parallel(network.blocks, data, heat, workers)
    ball = "" if proof.precision == 0 else f" and balls of {proof.precision} bits"
    heat_text = (
        f"softmax at temperature {brief(heat)}" if heat is not None else "hardmax, ties by equality of rationals"
    )
    return Certificate(
        proved=not proof.failures and not problems,
        data_hash=data.digest(),
        sequences=len(data),
        tokens=data.tokens,
        attention=heat_text,
        arithmetic=f"exact rationals{ball}",
        failures=proof.failures,
        problems=problems,
        blocks=len(network.blocks),
        parameters=counts.parameters,
        published_bound=counts.published,
        activation_margin=proof.margins.activation,
        score_margin=proof.margins.score,
        conditioning=network.report.conditioning,
        float64_error=float64_error(network),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True)
class Proof:
    """Result of the exact evaluation of some sequences."""

    failures: tuple[Failure, ...]
    margins: Margins
    precision: int
    """Bits of the balls; 0 when every number stayed rational."""


def prove(blocks: Sequence[Block], data: DataSet, heat: fmpq | None, progress: Progress = None) -> Proof:
    """Proof of T(X) = Y for every pair; the precision of balls is raised until every sign is decided."""
    if heat is None or all(not block.B for block in blocks):
        # Without scores softmax weights are all equal, so every number stays rational at every temperature.
        state = evaluate(blocks, data.inputs, None, progress)
        return Proof(_failures(state, data), state.margins, 0)
    for precision in _PRECISIONS:
        try:
            with ctx.workprec(precision):
                state = evaluate(blocks, data.inputs, heat, progress)
        except UndecidedError:
            continue
        return Proof(_failures(state, data), state.margins, precision)
    return _one_by_one(blocks, data, heat)


def _one_by_one(blocks: Sequence[Block], data: DataSet, heat: fmpq) -> Proof:
    """Proof per sequence, with those that no precision decides as failures."""
    failures = []
    for j, x in enumerate(data.inputs):
        try:
            with ctx.workprec(_PRECISIONS[-1]):
                state = evaluate(blocks, [x], heat)
        except UndecidedError:
            failures.append(Failure(j, f"undecided with balls of {_PRECISIONS[-1]} bits"))
            continue
        one = DataSet((x,), (data.outputs[j],), data.token_level)
        failures += [Failure(j, failure.reason) for failure in _failures(state, one)]
    return Proof(tuple(failures), Margins(), _PRECISIONS[-1])


def _failures(state: State, data: DataSet) -> tuple[Failure, ...]:
    failures = []
    for j, (tokens, targets) in enumerate(zip(state.sequences(), data.outputs, strict=True)):
        reason = _disagreement(tokens, targets, data.token_level)
        if reason:
            failures.append(Failure(j, reason))
    return tuple(failures)


def _disagreement(tokens: list[list[fmpq]], targets: tuple[Vector, ...], token_level: bool) -> str:
    for i, token in enumerate(tokens):
        if not all(map(is_exact, token)):
            return f"token {i} is known only up to a ball around {[float(c) for c in token]}"
    reached = [tuple(token) for token in tokens]
    if token_level:
        wrong = [i for i, (a, b) in enumerate(zip(reached, targets, strict=True)) if a != b]
        if wrong:
            return f"token {wrong[0]} goes to {_show(reached[wrong[0]])} instead of {_show(targets[wrong[0]])}"
        return ""
    # Comparing sorted rationals is much cheaper than hashing them.
    reached, wanted = _distinct(reached), _distinct(targets)
    if reached == wanted:
        return ""
    stray = [point for point in reached if point not in wanted]
    if stray:
        return f"{_show(stray[0])} is reached and is not a target"
    missed = next(point for point in wanted if point not in reached)
    return f"the target {_show(missed)} is not reached"


def _distinct(points: Sequence[Vector]) -> list[Vector]:
    distinct: list[Vector] = []
    for point in sorted(points):
        if not distinct or point != distinct[-1]:
            distinct.append(point)
    return distinct


def _show(point: Vector) -> str:
    text = "(" + ", ".join(map(str, point)) + ")"
    return text if len(text) <= 80 else "(" + ", ".join(f"{to_float(c):.6g}" for c in point) + ")"


def _prove_in_parallel(blocks: Sequence[Block], data: DataSet, heat: fmpq | None, workers: int) -> Proof:
    # Neighbouring sequences cost about the same, so every workers-th one balances the load.
    shares = [list(range(w, len(data), workers)) for w in range(workers)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = []
        for share in shares:
            part = DataSet(
                tuple(data.inputs[j] for j in share), tuple(data.outputs[j] for j in share), data.token_level
            )
            futures.append(pool.submit(prove, blocks, part, heat))
        proofs = [future.result() for future in futures]
    failures = [
        Failure(share[failure.sequence], failure.reason)
        for share, proof in zip(shares, proofs, strict=True)
        for failure in proof.failures
    ]
    margins = Margins(min(proof.margins.activation for proof in proofs), min(proof.margins.score for proof in proofs))
    return Proof(tuple(sorted(failures, key=lambda f: f.sequence)), margins, max(proof.precision for proof in proofs))


def float64_error(network: CompiledNetwork, dtype: torch.dtype = torch.float64) -> float:
    """Largest Hausdorff distance, in the maximum norm, between the float output and the targets."""
    data = network.data
    module = TorchTransformer.from_network(network, dtype).eval()
    tokens = [torch.from_numpy(to_floats(x, data.dimension)) for x in data.inputs]
    with torch.no_grad():
        outputs = module(tokens)
    worst = 0.0
    for output, y in zip(outputs, data.outputs, strict=True):
        reached, targets = output.double().numpy(), to_floats(y, data.dimension)
        if not np.isfinite(reached).all():
            return float("inf")
        if data.token_level:
            worst = max(worst, float(np.abs(reached - targets).max()))
            continue
        distance = np.abs(reached[:, None, :] - targets[None]).max(axis=-1)
        worst = max(worst, float(distance.min(axis=1).max()), float(distance.min(axis=0).max()))
    return worst


def verify(path: str | os.PathLike[str], *, workers: int = 1, progress: Progress = None) -> Certificate:
    """Certificate of a saved network, proved from its data and its weights; nothing else in the files is trusted.

    Parameters
    ----------
    path
        Folder that :meth:`ExactTransformer.save` wrote, or its ``network.json``.
    workers
        Number of processes that share the sequences.
    progress
        True, False, None (a bar when the work turns out to be long), or a function called as
        ``progress(stage, done, total)``.

    Returns
    -------
    Certificate
        True in a boolean context when everything was proved; otherwise it names the sequences that fail and the claims
        of the files that do not hold.
    """
    source = json_path(Path(path))
    network, record = read_network(source)
    counts = count_blocks(network)
    problems = []
    reader = NetworkReader(source)
    claimed = reader.get(record["data"], "data.sha256", str)
    if claimed != network.data.digest():
        problems.append("the data are not those the file was made for (their hash differs)")
    for name, actual in (
        ("blocks", len(network.blocks)),
        ("parameters", counts.parameters),
        ("published_bound", counts.published),
    ):
        value = reader.get(record["claims"], f"claims.{name}", int)
        if value != actual:
            problems.append(f"the file claims {name} = {value}, it is {actual}")
    problems += _tensor_problems(source.parent / TENSORS_NAME, network, reader.get(record, "tensors_sha256", str))
    return certify(network, workers=workers, progress=progress, problems=tuple(problems))


def _tensor_problems(path: Path, network: CompiledNetwork, claimed_hash: str) -> list[str]:
    try:
        content = path.read_bytes()
        tensors = load_tensors(content)
    except FileNotFoundError:
        return [f"{path.name} is missing"]
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        return [f"{path.name} cannot be read ({error})"]
    expected = stacked(network.blocks, network.dimension)
    problems = []
    for name, array in expected.items():
        found = tensors.get(name)
        if found is None or found.shape != array.shape or found.dtype != array.dtype:
            problems.append(f"{path.name}: {name} is missing or has another shape")
        elif not np.array_equal(found, array):
            block = int(np.argwhere((found != array).reshape(len(array), -1).any(axis=1))[0, 0])
            problems.append(f"{path.name}: {name} of block {block} is not the rounded exact weight")
    if hashlib.sha256(content).hexdigest() != claimed_hash:
        problems.append(f"{path.name} is not the file that {JSON_NAME} names (its hash differs)")
    return problems
