"""The leaders of a run or a limit, and their followers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..attention.layer import HardmaxLayer
from ..dynamics.assumptions import is_positive_definite
from ..dynamics.equilibrium import Equilibrium
from ..inputs import plain
from .result_arrays import Result, Roles, near_one, result, roles, score_matrix, states

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Leaders:
    """Leaders of a run, in the order of their indices."""

    index: np.ndarray
    """Index of the token (the lowest where tokens are repeated), shape (leaders,)."""
    emerged_at: np.ndarray
    """First layer at which the leader listens to itself alone, shape (leaders,)."""
    positions: np.ndarray
    """Position in the limit, or at the last stored layer of a run, shape (leaders, d)."""
    followers: np.ndarray
    """Number of other tokens that follow the leader, shape (leaders,); tokens with several leaders count for each."""
    a_norms: np.ndarray | None
    r"""Length :math:`\sqrt{\langle A z, z\rangle}`, shape (leaders,); None without one positive definite A."""

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
        """Table with one row per leader.

        Returns
        -------
        pandas.DataFrame
            Columns ``leader``, ``emerged_at``, ``followers``, ``a_norm`` where it is defined, and the coordinates
            ``x0``, …
        """
        import pandas

        table = {"leader": self.index, "emerged_at": self.emerged_at, "followers": self.followers}
        if self.a_norms is not None:
            table["a_norm"] = self.a_norms
        for k in range(self.positions.shape[1]):
            table[f"x{k}"] = self.positions[:, k]
        return pandas.DataFrame(table)


def leaders(run: Result) -> Leaders:
    """Leaders of a run or of a limit.

    Parameters
    ----------
    run
        Trajectory or Equilibrium of a layer that chooses: a :class:`HardmaxLayer` with V = I, with any mask and heads,
        or a layer with a method ``choose`` of its own. Where the run does not prove which tokens lead for ever, these
        are the tokens that listen to themselves alone in every head at the last stored layer.

    Returns
    -------
    Leaders
        Index, layer of emergence, position and number of followers of each leader.

    Examples
    --------
    >>> import hardmax as hm
    >>> found = leaders(hm.equilibrium([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5)))
    >>> found.index.tolist(), found.emerged_at.tolist(), found.followers.tolist()
    ([0, 2], [0, 0], [1, 0])
    """
    run = result("run", run)
    who = roles(run)
    everywhere = plain(run.positions) if isinstance(run, Equilibrium) else states(run)[-1]
    positions = everywhere[who.leaders].astype(np.float64)
    return Leaders(
        index=who.leaders,
        emerged_at=who.emerged_at,
        positions=positions,
        followers=_followers(run, who),
        a_norms=_a_norms(run, positions),
    )


def _a_norms(run: Result, positions: np.ndarray) -> np.ndarray | None:
    """A-norms of the leaders; None where there is no one A, or it is not positive definite."""
    layer = run.layer
    if not isinstance(layer, HardmaxLayer) or len(layer.heads) > 1 or not layer.heads[0].has_plain_scores:
        return None
    A = score_matrix(layer, positions.shape[1])
    return a_norms(A, positions) if is_positive_definite(torch.from_numpy(A)) else None


def a_norms(A: np.ndarray, points: np.ndarray) -> np.ndarray:
    r"""A-norms :math:`\sqrt{\langle A z, z\rangle}` of points, shape (points,), without intermediate overflow."""
    matrix, power = near_one(A)
    scaled, exponent = near_one(points)
    squared = np.maximum(((scaled @ matrix.T) * scaled).sum(axis=1), 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(np.sqrt(squared), exponent + power // 2))


def _followers(run: Result, who: Roles) -> np.ndarray:
    """Number of other tokens that follow each leader; a token counts once for each leader of its heads or ties."""
    count = len(who.follows)
    if isinstance(run, Equilibrium) and run.head_choices is not None and len(run.head_choices) > 1:
        chosen = plain(run.head_choices)
        pairs = np.unique(np.stack([chosen, np.broadcast_to(np.arange(count), chosen.shape)]).reshape(2, -1), axis=1)
        others = (pairs[0] >= 0) & (pairs[0] != pairs[1]) & ~np.isin(pairs[1], who.ties.tokens)
        found = np.bincount(pairs[0, others], minlength=count) + np.bincount(who.ties.members, minlength=count)
        return np.asarray(found[who.leaders])
    alone = (who.follows >= 0) & (who.follows != np.arange(count))
    alone[who.ties.tokens] = False
    heads = np.bincount(who.follows[alone], minlength=count) + np.bincount(who.ties.members, minlength=count)
    return np.asarray(heads[who.leaders])
