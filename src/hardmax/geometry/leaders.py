"""Who leads: the leaders of a run or a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..dynamics.assumptions import is_positive_definite
from ..dynamics.equilibrium import Equilibrium
from ..inputs import plain
from .result_arrays import Result, Roles, hardmax_layer, near_one, result, roles, score_matrix, states

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Leaders:
    """The leaders of a run, one entry each, in the order of their index."""

    index: np.ndarray
    """Which token it is (the lowest index where tokens are repeated)."""
    emerged_at: np.ndarray
    """The first layer at which it listens to itself alone."""
    positions: np.ndarray
    """Where it is in the limit, or at the last kept layer of a run; shape (leader, coordinate)."""
    followers: np.ndarray
    """How many other tokens follow it; one that follows several leaders for ever counts for each."""
    a_norms: np.ndarray | None
    r"""The length :math:`\sqrt{\langle A z, z\rangle}`; None when A is not positive definite."""

    def __len__(self) -> int:
        return len(self.index)

    def __str__(self) -> str:
        if len(self) == 0:
            return "no leaders"
        return str(self.to_pandas().to_string(index=False, max_rows=20))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self.to_pandas().to_html(index=False, max_rows=20))

    def to_pandas(self) -> pandas.DataFrame:
        """One row a leader."""
        import pandas

        table = {"leader": self.index, "emerged_at": self.emerged_at, "followers": self.followers}
        if self.a_norms is not None:
            table["a_norm"] = self.a_norms
        for k in range(self.positions.shape[1]):
            table[f"x{k}"] = self.positions[:, k]
        return pandas.DataFrame(table)


def leaders(run: Result) -> Leaders:
    """The leaders of a run or of a limit.

    >>> import hardmax as hm
    >>> found = leaders(hm.equilibrium([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5)))
    >>> found.index.tolist(), found.emerged_at.tolist(), found.followers.tolist()
    ([0, 2], [0, 0], [1, 0])
    """
    run = result("run", run)
    who = roles(run)
    everywhere = plain(run.positions) if isinstance(run, Equilibrium) else states(run)[-1]
    positions = everywhere[who.leaders].astype(np.float64)
    A = score_matrix(hardmax_layer(run), positions.shape[1])
    return Leaders(
        index=who.leaders,
        emerged_at=who.emerged_at,
        positions=positions,
        followers=_followers(who),
        a_norms=a_norms(A, positions) if is_positive_definite(torch.from_numpy(A)) else None,
    )


def a_norms(A: np.ndarray, points: np.ndarray) -> np.ndarray:
    r""":math:`\sqrt{\langle A z, z\rangle}` for positive definite A, without overflow on the way."""
    matrix, power = near_one(A)
    scaled, exponent = near_one(points)
    squared = np.maximum(((scaled @ matrix.T) * scaled).sum(axis=1), 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(np.sqrt(squared), exponent + power // 2))


def _followers(who: Roles) -> np.ndarray:
    count = len(who.follows)
    alone = (who.follows >= 0) & (who.follows != np.arange(count))
    alone[who.ties.tokens] = False
    heads = np.bincount(who.follows[alone], minlength=count) + np.bincount(who.ties.members, minlength=count)
    return np.asarray(heads[who.leaders])
