"""Small tables for notebooks, without pandas."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML; every cell is escaped."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
