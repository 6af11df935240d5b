"""Documents as flat arrays on a device: batches, and hardmax layers on them with gradients.

The same model as ``hardmax_forward``, without synchronisation between host and device: all layers run, and a word that
follows a leader keeps following it, so the number of undecided words is never needed on the host.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from scipy import sparse

from ...attention.kernels import usable
from ...attention.search import attended
from .score_matrix_gradient import factor_of, with_gradient_in

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
    from ...attention.kernels.segments import best_in_segment

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


@dataclass(frozen=True)
class DeviceRows:
    """Documents one after another on a device; how many words each has is known off it too."""

    starts: torch.Tensor
    columns: torch.Tensor
    damped: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor
    sizes: np.ndarray

    @staticmethod
    def of(
        table: sparse.csr_matrix, labels: np.ndarray, weights: np.ndarray, device: torch.device, dtype: torch.dtype
    ) -> DeviceRows:
        """The documents of a table that holds what counts weigh, with the numbers of their classes."""
        starts = table.indptr.astype(np.int64)
        return DeviceRows(
            torch.from_numpy(starts).to(device),
            torch.from_numpy(table.indices.astype(np.int32, copy=False)).to(device),
            torch.from_numpy(table.data).to(device, dtype),
            torch.from_numpy(labels).to(device),
            torch.from_numpy(weights).to(device, dtype),
            np.diff(starts),
        )

    def pile(self, first: int, stop: int) -> Pile:
        """The documents from one to another, as they lie."""
        own = slice(*self.starts[[first, stop]].tolist())
        starts = (self.starts[first : stop + 1] - own.start).int()
        sizes = torch.from_numpy(self.sizes[first:stop]).to(self.starts.device)
        document = torch.repeat_interleave(
            torch.arange(stop - first, device=sizes.device), sizes, output_size=own.stop - own.start
        )
        return Pile(
            self.columns[own].long(), self.damped[own], document, starts[document], starts[document + 1], stop - first
        )


@dataclass(frozen=True)
class Laid:
    """The documents of several steps, a row for each, filled up to the same number of words and of documents."""

    columns: torch.Tensor
    damped: torch.Tensor
    document: torch.Tensor
    starts: torch.Tensor
    """Where each document of a step begins; the last two entries are where its words end."""
    labels: torch.Tensor
    weights: torch.Tensor
    """0 for documents that are none."""
    documents: torch.Tensor
    """How many documents a step really has."""

    def copy_(self, other: Laid) -> None:
        """Take over everything that another of the same shape holds."""
        for field in fields(self):
            getattr(self, field.name).copy_(getattr(other, field.name))

    def pile(self, now: torch.Tensor) -> Pile:
        """The words of the step of this number, a tensor of one entry."""
        document, starts = self.document.index_select(0, now)[0], self.starts.index_select(0, now)[0]
        return Pile(
            self.columns.index_select(0, now)[0],
            self.damped.index_select(0, now)[0],
            document,
            starts.index_select(0, document),
            starts.index_select(0, document + 1),
            self.labels.shape[1],
        )


def laid(
    rows: DeviceRows,
    order: np.ndarray,
    size: int,
    draws: np.ndarray | None = None,
    rates: torch.Tensor | None = None,
    *,
    steps: int,
    multiple: int = 1,
) -> Laid:
    """The documents ``order``, ``size`` to a step, for at most so many ``steps``.

    With ``draws``, a number for each of their words, only words stay whose number is at least the rate of their
    document. The number of words is rounded up to a ``multiple``, so that few shapes occur. Waits for the device twice.
    """
    device = rows.starts.device
    chosen = torch.from_numpy(order).to(device)
    sizes = rows.starts[chosen + 1] - rows.starts[chosen]
    total = int(rows.sizes[order].sum())
    number = torch.repeat_interleave(torch.arange(len(order), device=device), sizes, output_size=total)
    entry = torch.arange(total, device=device) + (rows.starts[chosen] - (torch.cumsum(sizes, dim=0) - sizes))[number]
    if draws is not None:
        assert rates is not None  # noqa: S101 (there is one for every draw)
        kept = (torch.from_numpy(draws).to(device) >= rates[chosen][number]).nonzero()[:, 0]
        number, entry = number[kept], entry[kept]
    # Where each document begins among all words that stay; documents that are none have no words.
    border = torch.searchsorted(number, torch.arange(steps * size + 1, device=device))
    step_starts, step_stops = border[:-1:size], border[size::size]
    width = int((step_stops - step_starts).max())
    width = max(-(-width // multiple) * multiple, 1)
    words = rows.columns[entry].long()
    # Places without a word repeat the last word of their step: it moves anyway, and they add nothing to its gradient.
    last = words[(step_stops - 1).clamp_min(0)] if len(words) else border.new_zeros(steps)
    columns = last[:, None].repeat(1, width)
    damped = rows.damped.new_zeros(steps, width)
    document = border.new_full((steps, width), size)
    place = number // size * width + torch.arange(len(number), device=device) - step_starts[number // size]
    columns.view(-1)[place] = words
    damped.view(-1)[place] = rows.damped[entry]
    document.view(-1)[place] = number % size
    starts = (border[:-1].view(steps, size) - step_starts[:, None]).int()
    ends = (step_stops - step_starts).int()[:, None]
    labels, weights = rows.labels.new_zeros(steps * size), rows.weights.new_zeros(steps * size)
    labels[: len(order)], weights[: len(order)] = rows.labels[chosen], rows.weights[chosen]
    real = np.clip(len(order) - size * np.arange(steps), 0, size)
    return Laid(
        columns,
        damped,
        document,
        torch.cat([starts, ends, ends], dim=1),
        labels.view(steps, size),
        weights.view(steps, size),
        torch.from_numpy(real).to(device),
    )
