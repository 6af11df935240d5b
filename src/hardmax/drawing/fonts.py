"""Fonts of figures: DejaVu Sans, which comes with matplotlib, then installed fonts for scripts that it lacks."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from matplotlib.font_manager import fontManager

DEFAULT = "DejaVu Sans"
# Families with many characters that Linux, macOS and Windows install, by script: the first that is there is used.
_BY_SCRIPT: dict[str, tuple[str, ...]] = {
    "Chinese": (
        "Noto Sans CJK SC",
        "Noto Sans SC",
        "Source Han Sans SC",
        "WenQuanYi Zen Hei",
        "WenQuanYi Micro Hei",
        "PingFang SC",
        "PingFang HK",
        "Microsoft YaHei",
        "SimHei",
        "Droid Sans Fallback",
        "AR PL UMing CN",
    ),
    "Japanese": (
        "Noto Sans CJK JP",
        "Noto Sans JP",
        "Source Han Sans JP",
        "IPAGothic",
        "IPAexGothic",
        "VL Gothic",
        "TakaoGothic",
        "Hiragino Sans",
        "Yu Gothic",
    ),
    "Korean": ("Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "Apple SD Gothic Neo", "Malgun Gothic"),
    "Thai": ("Noto Sans Thai", "Loma", "Garuda", "Waree", "Thonburi", "Leelawadee UI", "Tahoma"),
    "Devanagari": ("Noto Sans Devanagari", "Lohit Devanagari", "Gargi", "Kohinoor Devanagari", "Nirmala UI", "Mangal"),
    "Bengali": ("Noto Sans Bengali", "Lohit Bengali", "Kohinoor Bangla"),
    "Tamil": ("Noto Sans Tamil", "Lohit Tamil", "Tamil Sangam MN"),
    "Ethiopic": ("Noto Sans Ethiopic", "Kefa", "Ebrima"),
    "emoji": ("Noto Emoji", "Symbola", "Segoe UI Symbol"),
    "other": ("Arial Unicode MS", "Unifont", "GNU Unifont"),
}
_MISSING = re.compile(r"Glyph (\d+) .*missing from (?:current )?font", re.DOTALL)
# Few families of other scripts have a bold face; the regular one is drawn, which needs no message per figure.
_NO_BOLD = "findfont: Failed to find font weight"
_MOST_NAMED = 8  # characters that the warning shows


class FontWarning(UserWarning):
    """A figure has characters that no installed font shows; they are drawn as boxes."""


def families() -> list[str]:
    """Font families for all text of a figure; a character is drawn with the first one that has it.

    >>> families()[0]
    'DejaVu Sans'
    """
    return list(_installed(len(fontManager.ttflist)))


@lru_cache(maxsize=4)
def _installed(fonts: int) -> tuple[str, ...]:
    """The families of a list of ``fonts`` fonts; a font that is added makes the list longer."""
    there = {font.name for font in fontManager.ttflist}
    firsts = (next((name for name in names if name in there), None) for names in _BY_SCRIPT.values())
    return (DEFAULT, *(name for name in firsts if name is not None))


@contextmanager
def one_warning_for_boxes(known: set[str]) -> Iterator[None]:
    """Replace matplotlib's warning per character by one for all characters that are not in ``known`` yet.

    Its log messages about families without a bold face are left out.
    """
    log = logging.getLogger("matplotlib.font_manager")
    log.addFilter(_worth_reading)
    try:
        with _one_warning(known):
            yield
    finally:
        log.removeFilter(_worth_reading)


def _worth_reading(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_NO_BOLD)


@contextmanager
def _one_warning(known: set[str]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    missing: list[str] = []
    for one in caught:
        found = _MISSING.match(str(one.message))
        if found is None:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno, source=one.source)
        elif (character := chr(int(found[1]))) not in known:
            known.add(character)
            missing.append(character)
    if missing:
        shown = " ".join(missing[:_MOST_NAMED]) + (" …" if len(missing) > _MOST_NAMED else "")
        warnings.warn(
            f"No installed font shows {shown}: boxes are drawn instead. Install a font that has these characters, for "
            "example one of the Noto fonts (Noto Sans CJK for Chinese, Japanese and Korean), and start Python again.",
            FontWarning,
            stacklevel=3,
        )
