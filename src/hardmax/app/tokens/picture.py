"""The results for the tokens on the page as plain arrays: positions, leaders, hull and trails."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

import hardmax as hm

from ...dynamics.equilibrium import equilibrium_and_layers
from ...progress import Progress
from .state import DEPTH, TokensState

MOST_SHOWN = 4_000
"""Tokens drawn at most, so that an update stays a small message."""
MOST_TRAILS = 300
"""Tokens with a trail; more hide the tokens."""
TRAIL_LAYERS = 12
"""Layers of a trail; later moves are too short to be seen."""
MOST_SOFT = 2_000
"""Tokens under softmax, which compares all pairs in every layer."""


class ColourBook:
    """Ranks of leaders (their colours) that stay the same while a token leads, so that colours are stable in a drag."""

    def __init__(self) -> None:
        self._rank: dict[int, int] = {}

    def ranks(self, leaders: np.ndarray, like: ColourBook | None = None) -> dict[int, int]:
        """Rank of each leader: that of ``like``, its previous one, or the lowest free one."""
        known = self._rank if like is None else like._rank
        before = {index: known[index] for index in leaders.tolist() if index in known}
        taken = set(before.values())
        free = (rank for rank in range(len(leaders) + len(taken) + 1) if rank not in taken)
        self._rank = {index: before[index] if index in before else next(free) for index in leaders.tolist()}
        return self._rank


@dataclass(frozen=True, eq=False)
class Computed:
    """Results of the library for a state, at all layers that can be drawn."""

    state: TokensState
    limit: hm.Equilibrium
    """Infinite depth under hardmax; for softmax, that of its limit as beta grows."""
    layers: np.ndarray
    """The stored layers, ascending."""
    tokens: np.ndarray
    """Tokens at the stored layers, shape (layer, token, coordinate)."""

    @classmethod
    def of(cls, state: TokensState, progress: Progress = False) -> Computed:
        """Run the tokens of a state; hardmax is run once for both the layers and the limit."""
        tokens = state.tokens
        soft = state.settings.attention == "softmax"
        if soft and len(tokens) > MOST_SOFT:
            problem = f"must be at most {MOST_SOFT:,} for softmax, whose every layer compares all pairs"
            raise hm.InputError("tokens", f"{len(tokens):,}", problem, "use hardmax, or fewer tokens")
        layers = stored_layers(state)
        limit, states = equilibrium_and_layers(
            tokens, state.hardmax, [0] if soft else layers, max_layers=1_000, seconds=20.0, progress=progress
        )
        if soft:
            states = np.asarray(hm.simulate(tokens, state.layer, depth=DEPTH, keep=layers, progress=progress).tokens)
        return cls(state, limit, np.array(layers), states)

    def answers(self, state: TokensState) -> bool:
        """Whether another state differs only in what is shown of this."""
        old, new = self.state.settings, state.settings
        shown = ("layer", "limit", "selected", "trails", "compare", "angle2", "a2", "b2")
        same = state.edited is self.state.edited and all(
            getattr(old, name) == getattr(new, name) for name in old.__dataclass_fields__ if name not in shown
        )
        return same and (new.limit == 1 or new.layer in self.layers)


def stored_layers(state: TokensState) -> list[int]:
    """The layers to store: all of the player, or of many tokens the first and the one that is shown."""
    return list(range(DEPTH + 1)) if len(state.tokens) <= MOST_SHOWN else [0, max(1, state.settings.layer)]


@dataclass(frozen=True, eq=False)
class Picture:
    """Tokens at one depth, ready to draw."""

    positions: np.ndarray
    """Positions of the tokens shown, shape (shown, coordinate)."""
    index: np.ndarray
    """Indices of the tokens shown: all, or an even selection and all leaders."""
    count: int
    """Number of tokens, shown or not."""
    leads: np.ndarray
    rank: np.ndarray
    """Rank of the leader at which each token ends, -1 for none."""
    second: np.ndarray
    """Rank of a second leader for tokens tied for ever, otherwise -1."""
    hull: np.ndarray
    """The corners of the leaders' polygon in order (two coordinates), or of the polytope."""
    faces: np.ndarray
    """Triangles of the polytope for three coordinates, as rows of ``hull``."""
    frames: np.ndarray
    """Positions at all moments, shape (moment, shown, coordinate): the layers, and under hardmax the limit at last."""
    moment: int
    """The moment that is shown, an index of ``frames``."""
    playable: bool
    """Whether ``frames`` holds all layers; of many tokens it holds the present one alone."""
    ends: bool
    """Whether the last moment is infinite depth."""
    emerged: np.ndarray
    """Layer from which on each token shown leads, -1 for never."""
    trail_of: np.ndarray
    """Indices into the tokens shown of those with a trail."""
    half_space: HalfSpace | None
    badge: Badge
    words: tuple[str, ...] = field(default_factory=tuple)

    @property
    def thinned(self) -> bool:
        """Whether not all tokens are shown."""
        return len(self.index) < self.count

    def at(self, moment: float) -> np.ndarray:
        """Positions at any time of the timeline, shape (shown, coordinate), as static/stage.js draws them."""
        k = min(int(moment), len(self.frames) - 1)
        share = moment - k
        if share <= 0 or k + 1 >= len(self.frames):
            return np.asarray(self.frames[k])
        eased = share * share * (3 - 2 * share)
        now: np.ndarray = (1 - eased) * self.frames[k] + eased * self.frames[k + 1]
        return now

    def trails(self, moment: float, moving: bool = False) -> np.ndarray:
        """Paths at a time, shape (trail, moment, coordinate), as static/stage.js draws them.

        They lead up to the moment; at rest at layer 0 they lead ahead.
        """
        ahead = moment == 0 and not moving
        upto = min(TRAIL_LAYERS, len(self.frames) - 1, TRAIL_LAYERS if ahead else int(moment))
        paths = self.frames[: upto + 1, self.trail_of]
        if not ahead:
            paths = np.concatenate([paths, self.at(moment)[None, self.trail_of]])
        return paths.transpose(1, 0, 2)

    def leads_at(self, moment: float) -> np.ndarray:
        """Which of the tokens shown lead at a time, shape (shown,)."""
        last = self.ends and moment >= len(self.frames) - 1
        leads: np.ndarray = (self.emerged >= 0) & (last | (self.emerged <= int(moment)))
        return leads


