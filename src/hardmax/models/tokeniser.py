"""Interface of a tokeniser: texts to numbers of tokens and back; and texts that are evaluated together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tokenised:
    """A text as tokens."""

    ids: tuple[int, ...]
    """Number of each token in the vocabulary."""
    words: tuple[str, ...]
    """Each token as it is read, special tokens such as ``[CLS]`` included."""
    special: tuple[bool, ...]
    """True for tokens that the tokeniser added, such as ``[CLS]``."""

    def __len__(self) -> int:
        return len(self.ids)


def batches(texts: Sequence[Tokenised], most: int) -> list[list[int]]:
    """Indices of texts of similar length that are evaluated together, at most ``most`` tokens with their padding.

    >>> batches([Tokenised((0,) * n, ("",) * n, (False,) * n) for n in (2, 5, 3)], 8)
    [[1], [2, 0]]
    """
    order = sorted(range(len(texts)), key=lambda k: -len(texts[k]))
    found = []
    while order:
        size = max(1, most // len(texts[order[0]]))
        found.append(order[:size])
        order = order[size:]
    return found


class AbstractTokeniser(ABC):
    """Interface of a tokeniser."""

    @abstractmethod
    def tokenise(self, text: str) -> Tokenised:
        """Tokens of a text, with the special tokens that the model expects.

        Parameters
        ----------
        text
            Any text.

        Returns
        -------
        Tokenised
            Numbers and words.
        """

    @abstractmethod
    def word(self, token: int) -> str:
        """Token with this number, as it is read.

        Parameters
        ----------
        token
            Number in the vocabulary.

        Returns
        -------
        str
            The word, or part of a word.
        """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of tokens in the vocabulary."""
