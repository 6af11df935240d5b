"""Tokenisation: from a text to its words, with stop words and lemmas."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...errors import InputError, MissingExtraError

PLURALS = "en-plurals"
# Endings of nouns in the plural and in the singular, from WordNet's morphology.
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
# Plurals without such an ending, or that simplemma reads as a verb ("lives" as "live").
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
    """Function from a word to its lemma.

    ``"en-plurals"`` approximates the noun lemmatiser of WordNet, which does not change verbs, comparatives ("worst",
    "better") and capitalised words.

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
    return _cached(singular if language == PLURALS else lemma)


def _cached(function: Callable[[str], str]) -> Callable[[str], str]:
    """The same function with a cache without a size limit."""
    known: dict[str, str] = {}

    def looked_up(word: str) -> str:
        if word not in known:
            known[word] = function(word)
        return known[word]

    return looked_up


# Combining marks, for which Python's re has no class: separate accents, points of Hebrew and Arabic, and whole blocks
# of Indic scripts (whose letters match as letters anyway) except for the full stops of Hindi.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0898-\u089f\u08ca-\u08e1\u08e3-\u0963\u0971-\u0df3\u0e31\u0e34-\u0e3a"
    r"\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u1ab0-\u1ace\u1dc0-\u1dff"
    r"\u3099\u309a\ufe20-\ufe2f"
)
# Letters with their combining marks; joiners connect letters of one word.
_WORD = rf"[^\W\d_]+(?:[{_MARKS}\u200c\u200d]+[^\W\d_]+)*[{_MARKS}]*"
# One emoji with its skin colour or with all emojis joined to it, or a flag.
_FACE = "[\U0001f300-\U0001f3fa\U0001f400-\U0001faff\u2639\u263a\u2764]\ufe0f?[\U0001f3fb-\U0001f3ff]?"
_EMOJI = rf"{_FACE}(?:\u200d(?:{_FACE}|[\u2640\u2642]\ufe0f?))*|[\U0001f1e6-\U0001f1ff]{{2}}"
_NUMBERS = r"\d+(?:[./]\d+)*"
_LETTERS = rf"{_WORD}(?:'{_WORD})?|[!?]|{_NUMBERS}|{_EMOJI}"
# The same words in ASCII text, in half the time.
_ASCII_LETTERS = r"[A-Za-z]+(?:'[A-Za-z]+)?|[!?]|" + _NUMBERS
_PUNCTUATION = r"\*+|\.\.+|[:;]-?[()]|[.,;:()\"-]"
EVERY_MARK = f"{_LETTERS}|{_PUNCTUATION}"
"""Pattern for words and numbers, stars, smileys and all punctuation."""
# Every other mark by itself: "#", "@" and quotation marks distinguish authors and kinds of texts.
_SYMBOLS = rf"{_PUNCTUATION}|[^\w\s]"
EVERY_SYMBOL = f"{_LETTERS}|{_SYMBOLS}"
"""Pattern for words and numbers, stars, smileys and every single character that is no letter, digit or space."""
# Letters of scripts that are written without spaces between words: kana, Han, Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    r"\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
    r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ec0-\u0ec6\u1000-\u102a\u1780-\u17b3"
)
# One such letter with its combining marks, or a mark that asks or exclaims there.
_CHARACTER = rf"[{_UNSPACED}][{_MARKS}]*|[\uff01\uff1f]"
# Words of all other scripts, and the rest of a pattern that begins with words.
_OTHER = rf"(?:(?![{_UNSPACED}])[^\W\d_])+(?:[{_MARKS}\u200c\u200d]+(?:(?![{_UNSPACED}])[^\W\d_])+)*[{_MARKS}]*"
CHARACTERS = {
    None: rf"{_CHARACTER}|{_OTHER}(?:'{_OTHER})?|[!?]|{_NUMBERS}|{_EMOJI}",
    EVERY_MARK: rf"{_CHARACTER}|{_OTHER}(?:'{_OTHER})?|[!?]|{_NUMBERS}|{_EMOJI}|{_PUNCTUATION}|[\u3001\u3002\uff0c]",
    EVERY_SYMBOL: rf"{_CHARACTER}|{_OTHER}(?:'{_OTHER})?|[!?]|{_NUMBERS}|{_EMOJI}|{_SYMBOLS}",
}
"""Patterns, by the pattern that they replace, that read scripts without spaces character by character."""
_RUN = re.compile(rf"[{_UNSPACED}]")
_CUT = re.compile(rf"(?<=[{_UNSPACED}{_MARKS}])\s+(?=[{_UNSPACED}])")
_ANY_LETTER = re.compile(r"[^\W\d_]")
# Share of the letters from which on a text counts as written in such a script; names and quotations are below it.
_MOSTLY = 0.3
# Spaces per letter from which on words are separated after all: at least 1/5 in segmented text, below 1/20 without.
_SEPARATED = 0.12
# Texts that are looked at, enough to recognise a script.
_SAMPLE = 200


