r"""Hardmax layers on documents that lie word after word on a device, with gradients: no padding, no masks.

The same model as :mod:`~hardmax.text.following`, written for a device that should never wait: all layers run, and a
word that follows a leader goes on following it, so nobody has to ask how many words are still undecided.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..attention.kernels import usable
from ..attention.search import attended
from .factors import factor_of
from .metric import with_gradient_in

_TINY = 1e-12
# A document of more distinct words is searched by the methods for large systems, which hold no n x n scores.
_LARGE = 3000
_PAIRS_AT_ONCE = 2**23
_ROWS, _COLUMNS = 32, 64


@dataclass(frozen=True)
class Pile:
    """Some documents, word after word: columns, what counts weigh, each word's document and where that has its words.

    Words of the document ``size`` are no words: they fill up the arrays, weigh nothing and end where they begin.
    """

    columns: torch.Tensor
    damped: torch.Tensor
    document: torch.Tensor
    begin: torch.Tensor
    end: torch.Tensor
    size: int


@dataclass(frozen=True)
class Shape:
    """What of a model is not learned."""

    least_alpha: float
    depth: int
    norm_masses: bool
    resting_mass: float


def logits_and_follows(
    parameters: dict[str, torch.Tensor], pile: Pile, start: torch.Tensor, shape: Shape
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (documents, outputs), and the place of the word that each word follows at the end.

    ``start`` are the words of the pile in the table; logits are differentiable in them and in the parameters.
    """
    alpha = shape.least_alpha + parameters["raw_alpha"].exp()
    raw = parameters.get("raw_factor")
    factor = None if raw is None else factor_of(raw)
    final, follows = start, None
    for _ in range(shape.depth):
        with torch.no_grad():
            follows = followed(final if factor is None else final @ factor, pile, follows)
        final = torch.lerp(final, final.index_select(0, follows), alpha / (1 + alpha))
    assert follows is not None  # noqa: S101 (there is at least one layer)
    if factor is not None and factor.requires_grad:
        final = final + with_gradient_in(factor, start, *_words_and_leaders(pile, follows))
    mass = pile.damped
    if shape.norm_masses:
        mass = mass * (start.square().sum(dim=1) + _TINY).sqrt()
    total = mass.new_full((pile.size + 1,), shape.resting_mass).index_add(0, pile.document, mass)
    moment = final.new_zeros(pile.size + 1, final.shape[1]).index_add(0, pile.document, mass[:, None] * final)
    pooled = (moment / total.clamp_min(_TINY)[:, None])[: pile.size]
    return parameters["bias"] + pooled @ parameters["decoder"].T, follows


def followed(positions: torch.Tensor, pile: Pile, before: torch.Tensor | None = None) -> torch.Tensor:
    """The place of the word that each word attends to, the first of equals.

    Words that followed a leader ``before`` do so again; all are asked when it is left out.
    """
    queries, points = positions, positions
    if positions.shape[1] == 1:  # only the side counts, and the origin belongs to the positive one
        queries = torch.where(positions >= 0, 1.0, -1.0).to(positions.dtype)
    if usable(positions.device):
        return by_kernel(queries, points, pile, before)
    return _by_pairs(queries, points, pile, before)


def by_kernel(
    queries: torch.Tensor, points: torch.Tensor, pile: Pile, before: torch.Tensor | None = None
) -> torch.Tensor:
    """In one launch, which never waits for the device."""
    from ..attention.kernels.segments import best_in_segment

    choice = torch.empty(len(points), dtype=torch.int64, device=points.device)
    if len(points):
        best_in_segment[(-(-len(points) // _ROWS),)](
            queries.contiguous(),
            points.contiguous(),
            pile.begin,
            pile.end,
            choice if before is None else before,
            choice,
            *points.shape,
            FIRST=before is None,
            ROWS=_ROWS,
            COLUMNS=_COLUMNS,
        )
    return choice


def _by_pairs(queries: torch.Tensor, points: torch.Tensor, pile: Pile, before: torch.Tensor | None) -> torch.Tensor:
    """By plain torch: all pairs of a word that asks and a word of its document, some millions at a time."""
    places = torch.arange(len(points), device=points.device)
    choice = places if before is None else before
    asking = pile.begin < pile.end if before is None else before[before] != before
    sizes = pile.end - pile.begin
    for first in sorted(set(pile.begin[asking & (sizes > _LARGE)].tolist())):
        own = slice(first, int(pile.end[first]))
        words = asking[own].nonzero()[:, 0] + first
        found = attended(queries[words].double(), points[own].double(), tolerance=0.0).first
        choice = choice.index_copy(0, words, found + first)
    some = (asking & (sizes <= _LARGE)).nonzero()[:, 0]
    filled = torch.cumsum(sizes[some], dim=0) // _PAIRS_AT_ONCE
    for words in torch.split(some, torch.unique_consecutive(filled, return_counts=True)[1].tolist()):
        choice = choice.index_copy(0, words, _first_of_best(queries, points, pile, words))
    return choice


def _first_of_best(queries: torch.Tensor, points: torch.Tensor, pile: Pile, words: torch.Tensor) -> torch.Tensor:
    sizes = (pile.end - pile.begin)[words].long()
    number = torch.repeat_interleave(torch.arange(len(words), device=words.device), sizes)
    within = torch.arange(len(number), device=words.device) - (torch.cumsum(sizes, dim=0) - sizes)[number]
    place = pile.begin[words][number] + within
    scores = (queries[words[number]] * points[place]).sum(dim=1)
    best = scores.new_full((len(words),), -torch.inf).scatter_reduce(0, number, scores, "amax")
    place = torch.where(scores == best[number], place, len(points))
    return torch.full_like(words, len(points)).scatter_reduce(0, number, place, "amin")


def _words_and_leaders(pile: Pile, follows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Every word with every leader of its document, as two arrays of places."""
    leads = follows == torch.arange(len(follows), device=follows.device)
    leaders = (leads & (pile.begin < pile.end)).nonzero()[:, 0]
    first, last = (torch.searchsorted(leaders, border.long()) for border in (pile.begin, pile.end))
    number = last - first
    word = torch.repeat_interleave(torch.arange(len(follows), device=follows.device), number)
    within = torch.arange(len(word), device=word.device) - (torch.cumsum(number, dim=0) - number)[word]
    return word, leaders[first[word] + within]
