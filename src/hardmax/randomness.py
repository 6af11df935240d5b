"""Random generators from ``random_state``, with the seed that was used."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from .errors import InputError


@dataclass(frozen=True)
class Seeded:
    """A generator and the seed that reproduces it (None when the caller passed a generator)."""

    generator: np.random.Generator
    seed: int | None


def seeded(random_state: int | np.random.Generator | None) -> Seeded:
    """Generator for ``random_state``, with its seed; a missing seed is drawn and recorded.

    >>> seeded(7).seed
    7
    >>> bool(seeded(7).generator.random() == seeded(7).generator.random())
    True
    """
    if isinstance(random_state, np.random.Generator):
        return Seeded(random_state, None)
    if random_state is None:
        random_state = secrets.randbits(31)
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise InputError(
            "random_state",
            repr(random_state),
            "must be a non-negative whole number, a numpy Generator or None",
            "pass for example random_state=0",
        )
    return Seeded(np.random.default_rng(int(random_state)), int(random_state))