def written_without_spaces(texts: Sequence[str]) -> bool:
    """Whether texts are mostly in a script without spaces between words, and have not been cut into words.

    >>> written_without_spaces(["这本书很好看", "内容非常精彩"]), written_without_spaces(["这 本 书 很 好看"])
    (True, False)
    >>> written_without_spaces(["a plain text"])
    False
    """
    some = " \n".join(texts[:: max(1, len(texts) // _SAMPLE)][:_SAMPLE])
    if some.isascii():
        return False
    unspaced, letters = len(_RUN.findall(some)), len(_ANY_LETTER.findall(some))
    spaces = sum("\n" not in cut for cut in _CUT.findall(some))
    return unspaced > 0 and unspaced >= _MOSTLY * letters and spaces < _SEPARATED * unspaced


_TAG = re.compile(r"<[/a-zA-Z][^<>]{0,200}>")

# Words with little information about any text; without negations, degrees ("very", "too", "only") and opinions.
_STOP_WORDS = """a an the this that these those i me my myself we us our ours ourselves you your yours he him his
    himself she her hers herself it its itself they them their theirs themselves who whom whose which what am is are was
    were be been being have has had having do does did doing will would shall and or as of at by for with into to from
    in on there here then than when where while i'm i've it's that's he's she's they're you're we're"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
# All function words including negations, and the parts of contractions that are split at the apostrophe.
_FUNCTION_WORDS = """but if because until about against between through during before after above below up down out off
    over under again further once why how all any both each few more most other some such no nor not only own same so
    too very can just should now s t d ll m o re ve y don ain aren couldn didn doesn hadn hasn haven isn ma mightn mustn
    needn shan shouldn wasn weren won wouldn"""
FUNCTION_WORDS = frozenset(word for word in STOP_WORDS if "'" not in word) | frozenset(_FUNCTION_WORDS.split())
# The stop words of the published model: NLTK's without those with an apostrophe, at which words are split there.
PUBLISHED_STOP_WORDS = FUNCTION_WORDS - {"us", "whose", "would", "shall"} | {"yourself", "yourselves"}
_LISTS = {"english": STOP_WORDS, "english-function": FUNCTION_WORDS, "english-published": PUBLISHED_STOP_WORDS}


@dataclass(frozen=True)
class Tokeniser:
    """Tokeniser: a function from a text to its words.

    A word is a sequence of letters of any script with their combining marks and at most one apostrophe ("don't"), a
    number or a rating ("8/10"), an emoji, or one of the marks ``!`` and ``?``. HTML tags are left out.

    Parameters
    ----------
    pattern
        Regular expression for one word, if the default does not suit the language. Scripts without spaces between
        words are read as whole phrases; :class:`~hardmax.text.LeaderClassifier` recognises them and passes a pattern
        for single characters.
    lowercase
        Whether the text is converted to lower case first.
    stop_words
        Words that are left out, both before and after words are replaced by their lemmas: ``"english"`` for a short
        list without negations and opinions, ``"english-function"`` for all function words, ``"english-published"`` for
        those of the published model, or any words.
    lemmas
        Language code such as ``"en"``: every word is replaced by its dictionary form. ``"en-plurals"`` replaces only
        English plurals in lower case by their singulars. Both need the extra ``text``.
    cut
        Number of words after which the rest of the text is ignored.
    removed
        Regular expressions whose matches are deleted from the text, one after the other, before tokenisation.

    Examples
    --------
    >>> Tokeniser()("It wasn't <br /> BAD! 7.5/10")
    ['it', "wasn't", 'bad', '!', '7.5/10']
    >>> Tokeniser(stop_words="english")("Это не плохо, and it is no loss")
    ['это', 'не', 'плохо', 'no', 'loss']
    >>> Tokeniser()("फिल्म अच्छी है ❤️")
    ['फिल्म', 'अच्छी', 'है', '❤']
    """

    pattern: str | None = None
    lowercase: bool = True
    stop_words: str | Iterable[str] | None = None
    lemmas: str | None = None
    cut: int | None = None
    removed: Iterable[str] = ()
    _removed: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _find: tuple[Callable[[str], list[str]], Callable[[str], list[str]]] = field(init=False, repr=False, compare=False)
    _stop: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        general = _compiled("pattern", self.pattern or _LETTERS)
        if general.groups:
            raise InputError(
                "pattern", repr(self.pattern), "must have no capturing groups", "write (?:…) instead of (…)"
            )
        if isinstance(self.removed, str):
            raise InputError("removed", repr(self.removed), "must be a list of patterns", f"pass [{self.removed!r}]")
        object.__setattr__(self, "removed", tuple(self.removed))
        object.__setattr__(self, "_removed", tuple(_compiled("removed", pattern) for pattern in self.removed))
        plain = general if self.pattern else re.compile(_ASCII_LETTERS)
        object.__setattr__(self, "_find", (general.findall, plain.findall))
        object.__setattr__(self, "_stop", _stop_words(self.stop_words))
        if self.lemmas is not None:
            lemmatiser(self.lemmas)

    def __call__(self, text: str) -> list[str]:
        """Words of ``text`` in order."""
        for pattern in self._removed:
            text = pattern.sub("", text)
        if "<" in text:
            text = _TAG.sub(" ", text)
        if self.lowercase:
            text = text.lower()
        words = self._find[1](text) if text.isascii() else self._find[0](_normalised(text))
        if self._stop:
            words = [word for word in words if word not in self._stop]
        if self.lemmas is not None:
            lemma = lemmatiser(self.lemmas)
            words = [lemma(word) for word in words]
            if self._stop:
                words = [word for word in words if word not in self._stop]
        return words if self.cut is None else words[: self.cut]

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Positions of the words in the original text, so that a page can mark them.

        Parameters
        ----------
        text
            The text as written.

        Returns
        -------
        list of tuple
            Start, end and word as counted, without stop words.
        """
        read, places = self._deleted(text)
        blanked = _TAG.sub(lambda tag: " " * len(tag.group()), read).replace("’", "'")
        lowered = blanked.lower() if self.lowercase else blanked
        if len(lowered) == len(blanked):  # a few capitals become two letters; then case is not changed
            blanked = lowered
        found = []
        for match in re.finditer(self.pattern or _LETTERS, blanked):
            words = self(match.group())
            if len(words) == 1:
                found.append((places[match.start()], places[match.end() - 1] + 1, words[0]))
        return found if self.cut is None else found[: self.cut]

    def _deleted(self, text: str) -> tuple[str, list[int]]:
        """The text without the removed parts, and the index of each remaining character in the original text."""
        places = list(range(len(text)))
        for pattern in self._removed:
            for match in reversed(list(pattern.finditer(text))):
                del places[match.start() : match.end()]
            text = pattern.sub("", text)
        return text, places

    def recipe(self) -> dict[str, Any]:
        """The parameters, for the header of a file.

        Returns
        -------
        dict
            Can be written as JSON.
        """
        stop = self.stop_words if self.stop_words is None or isinstance(self.stop_words, str) else sorted(self._stop)
        return {
            "pattern": self.pattern,
            "lowercase": self.lowercase,
            "stop_words": stop,
            "lemmas": self.lemmas,
            "cut": self.cut,
            "removed": list(self.removed),
        }


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        raise InputError(
            name, repr(pattern), f"must be a regular expression ({error})", "correct it or leave it out"
        ) from None


def _normalised(text: str) -> str:
    """The text with composed accents, straight apostrophes and no variation selectors after emojis."""
    return unicodedata.normalize("NFC", text).replace("’", "'").replace("\ufe0f", "")


def _stop_words(wanted: str | Iterable[str] | None) -> frozenset[str]:
    if wanted is None:
        return frozenset()
    if isinstance(wanted, str):
        if wanted not in _LISTS:
            raise InputError(
                "stop_words",
                repr(wanted),
                f"must be {' or '.join(map(repr, _LISTS))} or a list of words",
                'pass a list such as ["the", "a"]',
            )
        return _LISTS[wanted]
    words = frozenset(wanted)
    wrong = next((word for word in words if not isinstance(word, str)), None)
    if wrong is not None:
        raise InputError("stop_words", repr(wrong), "must contain only words", 'pass a list such as ["the", "a"]')
    return words
