"""Leaders, followers, the layers from which they are known, and the reasons why a token has no known limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic

import numpy as np
import torch

from ..inputs import Kind
from ..shapes import ArrayT_co, Indices

_SHOWN = 5  # entries that fit on one line


@dataclass(frozen=True, eq=False)
class Ties(Mapping[int, np.ndarray]):
    """Mapping from each token that follows several leaders for ever to these leaders, ascending.

    Stored in compressed rows: the leaders of ``tokens[t]`` are ``members[offsets[t]:offsets[t + 1]]``.
    """

    tokens: np.ndarray
    """Tied tokens, ascending, shape (ties,)."""
    offsets: np.ndarray
    """Start of each token's leaders in ``members``, shape (ties + 1,)."""
    members: np.ndarray
    """Leaders of all tied tokens, one token after the other."""

    def __getitem__(self, token: int) -> np.ndarray:
        t = int(np.searchsorted(self.tokens, token))
        if t == len(self.tokens) or self.tokens[t] != token:
            raise KeyError(token)
        return np.asarray(self.members[self.offsets[t] : self.offsets[t + 1]])

    def __iter__(self) -> Iterator[int]:
        return (int(token) for token in self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return len(self) == len(other) and all(
            token in other and np.array_equal(leaders, other[token]) for token, leaders in self.items()
        )

    __hash__ = None  # type: ignore[assignment]  # equal to a dict, which has none

    def __repr__(self) -> str:
        shown = ", ".join(f"{token}: {self[token].tolist()}" for token in self.tokens[:_SHOWN].tolist())
        more = f", … {len(self)} in all" if len(self) > _SHOWN else ""
        return f"Ties({{{shown}{more}}})"


@dataclass(frozen=True, eq=False)
class Leadership(Generic[ArrayT_co]):
    """Leaders and followers of a run.

    Repeated tokens are one point with their lowest index, as are tokens that are closer together than the tolerance of
    ties resolves.
    """

    leaders: ArrayT_co
    """Indices of the leaders, ascending, shape (leaders,): tokens that at some layer listen to themselves alone."""
    emerged_at: ArrayT_co
    """Layer at which each leader first listened to itself alone, shape (leaders,)."""
    follows: ArrayT_co
    """Leader of each token, shape (tokens,): itself for a leader, the lowest where several tie, -1 while undecided."""
    ties: Ties
    """All leaders of the tokens that follow several for ever."""
    decided_at: ArrayT_co
    """Layer from which the future of each token is known in closed form, shape (tokens,); -1 while undecided."""

    @property
    def undecided(self) -> int:
        """Number of tokens whose leader is not known yet."""
        return int((self.decided_at < 0).sum())


def leaders_of_groups(
    tokens: Sequence[int],
    sets: Mapping[int, Sequence[Sequence[int]]],
    follows: Indices,
    ties: Mapping[int, Sequence[int]],
) -> Iterator[tuple[int, list[list[int]], int | None]]:
    """Leaders of each token in each head, for tokens that were decided together and may listen to one another.

    The leaders of a token are known once those of all tokens that it listens to are. Tokens for which this never
    happens are a group without a leader, and the lowest member leads: it is the third entry of the triple of the first
    token of the group.
    """
    members = {k for i in tokens for some in sets[i] for k in some}
    known = {k: [int(follows[k]), *ties.get(k, ())] for k in members if follows[k] >= 0}
    waiting = list(tokens)
    while waiting:
        ready = [i for i in waiting if _is_ready(i, sets[i], known)]
        first = None
        if not ready:
            first = min(k for some in sets[waiting[0]] for k in some if k not in known)
            known[first] = [first]
            ready = [first]
        for i in ready:
            leaders = [sorted({leader for k in some for leader in known.get(k, ())}) for some in sets[i]]
            # The token that leads a group may listen to members alone that have no leader yet.
            lowest = i if i == first else min(leader for some in leaders for leader in some)
            named = [[i]] * len(leaders) if i == first else [some or [lowest] for some in leaders]
            known[i] = named[0]
            yield i, named, first
        waiting = [i for i in waiting if i not in ready]


def _is_ready(token: int, sets: Sequence[Sequence[int]], known: Mapping[int, Sequence[int]]) -> bool:
    """Whether the leaders of all other tokens that a token listens to are known, and it listens to some."""
    others = [k for some in sets for k in some if k != token]
    return bool(others) and all(k in known for k in others)


def give_back_leadership(
    kind: Kind,
    leaders: Indices,
    emerged_at: Indices,
    follows: Indices,
    decided_at: Indices,
    ties: dict[int, list[int]],
) -> Leadership:
    """Leadership with the caller's kind of array, from plain tensors."""
    tokens = np.array(sorted(ties), dtype=np.int64)
    sizes = [len(ties[int(t)]) for t in tokens]
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    members = np.array([m for t in tokens for m in sorted(ties[int(t)])], dtype=np.int64)
    order = torch.argsort(leaders)
    return Leadership(
        leaders=kind.give_back(leaders[order]),
        emerged_at=kind.give_back(emerged_at[order]),
        follows=kind.give_back(follows),
        ties=Ties(tokens, offsets, members),
        decided_at=kind.give_back(decided_at),
    )


class Undecided(IntEnum):
    """Reason why a token has no known limit; in arrays of reasons 0 stands for a decided token.

    The code of ``OUTSIDE_CONE`` is that of head 0; code ``OUTSIDE_CONE + h`` stands for head h.

    Examples
    --------
    >>> sentence_of(Undecided.TIED), sentence_of(Undecided.OUTSIDE_CONE + 2)
    ('tied with tokens at several positions', 'target outside the cone of head 2')
    """

    MOVING = 1
    """The token listens to a token that still moves."""
    TIED = 2
    """The token listens to several positions in one head, and the tie is not known to last."""
    NOT_LEADING_IN_SIGHT = 3
    """The token listens to a token at rest, for whose query another token in sight has a larger score."""
    OUTSIDE_CONE = 4
    """At its target the token would listen to other tokens in this head: it may switch for ever."""


_SENTENCES = {
    Undecided.MOVING: "listening to a token that still moves",
    Undecided.TIED: "tied with tokens at several positions",
    Undecided.NOT_LEADING_IN_SIGHT: "following a token that does not lead in its sight",
}


def sentence_of(code: int) -> str:
    """Sentence for the code of a reason."""
    if code >= Undecided.OUTSIDE_CONE:
        return f"target outside the cone of head {code - Undecided.OUTSIDE_CONE}"
    return _SENTENCES[Undecided(code)]


def counted_reasons(codes: Iterable[int]) -> dict[str, int]:
    """Number of tokens per reason, by sentence, in the order of the codes; decided tokens are left out.

    >>> counted_reasons([0, 2, 0, 2, 1])
    {'listening to a token that still moves': 1, 'tied with tokens at several positions': 2}
    """
    found, counts = np.unique(np.asarray(list(codes), dtype=np.int64), return_counts=True)
    return {sentence_of(int(code)): int(count) for code, count in zip(found, counts, strict=True) if code > 0}
