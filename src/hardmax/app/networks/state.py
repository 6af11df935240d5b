"""Data sets and networks of the exact networks page: as typed lines, compiled, and as files.

Numbers stay text until the library reads them, so that they are taken exactly.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast, get_args

from ...errors import FileError, InputError
from ...interpolation.constructions.interpolate import Construction, classify_exactly, interpolate
from ...interpolation.data import Problem, read_problem
from ...interpolation.evaluation.certificate import Certificate, verify
from ...interpolation.evaluation.running import Journey
from ...interpolation.export.files import JSON_NAME, TENSORS_NAME
from ...interpolation.transformer import ExactTransformer
from ...progress import Tell
from ..archives import pack, unpack
from ..uploads import Upload, as_file, rows_of, text_of

MOST_CHARACTERS = 200_000
"""Characters that the text box accepts."""
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
    """The data set in the lines; errors name the line."""
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


def refuse_labels(problem: Problem, name: str) -> None:
    """Raise an error that names the file where a label cannot be written in a line."""
    for label in map(str, problem.labels or ()):
        if not label.strip() or re.search(r"[()\n\r]", label) or _ARROW.search(label):
            problem_of_label = f"has the label {_brief(label)}; labels on this page hold no brackets and no arrows"
            raise FileError(name, problem_of_label, "rename it in the file, or use `hardmax interpolate`")


WIDEST = 64


@dataclass(frozen=True)
class Choices:
    """The sequences as typed lines, and the choices of the page."""

    lines: str = EXAMPLES["overlap"][1]
    construction: Construction = "leaders"
    width: int = 4
    temperature: str = ""
    """Empty for hardmax."""
    beside: str = ""
    """A second construction to compare with; empty for none."""

    def to_query(self) -> dict[str, str]:
        """The part of the address that stores the choices, without the lines."""
        query = {"construction": self.construction, "width": str(self.width)}
        rest = {"temperature": self.temperature, "beside": self.beside}
        return query | {name: value for name, value in rest.items() if value}

    @classmethod
    def from_query(cls, query: Mapping[str, str], lines: str | None = None) -> Choices:
        """Choices from an address and its lines; values that make no sense get their defaults."""
        usual = cls()
        construction, width = usual.construction, usual.width
        if query.get("construction") in get_args(Construction):
            construction = cast("Construction", query["construction"])
        if query.get("width", "").isdecimal():
            width = min(max(int(query["width"][:3]), 1), WIDEST)
        beside = query.get("beside", "")
        beside = beside if beside in get_args(Construction) else ""
        lines = usual.lines if lines is None else lines
        return cls(lines, construction, width, query.get("temperature", "")[:20], beside)

    def recipe(self) -> Recipe:
        """The network that these choices describe; an error where the lines cannot be read."""
        return Recipe(read_lines(self.lines), self.construction, self.width, self.temperature or None)

    def rival(self) -> Recipe | None:
        """The network of the second construction, if one is to stand beside the first."""
        if not self.beside or self.beside == self.construction:
            return None
        return replace(self, construction=cast("Construction", self.beside)).recipe()


_MOST_TOKENS = 5_000
"""Tokens of a data set; bounds the time of its proof."""


@dataclass(frozen=True)
class Recipe:
    """A data set and the options of its compilation."""

    problem: Problem
    construction: Construction
    width: int
    temperature: str | None

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the library."""
        chosen: dict[str, Any] = {"construction": self.construction, "width": self.width}
        return (
            chosen if self.temperature is None else {**chosen, "attention": "softmax", "temperature": self.temperature}
        )

    def code(self, *, bare: bool = False) -> str:
        """Python that compiles, proves and saves the network; ``bare`` without the data, which stand above it."""
        inputs, outputs, labels = self.problem.inputs, self.problem.outputs, self.problem.labels
        options = "".join(f", {name}={value!r}" for name, value in self.options().items())
        call = "interpolate(inputs, outputs" if labels is None else "classify_exactly(inputs, labels"
        ends = f"outputs = {outputs!r}" if labels is None else f"labels = {labels!r}"
        made = f"hm.{call}{options})"
        if bare:
            return f"other = {made}\nprint(other.certify())\nprint(other.summary())\n"
        return (
            f"import hardmax as hm\n\ninputs = {inputs!r}\n{ends}\nnet = {made}\n"
            "print(net.certify())           # the proof, with the hash of the data\n"
            "print(net.summary())           # blocks beside the published bound\n"
            "net.save('net')                # hm.verify('net') proves it again from the files\n"
        )

    def build(self, tell: Tell) -> ExactTransformer:
        """Compile."""
        tokens = sum(len(tokens) for tokens in self.problem.inputs)
        if tokens > _MOST_TOKENS:
            raise InputError(
                "data", f"{tokens:,} tokens", f"must have at most {_MOST_TOKENS:,} here", "use the library"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the notes of the network have the same text
            if self.problem.labels is not None:
                return classify_exactly(self.problem.inputs, self.problem.labels, progress=tell, **self.options())
            return interpolate(self.problem.inputs, self.problem.outputs, progress=tell, **self.options())


@dataclass(frozen=True)
class Compiled:
    """A network with its certificate and the positions of its tokens after every block."""

    network: ExactTransformer
    certificate: Certificate
    way: Journey

    @property
    def problem(self) -> Problem:
        """The data of the network as text, with labels where it is a classifier."""
        data, classes = self.network.data, self.network.classes
        inputs, outputs = _as_text(data.inputs), _as_text(data.outputs)
        if classes is not None:
            named = dict(zip(self.network.class_targets, classes, strict=True))
            labels = [named.get(points[0]) for points in data.outputs]
            if None not in labels:
                return Problem(inputs, None, labels)
        return Problem(inputs, outputs, None)


_BYTES_OF_A_RATIONAL = 200
"""About what a weight takes in memory: a fraction of two integers."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What the page shows for some choices: a network, and a second one where two constructions are compared."""

    choices: Choices
    compiled: Compiled
    rival: Compiled | None = None
    file: Upload | None = field(default=None, kw_only=True)
    """The uploaded file of the network; None where it was compiled here."""

    @property
    def nbytes(self) -> int:
        """About how many bytes the networks and the positions of their tokens take."""
        size = 0
        for one in (self.compiled, self.rival):
            if one is not None:
                places = [one.way.before, *one.way.after_feed_forward, *one.way.after_block]
                size += sum(array.nbytes for array in places)
                size += _BYTES_OF_A_RATIONAL * one.network.counts.parameters
        return size + (0 if self.file is None else len(self.file.data))


@dataclass(frozen=True)
class NetworksState:
    """A state of the history of the page, with the network that was compiled for its choices, if there is one."""

    choices: Choices
    moment: int = 0
    shown: Shown | None = None
    drawn: Problem | None = None
    """What the board shows while the lines cannot be read, such as a sequence that has no target yet."""

    def weigh(self) -> dict[int, int]:
        """Bytes of its large parts, by their ``id``."""
        parts = {id(self.choices.lines): len(self.choices.lines)}
        return parts if self.shown is None else parts | {id(self.shown): self.shown.nbytes}


def _as_text(side: Sequence[Sequence[Sequence[object]]]) -> list[list[list[object]]]:
    return [[[str(number) for number in point] for point in points] for points in side]


def counted(number: int, what: str, several: str = "") -> str:
    """A number of things in words.

    >>> counted(1, "sequence"), counted(1_200, "token"), counted(2, "class", "classes")
    ('1 sequence', '1,200 tokens', '2 classes')
    """
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def sequence_names(count: int, labels: Sequence[object] | None) -> list[str]:
    """Names of sequences, counted from 1, with their labels where they have some.

    >>> sequence_names(2, ["cat", "dog"])
    ['sequence 1 (cat)', 'sequence 2 (dog)']
    """
    ends = [""] * count if labels is None else [f" ({label})" for label in labels]
    return [f"sequence {k + 1}{end}" for k, end in enumerate(ends)]


def outcome_of(certificate: Certificate) -> str:
    """What a proof has shown, in one sentence."""
    size = f"{counted(certificate.sequences, 'sequence')} ({counted(certificate.tokens, 'token')})"
    if certificate.proved:
        return f"PROVED in {certificate.arithmetic}: T(X) = Y for {size}."
    fail, wrong = len(certificate.failures), len(certificate.problems)
    return (
        f"NOT PROVED: {fail:,} of {size} {'fails' if fail == 1 else 'fail'}, "
        f"{counted(wrong, 'claim')} of the file {'is' if wrong == 1 else 'are'} wrong."
    )


def size_of(problem: Problem) -> str:
    """Numbers of sequences, tokens, and targets or classes of a data set, in words."""
    if problem.outputs is not None:
        ends = counted(sum(len(points) for points in problem.outputs), "target")
    else:
        ends = counted(len({str(label) for label in problem.labels or ()}), "class", "classes")
    tokens = sum(len(tokens) for tokens in problem.inputs)
    return f"{counted(len(problem.inputs), 'sequence')}, {counted(tokens, 'token')}, {ends}"


CERTIFICATE_NAME = "certificate.json"


def network_archive(network: ExactTransformer, certificate: Certificate, folder: Path) -> bytes:
    """Both files of a network and its certificate, as a ZIP archive."""
    place = network.save(folder / "network")
    try:
        files = {name: (place / name).read_bytes() for name in (JSON_NAME, TENSORS_NAME)}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    files[CERTIFICATE_NAME] = json.dumps(certificate.to_dict(), indent=2).encode()
    return pack(files)


@dataclass(frozen=True)
class NetworkFiles:
    """The files of an uploaded network, not yet read."""

    name: str
    files: dict[str, bytes]

    def verify(self, folder: Path, tell: Tell) -> tuple[ExactTransformer, Certificate]:
        """The network and a new certificate, computed from its data and weights."""
        place = folder / "uploaded"
        place.mkdir(exist_ok=True)
        try:
            for name in (JSON_NAME, TENSORS_NAME):
                if name in self.files:
                    (place / name).write_bytes(self.files[name])
            return ExactTransformer.load(place), verify(place, progress=tell)
        except FileError as error:
            raise FileError(self.name, error.problem, error.remedy) from None
        finally:
            shutil.rmtree(place, ignore_errors=True)


def load_network(upload: Upload) -> NetworkFiles:
    """The files of an uploaded network: a ZIP archive of both, or the JSON file alone."""
    if upload.suffix == ".json":
        return NetworkFiles(upload.name, {JSON_NAME: text_of(upload).encode()})
    files = unpack(upload, (".json", ".safetensors"))
    if JSON_NAME not in files:
        raise FileError(upload.name, f"holds no {JSON_NAME}", "upload an archive that was downloaded from here")
    return NetworkFiles(upload.name, files)


def code_of_file(name: str) -> str:
    """Python that proves an uploaded network again from its files."""
    unpack_first = "the files of" if name.lower().endswith(".zip") else f"{JSON_NAME}, which is"
    return (
        "import hardmax as hm\n\n"
        f"folder = 'network'             # with {unpack_first} {name!r}\n"
        "print(hm.verify(folder))       # the proof, from the data and the weights of the file\n"
        "net = hm.ExactTransformer.load(folder)\n"
        "print(net.summary())           # blocks beside the published bound\n"
    )


def read_upload(upload: Upload, folder: Path) -> Problem:
    """The data set in an uploaded file: JSON, or CSV in long form with a column of labels."""
    if upload.suffix == ".csv":
        rows_of(upload)  # refuses a file that is too wide, too long or not a table
    with as_file(folder / f"data{upload.suffix}", text_of(upload).encode(), upload.name) as path:
        return read_problem(path)
