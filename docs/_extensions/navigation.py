"""The navigation tree of every page from document titles alone, which makes writing pages twice as fast.

The theme shows document titles. Sphinx copies every heading and every documented name of every document first, for each
page again, and drops them afterwards.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def _titles(toc: nodes.bullet_list) -> nodes.bullet_list:
    """A copy of a document's table of contents with its title and its toctrees."""
    short = toc.deepcopy()
    for item in short.children:
        if isinstance(item, nodes.Element) and len(item) > 1:
            toctrees = list(item.findall(addnodes.toctree))
            if toctrees:
                item[1][:] = toctrees
            else:
                item.pop(1)
    return short


def setup(app: Sphinx) -> dict[str, bool]:
    titles: dict[str, nodes.bullet_list] = {}

    def use_titles(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
        whole_tree = context.get("toctree")
        if whole_tree is None:
            return
        tocs = app.env.tocs
        if not titles:
            titles.update({name: _titles(toc) for name, toc in tocs.items()})

        def tree(**options: Any) -> str:
            if not options.get("titles_only"):
                return whole_tree(**options)
            app.env.tocs = titles
            try:
                return whole_tree(**options)
            finally:
                app.env.tocs = tocs

        context["toctree"] = tree

    # The theme asks for the tree at priority 500.
    app.connect("html-page-context", use_titles, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
