"""Rules that select the layers of a run to store, and rules that end a run early."""

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

_LARGEST_STORED_BYTES = 8 * 2**30  # fits into the memory of most machines; larger runs can be stored by ToDisk


@runtime_checkable
class KeepRule(Protocol):
    """Interface of a rule that selects layers and stores them: in memory, or on disk by :class:`hardmax.ToDisk`."""

    def wants(self, layer: int, last: bool) -> bool:
        """Whether this layer is to be stored.

        Parameters
        ----------
        layer
            Number of the layer; 0 is the input.
        last
            Whether the run ends here.

        Returns
        -------
        bool
            True to store the layer.
        """
        ...

    def store(self, layer: int, tokens: Tokens) -> None:
        """Store one state.

        Parameters
        ----------
        layer
            Number of the layer.
        tokens
            Tokens at this layer, shape (tokens, d).
        """
        ...


@runtime_checkable
class FinishingRule(KeepRule, Protocol):
    """Interface of a keep rule that completes its storage when the run ends and cleans up when the run fails."""

    def finish(self, run: Trajectory) -> Trajectory:
        """Run to return, after its outcome and leadership (not its tokens) were added to what is stored."""
        ...

    def abandon(self) -> None:
        """Remove what was stored so far, after the run failed or was interrupted."""
        ...


@contextmanager
def finishing(keeper: KeepRule) -> Iterator[Callable[[Trajectory], Trajectory]]:
    """Context with the function that a complete run passes through; a finishing rule cleans up after an error."""
    try:
        yield keeper.finish if isinstance(keeper, FinishingRule) else lambda run: run
    except BaseException:
        if isinstance(keeper, FinishingRule):
            keeper.abandon()
        raise


@dataclass(frozen=True)
class Every:
    """Keep rule: every ``step``-th layer, and the last one.

    Parameters
    ----------
    step
        Layers between stored states, at least 1.
    """

    step: int

    def __post_init__(self) -> None:
        as_count("step", self.step, least=1)


Keep = Literal["all", "last"] | Every | Iterable[int] | KeepRule


@dataclass
class InMemory:
    """Keep rule that stores layers as tensors: those listed, or every ``step``-th, or the last alone."""

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
    """Rule for the argument ``keep``; raises an InputError where the states do not fit in memory."""
    if isinstance(keep, KeepRule):
        return keep
    rule = _in_memory(keep, depth)
    states = len(rule.listed) if rule.listed is not None else 1 + (depth // rule.step if rule.step else 0)
    size = 8 * states * int(np.prod(shape))
    if size > _LARGEST_STORED_BYTES:
        raise InputError(
            "keep",
            f"{states} states of {size / states / 2**20:.3g} MB, {size / 2**30:.0f} GB",
            f"must fit in {_LARGEST_STORED_BYTES / 2**30:.0f} GB of memory",
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
    """State of a run that is passed to stop rules."""

    layer: int
    """Number of the layer; 0 is the input."""
    tokens: Tokens
    """Tokens at this layer, shape (tokens, d)."""
    undecided: int | None
    """Number of tokens whose leader is not known yet; None for layers without leaders."""


@runtime_checkable
class StopRule(Protocol):
    """Interface of a rule that ends a run early."""

    def reason(self, moment: Moment) -> str | None:
        """Reason to stop at this layer.

        Parameters
        ----------
        moment
            State of the run.

        Returns
        -------
        str or None
            End of a sentence "at layer 7 …" when the run should stop here, None otherwise.
        """
        ...


@dataclass(frozen=True)
class Decided:
    """Stop rule: end the run once every token's leader is known."""

    def reason(self, moment: Moment) -> str | None:
        """Reason to stop at this layer.

        Parameters
        ----------
        moment
            State of the run.

        Returns
        -------
        str or None
            Text once no token is undecided, None before.
        """
        return "every token is decided" if moment.undecided == 0 else None


@dataclass(frozen=True)
class Bound:
    """Stop rule: end the run once the absolute value of a coordinate exceeds a limit.

    Parameters
    ----------
    limit
        Largest absolute value, positive.
    """

    limit: float

    def __post_init__(self) -> None:
        as_positive("limit", self.limit)

    def reason(self, moment: Moment) -> str | None:
        """Reason to stop at this layer.

        Parameters
        ----------
        moment
            State of the run.

        Returns
        -------
        str or None
            Text once a coordinate exceeds the limit, None before.
        """
        size = float(torch.max(moment.tokens.detach().abs()))
        return f"a coordinate of size {size:.3g} passed the bound {self.limit:.3g}" if size > self.limit else None
