"""Where the tokens are on their way through a network: five moments that tell the story, or every block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .network import ExactTransformer
from .rationals import State, attention, feed_forward


@dataclass(frozen=True)
class Moment:
    """Positions of all tokens at one point of the way, in float64, and what has happened so far."""

    block: int
    title: str
    positions: np.ndarray
    """(token, coordinate), the sequences one after the other."""


@dataclass(frozen=True)
class Journey:
    """The way of all tokens: before the first block, and after the feed-forward and the attention of each block."""

    owner: np.ndarray
    """The sequence of each token."""
    before: np.ndarray
    after_feed_forward: list[np.ndarray]
    after_block: list[np.ndarray]


def journey(network: ExactTransformer) -> Journey:
    """Evaluate the network exactly, with hardmax scores, and keep where everything was."""
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


def five_moments(network: ExactTransformer, way: Journey) -> list[Moment]:
    """The stages of the construction, as five pictures."""
    stages = [block.stage for block in network.blocks]
    last = len(stages) - 1
    if network.construction == "paper":
        told = sum(stage == "witness" for stage in stages)
        collapse = stages.index("select, collapse")
        separated = way.after_block[told - 1] if told else way.before
        return [
            Moment(0, "inputs", way.before),
            Moment(told, "told apart", separated),
            Moment(collapse + 1, "selected", way.after_feed_forward[collapse]),
            Moment(collapse + 1, "collapsed", way.after_block[collapse]),
            Moment(last + 1, "sent to the targets", way.after_block[last]),
        ]
    told = sum(not stage.startswith("line") for stage in stages)
    separated = way.after_block[told - 1] if told else way.before
    middle = (told + last) // 2
    return [
        Moment(0, "inputs", way.before),
        Moment(told, "told apart", separated),
        Moment(told + 1, "on a line, first items sent", way.after_block[told]),
        Moment(middle + 1, "half of the line sent", way.after_block[middle]),
        Moment(last + 1, "sent to the targets", way.after_block[last]),
    ]


def every_moment(network: ExactTransformer, way: Journey) -> list[Moment]:
    """Before the first block, and after the feed-forward and the attention of every block."""
    moments = [Moment(0, "inputs", way.before)]
    for k, (half, whole) in enumerate(zip(way.after_feed_forward, way.after_block, strict=True)):
        stage = network.blocks[k].stage
        moments += [Moment(k + 1, f"{stage}, feed-forward", half), Moment(k + 1, f"{stage}, attention", whole)]
    return moments
