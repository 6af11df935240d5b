"""What the exact networks page compiles: a data set with choices, the network with its proof, and counts in words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..interpolation.certificate import Certificate
from ..interpolation.classification import classify_exactly
from ..interpolation.construction import Construction, interpolate
from ..interpolation.journey import Journey
from ..interpolation.network import ExactTransformer
from ..interpolation.problems import Problem
from ..progress import Tell

_MOST_TOKENS = 5_000


@dataclass(frozen=True)
class Recipe:
    """What to compile, and how."""

    problem: Problem
    construction: Construction
    width: int
    temperature: str | None

    def options(self) -> dict[str, Any]:
        """The arguments of the library."""
        chosen: dict[str, Any] = {"construction": self.construction, "width": self.width}
        return (
            chosen if self.temperature is None else {**chosen, "attention": "softmax", "temperature": self.temperature}
        )

    def build(self, tell: Tell) -> ExactTransformer:
        """Compile."""
        tokens = sum(len(tokens) for tokens in self.problem.inputs)
        if tokens > _MOST_TOKENS:
            raise InputError(
                "data", f"{tokens:,} tokens", f"must have at most {_MOST_TOKENS:,} here", "use the library"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in the notes of the network
            if self.problem.labels is not None:
                return classify_exactly(self.problem.inputs, self.problem.labels, progress=tell, **self.options())
            return interpolate(self.problem.inputs, self.problem.outputs, progress=tell, **self.options())


@dataclass(frozen=True)
class Compiled:
    """A network with its proof and the way of its tokens."""

    network: ExactTransformer
    certificate: Certificate
    way: Journey

    @property
    def problem(self) -> Problem:
        """The data of the network as one would type them, with labels where it is a classifier."""
        data, classes = self.network.data, self.network.classes
        inputs, outputs = _as_text(data.inputs), _as_text(data.outputs)
        if classes is not None:
            named = dict(zip(self.network.class_targets, classes, strict=True))
            labels = [named.get(points[0]) for points in data.outputs]
            if None not in labels:
                return Problem(inputs, None, labels)
        return Problem(inputs, outputs, None)


def _as_text(side: Sequence[Sequence[Sequence[object]]]) -> list[list[list[object]]]:
    return [[[str(number) for number in point] for point in points] for points in side]


def counted(number: int, what: str, several: str = "") -> str:
    """A number of things in words.

    >>> counted(1, "sequence"), counted(1_200, "token"), counted(2, "class", "classes")
    ('1 sequence', '1,200 tokens', '2 classes')
    """
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def size_of(problem: Problem) -> str:
    """How many sequences, tokens and targets or classes a data set has."""
    if problem.outputs is not None:
        ends = counted(sum(len(points) for points in problem.outputs), "target")
    else:
        ends = counted(len({str(label) for label in problem.labels or ()}), "class", "classes")
    tokens = sum(len(tokens) for tokens in problem.inputs)
    return f"{counted(len(problem.inputs), 'sequence')}, {counted(tokens, 'token')}, {ends}"
