"""The directive ``recorded``: published beside measured, from the recorded full run of a reproduction.

``.. recorded:: clustering`` shows what ``hardmax.reproduce.recorded`` has stored of ``hardmax reproduce clustering``.
"""

from __future__ import annotations

import datetime

from benchmark_records import table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hardmax.reproduce.recorded import RECORDED, recorded_runs

_COLUMNS = ["statement", "published", "measured", "verdict"]


class Recorded(SphinxDirective):
    """Claims of one paper."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Nodes of the record."""
        self.env.note_dependency(str(RECORDED))
        name, records = self.arguments[0], recorded_runs()
        if name not in records:
            raise self.error(f"there is no recorded run of {name}: choose among {', '.join(records)}")
        run = records[name]
        date = datetime.date.fromisoformat(run["date"])
        took = f", {run['seconds'] / 60:,.0f} minutes" if run["seconds"] and run["seconds"] > 90 else ""
        said = f"{date.day} {date:%B %Y}, {run['machine']}{took}. {run['note']}".strip()
        rows = [[f"{c['where']}: {c['statement']}", c["published"], c["measured"], c["verdict"]] for c in run["claims"]]
        judged = dict.fromkeys(claim["reason"] for claim in run["claims"] if claim["reason"])
        found: list[nodes.Node] = [
            nodes.literal_block("", f"$ {run['command']}", language="console"),
            nodes.paragraph("", said),
            table(_COLUMNS, rows),
        ]
        if judged:
            found.append(nodes.paragraph("", f"How it is judged: {'; '.join(judged)}."))
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("recorded", Recorded)
    return {"parallel_read_safe": True}
