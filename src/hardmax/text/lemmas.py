"""Words replaced by their dictionary forms, or only English plurals by their singulars, with simplemma."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..errors import InputError, MissingExtraError

PLURALS = "en-plurals"
# A noun's endings in the plural and in the singular, as WordNet's morphology has them.
_ENDINGS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("oes", "o"),
    ("men", "man"),
    ("ies", "y"),
)
# Plurals without such an ending, or whose singular simplemma takes from a verb ("lives" from "live").
_IRREGULAR = {
    "children": "child",
    "feet": "foot",
    "geese": "goose",
    "halves": "half",
    "knives": "knife",
    "lives": "life",
    "mice": "mouse",
    "selves": "self",
    "teeth": "tooth",
    "thieves": "thief",
    "wives": "wife",
    "wolves": "wolf",
}


@lru_cache(maxsize=8)
def lemmatiser(language: str) -> Callable[[str], str]:
    """The function from a word to its lemma.

    ``"en-plurals"`` stands in for the noun lemmatiser of WordNet, which leaves verbs, comparisons ("worst", "better")
    and capitalised words as they are.

    >>> [lemmatiser("en-plurals")(word) for word in ("stories", "Stories", "worst", "loved", "boss", "women")]
    ['story', 'Stories', 'worst', 'loved', 'boss', 'woman']
    """
    try:
        import simplemma
    except ImportError as error:
        raise MissingExtraError("simplemma", "text", "replacing words by their lemmas") from error
    code = "en" if language == PLURALS else language

    def lemma(word: str) -> str:
        return str(simplemma.lemmatize(word, lang=code))

    def singular(word: str) -> str:
        if word in _IRREGULAR:
            return _IRREGULAR[word]
        if not word.islower() or not word.endswith(("s", "men")):
            return word
        found = lemma(word)
        regular = any(word.endswith(many) and found == word.removesuffix(many) + one for many, one in _ENDINGS)
        return found if regular else word

    try:
        lemma("words")
    except ValueError as error:
        raise InputError(
            "lemmas", repr(language), "is no language known to simplemma", 'pass for example "en"'
        ) from error
    return _remembering(singular if language == PLURALS else lemma)


def _remembering(function: Callable[[str], str]) -> Callable[[str], str]:
    """The same function, which looks every word up only once."""
    remembered: dict[str, str] = {}

    def looked_up(word: str) -> str:
        if word not in remembered:
            remembered[word] = function(word)
        return remembered[word]

    return looked_up
