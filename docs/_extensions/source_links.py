"""Links from source code back to the reference, for names that one module defines and several packages export.

Sphinx remembers one package per module, so a name documented as ``hardmax.dynamics.KeepRule`` would be looked for as
``hardmax.KeepRule``. The page of a name has the right one in its address.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_BACK = re.compile(r'(reference/generated/([\w.]+)(?:-class)?\.html)#([\w.]+)"')


def with_right_anchors(body: str) -> str:
    """The page of a module with anchors that begin as the addresses before them do."""

    def right(found: re.Match[str]) -> str:
        name, members = found[2], found[3].split(".")
        own = name.rpartition(".")[2]
        if own not in members:
            return found[0]
        rest = members[members.index(own) + 1 :]
        return f'{found[1]}#{".".join([name, *rest])}"'

    return _BACK.sub(right, body)


def _repair(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    if page.startswith("_modules/") and "body" in context:
        context["body"] = with_right_anchors(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Repair the pages of modules."""
    app.connect("html-page-context", _repair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
