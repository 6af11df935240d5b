"""All settings of a model and of its training, in one value; the published ones and ours."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import InputError
from .words.tokenisation import EVERY_MARK


@dataclass(frozen=True)
class Recipe:
    """What a model is made of and how it is trained."""

    dim: int | None = None
    """Coordinates of a word; two for two classes and one for each class beyond, when left out. With ``by_length`` so
    many for each length, and one for two classes when left out."""
    by_length: bool = False
    """Whether n-grams of different lengths have coordinates of their own, so that each length has its own leaders:
    scores between them are zero. Where the words are columns of a table, all have one length."""
    endings: int | None = None
    """The words and pairs among so many words at the end of a text are words of their own too; with ``by_length`` they
    have coordinates of their own."""
    averaged: int = 1
    """Train so many times from the same start and take the mean of the parameters."""
    depth: int = 8
    alpha: float = 1.0
    learn_alpha: bool = False
    learn_bias: bool = True
    """Whether the decoder's bias is learned; else it is zero, and a text that says nothing is given even odds."""
    learn_matrix: bool = False
    """Whether the matrix A of the score is learned; the identity otherwise."""
    collapse: float = 0.99
    """How far words must have moved onto their leaders at the end, whatever training does to alpha."""
    masses: str = "norm"
    """What a word weighs in the mean: ``"norm"`` its length times 1 + log count, ``"count"`` its count."""
    resting_share: float = 0.2
    """Mass that stays at the origin, so that a document that says little is near the bias, as a share of what the
    training documents weigh on average at the start: large and small data alike rest a part of what they say."""
    start: str = "evidence"
    """Where words start: along smoothed log odds, or at ``"random"``."""
    smoothing: float | None = None
    """Documents added to each count; ten for two classes and two for more, when left out."""
    noise: float = 0.01
    decoder_scale: float = 6.0
    ngrams: int = 2
    min_df: int | None = None
    max_words: int | None = None
    cut: int | None = None
    """Only so many words of a text count, and shorter texts are filled up with a padding word."""
    temperature: float = 0.0
    """Train as softmax at this temperature; 0 is hardmax itself."""
    epochs: int | None = None
    """The usual ones, or as many as small data needs for 300 steps (1,000 for more than two classes), when left out."""
    usual_epochs: int = 3
    batch_size: int = 128
    learning_rate: float = 1e-2
    decay: bool = True
    cone: float = 0.5
    """How far words may lie across the decoder's axis, as a multiple of how far along it; for two classes."""
    tether: float = 0.4
    """How far words may go from where the evidence has put them; for two classes."""
    momentum: bool = False
    """Adam as published. Without it only the words of a step move, which saves going through all the others."""
    dropout: float = 0.5

    def __post_init__(self) -> None:
        for name, (holds, problem, remedy) in _RULES.items():
            value = getattr(self, name)
            if not holds(value):
                raise InputError(name, repr(value), problem, remedy)
        if self.cut is not None and self.endings is not None:
            problem = f"cannot be told from the padding up to cut={self.cut} words"
            raise InputError("endings", repr(self.endings), problem, "leave one of the two out")
        if self.collapse > 0 and 1 - (1 + self.alpha) ** -self.depth < self.collapse:
            raise InputError(
                "alpha",
                repr(self.alpha),
                f"moves words only {1 - (1 + self.alpha) ** -self.depth:.3f} of the way in {self.depth} layers, "
                f"less than collapse={self.collapse}",
                "pass a larger alpha, more depth, or a smaller collapse",
            )

    @property
    def fixed(self) -> frozenset[str]:
        """The names of the network's parameters that are not learned."""
        learned = {"raw_alpha": self.learn_alpha, "bias": self.learn_bias}
        return frozenset(name for name, is_learned in learned.items() if not is_learned)

    @property
    def least_alpha(self) -> float:
        """The alpha at which the collapse is just reached."""
        return float((1 - self.collapse) ** (-1 / self.depth) - 1)


def _whole(least: int, optional: bool = False) -> Any:
    return lambda v: (optional and v is None) or (isinstance(v, int) and not isinstance(v, bool) and v >= least)


def _between(low: float, high: float, *, above: bool = False, optional: bool = False) -> Any:
    def holds(value: Any) -> bool:
        if optional and value is None:
            return True
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return False
        return (low < value if above else low <= value) and value < high

    return holds


