"""Masks: the tokens that each token sees.

The tokens of a sequence are numbered from 0 in the order of their rows. Token i sees an interval S(i) of them: all
tokens, the prefix that ends with itself (a causal mask, as in a decoder), or a window around itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import InputError
from ..scalars import as_count
from ..shapes import Indices


@dataclass(frozen=True)
class Mask:
    """Interval of tokens that each token sees: those up to ``before`` places earlier and ``after`` places later.

    Parameters
    ----------
    before
        Number of earlier tokens that a token sees; all of them when left out.
    after
        Number of later tokens that a token sees; all of them when left out.

    Examples
    --------
    >>> Mask(after=0)
    Mask(before=None, after=0)
    >>> str(Mask(after=0)), str(Mask(before=3, after=0)), str(Mask())
    ('causal', 'causal window of 4 tokens', 'all tokens')
    """

    before: int | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("before", self.before), ("after", self.after)):
            if value is not None:
                object.__setattr__(self, name, as_count(name, value))

    @property
    def sees_all(self) -> bool:
        """Whether every token sees every token."""
        return self.before is None and self.after is None

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one."""
        return self.after == 0

    @property
    def nested(self) -> bool:
        """Whether each token sees all that the tokens it sees can see: S(k) is in S(i) for every k in S(i).

        Then the convex hull of what a token sees never grows from one layer to the next.
        """
        return self.before in (None, 0) and self.after in (None, 0)

    def interval(self, positions: Indices, count: int) -> tuple[Indices, Indices]:
        """First and last-plus-one of the tokens that the tokens at ``positions`` see.

        Parameters
        ----------
        positions
            Places in the sequence, shape (queries,).
        count
            Number of tokens of the sequence.

        Returns
        -------
        tuple of tensors
            ``start`` and ``stop``, each of shape (queries,): S(i) is ``range(start[i], stop[i])``, never empty.
        """
        start = torch.zeros_like(positions) if self.before is None else (positions - self.before).clamp_min(0)
        if self.after is None:
            return start, torch.full_like(positions, count)
        return start, (positions + self.after + 1).clamp_max(count)

    def visible(self, rows: Indices, columns: Indices) -> torch.Tensor:
        """True where the token ``rows[i]`` sees the token ``columns[k]``, shape (rows, columns).

        Parameters
        ----------
        rows, columns
            Places in the sequence, shapes (rows,) and (columns,).

        Returns
        -------
        Tensor
            Boolean, shape (rows, columns).
        """
        later = columns[None, :] - rows[:, None]
        seen = torch.ones_like(later, dtype=torch.bool)
        if self.before is not None:
            seen &= later >= -self.before
        if self.after is not None:
            seen &= later <= self.after
        return seen

    def require_fit(self, count: int) -> None:
        """Raise an InputError where a window is wider than the sequence.

        Parameters
        ----------
        count
            Number of tokens of the sequence.
        """
        widest = max(self.before or 0, self.after or 0)
        if widest >= max(count, 1) and widest > 0:
            raise InputError(
                "window",
                str(self),
                f"is wider than the {count} tokens",
                "pass a window of at most the number of tokens, or leave it out",
            )

    def __str__(self) -> str:
        if self.sees_all:
            return "all tokens"
        if self.before is None and self.after == 0:
            return "causal"
        if self.before is not None and self.after == 0:
            return f"causal window of {self.before + 1} tokens"
        before = "all earlier" if self.before is None else f"{self.before} earlier"
        after = "all later" if self.after is None else f"{self.after} later"
        return f"window of {before} and {after} tokens"


ALL = Mask()
CAUSAL = Mask(after=0)


def as_mask(causal: bool, window: int | None) -> Mask:
    """Mask from the two arguments of a layer.

    ``window`` counts the token itself: with ``causal`` it sees the last ``window`` tokens, without it the tokens fewer
    than ``window`` places away on either side.

    >>> as_mask(True, 4), as_mask(False, None)
    (Mask(before=3, after=0), Mask(before=None, after=None))
    """
    if window is None:
        return CAUSAL if causal else ALL
    width = as_count("window", window, 1)
    return Mask(before=width - 1, after=0 if causal else width - 1)
