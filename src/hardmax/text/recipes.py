"""Recipes: all settings of a model and of its training in one value, and the named ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..errors import InputError
from .words.tokenisation import CHARACTERS, EVERY_MARK, EVERY_SYMBOL

# Numbers of documents of two classes, and of more, below which linear classifiers are the better start. On 6,000 film
# reviews they are about a point more accurate than log odds; more classes were compared below 5,000 only.
_FEW_OF_TWO, _FEW_OF_MANY = 10_000, 5_000


def few_documents(labels: Any) -> bool:
    """Whether every symbol is a word and words start from linear classifiers; else log odds are exact enough."""
    count = len(labels)
    return count < _FEW_OF_MANY or (count < _FEW_OF_TWO and len(np.unique(labels)) == 2)


@dataclass(frozen=True)
class Recipe:
    """All settings of a model and of its training."""

    dim: int | None = None
    """Number of coordinates of a word; by default two for two classes, else the number of classes. With ``by_length``
    the number for each length of n-gram, by default one for two classes."""
    by_length: bool = False
    """Whether n-grams of different lengths have separate coordinates, so that scores between them are zero and each
    length has its own leaders. Columns of a table all have the same length."""
    endings: int | None = None
    """Number of words at the end of a text whose words and pairs also count as words of their own; with ``by_length``
    on separate coordinates. None for none."""
    averaged: int = 1
    """Number of trainings from the same start, whose parameters are averaged."""
    depth: int = 8
    """Number of layers."""
    alpha: float = 1.0
    """Step size towards the attended word, or its initial value if it is learned."""
    learn_alpha: bool = False
    """Whether ``alpha`` is learned."""
    learn_bias: bool = True
    """Whether the decoder's bias is learned; else it is zero, so that a text without evidence has even odds."""
    learn_matrix: bool = False
    """Whether the matrix A of the score is learned; else it is the identity."""
    collapse: float = 0.99
    """Least fraction of the distance to the leader that words move in all layers, also if ``alpha`` is learned."""
    masses: str = "norm"
    """Mass of a word in the mean: ``"norm"`` for its length times 1 + log count, ``"count"`` for its count."""
    resting_share: float = 0.2
    """Mass that rests at the origin, so that the logits of a document with little evidence are near the bias; as a
    fraction of the initial mean mass of the training documents."""
    start: str | None = None
    """Initial positions: from the weights of a linear classifier (``"regression"``), along smoothed log odds
    (``"evidence"``), or ``"random"``. By default ``"regression"`` for few documents (below 10,000
    of two classes, 5,000 of more), unless ``smoothing`` is
    given, else ``"evidence"``."""
    smoothing: float | None = None
    """Number of documents added to each class for the log odds, with ``start="evidence"``; by default 10 for two
    classes and 2 for more."""
    noise: float = 0.01
    """Standard deviation of the noise in the initial positions."""
    decoder_scale: float = 6.0
    """Initial length of the decoder, with ``start="evidence"``."""
    ngrams: int = 2
    """Largest number of words in an n-gram."""
    min_df: int | None = None
    """Least number of texts in which a word or n-gram occurs; by default 1 below 3,000 texts, 2 for other few
    documents, else 3."""
    max_words: int | None = None
    """Number of words and n-grams that are selected by the chi2 statistic; all by default."""
    cut: int | None = None
    """Number of words after which a text is cut; shorter texts are filled with a padding word. None for no limit."""
    temperature: float = 0.0
    """Temperature of softmax attention in training; 0 for hardmax."""
    epochs: int | None = None
    """Number of epochs; by default 2 with ``start="regression"``, at twice the learning rate and only where folds of
    the rows gain by training, else ``usual_epochs``, or more on small data for 300 optimiser steps (1,000 for more than
    two classes)."""
    usual_epochs: int = 3
    """Number of epochs on large data if ``epochs`` is None."""
    batch_size: int = 128
    """Number of documents per optimiser step."""
    learning_rate: float = 1e-2
    """Learning rate of Adam at the first step."""
    decay: bool = True
    """Whether the learning rate decays linearly to nearly zero."""
    cone: float = 0.5
    """For two classes: largest ratio of the components of a word across and along the decoder's axis."""
    tether: float = 0.4
    """For two classes: largest distance of a word from its initial position."""
    momentum: bool = False
    """Whether Adam has momentum, as published. Without it only the words of a step are updated, which is faster."""
    dropout: float = 0.5
    """Largest probability that a word is dropped in a training step."""

    def __post_init__(self) -> None:
        for name, (holds, problem, remedy) in _RULES.items():
            value = getattr(self, name)
            if not holds(value):
                raise InputError(name, repr(value), problem, remedy)
        if self.cut is not None and self.endings is not None:
            problem = f"cannot be distinguished from the padding up to cut={self.cut} words"
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
        """Names of the parameters of the network that are not learned."""
        learned = {"raw_alpha": self.learn_alpha, "bias": self.learn_bias}
        return frozenset(name for name, is_learned in learned.items() if not is_learned)

    @property
    def least_alpha(self) -> float:
        """Smallest alpha that reaches ``collapse`` in ``depth`` layers."""
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
    "start": (
        lambda v: v in (None, "regression", "evidence", "random"),
        'must be "regression", "evidence", "random" or None',
        'pass start="evidence"',
    ),
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
    # With one coordinate per group there is no component across the axis, so no cone is set; eight epochs need a longer
    # tether.
    "accurate": Recipe(by_length=True, endings=15, averaged=3, ngrams=3, usual_epochs=8, cone=math.inf, tether=0.8),
    # For texts of about a sentence: the verdict is at the end ("slow, but wonderful"), and without a bias texts with
    # little evidence have even odds. Stop words depend on the data, so none are set.
    "short": Recipe(endings=5, learn_bias=False),
    # The published model: random start, equal mass for each of the first 128 words, alpha learned without a bound.
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
    # Punctuation distinguishes phrases: ". great" begins a sentence, "great ," continues one.
    "accurate": {"pattern": EVERY_MARK},
    # As published, see docs/papers/sentiment.rst. Function words are removed before the first 128 words are taken,
    # which therefore include the end of most reviews.
    "paper": {
        "removed": (
            r"https?://\S+|www\.\S+",  # links
            r"<[^>]+>",  # HTML tags
            r"\d+",
            r"[^\x00-\x7f]+",
            r"(.)(?<=\1\1\1)",  # a letter after two equal ones: "sooo" is read as "soo"
        ),
        # The published tokeniser splits these informal words in two.
        "pattern": r"(?i:\b(?:can(?=not\b)|gon(?=na\b)|got(?=ta\b)|wan(?=na\s)|gim(?=me\b)|lem(?=me\b)))|[A-Za-z]+",
        "lowercase": False,
        "stop_words": "english-published",
        "lemmas": "en-plurals",
    },
}
# Pattern of models that were saved before the recipe followed all published steps.
_EARLIER_PATTERN = "[A-Za-z]+"
OWN_PATTERNS = frozenset(words["pattern"] for words in _WORDS_OF.values() if "pattern" in words) | {
    _EARLIER_PATTERN,
    EVERY_SYMBOL,
    *CHARACTERS.values(),
}
"""Patterns for words in the recipes, each known to be as fast as the default."""
OWN_REMOVED = frozenset(pattern for words in _WORDS_OF.values() for pattern in words.get("removed", ()))
"""Patterns for removed parts in the recipes, each known to be as fast as the default for words."""


def words_with(base: str | Recipe, changes: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the tokeniser of a recipe, with every change that is not None; a custom recipe has the default."""
    own = {} if isinstance(base, Recipe) else _WORDS_OF[base]
    return {**own, **{key: value for key, value in changes.items() if value is not None}}


def recipe_with(base: str | Recipe, changes: dict[str, Any]) -> Recipe:
    """A recipe, given by value or by name, with every change that is not None."""
    if not isinstance(base, Recipe):
        if base not in RECIPES:
            raise InputError("recipe", repr(base), "is no recipe", f"pass one of {', '.join(map(repr, RECIPES))}")
        base = RECIPES[base]
    known = {field.name for field in fields(Recipe)}
    return replace(base, **{key: value for key, value in changes.items() if value is not None and key in known})
