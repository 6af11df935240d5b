"""One type per returned value: napoleon writes the docstring's, autodoc adds that of the signature below it.

Where both say the same, the one of the signature stays, because it is a link; otherwise the one of the docstring,
which says more (a shape, the types inside a tuple).
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


def _once(app: Sphinx, domain: str, objtype: str, content: nodes.Element) -> None:
    for fields in content.findall(nodes.field_list):
        named = {field[0].astext(): field for field in fields if isinstance(field, nodes.field)}
        returns, kind = named.get("returns"), named.get("rtype")
        if returns is None or kind is None:
            continue
        paragraph = next(returns[1].findall(nodes.paragraph), None)
        first = paragraph[0] if paragraph is not None and len(paragraph) else None
        if not isinstance(first, nodes.emphasis):
            continue
        if first.astext() == kind[1].astext().rpartition(".")[2] and len(paragraph) > 1:
            paragraph.remove(first)
            text = paragraph[0]
            if isinstance(text, nodes.Text):
                paragraph.replace(text, nodes.Text(str(text).removeprefix(" -- ").removeprefix(" – ")))
        else:
            fields.remove(kind)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run after autodoc has added the types of signatures, at priority 500."""
    app.connect("object-description-transform", _once, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
