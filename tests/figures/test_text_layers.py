"""Words at chosen layers, as an animation, and figures of training results."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hardmax.drawing.words import LEADERS, MEAN
from hardmax.errors import InputError
from hardmax.figures.text_layers import WORDS, animate_explanation, draw_layers
from hardmax.figures.text_results import (
    draw_accuracy_by_dimension,
    draw_accuracy_by_epoch,
    draw_faithfulness,
    draw_softmax_and_hardmax,
)
from hardmax.text.explaining.explanation import Explanation
from hardmax.text.pretrained import shipped_model


@pytest.fixture(scope="module")
def why() -> Explanation:
    return shipped_model().explain("A dull plot, saved by a wonderful cast and a superb score.")


def _offsets(ax: object, gid: str) -> np.ndarray:
    found = [artist for artist in ax.collections if artist.get_gid() == gid]  # type: ignore[attr-defined]
    assert len(found) == 1
    return np.asarray(found[0].get_offsets())


def test_the_words_gather_at_their_leaders(why: Explanation) -> None:
    first, last = draw_layers(why, [0, 8]).axes
    leaders = _offsets(last, LEADERS)
    assert len(leaders) == len(why.leaders)
    gap = np.linalg.norm(_offsets(last, WORDS)[:, None] - leaders[None], axis=2).min(axis=1)
    before = np.linalg.norm(_offsets(first, WORDS)[:, None] - leaders[None], axis=2).min(axis=1)
    assert gap.max() < 0.05 < before.max()
    # The horizontal axis is the decoder's direction, so the mean that is read stands at the logit.
    reading = float(np.linalg.norm(why.decoder[0]))
    assert _offsets(last, MEAN)[0, 0] * reading + why.bias[0] == pytest.approx(why.logits[0])


def test_layers_left_out_are_three(why: Explanation) -> None:
    assert len(draw_layers(why).axes) == 3
    with pytest.raises(InputError, match="layers"):
        draw_layers(why, [0, 9])


def test_a_film_moves_and_holds(why: Explanation, tmp_path: Path) -> None:
    path = animate_explanation(why, tmp_path / "words.gif", fps=2, seconds_per_layer=0.5, progress=False)
    with Image.open(path) as film:
        assert film.n_frames == 8 + 2 * 3 - sum(_repeated(film))
    with pytest.raises(InputError, match="seconds_per_layer"):
        animate_explanation(why, tmp_path / "words.gif", seconds_per_layer=0)


def _repeated(film: Image.Image) -> list[int]:
    """Frames that a GIF has left out because they equal the one before: their time is added to it."""
    durations = []
    for k in range(film.n_frames):
        film.seek(k)
        durations.append(film.info["duration"])
    return [round(duration / min(durations)) - 1 for duration in durations]


def test_a_text_without_a_word_has_no_picture() -> None:
    nothing = shipped_model().explain("zzzz")
    with pytest.raises(InputError, match="known word"):
        draw_layers(nothing)


def test_results_of_training() -> None:
    ax = draw_accuracy_by_dimension({"ours": {2: 0.75, 4: 0.82}}, published={2: 0.7, 4: 0.8})
    assert [line.get_label() for line in ax.lines] == ["published", "ours"]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0.75, 0.82])
    alone = draw_accuracy_by_dimension({"ours": {2: 0.75, 4: 0.82}}, note="A trial, too short to be compared.")
    assert [line.get_label() for line in alone.lines] == ["ours"]
    assert "too short" in alone.get_title(loc="left")
    history = [
        {"epoch": 1, "loss": 0.7, "accuracy": 0.5, "held_out_accuracy": 0.55, "hardmax_loss": 0.69},
        {"epoch": 2, "loss": 0.6, "accuracy": 0.6, "held_out_accuracy": 0.62},
    ]
    ax = draw_accuracy_by_epoch({"d = 2": history})
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.55, 0.62])
    ax = draw_softmax_and_hardmax({"d = 2": history})
    np.testing.assert_allclose(ax.lines[1].get_xdata(), [1])
    ax = draw_faithfulness([("leaders", 11.0), ("LIME", 6.0)])
    assert [bar.get_width() for bar in ax.patches] == [11.0, 6.0]
