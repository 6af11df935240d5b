"""Words of a text as a reader sees them: the exact effect of striking each out, and the answer in one sentence."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from ...text.explaining.explanation import Explanation
from ...text.words.document_endings import AT_THE_END
from ...text.words.tokenisation import FUNCTION_WORDS

_MOST_MEASURED = 300
"""Words whose deletion is evaluated one by one; of a long text those with the largest contributions."""
_NAMED_FOR, _NAMED_AGAINST = 3, 2
"""Words that a reader keeps in mind."""
_SLIGHT = 0.05
"""Words with less than this share of the largest effect are not named."""


def places_of(why: Explanation) -> dict[str, np.ndarray]:
    """Indices in :attr:`Explanation.words` of a word and all n-grams that contain it, by word."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(why.words):
        for part in dict.fromkeys(name.removesuffix(AT_THE_END).split(" ")):
            places.setdefault(part, []).append(place)
    return {word: np.array(found) for word, found in places.items()}


def probabilities_of(logits: np.ndarray) -> np.ndarray:
    """Probability of each class, shape (classes,), from one logit (two classes) or one per class."""
    if len(logits) == 1:
        second = float(expit(logits[0]))
        return np.array([1 - second, second])
    return np.asarray(softmax(logits))


@dataclass(frozen=True, eq=False)
class Words:
    """The words of an explained text, those that are struck out, and the effect of each on the explained logit."""

    why: Explanation
    places: dict[str, np.ndarray]
    effects: dict[str, float]
    """Logit of the whole text minus that without the word, for the words that were measured."""
    struck: tuple[str, ...]
    logits: np.ndarray
    """Logits without the words that are struck out, shape (logits,)."""

    @classmethod
    def of(cls, why: Explanation, struck: Sequence[str] = ()) -> Words:
        """The words of an explanation; words to strike out that it does not hold are ignored."""
        places = places_of(why)
        struck = tuple(dict.fromkeys(word for word in struck if word in places))
        if why.deletion is None or not places:
            return cls(why, places, {}, (), why.logits)
        size = {word: float(np.abs(why.contributions[found, why.output]).sum()) for word, found in places.items()}
        measured = sorted(places, key=lambda word: -size[word])[:_MOST_MEASURED]
        sets = [places[word] for word in measured]
        if struck:
            sets.append(np.unique(np.concatenate([places[word] for word in struck])))
        found = why.deletion.logits(sets)
        effects = {word: float(why.logits[why.output] - found[k, why.output]) for k, word in enumerate(measured)}
        return cls(why, places, effects, struck, found[-1] if struck else why.logits)

    @property
    def towards(self) -> int:
        """Sign of an effect that speaks for the prediction."""
        return -1 if len(self.why.classes) == 2 and self.why.logits[0] <= 0 else 1

    def reasons(self) -> tuple[list[str], list[str]]:
        """The words that speak most for the prediction, and those against it; function words are left out."""
        strength = {
            word: self.towards * effect
            for word, effect in self.effects.items()
            if word not in FUNCTION_WORDS and any(letter.isalnum() for letter in word)
        }
        least = _SLIGHT * max(map(abs, strength.values()), default=0.0)
        order = sorted(strength, key=lambda word: -strength[word])
        return (
            [word for word in order if strength[word] > least][:_NAMED_FOR],
            [word for word in reversed(order) if strength[word] < -least][:_NAMED_AGAINST],
        )


def linked(word: str) -> str:
    """A word as HTML that is highlighted in all views when it is pointed at (static/linked.js)."""
    return f'<span class="word" data-word="{html.escape(word)}">“{html.escape(word)}”</span>'


def listed(words: Sequence[str]) -> str:
    """Linked words as HTML: a, b and c."""
    shown = [linked(word) for word in words]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def percent(share: float, digits: int = 0) -> str:
    """A probability in percent; only 0 and 1 themselves are shown as 0 % and 100 %.

    >>> percent(0.934), percent(0.999), percent(0.99996), percent(0.0004, 1)
    ('93%', '99.9%', '&gt; 99.9%', '&lt; 0.1%')
    """
    for places in range(digits, 2):
        shown = f"{share:.{places}%}"
        if float(shown[:-1]) not in (0.0, 100.0) or share in (0.0, 1.0):
            return shown
    return "&gt; 99.9%" if share > 0.5 else "&lt; 0.1%"


def because(words: Words) -> str:
    """The prediction and the words that make it, as a sentence in HTML; empty where no word is known."""
    why = words.why
    if not why.known:
        return ""
    name = html.escape(str(why.prediction))
    speaking, against = words.reasons()
    sentence = f"<b>{name}</b> because of {listed(speaking)}" if speaking else f"<b>{name}</b> by no single word"
    if against:
        sentence += f", although {listed(against)} speak{'s' if len(against) == 1 else ''} against it"
    other = why.counterfactual()
    if other is not None:
        sentence += (
            f". Without {listed(other.words)} it would be <b>{html.escape(str(other.prediction))}</b> "
            f"({percent(other.probability)})"
        )
    return f"<p class='because'>{sentence}.</p>"


def signed(value: float) -> str:
    """A number with its sign and two digits."""
    return f"{value:+.2f}".replace("-", "−")


def without_struck(words: Words) -> str:
    """What changes without the words that are struck out, as HTML; how to strike one out where none is."""
    why = words.why
    if not words.struck:
        return (
            "<p class='soft told' aria-live='polite'>Point at a word to see it in every picture. Click it, or press "
            "Enter, to strike it out.</p>"
        )
    before, after = why.probabilities, probabilities_of(words.logits)
    now, label = int(after.argmax()), html.escape(str(why.classes[int(after.argmax())]))
    turned = "still " if why.classes[now] == why.prediction else "now "
    explained = html.escape(str(why.classes[1] if len(why.classes) == 2 else why.prediction))
    return (
        f"<p class='struck' role='status'>Without {listed(words.struck)} it is {turned}<b>{label}</b> "
        f"({percent(float(after[now]), 1)}, before {percent(float(before[now]), 1)}). The logit of {explained} goes "
        f"from {signed(float(why.logits[why.output]))} to <b>{signed(float(words.logits[why.output]))}</b>. "
        "<button type='button' data-restore='yes'>Put back</button></p>"
        "<p class='soft told' aria-live='polite'></p>"
    )


def effect_in_words(words: Words, word: str) -> str:
    """What striking a word out would change, as plain text."""
    effect, why = words.effects.get(word), words.why
    if effect is None:
        return word
    label = why.classes[1] if len(why.classes) == 2 else why.prediction
    leaders = dict.fromkeys(why.words[why.follows[place]] for place in words.places[word])
    led = ", ".join(f"“{name}”" for name in list(leaders)[:3])
    change = "higher" if effect < 0 else "lower"
    return f"“{word}” follows {led}. Without it the logit of {label} would be {abs(effect):.2f} {change}."
