"""Tables as HTML, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import html
import io
import json
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Cell: TypeAlias = object
"""Text, a number (also of NumPy), a boolean, or None for an empty cell."""


def shown(value: Cell) -> str:
    """A cell as text: integers with separators, other numbers to four digits, None as a dash.

    >>> shown(1234567), shown(0.000123456), shown(True), shown(None)
    ('1,234,567', '0.0001235', 'yes', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real):
        return f"{float(value):,.4g}" if abs(float(value)) < 1e4 else f"{float(value):,.0f}"
    return str(value)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, numbers.Real) and not isinstance(cell, bool)


def _plain(value: Cell) -> Any:
    """A cell as a JSON value."""
    if not _is_number(value):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns, with a title and a note.

    >>> print(Table("Sizes", ("leader", "tokens"), ((0, 12), (4, 3))).to_markdown())
    | leader | tokens |
    | ---: | ---: |
    | 0 | 12 |
    | 4 | 3 |
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __post_init__(self) -> None:
        width = len(self.columns)
        for row in self.rows:
            if len(row) != width:
                raise ValueError(f"table {self.title!r}: a row of {len(row)} cells under {width} columns: {row!r}")

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers only; it is then aligned right."""
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(map(_is_number, cells))

    def to_csv(self) -> str:
        """The table as CSV, with all digits."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return text.getvalue()

    def to_json(self) -> str:
        """The table as JSON: title, note and one object per row."""
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        return json.dumps({"title": self.title, "note": self.note, "rows": rows}, indent=2, ensure_ascii=False) + "\n"

    def to_markdown(self) -> str:
        """The table in Markdown, with numbers aligned right."""
        rule = ["---:" if self.numeric(c) else "---" for c in range(len(self.columns))]
        cells = [[shown(cell).replace("|", "\\|") for cell in row] for row in self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in [list(self.columns), rule, *cells])

    def to_html(self) -> str:
        """The table as an HTML element with a caption, with numbers aligned right."""
        right = [' class="number"' if self.numeric(c) else "" for c in range(len(self.columns))]
        head = "".join(
            f'<th scope="col"{side}>{html.escape(name)}</th>' for name, side in zip(self.columns, right, strict=True)
        )
        body = "\n".join(
            "<tr>"
            + "".join(f"<td{side}>{html.escape(shown(c))}</td>" for c, side in zip(row, right, strict=True))
            + "</tr>"
            for row in self.rows
        )
        note = f'<p class="note">{html.escape(self.note)}</p>' if self.note else ""
        # A wide table scrolls inside its own frame, which has keyboard focus.
        return (
            f'<div class="table" tabindex="0" role="region" aria-label="{html.escape(self.title)}">'
            f"<table><caption>{html.escape(self.title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>{note}"
        )
