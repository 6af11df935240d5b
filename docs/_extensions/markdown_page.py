"""The directive ``markdown``: a Markdown file of the repository (changelog, contributing) as part of a page.

It knows what these files use: headings, paragraphs, bullets, fenced code, ``code``, *emphasis* and links.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_MARKUP = re.compile(r"(`[^`]+`|\[[^\]]+\]\(https?://[^)]+\))")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_BOLD_WITH_CODE = re.compile(r"\*\*([^*`]*)(`[^`]+`)([^*`]*)\*\*")
_UNDERLINES = {2: "-", 3: "~", 4: "^"}


def _inline(text: str) -> str:
    """Code and links as reStructuredText, which ends markup at a blank; an escaped blank leaves no space."""
    text = _BOLD_WITH_CODE.sub(lambda found: f"**{found[1].strip()}** {found[2]}{found[3]}", text)
    parts = _MARKUP.split(text)
    for k, part in enumerate(parts):
        if k % 2 == 0:
            parts[k] = part.replace("|", "\\|").replace("_", "\\_")
        elif part.startswith("`"):
            parts[k] = f"\\ ``{' '.join(part[1:-1].split())}``\\ "
        else:
            parts[k] = _LINK.sub(r"`\1 <\2>`__\\ ", part)
    return "".join(parts)


def _plain(text: str) -> list[str]:
    """Lines outside of fenced code: headings, paragraphs and bullets; the title of the file is left out."""
    lines: list[str] = []
    for line in _inline(text).splitlines():
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            mark = _UNDERLINES.get(len(heading[1]))
            lines += ["", heading[2], mark * len(heading[2]), ""] if mark else []
        else:
            if re.match(r" *- ", line) and lines and lines[-1].strip() and not re.match(r" *- |  ", lines[-1]):
                lines.append("")
            lines.append(line)
    return lines


def as_rst(text: str) -> str:
    """The file without its title, as reStructuredText."""
    lines: list[str] = []
    for k, part in enumerate(re.split(r"^```.*\n", text, flags=re.MULTILINE)):
        if k % 2 == 0:
            lines += _plain(part)
        else:
            lines += ["", ".. code-block:: text", "", *(f"   {line}" for line in part.splitlines()), ""]
    return "\n".join(lines)


class Markdown(SphinxDirective):
    """The content of a Markdown file, given by its path relative to the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.doc2path(self.env.docname)).parent / self.arguments[0]
        self.env.note_dependency(str(path.resolve()))
        return self.parse_text_to_nodes(as_rst(path.read_text(encoding="utf-8")), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("markdown", Markdown)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
