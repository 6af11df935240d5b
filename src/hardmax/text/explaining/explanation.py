r"""Why a document is classified as it is: exactly, not approximately.

The mean of the final positions splits over the leaders. With :math:`m_i` the share of word i in all mass (a little
of which rests at the origin) and :math:`M_l` the sum over those that follow leader l,

.. math:: \text{logit} = b + \sum_l \Bigl( M_l\, v\cdot z_l + \sum_{i\to l} m_i\, v\cdot(z_i^K - z_l) \Bigr):

what each leader says, times all that it has gathered, and what its followers still lack of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, softmax

from ..model.hardmax_forward import layers
from ..model.network import Network
from ..words.counts import batch
from ..words.tokenisation import Tokeniser
from .rendering import page, plain


@dataclass(frozen=True)
class Leader:
    """A leader of a document, what it gathered, and what it contributes to each logit."""

    word: str
    share: float
    """The share of the document's mass that it gathered, itself included."""
    contribution: np.ndarray
    """``own + offset``; the leaders' contributions and the bias add up to the logits."""
    own: np.ndarray
    """The share times what the leader's position says."""
    offset: np.ndarray
    """What the followers still lack of their leader's position."""
    emerged_at: int
    """The layer from which on it leads."""
    followers: tuple[int, ...]
    """Places of the words that follow it, heaviest first, itself excluded."""


@dataclass(frozen=True)
class Explanation:
    """The leaders of a document, who follows them, and what each contributes.

    ``bias`` and the leaders' contributions add up to ``logits``, as do ``bias`` and the words' contributions.
    For two classes there is one logit, that of the second class.
    """

    classes: np.ndarray
    logits: np.ndarray
    bias: np.ndarray
    words: tuple[str, ...]
    shares: np.ndarray
    """The share of each word in the document's mass."""
    contributions: np.ndarray
    """What each word contributes to each logit, shape (words, logits)."""
    follows: np.ndarray
    """The place of the word that each word follows in the end."""
    decided_at: np.ndarray
    leaders: tuple[Leader, ...]
    """Largest contribution first."""
    path: np.ndarray
    """Where the words are at every layer, shape (layers + 1, words, coordinates)."""
    decoder: np.ndarray
    collapse: float
    text: str | None = None
    tokeniser: Tokeniser | None = None
    endings: int | None = None
    """How many words at the end of the text count apart."""

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
        """Explain the only row of ``table``."""
        documents = batch(table)
        start = network.embedding[torch.from_numpy(documents.columns)]
        course = network.course(start.numpy(), documents.starts)
        decoder, alpha = network.decoder.numpy(), float(network.alpha)
        path = layers(start.numpy(), course, alpha, network.depth)
        mass = network.masses(start, documents).numpy()
        known = len(documents.columns) > 0
        shares = mass / (network.resting_mass + mass.sum()) if known else mass
        contributions = shares[:, None] * (path[-1] @ decoder.T)
        bias = network.bias.numpy().copy() if known else prior_logits
        heads = _heads(course.follows)
        return Explanation(
            classes=classes,
            logits=bias + contributions.sum(axis=0),
            bias=bias,
            words=tuple(words[column] for column in documents.columns),
            shares=shares,
            contributions=contributions,
            follows=heads,
            decided_at=course.decided_at,
            leaders=_leaders(words, documents.columns, shares, contributions, heads, course.decided_at, path, decoder),
            path=path,
            decoder=decoder,
            collapse=network.collapse,
            text=text,
            tokeniser=tokeniser,
            endings=endings,
        )

    @property
    def known(self) -> bool:
        """Whether the document holds a word that the model knows; if not, the answer is the prior."""
        return len(self.words) > 0

    @property
    def probabilities(self) -> np.ndarray:
        """The probability of each class."""
        if len(self.classes) == 2:
            return np.array([expit(-self.logits[0]), expit(self.logits[0])])
        return np.asarray(softmax(self.logits))

    @property
    def prediction(self) -> Any:
        """The class that the document is given."""
        return self.classes[self._winner]

    @property
    def _winner(self) -> int:
        return int(self.logits[0] > 0) if len(self.classes) == 2 else int(self.logits.argmax())

    @property
    def output(self) -> int:
        """The logit that pictures show: the only one, or that of the class predicted."""
        return 0 if len(self.classes) == 2 else self._winner

    def data(self) -> dict[str, Any]:
        """Everything but the path, in plain numbers and texts."""
        return {
            "prediction": _plain(self.prediction),
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
        """The answer in one sentence."""
        probability = float(self.probabilities[self._winner])
        if not self.known:
            return f"{self.prediction} ({probability:.0%}): the text holds no known word, so this is the prior alone"
        named = ", ".join(repr(leader.word) for leader in self.leaders[:4])
        more = f" and {len(self.leaders) - 4} more" if len(self.leaders) > 4 else ""
        return f"{self.prediction} ({probability:.0%}), led by {named}{more}"

    def to_html(self) -> str:
        """The text with its words marked and the leaders under it, as one piece of HTML; everything is escaped."""
        return page(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return plain(self)

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


def _heads(follows: np.ndarray) -> np.ndarray:
    """The end of each chain of following: the leader, for all words that are decided."""
    heads = follows
    for _ in range(len(follows)):
        if np.array_equal(heads[heads], heads):
            break
        heads = heads[heads]
    return heads


def _leaders(
    words: list[str],
    columns: np.ndarray,
    shares: np.ndarray,
    contributions: np.ndarray,
    heads: np.ndarray,
    decided_at: np.ndarray,
    path: np.ndarray,
    decoder: np.ndarray,
) -> tuple[Leader, ...]:
    found = []
    for place in np.unique(heads):
        members = np.flatnonzero(heads == place)
        gathered = float(shares[members].sum())
        total = contributions[members].sum(axis=0)
        own = gathered * (path[-1][place] @ decoder.T)
        order = members[np.argsort(-shares[members], kind="stable")]
        found.append(
            Leader(
                word=words[columns[place]],
                share=gathered,
                contribution=total,
                own=own,
                offset=total - own,
                emerged_at=int(decided_at[place]),
                followers=tuple(int(k) for k in order if k != place),
            )
        )
    return tuple(sorted(found, key=lambda leader: -float(np.abs(leader.contribution).max())))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
