"""Figures of words, compared with their data."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes

from hardmax.drawing import words
from hardmax.errors import InputError
from hardmax.figures import text as pictures
from hardmax.text import LeaderClassifier
from hardmax.text.explaining.corpus_statistics import survey
from made_up_texts import opinions, topics

TEXTS, LABELS = opinions(150)


@pytest.fixture(scope="module", params=[1, 2, 4])
def model(request: pytest.FixtureRequest) -> LeaderClassifier:
    return LeaderClassifier(dim=request.param, random_state=0, epochs=15).fit(TEXTS, LABELS)


def _found(ax: Axes, gid: str) -> list:
    return [artist for artist in ax.get_children() if artist.get_gid() == gid]


def test_an_explanation_shows_leaders_boundary_and_mean(model: LeaderClassifier) -> None:
    told = model.explain(TEXTS[0])
    ax = told.draw()
    assert len(_found(ax, words.LEADERS)[0].get_offsets()) == len(told.leaders)
    boundary = _found(ax, words.BOUNDARY)[0].get_xdata()[0]
    mean = _found(ax, words.MEAN)[0].get_offsets()[0][0]
    assert (mean > boundary) == bool(told.prediction)
    size = np.linalg.norm(told.decoder[0])
    assert size * (mean - boundary) == pytest.approx(told.logits[0], abs=1e-9)
    shown = {annotation.get_text() for annotation in ax.texts}
    assert {told.leaders[0].word} <= shown
    assert len(_found(ax, words.TRAILS)[0].get_segments()) == len(told.words)


def test_pictures_of_many_documents(model: LeaderClassifier) -> None:
    seen = survey(model, TEXTS)
    ax = pictures.draw_word_map(seen, top=5)
    assert len(_found(ax, words.LEADERS)[0].get_offsets()) == min(5, len(seen.most_frequent_leaders(5)))
    assert _found(ax, words.BOUNDARY)
    bars = _found(pictures.draw_leader_histogram(seen, top=6), pictures.BARS)
    assert sum(bar.get_width() for bar in bars) == sum(count for _, count in seen.most_frequent_leaders(6))
    bars = _found(pictures.draw_leader_counts(seen), pictures.BARS)
    assert sum(bar.get_height() for bar in bars) == pytest.approx(200)


def test_several_classes() -> None:
    texts, names = topics(90)
    model = LeaderClassifier(random_state=0, epochs=15).fit(texts, names)
    assert model.explain(texts[0]).draw().get_title(loc="left").startswith(model.predict(texts[:1])[0])
    seen = survey(model, texts)
    for draw in (pictures.draw_word_map, pictures.draw_leader_histogram, pictures.draw_leader_counts):
        assert isinstance(draw(seen), Axes)


def test_nothing_to_draw() -> None:
    model = LeaderClassifier(random_state=0, epochs=2).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="without a known word"):
        model.explain("дом").draw()


def test_the_map_of_many_classes_says_which_colour_is_which():
    texts = ["good film"] * 8 + ["bad film"] * 8 + ["where is it"] * 8
    model = LeaderClassifier(random_state=0, epochs=5).fit(texts, ["praise"] * 8 + ["blame"] * 8 + ["$ask$"] * 8)
    ax = pictures.draw_word_map(survey(model, texts))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [r"\$ask\$", "blame", "praise"]
