r"""The Tokens page as data, and the Python code that reproduces it.

The score matrix is given by its ellipse :math:`\langle A z, z\rangle = 1`, which can be dragged: semi-axes a and b, the
first turned by an angle. A skew part can be added, with which Theorem 1.1 no longer applies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np

import hardmax as hm

from ...datasets.configurations import four_configurations
from ...datasets.random_tokens import LAWS
from ..page import choice, different, number, whole, written

CONFIGURATIONS = {one.name: one for one in four_configurations()}
STARTS = {
    "Example: all end with a leader": "cloud",
    "Example: some end on faces": "equals",
    "Example: a leader emerges late": "late-leader",
    "Example: ties that break": "broken-ties",
    "Random: Gaussian": "gaussian",
    "Symmetric, with ties: grid": "grid",
    "Symmetric: circle": "circle",
    "Random: eight clouds": "clusters",
    "Random: heavy tails": "heavy-tails",
    "Random: in the square": "uniform-cube",
}
"""Configurations and distributions to start from, by title."""
DEPTH = 20
"""The last layer of the player; the limit shows what comes after it."""
MOST_TOKENS = 100_000
"""Tokens computed at most; bounds the time and memory of one visit."""
MOST_IN_ADDRESS = 300
"""Moved tokens stored in an address of at most 7,000 characters."""
_FAR = 1e3
"""Moved tokens stay within this distance of zero, or twice as far as any token was."""
_DIGITS = 3
"""Decimals of moved tokens of size one to ten, less than a pixel."""
_FARTHEST = 1e12
"""Coordinates of tokens in an address."""
_LONGEST_TOKENS = 6_000
"""Characters of tokens in an address; the rest of its 7,000 is for the settings."""
COMPARISONS = {
    "Nothing": "none",
    "Softmax at a temperature": "softmax",
    "The causal mask": "causal",
    "Another matrix A": "matrix",
}
"""What a second plot shows, by title; seen from softmax or the causal mask, it is the plain case instead."""


@dataclass(frozen=True)
class Settings:
    """Values of the controls; an address stores those that differ from their defaults."""

    start: str = "cloud"
    n: int = 200
    seed: int = 0
    space: int = 0
    """1 for tokens with three coordinates."""
    attention: str = "hardmax"
    sight: str = "all"
    """``causal`` where each token sees itself and the tokens before it alone."""
    heads: int = 1
    """Number of heads; each turns the ellipse of A by the same angle against the one before."""
    alpha: float = 0.5
    beta: float = 5.0
    angle: float = 0.0
    """Of the first axis of the ellipse, in degrees."""
    a: float = 1.0
    b: float = 1.0
    c: float = 1.0
    """The third semi-axis, for three coordinates."""
    skew: float = 0.0
    layer: int = 0
    limit: int = 0
    """1 to show infinite depth instead of the layer."""
    selected: int = -1
    trails: int = 1
    compare: str = "none"
    """What the second plot differs in, among :data:`COMPARISONS`."""
    angle2: float = 30.0
    """Angle and semi-axes of the ellipse in the second plot."""
    a2: float = 2.0
    b2: float = 0.7

    def bounded(self) -> Settings:
        """These settings with values that fit together."""
        start = self.start if self.space == 0 or (self.start in LAWS and self.start != "circle") else "gaussian"
        limit = 0 if self.attention == "softmax" else self.limit
        return replace(self, start=start, limit=limit, selected=-1 if self.space else self.selected)


DEFAULTS = Settings()


@dataclass(frozen=True, eq=False)
class TokensState:
    """The settings, and the tokens if they were edited."""

    settings: Settings = field(default_factory=Settings)
    edited: np.ndarray | None = None

    @property
    def tokens(self) -> np.ndarray:
        """The tokens at layer 0, shape (token, coordinate)."""
        return self.made if self.edited is None else self.edited

    @property
    def made(self) -> np.ndarray:
        """The tokens that the settings describe, before any edit, shape (token, coordinate)."""
        s = self.settings
        if s.start in CONFIGURATIONS:
            return CONFIGURATIONS[s.start].tokens
        made = hm.make_tokens(s.start, s.n, self.dimension, random_state=s.seed)
        # Few enough to be stored in an address once one is moved: with the digits that an address stores.
        return made.round(_DIGITS) if s.n <= MOST_IN_ADDRESS else made

    @property
    def dimension(self) -> int:
        """Number of coordinates of a token."""
        return 3 if self.settings.space else 2

    @property
    def compared(self) -> TokensState | None:
        """The state of the second plot: the same tokens under another layer; None without one."""
        s = self.settings
        if s.compare == "softmax":
            other = replace(s, attention="softmax" if s.attention == "hardmax" else "hardmax")
        elif s.compare == "causal":
            other = replace(s, sight="causal" if s.sight == "all" else "all")
        elif s.compare == "matrix":
            other = replace(s, angle=s.angle2, a=s.a2, b=s.b2, c=1.0, skew=0.0)
        else:
            return None
        if s.limit and other.attention == "softmax":  # which is not computed at infinite depth
            other = replace(other, limit=0, layer=DEPTH)
        return TokensState(replace(other, compare="none"), self.edited)

    @property
    def name(self) -> str:
        """The layer in a few words, the heading of its plot."""
        s = self.settings
        words = "Hardmax" if s.attention == "hardmax" else f"Softmax, β = {s.beta:g}"
        words += ", causal" if s.sight == "causal" else ""
        return words + (f", {s.heads} heads" if s.heads > 1 else "")

    @property
    def matrix(self) -> np.ndarray | None:
        """The score matrix A, shape (d, d); None for the identity."""
        s = self.settings
        if (s.a, s.b, s.skew) == (1.0, 1.0, 0.0) and (not s.space or s.c == 1.0):
            return None
        turn = math.radians(s.angle)
        axes = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
        A = np.diag([1.0, 1.0, s.c**-2.0])
        A[:2, :2] = axes @ np.diag([s.a**-2.0, s.b**-2.0]) @ axes.T + s.skew * np.array([[0.0, -1.0], [1.0, 0.0]])
        return (A if s.space else A[:2, :2]).round(12)

    @property
    def head_matrices(self) -> list[np.ndarray] | None:
        """Score matrix of each head, shape (d, d); None for a single head."""
        s = self.settings
        if s.heads == 1:
            return None
        turned = [replace(s, angle=s.angle + 180.0 * h / s.heads) for h in range(s.heads)]
        found = [TokensState(one).matrix for one in turned]
        return [np.eye(3 if s.space else 2) if A is None else A for A in found]

    @property
    def hardmax(self) -> hm.HardmaxLayer:
        """The hardmax layer with this matrix, mask, heads and step."""
        s, heads = self.settings, self.head_matrices
        return hm.HardmaxLayer(s.alpha, self.matrix if heads is None else None, causal=s.sight == "causal", heads=heads)

    @property
    def layer(self) -> hm.HardmaxLayer | hm.SoftmaxLayer:
        """The layer that is repeated."""
        s, heads = self.settings, self.head_matrices
        if s.attention == "hardmax":
            return self.hardmax
        A = self.matrix if heads is None else None
        return hm.SoftmaxLayer(s.alpha, A, beta=s.beta, causal=s.sight == "causal", heads=heads)

    # Changes

    def with_settings(self, **values: object) -> TokensState:
        """The state with other settings; edited tokens stay unless the start changes."""
        settings = replace(self.settings, **values).bounded()  # type: ignore[arg-type]
        begin = ("start", "n", "seed", "space")
        same = all(getattr(settings, name) == getattr(self.settings, name) for name in begin)
        return TokensState(settings, self.edited if same else None)

    def moved(self, index: int, x: float, y: float) -> TokensState:
        """The state with one token at another place, at layer 0."""
        tokens = self.tokens
        if tokens.shape[1] != 2 or not 0 <= index < len(tokens) or not (math.isfinite(x) and math.isfinite(y)):
            return self
        settings = replace(self.settings, layer=0, limit=0, selected=index)
        point = _placed(tokens, x, y)
        if self.edited is not None and np.array_equal(tokens[index], point):
            return TokensState(settings, self.edited)  # the drop after a drag: what was computed still holds
        tokens = tokens.copy()
        tokens[index] = point
        return TokensState(settings, tokens)

    def added(self, x: float, y: float) -> TokensState:
        """The state with one more token, which is selected."""
        tokens = self.tokens
        if tokens.shape[1] != 2 or len(tokens) >= MOST_TOKENS or not (math.isfinite(x) and math.isfinite(y)):
            return self
        more = np.concatenate([tokens, _placed(tokens, x, y)[None]])
        return TokensState(replace(self.settings, layer=0, limit=0, selected=len(tokens)), more)

    def without(self, index: int) -> TokensState:
        """The state without one token; the last one cannot be removed."""
        tokens = self.tokens
        if tokens.shape[1] != 2 or len(tokens) <= 1 or not 0 <= index < len(tokens):
            return self
        return TokensState(replace(self.settings, selected=-1), np.delete(tokens, index, axis=0))

    def uploaded(self, tokens: np.ndarray) -> TokensState:
        """The state with uploaded tokens, shape (token, 2) for the plane or (token, 3) for space."""
        if tokens.shape[1] not in (2, 3):
            problem = f"must have two or three columns, one for each coordinate, not {tokens.shape[1]}"
            raise hm.InputError("tokens", f"shape {tokens.shape}", problem, "keep the columns to look at")
        if len(tokens) > MOST_TOKENS:
            remedy = "upload a part of it, or call hm.equilibrium yourself"
            raise hm.InputError("tokens", f"{len(tokens):,}", f"must be at most {MOST_TOKENS:,} here", remedy)
        settings = replace(self.settings, space=tokens.shape[1] - 2, layer=0, limit=0, selected=-1)
        return TokensState(settings.bounded(), tokens)

    # The address

    @property
    def in_address(self) -> str:
        """Edited tokens as text for an address, to the last digit; empty if there are none, or too many."""
        if self.edited is None or len(self.edited) > MOST_IN_ADDRESS or np.abs(self.edited).max() > _FARTHEST:
            return ""
        text = "_".join(",".join(written(value) for value in row) for row in self.edited.tolist())
        return text if len(text) <= _LONGEST_TOKENS else ""

    def to_query(self) -> dict[str, str]:
        """The part of the address that stores the state, with edited tokens if they are few."""
        query = different(asdict(self.settings), asdict(DEFAULTS))
        return query | ({"tokens": self.in_address} if self.in_address else {})

    @classmethod
    def from_query(cls, state: Mapping[str, str], kept: np.ndarray | None = None) -> TokensState:
        """A state from an address; ``kept`` are the tokens that it names, shape (token, coordinate)."""
        d = DEFAULTS
        settings = Settings(
            start=choice(state, "start", d.start, {*CONFIGURATIONS, *LAWS}),
            n=whole(state, "n", d.n, 1, MOST_TOKENS),
            seed=whole(state, "seed", d.seed, 0, 2**31 - 1),
            space=whole(state, "space", d.space, 0, 1),
            attention=choice(state, "attention", d.attention, ("hardmax", "softmax")),
            sight=choice(state, "sight", d.sight, ("all", "causal")),
            heads=whole(state, "heads", d.heads, 1, 4),
            alpha=number(state, "alpha", d.alpha, 0.01, 10.0),
            beta=number(state, "beta", d.beta, 0.0, 100.0),
            angle=number(state, "angle", d.angle, -90.0, 90.0),
            a=number(state, "a", d.a, 0.25, 4.0),
            b=number(state, "b", d.b, 0.25, 4.0),
            c=number(state, "c", d.c, 0.25, 4.0),
            skew=number(state, "skew", d.skew, -2.0, 2.0),
            layer=whole(state, "layer", d.layer, 0, DEPTH),
            limit=whole(state, "limit", d.limit, 0, 1),
            selected=whole(state, "selected", d.selected, -1, MOST_TOKENS),
            trails=whole(state, "trails", d.trails, 0, 1),
            compare=choice(state, "compare", d.compare, COMPARISONS.values()),
            angle2=number(state, "angle2", d.angle2, -90.0, 90.0),
            a2=number(state, "a2", d.a2, 0.25, 4.0),
            b2=number(state, "b2", d.b2, 0.25, 4.0),
        ).bounded()
        dimension = 3 if settings.space else 2
        tokens = _read_tokens(state.get("tokens", "")) if kept is None else kept
        fits = tokens is not None and tokens.shape[1] == dimension and len(tokens) <= MOST_TOKENS
        made = cls(settings, tokens if fits else None)
        return made if settings.selected < len(made.tokens) else made.with_settings(selected=-1)


def write_table(tokens: np.ndarray) -> bytes:
    """Tokens as CSV, to the last digit, one row per token."""
    return "\n".join(",".join(map(repr, row)) for row in tokens.tolist()).encode()


def _read_tokens(text: str) -> np.ndarray | None:
    if not text:
        return None
    try:
        rows = [[float(part) for part in row.split(",")] for row in text.split("_")[:MOST_IN_ADDRESS]]
        tokens = np.array(rows, dtype=np.float64)
    except ValueError:
        return None
    fits = tokens.ndim == 2 and tokens.shape[1] in (2, 3) and bool(np.isfinite(tokens).all())
    return np.clip(tokens, -_FARTHEST, _FARTHEST) if fits else None


def _placed(tokens: np.ndarray, x: float, y: float) -> np.ndarray:
    """A point to which a token was moved, in the digits that can be seen beside the other tokens, shape (2,)."""
    size = float(np.abs(tokens).max())
    digits = _DIGITS if size == 0 else max(_DIGITS, _DIGITS - math.floor(math.log10(size)))
    far = max(_FAR, 2 * size)
    return np.asarray(np.clip(np.round([x, y], min(digits, 300)), -far, far))


# More changed tokens are given as a file, since code of more lines is not read.
_MOST_MOVED = 50


def _rows(array: np.ndarray) -> str:
    rows = [f"[{', '.join(written(value) for value in row)}]" for row in array.tolist()]
    lines, line = [], ""
    for row in rows:
        if len(line) + len(row) > 100:
            lines.append(line.rstrip())
            line = ""
        line += f"{row}, "
    lines.append(line.rstrip())
    return "[\n    " + "\n    ".join(lines) + "\n]"


def _moved(state: TokensState) -> list[int] | None:
    """Indices of the moved tokens of a large random start; None where the script lists all tokens."""
    if state.edited is None:
        return []
    made = state.made
    if state.edited.shape != made.shape or len(made) <= MOST_IN_ADDRESS:
        return None
    changed = np.flatnonzero((state.edited != made).any(axis=1))
    return changed.tolist() if len(changed) <= _MOST_MOVED else None


def code_of(state: TokensState) -> str:
    """Python that draws the current view."""
    s = state.settings
    lines = ["import hardmax as hm", ""]
    moved = _moved(state)
    if state.edited is not None and moved is None:
        lines = ["import hardmax as hm", "import numpy as np", "", f"tokens = np.array({_rows(state.edited)})"]
        if len(state.edited) > MOST_IN_ADDRESS:
            lines = ["import hardmax as hm", "from hardmax.storage import read_tokens", ""]
            lines.append('tokens = read_tokens("points.csv")  # your file')
    elif s.start in CONFIGURATIONS:
        lines.insert(1, "from hardmax.datasets.configurations import four_configurations")
        name = list(CONFIGURATIONS).index(s.start)
        lines.append(f"tokens = four_configurations()[{name}].tokens  # {s.start}")
    else:
        d = 3 if s.space else 2
        digits = ".round(3)" if s.n <= MOST_IN_ADDRESS else ""
        lines.append(f'tokens = hm.make_tokens("{s.start}", {s.n}, {d}, random_state={s.seed}){digits}')
    lines += [f"tokens[{k}] = {state.tokens[k].tolist()}" for k in moved or ()]
    lines += _layer_lines(state, "layer", "")
    hard = s.attention == "hardmax"
    if s.limit:
        lines += ["limit = hm.equilibrium(tokens, layer)  # infinite depth", "print(limit)", "print(hm.leaders(limit))"]
        lines.append("figure = hm.draw_tokens(limit, start=tokens).figure")
    else:
        lines += [f"run = hm.simulate(tokens, layer, depth={DEPTH})", "print(run)"]
        if hard:
            lines.append("limit = hm.equilibrium(tokens, layer)  # infinite depth: the leaders in the end")
            lines.append("print(hm.leaders(limit))")
        lines.append(f"figure = hm.draw_tokens(run, layer={s.layer}, hull=True).figure")
    if s.selected >= 0 and not s.space and not s.limit and hard and state.head_matrices is None:
        lines.append(f"hm.draw_attention_geometry(run.tokens[{s.layer}], layer, token={s.selected})")
    lines.append('hm.save_figure(figure, "tokens.png")')
    other = state.compared
    if other is not None:
        o = other.settings
        lines += ["", "# The second plot", *_layer_lines(other, "other", "other_")]
        if o.limit:
            lines.append("other_limit = hm.equilibrium(tokens, other)")
            lines.append("figure = hm.draw_tokens(other_limit, start=tokens).figure")
        else:
            lines.append(f"other_run = hm.simulate(tokens, other, depth={DEPTH})")
            lines.append(f"figure = hm.draw_tokens(other_run, layer={o.layer}, hull=True).figure")
        lines.append('hm.save_figure(figure, "other.png")')
    return "\n".join(lines) + "\n"


def _layer_lines(state: TokensState, name: str, prefix: str) -> list[str]:
    """Python that makes the layer of a state, called ``name``; its matrices are called by ``prefix`` and a letter."""
    s, matrix, heads = state.settings, state.matrix, state.head_matrices
    lines, given = [], ""
    if heads is not None:
        lines += [f"{prefix}heads = [", *(f"    {A.tolist()}," for A in heads), "]"]
    elif matrix is not None:
        lines.append(f"{prefix}A = {matrix.tolist()}")
        given = f", {prefix}A"
    masked = ", causal=True" if s.sight == "causal" else ""
    masked += f", heads={prefix}heads" if heads is not None else ""
    if s.attention == "hardmax":
        lines.append(f"{name} = hm.HardmaxLayer({written(s.alpha)}{given}{masked})")
    else:
        lines.append(f"{name} = hm.SoftmaxLayer({written(s.alpha)}{given}, beta={written(s.beta)}{masked})")
    return lines
