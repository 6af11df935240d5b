r"""Explanation of the classification of one document, which is exact.

The mean of the final positions splits over the leaders. With :math:`m_i` the share of word i in the total mass (a small
part of which rests at the origin) and :math:`M_l` the sum over the words that follow leader l,

.. math:: \text{logit} = b + \sum_l \Bigl( M_l\, v\cdot z_l + \sum_{i\to l} m_i\, v\cdot(z_i^K - z_l) \Bigr).

The first term is the value of the leader times the mass that it has gathered; the second is the remaining distance of
its followers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy import sparse

from ...errors import InputError
from ..model.hardmax_forward import positions_by_layer
from ..model.network import Network
from ..model.prediction import class_probabilities
from ..words.counts import batch
from ..words.document_endings import AT_THE_END
from ..words.tokenisation import FUNCTION_WORDS, Tokeniser
from .deletion import Deletion
from .rendering import LeaderRow, coloured, html_page, html_table, marked_text, plain_table, word_weights

# Names that fit on one line beside a leader.
_FOLLOWERS_SHOWN = 8
# Leaders named in the sentence, so that it stays on one line.
_LEADERS_NAMED = 4
# Words that are tried for a counterfactual: those with the largest contributions, since others change little.
_TRIED = 30


@dataclass(frozen=True)
class Leader:
    """A leader of a document, the mass that it gathered, and its contribution to each logit."""

    word: str
    """Name of the word."""
    share: float
    """Share of the document's mass that the leader and its followers have."""
    contribution: np.ndarray
    """``own + offset``, shape (logits,); the contributions of all leaders and the bias add up to the logits."""
    own: np.ndarray
    """The share times the decoder at the leader's position, shape (logits,)."""
    offset: np.ndarray
    """Contribution of the remaining distance between followers and leader, shape (logits,)."""
    emerged_at: int
    """First layer at which the word attends to itself."""
    followers: tuple[int, ...]
    """Indices of the words that follow the leader, heaviest first, without the leader itself."""


@dataclass(frozen=True)
class Reason:
    """A word of a document, and the exact effect of deleting it."""

    word: str
    """Name of the word."""
    place: int
    """Index of the word in :attr:`Explanation.words`."""
    effect: np.ndarray
    """Logits with the word minus those without it, shape (logits,); positive if the word speaks for a class."""


@dataclass(frozen=True)
class Counterfactual:
    """Words without which the prediction would be another."""

    words: tuple[str, ...]
    """The words; deleted together with all n-grams that contain one of them."""
    prediction: Any
    """Label of the class that is predicted without them."""
    probability: float
    """Probability of that class without them."""

    def __str__(self) -> str:
        named = " and ".join(repr(word) for word in self.words)
        return f"Without {named} it would be {self.prediction} ({self.probability:.0%})."


