"""Execution of a run: in this process alone, or shared by several."""

from __future__ import annotations

from typing import Protocol

import torch

from ..attention.layer import AbstractLayer, HardmaxLayer
from ..distributed import Processes
from ..inputs import Kind
from ..shapes import PerToken, Tokens
from .assumptions import Assumptions
from .exact import ExactProcess
from .family import ExactFamilyProcess, FamilyProcess
from .keep_and_stop_rules import KeepRule
from .leadership import Leadership
from .process import HardmaxProcess
from .process_setup import start


class TokenProcess(Protocol):
    """A hardmax process in terms of tokens: their positions, limits, leaders and followers."""

    @property
    def process(self) -> HardmaxProcess | ExactProcess | FamilyProcess | ExactFamilyProcess:
        """The process on distinct points, advanced layer by layer."""

    @property
    def assumptions(self) -> Assumptions:
        """Which assumptions of Theorem 1.1 hold for the tokens and the layer."""

    @property
    def settled(self) -> bool:
        """Whether no token moves any more, decided or not."""

    def positions(self, layer: int) -> Tokens:
        """Positions of all tokens at this layer, shape (tokens, d)."""

    def limit(self) -> Tokens:
        """Limit of every token, shape (tokens, d)."""

    def undecided(self) -> int:
        """Number of tokens whose future is not known yet."""

    def leadership(self, kind: Kind) -> Leadership:
        """Leaders, followers and ties, by index of the token."""

    def choices(self) -> torch.Tensor | None:
        """Leader of each token in each head, shape (heads, tokens), -1 while undecided; None where heads are alike."""

    def reasons(self) -> torch.Tensor:
        """Code of the reason why each token is undecided, shape (tokens,); 0 where it is decided."""


class Execution(Protocol):
    """The steps of a run that depend on the number of processes."""

    def start(self, tokens: Tokens, weights: PerToken, layer: HardmaxLayer) -> TokenProcess:
        """Process that decides the future of all tokens; the arguments are those of this process."""

    def split(self, layer: AbstractLayer) -> AbstractLayer:
        """Layer that gives the same output and shares the work."""

    def keeper(self, rule: KeepRule) -> KeepRule:
        """Rule for the states that this process stores."""


class SingleProcess:
    """Execution of a run in this process alone."""

    def start(self, tokens: Tokens, weights: PerToken, layer: HardmaxLayer) -> TokenProcess:
        return start(tokens, weights, layer)

    def split(self, layer: AbstractLayer) -> AbstractLayer:
        return layer

    def keeper(self, rule: KeepRule) -> KeepRule:
        return rule


def execution_on(ranks: Processes) -> Execution:
    """Execution in this process, or shared by all ``ranks`` where there are several."""
    if ranks.count == 1:
        return SingleProcess()
    from .distributed import SeveralProcesses  # a single process does not load it

    return SeveralProcesses(ranks)