@dataclass(frozen=True)
class Badge:
    """What is known about Theorem 1.1 here."""

    holds: bool
    words: str


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """The points y that can attract a token z: those with <A z, y> at least <A z, z>."""

    token: int
    here: np.ndarray
    normal: np.ndarray
    favourites: np.ndarray
    """Positions of the tokens that it listens to."""
    names: np.ndarray


def paint(computed: Computed, state: TokensState, book: ColourBook, like: ColourBook | None = None) -> Picture:
    """The picture of the results at the depth of the state, in the colours of ``book`` (and of ``like`` before it)."""
    limit, s = computed.limit, state.settings
    count = len(limit.positions)
    leaders = np.asarray(limit.leaders)
    ranks = book.ranks(leaders, like)
    table = np.full(count + 1, -1)  # the last entry, at index -1, is for tokens without a leader
    table[leaders] = [ranks[index] for index in leaders.tolist()]
    follows = np.asarray(limit.follows)
    rank = table[follows]
    second = np.full(count, -1)
    second[limit.ties.tokens] = table[limit.ties.members[limit.ties.offsets[1:] - 1]]
    now = np.asarray(limit.positions) if s.limit else computed.tokens[np.searchsorted(computed.layers, s.layer)]
    emerged = np.full(count, -1)
    emerged[leaders] = np.asarray(limit.emerged_at)
    leads = (emerged >= 0) & ((emerged <= s.layer) | bool(s.limit))
    shown = _some(count, leaders)
    soft, playable = s.attention == "softmax", count <= MOST_SHOWN
    frames = computed.tokens if playable else now[None, shown]  # all tokens are shown where they are few enough to play
    if playable and not soft:
        frames = np.concatenate([frames, np.asarray(limit.positions)[None]])
    trail_of = np.unique(np.linspace(0, count - 1, min(count, MOST_TRAILS)).astype(np.int64))
    hull, faces = _hull(limit)
    return Picture(
        positions=now[shown],
        index=shown,
        count=count,
        leads=leads[shown],
        rank=rank[shown],
        second=second[shown],
        hull=hull,
        faces=faces,
        frames=frames,
        moment=(len(frames) - 1 if s.limit else s.layer) if playable else 0,
        playable=playable,
        ends=playable and not soft,
        emerged=emerged[shown],
        trail_of=trail_of if playable and s.trails else trail_of[:0],
        half_space=_half_space(state, now) if 0 <= s.selected < count and now.shape[1] == 2 else None,
        badge=_badge(computed, state),
        words=_words(computed, state, len(shown), len(trail_of)),
    )


