"""Formulas as MathML, which browsers show by themselves: no script, a font that ships, readable offline."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_logger = logging.getLogger(__name__)


# What TeX takes as an argument without braces: one command, one letter or one digit.
_ONE = r"\s*(\\[a-zA-Z]+|[a-zA-Z0-9])"
_FRACTION = re.compile(rf"(\\[td]?frac){_ONE}{_ONE}")
_SCRIPT = re.compile(r"([_^])([0-9])(?=[0-9])")
# Functions that TeX separates by a thin space from an argument without parentheses.
_FUNCTION = re.compile(r"(\\(?:log|ln|exp|sin|cos|tan))(?![a-zA-Z])(?=\s*(?:\\(?!left|big)[a-zA-Z]|[a-zA-Z0-9]))")


def as_tex_reads_it(formula: str) -> str:
    r"""The formula with braces around arguments of one digit, and with the space in ``\log x``.

    docutils reads ``\tfrac12`` as a fraction of 12, and sets a function without space before its argument.
    """
    formula = _FUNCTION.sub(r"\1\\,", formula)
    return _SCRIPT.sub(r"\1{\2}", _FRACTION.sub(r"\1{\2}{\3}", formula))


# Letters and bars below the line: browsers lower a subscript by their depth, TeX does not for a single character.
_DEEP = re.compile(r"(<msub(?:sup)?>\s*)(<m[io](?: [^>]*)?>[βγζημξρφχψϕgjpqyQ‖|]</m[io]>)")
_BAR = re.compile(r"<mo>([‖|])</mo>")


def as_tex_sets_it(mathml: str) -> str:
    """The formula with bars of one height and with subscripts of single characters at one depth."""
    mathml = _BAR.sub(r'<mo stretchy="false">\1</mo>', mathml)
    return _DEEP.sub(r'\1<mpadded depth="0">\2</mpadded>', mathml)


def _formula(node: nodes.math | nodes.math_block, *, block: bool) -> str:
    source = node.astext().strip()
    try:
        return as_tex_sets_it(latex2mathml.tex2mathml(as_tex_reads_it(source), as_block=block))
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
