"""Sentences of documents, and their weights."""

import numpy as np
import pytest

from hardmax.datasets.corpora import sentences_of, with_sentences
from hardmax.datasets.documents import Documents

LONG = "this one tells the story of a man who walks into a bar and never leaves."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One sentence only.", []),
        ("", []),
        (f"I saw it twice. {LONG} Great fun!", ["I saw it twice.", "Great fun!"]),
        (f"Dull. {LONG}", ["Dull.", LONG]),  # the last one, however long
        (f"{LONG} {LONG}", [LONG]),
        ("So good!!! <br /><br />See it... 10/10. ", ["So good!!!", "See it..."]),  # a rating alone is no sentence
        ("effective but too-tepid biopic", []),
    ],
)
def test_short_sentences_and_the_last(text: str, found: list[str]) -> None:
    assert sentences_of(text) == found


def test_sentences_of_a_document_weigh_as_much_together_as_asked() -> None:
    documents = Documents(["Bad. Very bad. Avoid.", "a joy", "Lovely. See it."], np.array([0, 1, 1]), "three")
    grown, weights = with_sentences(documents, 2.0)
    assert grown.texts[:3] == documents.texts
    assert grown.labels is not None
    assert grown.labels.tolist() == [0, 1, 1, 0, 0, 0, 1, 1]
    np.testing.assert_allclose(weights, [1, 3, 1, 2 / 3, 2 / 3, 2 / 3, 1, 1])
    assert "5 sentences" in grown.source
