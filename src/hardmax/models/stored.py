"""Contents of the files of a model: settings and named weights, each checked on access.

Files are untrusted data, never code. Sizes are known from headers before any weight is read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from ..errors import FileError
from ..scalars import shown

# Larger counts are refused: the largest published models have 2^18 words and 2^15 coordinates.
_MOST = 2**31
# Bytes assumed to be free where a container limits the total only.
_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))
DAMAGED = "the file is damaged or of another model; get it again"
"""Remedy where a file contradicts itself."""


@dataclass(frozen=True)
class Settings:
    """Settings of a model by name, as its files give them."""

    path: Path
    """File that holds them."""
    values: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of settings in the file, where they are others."""

    def _first(self, names: Sequence[str]) -> tuple[str, Any]:
        return next(
            ((name, self.values[name]) for name in names if self.values.get(name) is not None), (names[0], None)
        )

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = _MOST) -> int:
        """Whole number under the first of these names that is there."""
        name, value = self._first(names)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(name, value, f"must be a whole number from {least} to {most}")
        return value

    def number(self, *names: str, default: float | None = None, above: float = 0.0) -> float:
        """Finite number above a limit."""
        name, value = self._first(names)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value < math.inf:
            raise self.error(name, value, f"must be a number above {above:g}")
        try:
            return float(value)
        except OverflowError:
            raise self.error(name, value, "must be a number") from None

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.error(name, value, "must be true or false")
        return value

    def word(self, *names: str, default: str | None = None) -> str:
        """A text."""
        name, value = self._first(names)
        value = default if value is None else value
        if not isinstance(value, str):
            raise self.error(name, value, "must be a text")
        return value

    def part(self, name: str) -> Settings | None:
        """Settings below a name, or None."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(name, value, "must be an object")
        return Settings(self.path, value)

    def heads(self, d: int, *names: str) -> int:
        """Number of heads, which divides ``d``."""
        heads = self.count(*names, most=2**16)
        if d % heads:
            raise self.error(self._first(names)[0], heads, f"must divide the {d} coordinates of a token")
        return heads

    def error(self, name: str, value: object, problem: str) -> FileError:
        """FileError that names a setting, its value and the problem."""
        found = "is missing; it" if value is None else f"is {shown(value)}, and"
        return FileError(self.path, f"the setting {self.names.get(name, name)!r} {found} {problem}", DAMAGED)


@dataclass(frozen=True, eq=False)
class Weights:
    """Named tensors of a model; a name is looked up behind a prefix, and its shape is checked."""

    path: Path
    """File or folder, for messages."""
    shapes: Mapping[str, tuple[int, ...]]
    """Shape of each tensor, from the headers of the files."""
    read: Callable[[str], torch.Tensor]
    """Reads one tensor."""
    dtype: torch.dtype = torch.float32
    prefix: str = ""
    used: set[str] = field(default_factory=set)

    def under(self, prefix: str) -> Weights:
        """The same tensors, with a longer prefix."""
        return replace(self, prefix=self.prefix + prefix)

    def behind(self, name: str) -> Weights:
        """The same tensors, with the prefix that the name has in these files, such as ``"bert."``."""
        found = sorted((one for one in self.shapes if one == name or one.endswith("." + name)), key=len)
        if not found:
            raise FileError(self.path, f"has no tensor {name!r}", f"{self._nearest(name)}{DAMAGED}")
        return replace(self, prefix=found[0].removesuffix(name))

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return self.prefix + name in self.shapes

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """Tensor of this name and shape, in the dtype of the model."""
        full = self.prefix + name
        if full not in self.shapes:
            raise FileError(self.path, f"has no tensor {full!r}, which this architecture needs", DAMAGED)
        if self.shapes[full] != shape:
            problem = f"the tensor {full!r} has shape {self.shapes[full]}, the settings of the model say {shape}"
            raise FileError(self.path, problem, DAMAGED)
        self.used.add(full)
        tensor = self.read(full).to(self.dtype)
        # Extremes are not numbers where any entry is not: faster than to look at every entry.
        if not all(bool(torch.isfinite(extreme)) for extreme in torch.aminmax(tensor)):
            raise FileError(self.path, f"the tensor {full!r} holds numbers that are not finite", DAMAGED)
        return tensor

    def maybe(self, name: str, *shape: int) -> torch.Tensor | None:
        """Tensor of this name and shape, or None where the files have none."""
        return self.take(name, *shape) if self.has(name) else None

    def rows(self, name: str) -> int:
        """Length of the first axis of a tensor, 0 where there is none."""
        shape = self.shapes.get(self.prefix + name, ())
        return shape[0] if shape else 0

    def refuse_unused(self, prefix: str, harmless: Sequence[str]) -> None:
        """Refuse tensors of layers that were not used: the model computes something that is not built here."""
        start = self.prefix + prefix
        left = sorted(
            one
            for one in self.shapes
            if one.startswith(start) and one not in self.used and not any(one.endswith(end) for end in harmless)
        )
        if left:
            problem = f"has {len(left)} tensors of layers that this architecture does not use, first {left[0]!r}"
            raise FileError(self.path, problem, "pass a model of one of the known architectures, unchanged")

    def _nearest(self, name: str) -> str:
        some = ", ".join(repr(one[:60]) for one in sorted(self.shapes)[:3])
        return f"it holds {len(self.shapes)} tensors ({some} …), so that it is no model of this kind; " if some else ""


def require_memory(path: Path, shapes: Iterable[tuple[int, ...]], dtype: torch.dtype) -> None:
    """Refuse a model whose weights do not fit into the free memory, before any is read."""
    size = sum(math.prod(shape) for shape in shapes) * dtype.itemsize
    free = free_memory()
    if free is not None and size > free:
        name = str(dtype).removeprefix("torch.")
        problem = f"needs {size / 1e9:,.1f} GB of memory in {name}, and {free / 1e9:,.1f} GB are free"
        raise FileError(path, problem, "use a smaller model, or a machine with more memory")


def free_memory() -> int | None:
    """Bytes of memory that are free for this process, or None where the system does not say."""
    free = None
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        try:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return None
    try:
        limit, current = (int(path.read_text(encoding="ascii")) for path in _CONTAINER)
    except (OSError, ValueError):  # no container, or one without a limit
        return free
    return limit - current if free is None else min(free, limit - current)
