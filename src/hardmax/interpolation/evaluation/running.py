"""Exact evaluation of a network on sequences, its predictions, and the tokens after each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import torch
from flint import ctx

from ...errors import InputError
from ...progress import Progress
from ...shapes import Array
from ..arithmetic.exact_evaluation import (
    Number,
    State,
    UndecidedError,
    attention,
    evaluate,
    feed_forward,
    is_exact,
)
from ..arithmetic.numbers import Vector, as_fraction, to_float, to_floats
from ..data import as_list, is_list, read_vector
from ..network import CompiledNetwork

Fractions: TypeAlias = list[tuple[Fraction, ...]]

_PRECISIONS = (64, 256, 1024, 4096, 16384)
"""Bits of the balls that enclose the output of softmax attention."""


def run(network: CompiledNetwork, tokens: object, *, exact: bool) -> Array | list[Array] | Fractions | list[Fractions]:
    """Output of every token, for one sequence or several; see :meth:`ExactTransformer.__call__`."""
    several = _holds_sequences(tokens)
    entries = as_list("tokens", tokens) if several else [tokens]
    sequences = [read_sequence(network, f"tokens[{j}]" if several else "tokens", x) for j, x in enumerate(entries)]
    found = images(network, sequences)
    if exact:
        fractions = [_fractions(image) for image in found]
        return fractions if several else fractions[0]
    kinds = entries if isinstance(tokens, list | tuple) else [tokens] * len(entries)
    arrays: list[Any] = [_rounded(image, kind) for image, kind in zip(found, kinds, strict=True)]
    if not several:
        return arrays[0]  # type: ignore[no-any-return]
    if isinstance(tokens, np.ndarray):
        return np.stack(arrays)
    return torch.stack(arrays) if isinstance(tokens, torch.Tensor) else arrays


def read_sequence(network: CompiledNetwork, argument: str, value: object) -> tuple[Vector, ...]:
    """One sequence of tokens as exact rationals; raises an InputError where the dimension does not fit."""
    points = tuple(read_vector(f"{argument}[{i}]", point) for i, point in enumerate(as_list(argument, value)))
    if not points or any(len(point) != network.dimension for point in points):
        raise InputError(
            argument,
            "a sequence of another shape",
            f"must be tokens of {network.dimension} coordinates",
            "pass tokens of the dimension of the data",
        )
    return points


def images(
    network: CompiledNetwork, sequences: Sequence[tuple[Vector, ...]], progress: Progress = None
) -> list[list[list[Number]]]:
    """Output of every token: rationals, or under softmax balls where the output is not rational."""
    if not sequences:
        return []
    if network.temperature is None or all(not block.B for block in network.blocks):
        return evaluate(network.blocks, sequences, None, progress).sequences()
    for precision in _PRECISIONS:
        try:
            with ctx.workprec(precision):
                return evaluate(network.blocks, sequences, network.temperature, progress).sequences()
        except UndecidedError:
            continue
    raise InputError(
        "tokens",
        f"a sequence undecided with balls of {_PRECISIONS[-1]} bits",
        "must not lie exactly on a kink of the network behind softmax attention",
        "use net.to_torch(), or move the tokens a little",
    )


def _holds_sequences(tokens: object) -> bool:
    if isinstance(tokens, (np.ndarray, torch.Tensor)):
        if tokens.ndim not in (2, 3):
            wanted = "must have shape (token, coordinate) or (sequence, token, coordinate)"
            raise InputError("tokens", f"shape {tuple(tokens.shape)}", wanted, "one token of d coordinates is (1, d)")
        return tokens.ndim == 3
    entries = as_list("tokens", tokens)
    if not hasattr(tokens, "to_numpy") and (not entries or not all(is_list(entry) for entry in entries)):
        problem = "must be a list of tokens, or a list of sequences of tokens"
        raise InputError("tokens", "a list of numbers" if entries else "nothing", problem, "pass for example [[0, 1]]")
    return any(is_list(inside) for entry in entries for inside in as_list("tokens", entry)[:1])


def _fractions(image: list[list[Number]]) -> Fractions:
    for i, point in enumerate(image):
        if not all(map(is_exact, point)):
            remedy = "leave exact out for its value in float64"
            raise InputError(
                "exact", True, f"is not possible: the output of token {i} is not rational under softmax", remedy
            )
    return [tuple(as_fraction(c) for c in point) for point in image]


def floats(image: list[list[Number]]) -> np.ndarray:
    """Nearest float64 of every coordinate, shape (tokens, d)."""
    return np.array([[to_float(c) if is_exact(c) else float(c.mid()) for c in point] for point in image])


def _rounded(image: list[list[Number]], kind: Any) -> Any:
    values = floats(image)
    if isinstance(kind, torch.Tensor):
        dtype = kind.dtype if kind.is_floating_point() else torch.float64
        return torch.from_numpy(values).to(device=kind.device, dtype=dtype)
    single = isinstance(kind, np.ndarray) and kind.dtype == np.float32
    return values.astype(np.float32) if single else values


def predict(network: CompiledNetwork, inputs: object, progress: Progress = None) -> list[object]:
    """Label per sequence: the class whose target is nearest to the mean over the distinct tokens of the output."""
    if network.classes is None:
        raise InputError(
            "network", repr(network), "has no classes", "make it with hardmax.classify_exactly, or call net(sequence)"
        )
    entries = as_list("inputs", inputs)
    # Each distinct token counts once in the mean of the output, as it does in every layer.
    sequences = [tuple(dict.fromkeys(read_sequence(network, f"inputs[{j}]", entry))) for j, entry in enumerate(entries)]
    targets = to_floats(network.class_targets, network.dimension)
    chosen = []
    for output in images(network, sequences, progress):
        distance = np.abs(targets - floats(output).mean(axis=0)).max(axis=1)
        chosen.append(network.classes[int(distance.argmin())])
    return chosen


@dataclass(frozen=True)
class Moment:
    """Positions of all tokens after one stage of the network, in float64."""

    block: int
    """Number of blocks that were applied."""
    title: str
    """Name of the stage."""
    positions: np.ndarray
    """Shape (tokens, d), the sequences one after the other."""


@dataclass(frozen=True)
class Journey:
    """Positions of all tokens before the first block, and after the feed-forward and the attention of each block."""

    owner: np.ndarray
    """Index of the sequence of each token, shape (tokens,)."""
    before: np.ndarray
    """Positions before the first block, shape (tokens, d)."""
    after_feed_forward: list[np.ndarray]
    after_block: list[np.ndarray]


def journey(network: CompiledNetwork) -> Journey:
    """Positions of all tokens after every layer, from an exact evaluation with hardmax scores."""
    state = State(network.data.inputs)
    before = state.middle.copy()
    halves, wholes = [], []
    for block in network.blocks:
        with np.errstate(all="ignore"):
            feed_forward(state, block)
        halves.append(state.middle.copy())
        attention(state, block, None)
        wholes.append(state.middle.copy())
    owner = np.repeat(np.arange(len(network.data)), [len(x) for x in network.data.inputs])
    return Journey(owner, before, halves, wholes)


def five_moments(network: CompiledNetwork, way: Journey) -> list[Moment]:
    """Five stages of the construction."""
    stages = [block.stage for block in network.blocks]
    last = len(stages) - 1
    if network.construction == "paper":
        told = sum(stage == "witness" for stage in stages)
        collapse = stages.index("select, collapse")
        separated = way.after_block[told - 1] if told else way.before
        return [
            Moment(0, "inputs", way.before),
            Moment(told, "separated", separated),
            Moment(collapse + 1, "selected", way.after_feed_forward[collapse]),
            Moment(collapse + 1, "collapsed", way.after_block[collapse]),
            Moment(last + 1, "sent to the targets", way.after_block[last]),
        ]
    told = sum(not stage.startswith("line") for stage in stages)
    separated = way.after_block[told - 1] if told else way.before
    middle = (told + last) // 2
    return [
        Moment(0, "inputs", way.before),
        Moment(told, "separated", separated),
        Moment(told + 1, "on a line, first items sent", way.after_block[told]),
        Moment(middle + 1, "half of the line sent", way.after_block[middle]),
        Moment(last + 1, "sent to the targets", way.after_block[last]),
    ]


def every_moment(network: CompiledNetwork, way: Journey) -> list[Moment]:
    """Stages before the first block, and after the feed-forward and the attention of every block."""
    moments = [Moment(0, "inputs", way.before)]
    for k, (half, whole) in enumerate(zip(way.after_feed_forward, way.after_block, strict=True)):
        stage = network.blocks[k].stage
        moments += [Moment(k + 1, f"{stage}, feed-forward", half), Moment(k + 1, f"{stage}, attention", whole)]
    return moments
