"""Sequences and targets as lines that people can type: ``(0, 0) (1, 3/8) -> (1, 2)``, or ``-> a label``.

Numbers stay text until the library reads them, so what is typed is taken exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..errors import InputError
from ..interpolation.problems import Problem

MOST_CHARACTERS = 200_000
_ARROW = re.compile(r"->|→|⟶")
_POINT = re.compile(r"\(([^()]*)\)")
_REMEDY = "write for example (0, 0) (1, 3/8) -> (1, 2), or -> spam for a label"

EXAMPLES: dict[str, tuple[str, str]] = {
    "overlap": (
        "Three sequences that share tokens",
        "(-2, 0) (-1, 2) (1, 1) -> (-1, -1) (0, 2)\n"
        "(-1, 2) (1, 1) (2, -1) -> (2, 2)\n"
        "(0, -2) (1, 1) (-2, 0) (2, 2) -> (1, -2) (-2, 1) (2, 0)",
    ),
    "inside": (
        "A sequence inside another",
        "(0, 0) (1, 0) -> (0, 1)\n(0, 0) (1, 0) (1/2, 1) -> (1, 1)\n(0, 0) -> (-1, 0)",
    ),
    "classes": (
        "Labels instead of targets",
        "(0, 0) (1, 0) (1, 1) -> triangle\n"
        "(0, 0) (1, 0) (1, 1) (0, 1) -> square\n"
        "(2, 0) (2, 2) (0, 2) -> triangle\n"
        "(0, 0) (2, 0) (2, 2) (0, 2) -> square",
    ),
    "swap": ("Two points that change places", "(-1, 0) -> (1, 0)\n(1, 0) -> (-1, 0)"),
}
"""Name in an address, title, lines."""


def read_lines(text: str) -> Problem:
    """The data set that some lines describe; errors name the line."""
    if len(text) > MOST_CHARACTERS:
        raise InputError("lines", f"{len(text):,} characters", "are too many to type", "upload a file instead")
    inputs: list[list[list[object]]] = []
    outputs: list[list[list[object]]] = []
    labels: list[object] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        left, *right = _ARROW.split(line)
        if len(right) != 1:
            raise InputError(f"line {number}", _brief(line), "must have one arrow", _REMEDY)
        inputs.append(_points(number, left))
        if "(" in right[0] or ")" in right[0]:
            outputs.append(_points(number, right[0]))
        elif right[0].strip():
            labels.append(right[0].strip())
        else:
            raise InputError(f"line {number}", _brief(line), "must name a target after the arrow", _REMEDY)
        if outputs and labels:
            raise InputError(
                f"line {number}", _brief(line), "must be like the lines before", "use points in all lines, or labels"
            )
    if not inputs:
        raise InputError("lines", "nothing", "must describe a sequence", _REMEDY)
    return Problem(inputs, outputs or None, labels or None)


def _points(number: int, text: str) -> list[list[object]]:
    found = [[part.strip() for part in inside.split(",")] for inside in _POINT.findall(text)]
    rest = _POINT.sub("", text).replace(",", "").strip()
    if rest or not found or any(not part for point in found for part in point):
        raise InputError(f"line {number}", _brief(text), "must be points in brackets", _REMEDY)
    return [list(point) for point in found]


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:57] + "…")


def write_lines(problem: Problem) -> str:
    """The lines of a data set."""
    ends: Sequence[Any] = problem.outputs if problem.outputs is not None else problem.labels or []
    lines = []
    for tokens, end in zip(problem.inputs, ends, strict=True):
        right = _line(end) if problem.outputs is not None else str(end)
        lines.append(f"{_line(tokens)} -> {right}")
    return "\n".join(lines)


def _line(points: Sequence[Sequence[object]]) -> str:
    return " ".join("(" + ", ".join(map(str, point)) + ")" for point in points)
