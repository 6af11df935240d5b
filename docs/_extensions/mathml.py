"""Formulas as MathML, which browsers show by themselves: no script, no fonts from elsewhere, readable offline."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_logger = logging.getLogger(__name__)


def _formula(node: nodes.math | nodes.math_block, *, block: bool) -> str:
    source = node.astext().strip()
    try:
        return latex2mathml.tex2mathml(source, as_block=block)
    except MathError as error:
        _logger.warning("this formula cannot be shown (%s): %s", error, source, location=node)
        return source


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_formula(node, block=False))
    raise nodes.SkipNode


def _display(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    self.body.append(_formula(node, block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
