r"""The tokens that each token attends to: the sets :math:`C_i(Z)` and the rule that decides ties.

Token i scores token j by :math:`\langle A z_i, z_j\rangle` and attends to the tokens of the largest score,

.. math:: C_i(Z) = \{ j : \langle A z_i, z_j\rangle = \max_l \langle A z_i, z_l\rangle \}.

In floating point equality needs a tolerance: j belongs to :math:`C_i` when its score is within
``tolerance`` :math:`\cdot |A z_i| \cdot \max_l |z_l|` of the largest. The scores that are compared are always computed
by :func:`score`, coordinate by coordinate in a fixed order, so the result does not depend on the search method, the
number of threads or the block size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from ..errors import InputError
from ..shapes import Indices, Matrix, PerQuery, Points, Projected, Queries, Tokens, Values
from . import kernels

# Numbers per block: coordinates are visited one by one, which is slow unless a block stays in the processor's cache.
_IN_CACHE = 1 << 18
# On a GPU a block is limited by memory alone: 1 GiB of float64.
_ON_DEVICE = 1 << 27

# Scores that differ by at most this many rounding errors tie by default: more than some tens of coordinates and a few
# layers accumulate, and less than the difference of scores that are not equal in exact arithmetic, except rarely.
TIE_UNITS = 64.0


def default_tolerance(dtype: torch.dtype) -> float:
    """Relative tolerance within which scores computed in this dtype tie.

    The dtype is that of the arithmetic: scores of float32 tokens are computed in float64 and tie accordingly.

    >>> default_tolerance(torch.float64) < 1.5e-14
    True
    """
    return TIE_UNITS * torch.finfo(dtype).eps


def score(queries: Queries, points: Queries) -> PerQuery:
    """Scores ``<queries[p], points[p]>`` of paired rows, shape (pairs,), summed in the order of the coordinates.

    Products and sums are separate, rounded operations in a fixed order: two calls on the same pair agree to the last
    bit, whatever else is in the batch. A matrix product does not guarantee that.
    """
    if kernels.usable(queries.device) and queries.dtype == torch.float64 and not queries.requires_grad:
        return kernels.pair_scores(queries, points)
    rows = max(1, _IN_CACHE // queries.shape[1])
    if queries.shape[0] > rows and queries.device.type == "cpu":
        pairs = zip(torch.split(queries, rows), torch.split(points, rows), strict=True)
        return torch.cat([score(*pair) for pair in pairs])
    total = queries[:, 0] * points[:, 0]
    for k in range(1, queries.shape[1]):
        total = total + queries[:, k] * points[:, k]
    return total


def apply(A: Matrix, tokens: Tokens) -> Projected:
    """Queries ``A z_i``, shape (tokens, p), each computed in the order of the coordinates (see :func:`score`)."""
    if A.shape[0] == A.shape[1] and bool((torch.diag(A.diagonal()) == A).all()):
        return tokens * A.diagonal()  # adding products with zero changes nothing
    parts = []
    for some in torch.split(tokens, max(1, _at_once(tokens.device) // A.shape[0])):
        total = A[:, :1] * some[:, 0]
        for k in range(1, A.shape[1]):
            total = total + A[:, k : k + 1] * some[:, k]
        parts.append(total.T)
    return torch.cat(parts)


def length(vectors: Queries) -> PerQuery:
    """Euclidean lengths, computed in the order of the coordinates (see :func:`score`)."""
    return score(vectors, vectors).sqrt()


def slack(queries: Queries, points: Tokens, tolerance: float) -> PerQuery:
    """Largest distance below the largest score at which a score still ties, shape (queries,)."""
    return tolerance * length(queries) * length(points).max()


@dataclass(frozen=True)
class Choice:
    """The sets :math:`C_i`: for each query, the points of the largest score.

    Most queries have a single point of largest score, stored in ``first``. The others are stored in compressed rows:
    the members of the t-th tied query ``tied[t]`` are ``members[offsets[t]:offsets[t + 1]]``, ascending, at least two.
    A query that is zero gives all points the same score; it is marked in ``everyone`` instead of being listed.
    """

    first: Indices
    """Lowest index of C_i, shape (queries,)."""
    best: PerQuery
    """Largest score of each query, as computed by :func:`score`, shape (queries,)."""
    everyone: torch.Tensor
    """True where the query is zero, so that C_i contains every point; shape (queries,)."""
    tied: Indices
    """Queries with two or more members of C_i (zero queries left out), ascending, shape (tied,)."""
    offsets: Indices
    """Start of each tied query in ``members``, shape (tied + 1,)."""
    members: Indices
    """Members of the sets of all tied queries, one set after the other."""

    @classmethod
    def of(cls, selected: torch.Tensor) -> Choice:
        """Choice from one index per query, or from a matrix of booleans.

        Parameters
        ----------
        selected
            Index of the point that each query attends to, shape (queries,), or True where a query attends to a point,
            shape (queries, points), at least once per row.

        Returns
        -------
        Choice
            The sets; the largest scores are not known and are NaN.

        Examples
        --------
        >>> Choice.of(torch.tensor([[True, True], [False, True]]))[0]
        tensor([0, 1])
        """
        if selected.dtype == torch.bool and selected.ndim == 2 and bool(selected.any(dim=1).all()):
            sizes = selected.sum(dim=1)
            first = selected.to(torch.int8).argmax(dim=1)
            tied = torch.nonzero(sizes > 1)[:, 0]
            members = torch.nonzero(selected[tied])[:, 1]
        elif selected.dtype in (torch.int32, torch.int64) and selected.ndim == 1:
            first, tied, sizes = selected.to(torch.int64), selected.new_zeros(0, dtype=torch.int64), selected
            members = tied
        else:
            raise InputError(
                "selected",
                f"{selected.dtype}, shape {tuple(selected.shape)}",
                "must be one index per query, or booleans of shape (queries, points) with one True per row",
                "pass the result of argmax, or of scores == largest",
            )
        offsets = torch.zeros(len(tied) + 1, dtype=torch.int64, device=selected.device)
        offsets[1:] = sizes[tied].cumsum(0)
        nothing = torch.zeros(len(first), dtype=torch.bool, device=selected.device)
        return cls(first, torch.full_like(first, torch.nan, dtype=torch.float64), nothing, tied, offsets, members)

    def __len__(self) -> int:
        return int(self.first.shape[0])

    def __getitem__(self, query: int) -> Indices:
        """Members of C_i for one query; raises LookupError for a zero query, which attends to every point."""
        if bool(self.everyone[query]):
            raise LookupError(f"query {query} is zero and attends to every token")
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
        """Tied query of each entry of ``members``."""
        return torch.repeat_interleave(self.tied, self.sizes)

    def among(self, queries: Indices) -> Choice:
        """Sets of some of the queries.

        Parameters
        ----------
        queries
            Indices of the queries, ascending.

        Returns
        -------
        Choice
            The sets of these queries, numbered in their order.
        """
        kept = torch.isin(self.tied, queries)
        sizes = self.sizes
        offsets = torch.zeros(int(kept.sum()) + 1, dtype=torch.int64, device=self.first.device)
        offsets[1:] = sizes[kept].cumsum(0)
        return Choice(
            first=self.first[queries],
            best=self.best[queries],
            everyone=self.everyone[queries],
            tied=torch.searchsorted(queries, self.tied[kept]),
            offsets=offsets,
            members=self.members[torch.repeat_interleave(kept, sizes)],
        )


# This many members take 3.2 GB as pairs of int64; inputs that exceed it consist almost entirely of ties.
_MOST_MEMBERS = 200_000_000


def listed_choice(
    first: Indices, best: PerQuery, everyone: torch.Tensor, rows: Indices, members: Indices, points: int
) -> Choice:
    """Choice among so many points where ``members[p]`` belongs to the tied query ``rows[p]``, in any order.

    ``first`` is changed: it need not be the lowest index for tied queries.
    """
    order = torch.argsort(rows * points + members)
    rows, members = rows[order], members[order]
    tied, sizes = torch.unique_consecutive(rows, return_counts=True)
    offsets = torch.zeros(len(tied) + 1, dtype=torch.int64, device=rows.device)
    offsets[1:] = sizes.cumsum(0)
    first[tied] = members[offsets[:-1]]
    return Choice(first, best, everyone, tied, offsets, members)


class AbstractBallot(ABC):
    """Receiver of the candidates that a search method proposes."""

    longest: float
    """Length of the longest point."""

    @abstractmethod
    def settle(self, only: Indices) -> None:
        """Set one candidate per query; queries with several candidates are passed to :meth:`decide` afterwards."""

    @abstractmethod
    def decide(self, rows: Indices, columns: Indices) -> None:
        """Decide the queries in ``rows``; their candidates are the pairs ``(rows[p], columns[p])``.

        All the candidates of a query come in the same call, each once.
        """


class Ballot(AbstractBallot):
    """Selection of the largest scores among the candidates that a search method proposes.

    Every search method ends here. The result does not depend on the candidates as long as those of a non-zero query
    include every point whose score is within the tolerance of its largest; further candidates are discarded.
    """

    def __init__(self, queries: Queries, points: Tokens, tolerance: float) -> None:
        count, device = queries.shape[0], queries.device
        self._queries, self._points, self._tolerance = queries, points, tolerance
        self.longest = float(length(points).max())
        self._first = torch.zeros(count, dtype=torch.int64, device=device)
        self._best = torch.zeros(count, dtype=queries.dtype, device=device)
        self._tied: list[tuple[Indices, Indices]] = []
        self._listed = 0

    def settle(self, only: Indices) -> None:
        self._first = only
        self._best = score_of_pairs(self._queries, self._points, None, only)

    def decide(self, rows: Indices, columns: Indices) -> None:
        if len(rows) == 0:
            return
        values = score_of_pairs(self._queries, self._points, rows, columns)
        self._best[rows] = -torch.inf
        self._best.scatter_reduce_(0, rows, values, reduce="amax")
        wins = values >= self._best[rows] - self._slack(rows)
        rows, columns = rows[wins], columns[wins]
        if bool((rows[1:] < rows[:-1]).any()):
            order = torch.argsort(rows, stable=True)
            rows, columns = rows[order], columns[order]
        distinct, sizes = torch.unique_consecutive(rows, return_counts=True)
        if len(distinct) == len(rows):
            self._first[rows] = columns
            return
        several = torch.repeat_interleave(sizes > 1, sizes)
        self._first[rows[~several]] = columns[~several]
        self._keep(rows[several], columns[several])

    def record(self, rows: Indices, first: Indices, best: PerQuery, tied: Indices, members: Indices) -> None:
        """Store results computed elsewhere by the same scores: ``members[p]`` belongs to the query ``tied[p]``."""
        self._first[rows], self._best[rows] = first, best
        if len(tied):
            self._keep(tied, members)

    def choice(self) -> Choice:
        """Sets of all queries; a zero query attends to every point, whatever its candidates."""
        everyone = zero_rows(self._queries)
        rows = torch.cat([r for r, _ in self._tied]) if self._tied else self._first[:0]
        members = torch.cat([c for _, c in self._tied]) if self._tied else self._first[:0]
        if bool(everyone.any()):
            self._first[everyone], self._best[everyone] = 0, 0.0
            rows, members = rows[~everyone[rows]], members[~everyone[rows]]
        return listed_choice(self._first, self._best, everyone, rows, members, self._points.shape[0])

    def _slack(self, rows: Indices) -> Values:
        # The same operations as in ``slack``, for some of the queries.
        return self._tolerance * score_of_pairs(self._queries, self._queries, rows, rows).sqrt() * self.longest

    def _keep(self, rows: Indices, columns: Indices) -> None:
        self._listed += len(rows)
        require_fewer_ties(self._listed)
        self._tied.append((rows, columns))


def require_fewer_ties(pairs: int) -> None:
    """Raise an InputError where so many pairs of a query and a member are too many to be listed."""
    if pairs > _MOST_MEMBERS:
        raise InputError(
            "tokens",
            f"more than {_MOST_MEMBERS} tied pairs",
            "must not tie so often that the ties do not fit in memory",
            "merge tokens that coincide into one token with a weight, or lower the tolerance",
        )


def _at_once(device: torch.device) -> int:
    return _IN_CACHE if device.type == "cpu" else _ON_DEVICE


def zero_rows(queries: Queries) -> torch.Tensor:
    """True where every coordinate is zero."""
    if queries.device.type != "cpu":
        return ~queries.any(dim=1)
    zero = queries[:, 0] == 0
    for k in range(1, queries.shape[1]):
        if not bool(zero.any()):
            break
        zero &= queries[:, k] == 0
    return zero


def score_of_pairs(queries: Points, points: Points, rows: Indices | None, columns: Indices) -> Values:
    """:func:`score` of the pairs ``(rows[p], columns[p])``, without a large copy; None: all queries."""
    parts = []
    size = max(1, _at_once(queries.device) // queries.shape[1])
    for start in range(0, len(columns), size):
        part = slice(start, start + size)
        left = queries[part] if rows is None else queries[rows[part]]
        parts.append(score(left, points[columns[part]]))
    return torch.cat(parts) if parts else queries[:0, 0]
