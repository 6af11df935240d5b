"""Characters that DejaVu Sans lacks: drawn with an installed font that has them, else named in one warning."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import fontManager

from hardmax.drawing import fonts
from hardmax.drawing.fonts import DEFAULT, FontWarning, families
from hardmax.drawing.style import new_figure, styled
from hardmax.figures.text import draw_word_map
from hardmax.text import LeaderClassifier, survey

GOOD = "好"


def square_font(path: Path, family: str, characters: str) -> Path:
    """A font whose characters are all a filled square."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 800), (800, 800), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square, empty = pen.glyph(), TTGlyphPen(None).glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "square"])
    builder.setupCharacterMap({ord(character): "square" for character in characters})
    builder.setupGlyf({".notdef": empty, "square": square})
    builder.setupHorizontalMetrics({".notdef": (1000, 0), "square": (1000, 0)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=800, usWinAscent=800, usWinDescent=200)
    builder.setupPost()
    builder.save(path)
    return path


@pytest.fixture
def square(tmp_path: Path) -> Iterator[None]:
    """A font under the name of one that Linux installs for Chinese, as long as the test runs."""
    before = list(fontManager.ttflist)
    fontManager.addfont(square_font(tmp_path / "square.ttf", "Noto Sans CJK SC", GOOD))
    yield
    fontManager.ttflist[:] = before
    fonts._installed.cache_clear()


def ink(text: str) -> float:
    """Share of dark pixels of a figure that shows ``text`` alone."""
    with styled():
        figure = new_figure(1.0, 1.0)
        figure.text(0.3, 0.3, text, fontsize=30)
        figure.savefig(buffer := io.BytesIO(), format="rgba", dpi=50)
    return float((np.frombuffer(buffer.getvalue(), dtype=np.uint8).reshape(-1, 4)[:, 0] < 100).mean())


def test_an_installed_font_draws_what_the_default_lacks(square: None) -> None:
    assert families() == [DEFAULT, "Noto Sans CJK SC"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The square of this font is 0.8 of 30 points wide: 16.7 of 50 pixels. A box of the default font has thin lines.
        assert ink(GOOD) == pytest.approx((0.8 * 30 / 72) ** 2, rel=0.1)
        # Characters of the default font look as before.
        assert 0 < ink("g") < 0.1


def test_missing_characters_are_named_once() -> None:
    if len(families()) > 1:
        pytest.skip("fonts of other scripts are installed")
    figure = new_figure(2.0, 1.0)
    figure.text(0.1, 0.5, "好看 and 好")
    with pytest.warns(FontWarning, match="No installed font shows 好 看: boxes") as told:
        figure.savefig(io.BytesIO(), format="png")
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png")
    figure.text(0.1, 0.1, "不好")
    with pytest.warns(FontWarning, match="shows 不: boxes"):
        figure.savefig(io.BytesIO(), format="png")


def test_other_warnings_while_drawing_arrive() -> None:
    figure = new_figure(2.0, 1.0)
    figure.add_subplot().set_title("title")
    with pytest.warns(UserWarning, match="told"), fonts.one_warning_for_boxes(set()):
        warnings.warn("told", stacklevel=1)


# Two texts for and two against, with the name of a font for the script that Linux installs.
SCRIPTS = {
    "Noto Sans CJK SC": ("这部电影很好看", "演员非常好", "太差了很无聊", "剧情很糟糕"),
    "Loma": ("หนังเรื่องนี้ดีมาก", "สนุกมากชอบ", "น่าเบื่อมาก", "แย่ที่สุดไม่ดี"),
    "Lohit Devanagari": ("यह फिल्म बहुत अच्छी है", "शानदार अभिनय अच्छा", "बहुत बुरी उबाऊ फिल्म", "कहानी खराब है"),
}


@pytest.mark.parametrize("family", SCRIPTS)
def test_explanations_and_word_maps_use_the_font_of_the_script(
    family: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = list(SCRIPTS[family])
    model = LeaderClassifier(random_state=0, progress=False).fit(texts * 4, [1, 1, 0, 0] * 4)
    before = list(fontManager.ttflist)
    letters = "".join(sorted({letter for text in texts for letter in text if letter != " "}))
    if len(families()) == 1:  # without a font of the script there is one note per figure
        with pytest.warns(FontWarning) as told:
            model.explain(texts[0]).draw().figure.savefig(io.BytesIO(), format="png")
        assert len(told) == 1
    fontManager.addfont(square_font(tmp_path / "script.ttf", family, letters))
    try:
        assert family in families()
        with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
            warnings.simplefilter("error")
            for axes in (model.explain(texts[0]).draw(), draw_word_map(survey(model, texts))):
                axes.figure.savefig(io.BytesIO(), format="png")
    finally:
        fontManager.ttflist[:] = before
        fonts._installed.cache_clear()
    # The font has no bold face, in which the leader would be named; that is no message per figure.
    assert not caplog.records


def test_arabic_is_in_the_default_font() -> None:
    texts = ["فيلم رائع جدا", "تمثيل جميل", "فيلم ممل جدا", "قصة سيئة"]
    model = LeaderClassifier(random_state=0, progress=False).fit(texts * 4, [1, 1, 0, 0] * 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.explain(texts[0]).draw().figure.savefig(io.BytesIO(), format="png")
