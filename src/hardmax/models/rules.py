"""Attention rules that replace the softmax of a trained model, by name or as a weighting, and where they apply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..attention.weighting import AbstractWeighting, DoublyStochastic, Hardmax, Softmax, TopK
from ..errors import InputError
from ..scalars import shown
from ..shapes import Matrix, PerToken

# What the names of rules may look like; a number follows "top-" and "beta=".
_TOP = re.compile(r"top-(\d{1,9})")
_BETA = re.compile(r"beta=(\d{0,9}\.?\d{0,9}(?:e[+-]?\d{1,3})?)")


@dataclass(frozen=True)
class ZeroAttention(AbstractWeighting):
    """No attention: every weight is zero, so that heads pass on nothing. The control of every other rule."""

    def weights(self, scores: Matrix, seen: torch.Tensor, mass: PerToken) -> Matrix:
        return torch.zeros_like(scores)

    def __str__(self) -> str:
        return "zero"


def as_rule(rule: object, argument: str = "rule") -> AbstractWeighting:
    """Weighting that a rule names.

    Parameters
    ----------
    rule
        ``"hardmax"``, ``"top-4"``, ``"beta=2"`` (softmax with scores multiplied by 2), ``"uniform"``, ``"zero"``,
        ``"softmax"``, or a weighting such as ``TopK(4)``. Scores are those of the model, its own scale included.
    argument
        Name of the argument, for messages.

    Returns
    -------
    AbstractWeighting
        Rule by which the scores of a row become weights.

    Examples
    --------
    >>> str(as_rule("top-4")), str(as_rule("uniform"))
    ('top-4 softmax, beta = 1', 'softmax, beta = 0')
    """
    if isinstance(rule, DoublyStochastic):
        raise InputError(argument, str(rule), "needs all rows at once", "use softmax, hardmax or top-k weights")
    if isinstance(rule, AbstractWeighting):
        return rule
    remedy = 'use "hardmax", "top-4", "beta=2", "uniform", "zero" or "softmax", or a weighting such as TopK(4)'
    if not isinstance(rule, str):
        raise InputError(argument, shown(rule), "must name an attention rule", remedy)
    plain: dict[str, AbstractWeighting] = {
        "hardmax": Hardmax(),
        "uniform": Softmax(0.0),
        "zero": ZeroAttention(),
        "softmax": Softmax(1.0),
    }
    name = rule.strip().lower()
    if name in plain:
        return plain[name]
    top, beta = _TOP.fullmatch(name), _BETA.fullmatch(name)
    if top:
        return TopK(int(top[1]))
    if beta:
        try:
            return Softmax(float(beta[1]))
        except ValueError:
            pass
    raise InputError(argument, shown(rule), "is no attention rule", remedy)


def as_indices(argument: str, asked: object, count: int) -> list[int]:
    """Numbers of layers or heads, each from 0 to ``count - 1``: all of them where None, or one, or several.

    >>> as_indices("heads", None, 3), as_indices("heads", 2, 3), as_indices("heads", [0, 2], 3)
    ([0, 1, 2], [2], [0, 2])
    """
    if asked is None:
        return [*range(count)]
    found: list[Any] = [*asked] if isinstance(asked, (Sequence, np.ndarray)) and not isinstance(asked, str) else [asked]
    for one in found:
        if isinstance(one, bool) or not isinstance(one, (int, np.integer)) or not 0 <= one < count:
            raise InputError(argument, shown(one), f"must be numbers from 0 to {count - 1}", "count from 0")
    return [int(one) for one in found]