def _bound(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


_RULES: dict[str, tuple[Any, str, str]] = {
    "dim": (_whole(1, True), "must be a positive whole number or None", "pass for example dim=2"),
    "depth": (_whole(1), "must be a positive whole number", "pass for example depth=8"),
    "alpha": (_between(0, math.inf, above=True), "must be a positive number", "pass for example alpha=1.0"),
    "collapse": (_between(0, 1), "must be at least 0 and below 1", "pass for example collapse=0.99"),
    "masses": (lambda v: v in ("norm", "count"), 'must be "norm" or "count"', 'pass masses="norm"'),
    "start": (lambda v: v in ("evidence", "random"), 'must be "evidence" or "random"', 'pass start="evidence"'),
    "smoothing": (
        _between(0, math.inf, above=True, optional=True),
        "must be a positive number",
        "pass for example smoothing=10",
    ),
    "ngrams": (_whole(1), "must be a positive whole number", "pass 1 for single words, 2 for pairs too"),
    "min_df": (_whole(1, True), "must be a positive whole number or None", "pass for example min_df=3"),
    "max_words": (_whole(1, True), "must be a positive whole number or None", "pass for example max_words=12000"),
    "cut": (_whole(1, True), "must be a positive whole number or None", "pass for example cut=128"),
    "endings": (_whole(1, True), "must be a positive whole number or None", "pass for example endings=15"),
    "averaged": (_whole(1), "must be a positive whole number", "pass for example averaged=3"),
    "resting_share": (_between(0, math.inf), "must be 0 or a positive number", "pass for example 0.2"),
    "cone": (_bound, "must be 0 or a positive number, or infinite for none", "pass for example cone=0.5"),
    "tether": (_bound, "must be 0 or a positive number, or infinite for none", "pass for example tether=0.4"),
    "temperature": (_between(0, math.inf), "must be 0 or a positive number", "pass 0 for hardmax"),
    "epochs": (_whole(1, True), "must be a positive whole number or None", "pass for example epochs=3"),
    "usual_epochs": (_whole(1), "must be a positive whole number", "pass for example usual_epochs=3"),
    "batch_size": (_whole(1), "must be a positive whole number", "pass for example batch_size=64"),
    "learning_rate": (_between(0, math.inf, above=True), "must be a positive number", "pass learning_rate=0.01"),
    "dropout": (_between(0, 1), "must be at least 0 and below 1", "pass for example dropout=0.5"),
}

RECIPES = {
    "default": Recipe(),
    # On an axis of its own a word cannot lie across it, so there is no cone; eight passes need a longer tether.
    "accurate": Recipe(by_length=True, endings=15, averaged=3, ngrams=3, usual_epochs=8, cone=math.inf, tether=0.8),
    # For texts of a sentence or so: the verdict is what is said last ("slow, but wonderful"), and faint words do not
    # lean to a side. The word list is a matter of the data, so it is left to whoever trains.
    "short": Recipe(endings=5, learn_bias=False),
    # The published model: random start, every word of the first 128 one vote, alpha learned and free.
    "paper": Recipe(
        dim=2,
        learn_alpha=True,
        collapse=0.0,
        masses="count",
        resting_share=0.0,
        start="random",
        noise=1.0,
        ngrams=1,
        min_df=1,
        cut=128,
        temperature=1e-3,
        epochs=100,
        batch_size=64,
        learning_rate=1e-3,
        decay=False,
        cone=math.inf,
        tether=math.inf,
        momentum=True,
        dropout=0.0,
    ),
}

_WORDS_OF: dict[str, dict[str, Any]] = {
    "default": {},
    "short": {},
    # Where a sentence ends, and how, tells phrases apart: ". great" opens one, "great ," goes on.
    "accurate": {"pattern": EVERY_MARK},
    # As published, see docs/papers/sentiment.rst. Function words go before the first 128 words are taken, which
    # therefore reach to the end of most reviews.
    "paper": {
        "removed": (
            r"https?://\S+|www\.\S+",  # links
            r"<[^>]+>",  # HTML tags
            r"\d+",
            r"[^\x00-\x7f]+",
            r"(.)(?<=\1\1\1)",  # a letter after two equal ones: "sooo" is read as "soo"
        ),
        # Their tokeniser parts these informal words in two.
        "pattern": r"(?i:\b(?:can(?=not\b)|gon(?=na\b)|got(?=ta\b)|wan(?=na\s)|gim(?=me\b)|lem(?=me\b)))|[A-Za-z]+",
        "lowercase": False,
        "stop_words": "english-published",
        "lemmas": "en-plurals",
    },
}
# Models saved before the recipe followed the published steps to the letter.
_EARLIER_PATTERN = "[A-Za-z]+"
OWN_PATTERNS = frozenset(words["pattern"] for words in _WORDS_OF.values() if "pattern" in words) | {_EARLIER_PATTERN}
"""The patterns for words that the recipes use, each as fast as the default."""
OWN_REMOVED = frozenset(pattern for words in _WORDS_OF.values() for pattern in words.get("removed", ()))
"""The patterns for what the recipes delete, each as fast."""


def words_with(base: str | Recipe, changes: dict[str, Any]) -> dict[str, Any]:
    """How a recipe cuts texts into words, with every change that is not None; one of your own does it as ours."""
    own = {} if isinstance(base, Recipe) else _WORDS_OF[base]
    return {**own, **{key: value for key, value in changes.items() if value is not None}}


def recipe_with(base: str | Recipe, changes: dict[str, Any]) -> Recipe:
    """A recipe, or the one of this name, with every change that is not None."""
    if not isinstance(base, Recipe):
        if base not in RECIPES:
            raise InputError("recipe", repr(base), "is no recipe", f"pass one of {', '.join(map(repr, RECIPES))}")
        base = RECIPES[base]
    known = {field.name for field in fields(Recipe)}
    return replace(base, **{key: value for key, value in changes.items() if value is not None and key in known})
