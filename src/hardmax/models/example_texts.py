"""Short example texts for trained models."""

from __future__ import annotations

from .transformer import Transformer

BREAD = "A man is eating a piece of bread."
FILM = "This movie was dreadful: the plot made no sense and the acting was wooden, but the music was lovely."
SENTENCES = (
    "A man is eating food.",
    BREAD,
    FILM,
    "In every layer a token attends to the tokens of the largest score and moves towards their mean.",
    "The film was long, the plot was dull, but the cast was wonderful and the music stayed with me for days.",
    "When the rain stopped, Anna walked to the station, bought a ticket to Lyon and waited for the train that her "
    "brother had promised would never be late.",
    "Water boils at a lower temperature on a mountain, because the air presses less on its surface.",
    "She asked whether the committee had read the report before it voted, and nobody answered.",
)
"""Sentences in English."""

REACTIONS = (
    "CC(=O)O.OCC>>CC(=O)OCC.O",
    "CC(=O)Cl.NCc1ccccc1>>CC(=O)NCc1ccccc1",
    "O=C(O)c1ccccc1.CO>>COC(=O)c1ccccc1",
    "Brc1ccccc1.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
    "CC(C)=O.[BH4-].[Na+]>>CC(C)O",
    "Nc1ccccc1.CC(=O)OC(C)=O>>CC(=O)Nc1ccccc1",
)
"""Chemical reactions in the SMILES notation: esters, amides, a coupling and a reduction."""


def examples_for(model: Transformer) -> tuple[str, ...]:
    """Texts that suit a model: reactions where the model knows the words of one, sentences otherwise.

    Parameters
    ----------
    model
        A model with a tokeniser.

    Returns
    -------
    tuple of str
        Short texts.
    """
    return REACTIONS if _reads(model, REACTIONS[0]) and not _reads(model, SENTENCES[0]) else SENTENCES


def _reads(model: Transformer, text: str) -> bool:
    """Whether the tokens of a text, joined, are the text: no word is unknown."""
    found = model.tokenise(text)
    words = [word for word, special in zip(found.words, found.special, strict=True) if not special]
    return "".join(words) == text