@dataclass(frozen=True)
class Explanation:
    """Leaders of a document, their followers, and the contribution of each.

    ``bias`` and the contributions of the leaders add up to ``logits``, as do ``bias`` and the contributions of the
    words. For two classes there is one logit, that of the second class.
    """

    classes: np.ndarray
    """Labels of the classes, shape (classes,)."""
    logits: np.ndarray
    """Logits of the document, shape (logits,)."""
    bias: np.ndarray
    """Bias of the decoder, or the logits of the class prior if no word is known, shape (logits,)."""
    words: tuple[str, ...]
    """Names of the distinct known words of the document."""
    shares: np.ndarray
    """Share of each word in the document's mass, shape (words,)."""
    contributions: np.ndarray
    """Contribution of each word to each logit, shape (words, logits)."""
    follows: np.ndarray
    """Index of the leader of each word, shape (words,)."""
    decided_at: np.ndarray
    """First layer at which each word attends to a leader, shape (words,)."""
    leaders: tuple[Leader, ...]
    """Leaders: first those that speak for the prediction, then the others, each by the effect of deleting them."""
    path: np.ndarray
    """Position of each word at every layer, shape (layers + 1, words, coordinates)."""
    decoder: np.ndarray
    """Weights of the decoder, shape (logits, coordinates)."""
    collapse: float
    """Fraction of the distance to their leaders that words have moved after all layers."""
    text: str | None = None
    """The text, if the document is one."""
    tokeniser: Tokeniser | None = None
    """Tokeniser of the model, if it was fitted on texts."""
    endings: int | None = None
    """Number of words at the end of the text that also count as words of their own."""
    effects: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    """Logits with each word minus those without it, exact, shape (words, logits)."""
    deletion: Deletion | None = field(default=None, repr=False, compare=False)
    """Evaluates the document without some of its words."""

    @staticmethod
    def of(
        network: Network,
        table: sparse.csr_matrix,
        *,
        words: list[str],
        classes: np.ndarray,
        prior_logits: np.ndarray,
        text: str | None,
        tokeniser: Tokeniser | None,
        endings: int | None = None,
    ) -> Explanation:
        """Explanation of a single document.

        Parameters
        ----------
        network
            Trained network in double precision.
        table
            Weighted counts of the document, shape (1, words).
        words
            Names of the columns of ``table``.
        classes
            Labels of the classes.
        prior_logits
            Logits of the class prior, for a document without a known word.
        text
            The text, if the document is one.
        tokeniser
            Tokeniser of the model, if it was fitted on texts.
        endings
            Number of words at the end of the text that also count as words of their own.

        Returns
        -------
        Explanation
            The leaders of the document and their contributions.
        """
        documents = batch(table)
        start = network.embedding[torch.from_numpy(documents.columns)]
        attention = network.attention_path(start.numpy(), documents.starts)
        decoder, alpha = network.decoder.numpy(), float(network.alpha)
        path = positions_by_layer(start.numpy(), attention, alpha, network.depth)
        mass = network.masses(start, documents).numpy()
        known = len(documents.columns) > 0
        shares = mass / (network.resting_mass + mass.sum()) if known else mass
        contributions = shares[:, None] * (path[-1] @ decoder.T)
        bias = network.bias.numpy().copy() if known else prior_logits
        names = tuple(words[column] for column in documents.columns)
        leader_of = _ends_of_chains(attention.follows)
        logits = bias + contributions.sum(axis=0)
        deletion = Deletion(network, table, prior_logits)
        effects = deletion.effects()
        leaders = _leaders(names, shares, contributions, leader_of, attention.decided_at, path[-1], decoder)
        return Explanation(
            classes=classes,
            logits=logits,
            bias=bias,
            words=names,
            shares=shares,
            contributions=contributions,
            follows=leader_of,
            decided_at=attention.decided_at,
            leaders=tuple(leaders[k] for k in _ranked(np.unique(leader_of), leaders, effects, logits)),
            path=path,
            decoder=decoder,
            collapse=network.collapse,
            text=text,
            tokeniser=tokeniser,
            endings=endings,
            effects=effects,
            deletion=deletion,
        )

    @property
    def known(self) -> bool:
        """Whether the document contains a known word; if not, the prediction is that of the class prior."""
        return len(self.words) > 0

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of each class, shape (classes,)."""
        return np.asarray(class_probabilities(self.logits[None])[0])

    @property
    def prediction(self) -> Any:
        """Label of the predicted class."""
        return self.classes[self._winner]

    @property
    def _winner(self) -> int:
        return int(self.logits[0] > 0) if len(self.classes) == 2 else int(self.logits.argmax())

    @property
    def output(self) -> int:
        """Index of the logit that figures show: the only one, or that of the predicted class."""
        return 0 if len(self.classes) == 2 else self._winner

    def reasons(self, count: int | None = None) -> tuple[Reason, ...]:
        """Words whose deletion changes the logit :attr:`output` most, in the order in which they are deleted.

        Each is the word with the largest effect once those before it are deleted, towards or away from the class.

        Parameters
        ----------
        count
            Number of words; as many as there are leaders by default.

        Returns
        -------
        tuple of Reason
            At most ``count`` words; the effects add up to the change of the logits without all of them.
        """
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
            raise InputError("count", repr(count), "must be a positive whole number", "pass for example count=3")
        if self.deletion is None:
            return ()
        most = min(len(self.leaders) if count is None else count, len(self.words))
        found: list[Reason] = []
        effects, sign = self.effects, 0.0
        for _ in range(most):
            gone = np.array([reason.place for reason in found], dtype=np.int64)
            strength = effects[:, self.output] * sign if sign else np.abs(effects[:, self.output])
            strength[gone] = -np.inf
            place = int(strength.argmax())
            # All in one direction, because opposite effects cancel.
            sign = sign or (1.0 if effects[place, self.output] >= 0 else -1.0)
            found.append(Reason(self.words[place], place, effects[place].copy()))
            if len(found) < most:
                effects = self.deletion.effects(np.append(gone, place))
        return tuple(found)

    def counterfactual(self, most: int = 5) -> Counterfactual | None:
        """Few words without which the prediction would be another.

        Parameters
        ----------
        most
            Largest number of words.

        Returns
        -------
        Counterfactual or None
            The words, found one after the other by the largest change; None if ``most`` of them do not suffice.
        """
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InputError("most", repr(most), "must be a positive whole number", "pass for example most=5")
        if self.deletion is None or not self.known:
            return None
        units = self._units()
        chosen: list[str] = []
        gone = np.empty(0, dtype=np.int64)
        while units and len(chosen) < most:
            names = list(units)
            logits = self.deletion.logits([np.union1d(gone, units[name]) for name in names])
            best = int(np.argmin(_margins(logits, self._winner)))
            chosen.append(names[best])
            gone = np.union1d(gone, units.pop(names[best]))
            after = class_probabilities(logits[best][None])[0]
            if int(after.argmax()) != self._winner:
                return Counterfactual(tuple(chosen), self.classes[int(after.argmax())], float(after.max()))
        return None

    def _units(self) -> dict[str, np.ndarray]:
        """Single words of the document with the indices of all n-grams that contain them, the most important ones."""
        places: dict[str, list[int]] = {}
        for place, name in enumerate(self.words):
            parts = name.removesuffix(AT_THE_END).split(" ") if self.tokeniser is not None else [name]
            for part in dict.fromkeys(parts):
                places.setdefault(part, []).append(place)
        margin = self.effects[:, self.output] * (1 if self._winner or len(self.classes) > 2 else -1)
        order = sorted(places, key=lambda word: -float(margin[places[word]].sum()))
        return {word: np.array(places[word]) for word in order[:_TRIED]}

    def data(self) -> dict[str, Any]:
        """Everything except the path, as numbers, strings, lists and dictionaries.

        Returns
        -------
        dict
            Can be written as JSON.
        """
        return {
            "prediction": self.prediction.item() if isinstance(self.prediction, np.generic) else self.prediction,
            "probabilities": {str(c): float(p) for c, p in zip(self.classes, self.probabilities, strict=True)},
            "logits": self.logits.tolist(),
            "bias": self.bias.tolist(),
            "known": self.known,
            "collapse": self.collapse,
            "reasons": [{"word": reason.word, "effect": reason.effect.tolist()} for reason in self.reasons()],
            "leaders": [
                {
                    "word": leader.word,
                    "share": leader.share,
                    "contribution": leader.contribution.tolist(),
                    "own": leader.own.tolist(),
                    "offset": leader.offset.tolist(),
                    "emerged_at": leader.emerged_at,
                    "followers": [
                        {
                            "word": self.words[place],
                            "share": float(self.shares[place]),
                            "contribution": self.contributions[place].tolist(),
                        }
                        for place in leader.followers
                    ],
                }
                for leader in self.leaders
            ],
        }

    def sentence(self) -> str:
        """Prediction, probability and main leaders in one sentence.

        Returns
        -------
        str
            One line.
        """
        probability = float(self.probabilities[self._winner])
        if not self.known:
            return f"{self.prediction} ({probability:.0%}): the text holds no known word, so this is the prior alone"
        speaking = [leader for leader in self.leaders if self._sign * leader.contribution[self.output] > 0]
        named = ", ".join(repr(leader.word) for leader in speaking[:_LEADERS_NAMED])
        more = len(speaking) - _LEADERS_NAMED
        led = f", led by {named}" + (f" and {more} more" if more > 0 else "") if named else ", by the bias alone"
        against = self._opposing_word()
        return f"{self.prediction} ({probability:.0%}){led}" + (f"; against it: {against!r}" if against else "")

    @property
    def _sign(self) -> int:
        """Sign of the logit :attr:`output` for the prediction."""
        return -1 if len(self.classes) == 2 and self._winner == 0 else 1

    def _opposing_word(self) -> str | None:
        """Word whose deletion would strengthen the prediction most; None if all are function words or marks."""
        if self.deletion is None:
            return None
        effect = self._sign * self.effects[:, self.output]
        for place in np.argsort(effect, kind="stable"):
            if effect[place] >= 0:
                break
            parts = self.words[place].removesuffix(AT_THE_END).split(" ")
            if any(part not in FUNCTION_WORDS and any(sign.isalnum() for sign in part) for part in parts):
                return str(self.words[place])
        return None

    def word_weights(self) -> list[tuple[int, int, float, bool]]:
        """Position of each known word in the text and its contribution to the logit :attr:`output`.

        Returns
        -------
        list of tuple
            Start, end, contribution, and whether the word is (part of) a leader; empty without a text. The contribution
            of an n-gram is divided equally among its words and all its occurrences.
        """
        if self.text is None or self.tokeniser is None:
            return []
        contributions = dict(zip(self.words, self.contributions[:, self.output].tolist(), strict=True))
        leaders = {leader.word for leader in self.leaders}
        return word_weights(self.text, self.tokeniser, contributions, leaders, self.endings or 0)

    def marked_text(self, mark: Callable[[str, float, float, bool], str]) -> str:
        """The text as HTML, with the words that contribute or lead formatted by ``mark``.

        Parameters
        ----------
        mark
            Called with the escaped word, its contribution, the absolute contribution relative to the largest one, and
            whether it leads; returns HTML.

        Returns
        -------
        str
            HTML in which everything else is escaped.
        """
        return marked_text(self.text or "", self.word_weights(), mark)

    def to_html(self) -> str:
        """The text with marked words and the table of leaders.

        Returns
        -------
        str
            One HTML element, in which all text is escaped.
        """
        table = None
        if self.known:
            # Signs and colours refer to one class, which need not be the predicted one.
            shown = self.classes[1 if len(self.classes) == 2 else self.output]
            table = html_table(self._rows(), self.bias[self.output], self.logits[self.output], str(shown))
        marked = None if self.text is None else self.marked_text(coloured)
        return html_page(self.sentence(), marked, table)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        if not self.known:
            return self.sentence()
        return self.sentence() + "\n" + plain_table(self._rows(), self.bias[self.output], self.logits[self.output])

    def _rows(self) -> list[LeaderRow]:
        rows = []
        for leader in self.leaders:
            named = ", ".join(self.words[k] for k in leader.followers[:_FOLLOWERS_SHOWN])
            more = len(leader.followers) - _FOLLOWERS_SHOWN
            followers = named + (f" and {more} more" if more > 0 else "")
            rows.append(LeaderRow(leader.word, leader.share, leader.contribution[self.output], followers))
        return rows

    def draw(self, ax: Any = None) -> Any:
        """Axes with the words on their way to their leaders and the boundary between the classes.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones when left out.

        Returns
        -------
        Axes
            The axes that were drawn on.
        """
        from ...drawing.words import draw_explanation

        return draw_explanation(self, ax)


def _ends_of_chains(follows: np.ndarray) -> np.ndarray:
    """Last word of the chain from each word to the word it follows; the leader, for all words that are decided."""
    ends = follows
    for _ in range(len(follows)):
        if np.array_equal(ends[ends], ends):
            break
        ends = ends[ends]
    return ends


def _leaders(
    words: tuple[str, ...],
    shares: np.ndarray,
    contributions: np.ndarray,
    leader_of: np.ndarray,
    decided_at: np.ndarray,
    final: np.ndarray,
    decoder: np.ndarray,
) -> tuple[Leader, ...]:
    """Leaders in the order of the words, of words at the positions ``final``, shape (words, coordinates)."""
    found = []
    for place in np.unique(leader_of):
        members = np.flatnonzero(leader_of == place)
        gathered = float(shares[members].sum())
        total = contributions[members].sum(axis=0)
        own = gathered * (final[place] @ decoder.T)
        order = members[np.argsort(-shares[members], kind="stable")]
        found.append(
            Leader(
                word=words[place],
                share=gathered,
                contribution=total,
                own=own,
                offset=total - own,
                emerged_at=int(decided_at[place]),
                followers=tuple(int(k) for k in order if k != place),
            )
        )
    return tuple(found)


def _ranked(places: np.ndarray, leaders: tuple[Leader, ...], effects: np.ndarray, logits: np.ndarray) -> list[int]:
    """Order of the leaders: those for the predicted class first, then by the effect of deleting them."""
    if len(leaders) == 0:
        return []
    output = 0 if len(logits) == 1 else int(logits.argmax())
    sign = -1 if len(logits) == 1 and logits[0] <= 0 else 1
    speaks_for = [sign * leader.contribution[output] > 0 for leader in leaders]
    strength = np.abs(effects[places, output])
    return sorted(range(len(leaders)), key=lambda k: (not speaks_for[k], -strength[k], k))


def _margins(logits: np.ndarray, winner: int) -> np.ndarray:
    """Logit of the class ``winner`` minus the largest other one, shape (documents,)."""
    if logits.shape[1] == 1:
        return np.asarray(logits[:, 0] if winner else -logits[:, 0])
    others = np.delete(logits, winner, axis=1)
    return np.asarray(logits[:, winner] - others.max(axis=1))
