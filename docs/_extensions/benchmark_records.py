"""The directive ``benchmark``: tables made from the stored output of a benchmark, with command, date and machine.

``.. benchmark:: text`` shows ``benchmarks/results/text.json``, which ``python -m benchmarks text --record`` writes.
The option ``:columns:`` names the columns to show; all are shown without it.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def shown(cell: object) -> str:
    """A cell as text: three digits that matter, thousands separated, a dash for nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if abs(cell) >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.3g}" if abs(cell) >= 1e-4 or cell == 0 else f"{cell:.1e}"


def checked(check: dict[str, Any]) -> tuple[str, str, str, str]:
    """Row of a check: what, measured, target, whether it was reached."""
    unit = f" {check['unit']}" if check["unit"] else ""
    sign = "≥" if check["at_least"] else "≤"
    verdict = "reached" if check["passed"] else "missed"
    return check["what"], shown(check["value"]) + unit, f"{sign} {shown(check['target'])}{unit}", verdict


def table(columns: list[str], rows: list[list[str]]) -> nodes.container:
    """Table in a frame that scrolls where it is wide."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in columns), cols=len(columns))

    def row(cells: list[str]) -> nodes.row:
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))

    group += nodes.thead("", row(columns))
    group += nodes.tbody("", *(row(cells) for cells in rows))
    return nodes.container("", nodes.table("", group), classes=["benchmark"])


class Benchmark(SphinxDirective):
    """Tables of one stored record."""

    required_arguments = 1
    option_spec = {"columns": directives.unchanged}  # noqa: RUF012 (as docutils declares it)

    def run(self) -> list[nodes.Node]:
        """Nodes of the record."""
        path = RESULTS / f"{self.arguments[0]}.json"
        if not path.is_file():
            raise self.error(f"there is no record {path.name}: run python -m benchmarks … --record")
        self.env.note_dependency(str(path))
        record = json.loads(path.read_text(encoding="utf-8"))
        date = datetime.date.fromisoformat(record["date"])
        found: list[nodes.Node] = [nodes.literal_block("", f"$ {record['command']}", language="console")]
        found.append(nodes.paragraph("", f"{date.day} {date:%B %Y}, {record['machine']}."))
        for result in record["results"]:
            found += self._result(result)
        return found

    def _result(self, result: dict[str, Any]) -> list[nodes.Node]:
        columns = result["columns"]
        wanted = [name.strip() for name in self.options.get("columns", "").split(";") if name.strip()] or columns
        if unknown := [name for name in wanted if name not in columns]:
            raise self.error(f"no column called {', '.join(unknown)}; there are {'; '.join(columns)}")
        places = [columns.index(name) for name in wanted]
        rows = [[shown(row[k]) for k in places] for row in result["rows"]]
        found: list[nodes.Node] = [table(wanted, rows)] if rows else []
        found += [nodes.paragraph("", note) for note in result["notes"]]
        if result["checks"]:
            checks = [list(checked(check)) for check in result["checks"]]
            found.append(table(["target", "measured", "wanted", "verdict"], checks))
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True}
