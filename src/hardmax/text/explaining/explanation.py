r"""Explanation of the classification of one document, which is exact.

The mean of the final positions splits over the leaders. With :math:`m_i` the share of word i in the total mass (a small
part of which rests at the origin) and :math:`M_l` the sum over the words that follow leader l,

.. math:: \text{logit} = b + \sum_l \Bigl( M_l\, v\cdot z_l + \sum_{i\to l} m_i\, v\cdot(z_i^K - z_l) \Bigr).

The first term is the value of the leader times the mass that it has gathered; the second is the remaining distance of
its followers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, softmax

from ..model.hardmax_forward import positions_by_layer
from ..model.network import Network
from ..words.counts import batch
from ..words.tokenisation import Tokeniser
from .rendering import LeaderRow, coloured, html_page, html_table, marked_text, plain_table, word_weights

# Names that fit on one line beside a leader.
_FOLLOWERS_SHOWN = 8
# Leaders named in the sentence, so that it stays on one line.
_LEADERS_NAMED = 4


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
    """Leaders, largest contribution first."""
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
        return Explanation(
            classes=classes,
            logits=bias + contributions.sum(axis=0),
            bias=bias,
            words=names,
            shares=shares,
            contributions=contributions,
            follows=leader_of,
            decided_at=attention.decided_at,
            leaders=_leaders(names, shares, contributions, leader_of, attention.decided_at, path[-1], decoder),
            path=path,
            decoder=decoder,
            collapse=network.collapse,
            text=text,
            tokeniser=tokeniser,
            endings=endings,
        )

    @property
    def known(self) -> bool:
        """Whether the document contains a known word; if not, the prediction is that of the class prior."""
        return len(self.words) > 0

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of each class, shape (classes,)."""
        if len(self.classes) == 2:
            return np.array([expit(-self.logits[0]), expit(self.logits[0])])
        return np.asarray(softmax(self.logits))

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
        named = ", ".join(repr(leader.word) for leader in self.leaders[:_LEADERS_NAMED])
        more = len(self.leaders) - _LEADERS_NAMED
        return f"{self.prediction} ({probability:.0%}), led by {named}" + (f" and {more} more" if more > 0 else "")

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
    """Leaders, largest contribution first, of words at the positions ``final``, shape (words, coordinates)."""
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
    return tuple(sorted(found, key=lambda leader: -float(np.abs(leader.contribution).max())))
