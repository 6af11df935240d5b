"""Hardmax layers and logits of flat batches on a device, with gradients and without synchronisation.

The model is that of ``network``. All layers are computed, and a word that attends to a leader keeps that choice, so
that the number of undecided words is never needed on the host.
"""

from __future__ import annotations

import torch

from ...attention.kernels import usable
from ...attention.search import attended
from .device_batches import FlatBatch
from .network import TINY, Network, mass_of_position
from .score_matrix_gradient import factor_of, pair_surrogate

# Above this number of distinct words a document is searched by the methods for large systems, which never store the
# n x n scores.
_LARGE = 3000
# Scores computed at once without a kernel: 64 MB in double precision, several times that with the indices.
_PAIRS_AT_ONCE = 2**23
# Tile of the kernel: queries per program, and keys per iteration.
_ROWS, _COLUMNS = 32, 64


def logits_and_follows(
    network: Network, documents: FlatBatch, start: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of each document, shape (documents, outputs), and the word attended to at the end, shape (words,).

    ``start`` holds the initial positions of the words; logits are differentiable in them and in the parameters.
    """
    alpha = network.alpha
    factor = None if network.raw_factor is None else factor_of(network.raw_factor)
    final, follows = start, None
    for _ in range(network.depth):
        with torch.no_grad():
            follows = attended_words(final if factor is None else final @ factor, documents, follows)
        final = torch.lerp(final, final.index_select(0, follows), alpha / (1 + alpha))
    assert follows is not None  # noqa: S101 (the depth is at least one)
    if factor is not None and factor.requires_grad:
        final = final + pair_surrogate(factor, start, *_pairs_with_leaders(documents, follows))
    mass = documents.term_weights
    if network.norm_masses:
        mass = mass * mass_of_position(start, network.mass_power)
    size = documents.size
    total = mass.new_full((size + 1,), network.resting_mass).index_add(0, documents.document, mass)
    moment = final.new_zeros(size + 1, final.shape[1]).index_add(0, documents.document, mass[:, None] * final)
    pooled = (moment / total.clamp_min(TINY)[:, None])[:size]
    return network.bias + pooled @ network.decoder.T, follows


def attended_words(positions: torch.Tensor, documents: FlatBatch, previous: torch.Tensor | None = None) -> torch.Tensor:
    """Index of the word that each word attends to, the first of equals, shape (words,).

    Words that attended to a leader at the ``previous`` layer keep that choice; without it all words are searched.
    """
    queries, points = positions, positions
    if positions.shape[1] == 1:  # only the sign matters, and zero counts as positive
        queries = torch.where(positions >= 0, 1.0, -1.0).to(positions.dtype)
    if usable(positions.device):
        return by_kernel(queries, points, documents, previous)
    return _by_pairs(queries, points, documents, previous)


def by_kernel(
    queries: torch.Tensor, points: torch.Tensor, documents: FlatBatch, previous: torch.Tensor | None = None
) -> torch.Tensor:
    """Index of the word that each word attends to, by one kernel launch and without synchronisation."""
    from ...attention.kernels.search import best_in_segment

    choice = torch.empty(len(points), dtype=torch.int64, device=points.device)
    if len(points):
        best_in_segment[(-(-len(points) // _ROWS),)](
            queries.contiguous(),
            points.contiguous(),
            documents.begin,
            documents.end,
            choice if previous is None else previous,
            choice,
            *points.shape,
            FIRST=previous is None,
            ROWS=_ROWS,
            COLUMNS=_COLUMNS,
        )
    return choice


def _by_pairs(
    queries: torch.Tensor, points: torch.Tensor, documents: FlatBatch, previous: torch.Tensor | None
) -> torch.Tensor:
    """Index of the word that each word attends to, by plain torch on all pairs, some millions at a time."""
    places = torch.arange(len(points), device=points.device)
    choice = places if previous is None else previous
    undecided = documents.begin < documents.end if previous is None else previous[previous] != previous
    sizes = documents.end - documents.begin
    for first in sorted(set(documents.begin[undecided & (sizes > _LARGE)].tolist())):
        own = slice(first, int(documents.end[first]))
        words = undecided[own].nonzero()[:, 0] + first
        found = attended(queries[words].double(), points[own].double(), tolerance=0.0).first
        choice = choice.index_copy(0, words, found + first)
    some = (undecided & (sizes <= _LARGE)).nonzero()[:, 0]
    filled = torch.cumsum(sizes[some], dim=0) // _PAIRS_AT_ONCE
    for words in torch.split(some, torch.unique_consecutive(filled, return_counts=True)[1].tolist()):
        choice = choice.index_copy(0, words, _first_of_best(queries, points, documents, words))
    return choice


def _first_of_best(
    queries: torch.Tensor, points: torch.Tensor, documents: FlatBatch, words: torch.Tensor
) -> torch.Tensor:
    """Index of the word that each of ``words`` attends to, with all their scores in memory."""
    sizes = (documents.end - documents.begin)[words].long()
    number = torch.repeat_interleave(torch.arange(len(words), device=words.device), sizes)
    within = torch.arange(len(number), device=words.device) - (torch.cumsum(sizes, dim=0) - sizes)[number]
    place = documents.begin[words][number] + within
    scores = (queries[words[number]] * points[place]).sum(dim=1)
    best = scores.new_full((len(words),), -torch.inf).scatter_reduce(0, number, scores, "amax")
    place = torch.where(scores == best[number], place, len(points))
    return torch.full_like(words, len(points)).scatter_reduce(0, number, place, "amin")


def _pairs_with_leaders(documents: FlatBatch, follows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of a word and a leader of its document, as two arrays of indices."""
    leads = follows == torch.arange(len(follows), device=follows.device)
    leaders = (leads & (documents.begin < documents.end)).nonzero()[:, 0]
    first, last = (torch.searchsorted(leaders, border.long()) for border in (documents.begin, documents.end))
    number = last - first
    word = torch.repeat_interleave(torch.arange(len(follows), device=follows.device), number)
    within = torch.arange(len(word), device=word.device) - (torch.cumsum(number, dim=0) - number)[word]
    return word, leaders[first[word] + within]
