"""Notebooks without roles of Sphinx: their cells are Markdown, in which a role would stand as it is written."""

from __future__ import annotations

import re
from typing import Any

import sphinx_gallery.notebook
from sphinx.application import Sphinx

_ROLE = re.compile(r":(?:func|class|meth|attr|exc|doc|ref):`[~/]*([^`<]+?)(?: <[^`>]+>)?`")
_convert = sphinx_gallery.notebook.rst2md


def plain_words(text: str) -> str:
    """The text with the name in place of each role: ``:func:`hardmax.simulate``` becomes ```hardmax.simulate```."""
    return _ROLE.sub(r"`\1`", text)


def _rst2md(text: str, *arguments: Any, **options: Any) -> str:
    return _convert(plain_words(text), *arguments, **options)


def setup(app: Sphinx) -> dict[str, bool]:
    sphinx_gallery.notebook.rst2md = _rst2md
    return {"parallel_read_safe": True, "parallel_write_safe": True}
