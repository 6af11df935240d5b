"""Which layers of a run are stored, and when a run stops early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
import torch

from ..errors import InputError
from ..inputs import as_count, as_positive
from ..shapes import Tokens

if TYPE_CHECKING:
    from .trajectory import Trajectory

_LARGEST_KEPT_BYTES = 8 * 2**30


@runtime_checkable
class KeepRule(Protocol):
    """Decides which layers to keep, and takes them: in memory here, on disk in :mod:`hardmax.storage`."""

    def wants(self, layer: int, last: bool) -> bool:
        """Whether this layer is to be kept; ``last`` says that the run ends here."""
        ...

    def store(self, layer: int, tokens: Tokens) -> None:
        """Take one state."""
        ...


@runtime_checkable
class FinishingRule(KeepRule, Protocol):
    """A keep rule that has something to complete when the run ends, or to clean up when it fails."""

    def finish(self, run: Trajectory) -> Trajectory:
        """Complete what was kept with all that is known of the run (its tokens left out); give back the run."""
        ...

    def abandon(self) -> None:
        """Remove what was kept so far: the run failed or was interrupted."""
        ...


@contextmanager
def finishing(keeper: KeepRule) -> Iterator[Callable[[Trajectory], Trajectory]]:
    """Give the function that a complete run goes through; a rule that cares is told when there is none."""
    try:
        yield keeper.finish if isinstance(keeper, FinishingRule) else lambda run: run
    except BaseException:
        if isinstance(keeper, FinishingRule):
            keeper.abandon()
        raise


@dataclass(frozen=True)
class Every:
    """Keep every ``step``-th layer, and the last one."""

    step: int

    def __post_init__(self) -> None:
        as_count("step", self.step, least=1)


Keep = Literal["all", "last"] | Every | Iterable[int] | KeepRule


@dataclass
class InMemory:
    """Keeps the wanted layers as tensors: those listed, or every ``step``-th, or the last alone."""

    listed: frozenset[int] | None = None
    step: int | None = None
    layers: list[int] = field(default_factory=list)
    states: list[Tokens] = field(default_factory=list)

    def wants(self, layer: int, last: bool) -> bool:
        if self.listed is not None:
            return layer in self.listed
        return last or (self.step is not None and layer % self.step == 0)

    def store(self, layer: int, tokens: Tokens) -> None:
        self.layers.append(layer)
        self.states.append(tokens.clone())


def keeping(keep: Keep, depth: int, shape: tuple[int, ...]) -> KeepRule:
    """The rule that ``keep`` stands for; refuse to keep more than memory holds."""
    if isinstance(keep, KeepRule):
        return keep
    rule = _in_memory(keep, depth)
    states = len(rule.listed) if rule.listed is not None else 1 + (depth // rule.step if rule.step else 0)
    size = 8 * states * int(np.prod(shape))
    if size > _LARGEST_KEPT_BYTES:
        raise InputError(
            "keep",
            f"{states} states of {size / states / 2**20:.0f} MB, {size / 2**30:.0f} GB",
            f"must fit in {_LARGEST_KEPT_BYTES / 2**30:.0f} GB of memory",
            'pass keep="last", keep=[0, 1, 5], keep=Every(10), or keep=ToDisk(path)',
        )
    return rule


def _in_memory(keep: object, depth: int) -> InMemory:
    if isinstance(keep, str):
        if keep == "all":
            return InMemory(step=1)
        if keep == "last":
            return InMemory()
    elif isinstance(keep, Every):
        return InMemory(step=keep.step)
    elif isinstance(keep, Iterable):
        listed = list(keep)
        whole = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in listed)
        if listed and whole and min(listed) >= 0 and max(listed) <= depth:
            return InMemory(listed=frozenset(int(k) for k in listed))
        raise InputError(
            "keep",
            sorted(listed) if whole else listed,
            f"must list layers from 0 to depth = {depth}",
            "raise depth or leave out the layers beyond it",
        )
    raise InputError(
        "keep", repr(keep), "is not understood", 'pass "all", "last", Every(k), a list of layers or ToDisk'
    )


@dataclass(frozen=True)
class Moment:
    """What a stop rule sees."""

    layer: int
    tokens: Tokens
    undecided: int | None
    """Tokens whose leader is not known yet; None for layers that do not decide."""


@runtime_checkable
class StopRule(Protocol):
    """Decides when to end a run early."""

    def reason(self, moment: Moment) -> str | None:
        """A sentence when the run should stop here, None otherwise."""
        ...


@dataclass(frozen=True)
class Decided:
    """Stop once every token's leader is known."""

    def reason(self, moment: Moment) -> str | None:
        return "every token is decided" if moment.undecided == 0 else None


@dataclass(frozen=True)
class Bound:
    """Stop once a coordinate grows beyond ``limit`` in size."""

    limit: float

    def __post_init__(self) -> None:
        as_positive("limit", self.limit)

    def reason(self, moment: Moment) -> str | None:
        size = float(torch.max(moment.tokens.detach().abs()))
        return f"a coordinate of size {size:.3g} passed the bound {self.limit:.3g}" if size > self.limit else None
