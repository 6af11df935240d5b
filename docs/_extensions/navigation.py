"""The navigation tree of every page from document titles alone, which makes writing pages several times as fast.

The theme shows document titles. Sphinx copies every heading and every documented name of every document first, for each
page again, and drops them afterwards. Pages of single functions are left out of the tree: there are hundreds of them,
and the pages that list them are in it.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_NOT_IN_THE_TREE = ("reference/generated/", "_modules/")


def _of_pages(toctree: addnodes.toctree) -> bool:
    """Whether a toctree lists pages to read, not pages of single functions."""
    return not any(name.startswith(_NOT_IN_THE_TREE) for name in toctree["includefiles"])


def _titles(toc: nodes.bullet_list) -> nodes.bullet_list:
    """A copy of a document's table of contents with its title and its toctrees."""
    short = toc.deepcopy()
    for item in short.children:
        if isinstance(item, nodes.Element) and len(item) > 1:
            toctrees = [toctree for toctree in item.findall(addnodes.toctree) if _of_pages(toctree)]
            if toctrees:
                item[1][:] = toctrees
            else:
                item.pop(1)
    return short


def setup(app: Sphinx) -> dict[str, bool]:
    titles: dict[str, nodes.bullet_list] = {}
    parents: dict[str, str] = {}
    trees: dict[tuple[str, str | None], str] = {}

    def use_titles(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
        whole_tree = context.get("toctree")
        if whole_tree is None:
            return
        tocs = app.env.tocs
        if not titles:
            titles.update({name: _titles(toc) for name, toc in tocs.items()})
            parents.update({child: name for name, below in app.env.toctree_includes.items() for child in below})

        def tree(**options: Any) -> str:
            if not options.get("titles_only"):
                return whole_tree(**options)
            # Pages that are not in the tree have the same tree if they lie in one folder below one page.
            place = (page.rpartition("/")[0], parents.get(page)) if page.startswith(_NOT_IN_THE_TREE) else None
            if place in trees:
                return trees[place]
            app.env.tocs = titles
            try:
                html = whole_tree(**options)
            finally:
                app.env.tocs = tocs
            if place is not None:
                trees[place] = html
            return html

        context["toctree"] = tree

    # The theme asks for the tree at priority 500.
    app.connect("html-page-context", use_titles, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
