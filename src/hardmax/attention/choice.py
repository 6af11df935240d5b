r"""Who listens to whom in one layer: the sets :math:`C_i(Z)` and the rule that decides ties.

Token i scores token j by :math:`\langle A z_i, z_j\rangle` and listens to the tokens of the largest score,

.. math:: C_i(Z) = \{ j : \langle A z_i, z_j\rangle = \max_l \langle A z_i, z_l\rangle \}.

In floating point "equal" needs a tolerance that survives rounding. There is one, here: j belongs to
:math:`C_i` when its score is within ``tolerance`` :math:`\cdot |A z_i| \cdot \max_l |z_l|` of the best. Scores that
decide are always computed by :func:`score`, coordinate by coordinate in order, so the answer is a function of the
numbers alone: it does not depend on the search method, the number of threads or the size of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..shapes import Indices, Matrix, PerQuery, Queries, Tokens


def default_tolerance(dtype: torch.dtype) -> float:
    """The relative tolerance within which scores of tokens of this dtype are called equal.

    >>> default_tolerance(torch.float64) < 1.5e-14
    True
    """
    return 64.0 * torch.finfo(dtype).eps


def score(queries: Queries, points: Queries) -> PerQuery:
    """The scores ``<queries[p], points[p]>`` of paired rows, summed in the order of the coordinates.

    Products and sums are separate, rounded operations in a fixed order: two calls on the same pair agree to the
    last bit, whatever else is in the batch. A matrix product promises no such thing.
    """
    total = queries[:, 0] * points[:, 0]
    for k in range(1, queries.shape[1]):
        total = total + queries[:, k] * points[:, k]
    return total


def apply(A: Matrix, tokens: Tokens) -> Queries:
    """The queries ``A z_i``, each computed in the order of the coordinates (see :func:`score`)."""
    columns = []
    for row in range(A.shape[0]):
        total = A[row, 0] * tokens[:, 0]
        for k in range(1, A.shape[1]):
            total = total + A[row, k] * tokens[:, k]
        columns.append(total)
    return torch.stack(columns, dim=1)


def length(vectors: Queries) -> PerQuery:
    """Euclidean lengths, computed in the order of the coordinates (see :func:`score`)."""
    return score(vectors, vectors).sqrt()


def slack(queries: Queries, points: Tokens, tolerance: float) -> PerQuery:
    """How far below the best a score may lie and still tie, for each query."""
    return tolerance * length(queries) * length(points).max()


@dataclass(frozen=True)
class Choice:
    """The sets :math:`C_i`: for each query, the points of the largest score.

    Most queries have one favourite, kept in ``first``. The rest are listed in compressed rows: the members of the
    t-th tied query ``tied[t]`` are ``members[offsets[t]:offsets[t + 1]]``, ascending, at least two. A query that is
    zero scores everybody alike; it is marked in ``everyone`` instead of being listed.
    """

    first: Indices
    """Lowest index of C_i."""
    best: PerQuery
    """The largest score, as computed by :func:`score`."""
    everyone: torch.Tensor
    """True where the query is zero and so C_i holds every point."""
    tied: Indices
    """Queries with two or more favourites (zero queries left out), ascending."""
    offsets: Indices
    members: Indices

    def __len__(self) -> int:
        return int(self.first.shape[0])

    def __getitem__(self, query: int) -> Indices:
        """The members of C_i for one query; for a zero query this is refused, since it is everybody."""
        if bool(self.everyone[query]):
            raise LookupError(f"query {query} is zero and listens to everybody")
        t = int(torch.searchsorted(self.tied, torch.tensor(query, device=self.tied.device)))
        if t < len(self.tied) and int(self.tied[t]) == query:
            return self.members[int(self.offsets[t]) : int(self.offsets[t + 1])]
        return self.first[query : query + 1]

    @property
    def sizes(self) -> Indices:
        """Number of members of C_i for each tied query."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def rows(self) -> Indices:
        """The tied query that each entry of ``members`` belongs to."""
        return torch.repeat_interleave(self.tied, self.sizes)


def choice_from_pairs(
    queries: Queries, points: Tokens, rows: Indices, columns: Indices, tolerance: float
) -> Choice:
    """Decide, by exact order of operations, among candidate pairs ``(rows[p], columns[p])``.

    Every search method ends here. The candidates of a non-zero query must include every point whose score is within
    the tolerance of its best; others may be among them and lose. Candidates of zero queries are not needed.
    """
    count, device = queries.shape[0], queries.device
    everyone = (queries == 0).all(dim=1)
    values = score(queries[rows], points[columns])
    best = torch.full((count,), -torch.inf, dtype=queries.dtype, device=device)
    best = best.scatter_reduce(0, rows, values, reduce="amax", include_self=True)
    wins = (values >= (best - slack(queries, points, tolerance))[rows]) & ~everyone[rows]
    rows, columns = rows[wins], columns[wins]
    # One favourite is the rule; only rows with several need to be sorted.
    sizes = torch.bincount(rows, minlength=count)
    first = torch.zeros(count, dtype=torch.int64, device=device)
    several = sizes[rows] > 1
    first[rows[~several]] = columns[~several]
    rows, columns = rows[several], columns[several]
    order = torch.argsort(columns, stable=True)
    order = order[torch.argsort(rows[order], stable=True)]
    rows, columns = rows[order], columns[order]
    tied, sizes = torch.unique_consecutive(rows, return_counts=True)
    offsets = torch.zeros(len(tied) + 1, dtype=torch.int64, device=device)
    offsets[1:] = sizes.cumsum(0)
    if len(tied):
        first[tied] = columns[offsets[:-1]]
    best[everyone] = 0.0
    return Choice(first, best, everyone, tied, offsets, columns)