def _some(count: int, leaders: np.ndarray) -> np.ndarray:
    if count <= MOST_SHOWN:
        return np.arange(count)
    return np.unique(np.concatenate([np.linspace(0, count - 1, MOST_SHOWN).astype(np.int64), leaders]))


def _badge(computed: Computed, state: TokensState) -> Badge:
    """A line about Theorem 1.1, which says nothing about softmax whatever A and the tokens are."""
    if state.settings.attention == "softmax":
        return Badge(False, "✗ Theorem 1.1: not for softmax")
    found = computed.limit.assumptions
    if found.hold:
        return Badge(True, "✓ Theorem 1.1 applies")
    reasons = {
        "symmetric": "A is not symmetric",
        "positive_definite": "A is not positive definite",
        "nonzero": "a token is zero",
        "distinct": "tokens are repeated",
    }
    broken = [words for name, words in reasons.items() if not getattr(found, name)]
    broken += ["the mask is causal"] if state.settings.sight == "causal" else []
    broken += ["there are several heads"] if state.settings.heads > 1 else []
    return Badge(False, "\n    ".join(["✗ Theorem 1.1 does not apply:", *broken]))


def _hull(limit: hm.Equilibrium) -> tuple[np.ndarray, np.ndarray]:
    nothing = np.zeros((0, 3), dtype=np.int64)
    if len(limit.leaders) == 0:
        return np.zeros((0, limit.positions.shape[1])), nothing
    polytope = limit.polytope
    if polytope.dimension <= 2:
        return polytope.vertices[polytope.outline], nothing
    return polytope.vertices, polytope.faces


def _half_space(state: TokensState, now: np.ndarray) -> HalfSpace:
    token = state.settings.selected
    chosen = state.hardmax.choose_heads(torch.from_numpy(np.ascontiguousarray(now)), slice(token, token + 1))[0]
    names = np.arange(len(now)) if bool(chosen.everyone[0]) else chosen[0].numpy()
    A = np.eye(2) if state.matrix is None else state.matrix
    return HalfSpace(token, now[token], A @ now[token], now[names[:50]], names)


def _words(computed: Computed, state: TokensState, shown: int, trails: int) -> tuple[str, ...]:
    limit, count = computed.limit, len(computed.limit.positions)
    outcome = limit.outcome
    soft = state.settings.attention == "softmax"
    words = [
        outcome.sentence.capitalize() + (f" ({outcome.remedy})." if outcome.remedy else "."),
        f"{limit.assumptions}.",
    ]
    if soft:
        words = [
            "Softmax has no leaders: stars, colours and hull are those of hardmax, its limit for large β.",
            "Theorem 1.1 is about hardmax and says nothing about softmax.",
        ]
    if len(limit.leaders):
        words.insert(1, f"The leaders span {limit.polytope}.")
    if state.settings.sight == "causal":
        words.append("Tokens are numbered; each sees itself and the tokens before it, so token 0 never moves.")
    if state.settings.heads > 1:
        words.append("The half-plane is that of the first head; a token moves by the mean over the heads.")
    if shown < count:
        words.append(f"{shown:,} of {count:,} tokens are drawn, every leader among them; all of them are computed.")
    elif state.settings.trails and trails < count:
        words.append(f"Trails are drawn for {trails} of {count:,} tokens.")
    return tuple(words)
