"""Reports as one self-contained HTML page, with figures and tables as files beside it.

Style and figures are embedded in the page, so that it needs no network and no other file. Tables are also written as
Markdown, CSV and JSON.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import numbers
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from matplotlib.figure import Figure

from .._version import __version__
from ..errors import InputError
from ..figures.save import save_figure
from ..files import write_text

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


_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"\xff\xd8\xff": "image/jpeg",
    b"<?xml": "image/svg+xml",
    b"<svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Picture:
    """An encoded image (PNG, GIF, JPEG or SVG) with its caption and alternative text."""

    data: bytes
    caption: str
    alt: str = ""
    """Alternative text for screen readers; the caption when left out."""
    narrow: bool = False
    """Draw at about half the width of the page: for a single panel."""

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes) or not any(self.data.startswith(s) for s in _SIGNATURES):
            raise InputError(
                "data",
                f"{type(self.data).__name__} {self.data[:8]!r}",
                "must be the bytes of a PNG, GIF, JPEG or SVG picture",
                'draw with hardmax.figures and pass figure_bytes(figure, "png")',
            )

    def to_html(self) -> str:
        """The image as an HTML figure element."""
        kind = next(mime for start, mime in _SIGNATURES.items() if self.data.startswith(start))
        source = f"data:{kind};base64,{base64.b64encode(self.data).decode('ascii')}"
        alt = html.escape(self.alt or self.caption, quote=True)
        side = ' class="narrow"' if self.narrow else ""
        return (
            f'<figure{side}><img src="{source}" alt="{alt}"><figcaption>{_inline(self.caption)}</figcaption></figure>'
        )


@dataclass(frozen=True)
class Section:
    """A section of a report; its methods append contents and return the section."""

    title: str
    _parts: list[str] = field(default_factory=list)

    def text(self, words: str) -> Section:
        """Add paragraphs, separated by empty lines; `backticks` mark code."""
        for paragraph in re.split(r"\n\s*\n", words.strip()):
            self._parts.append(f"<p>{_inline(' '.join(paragraph.split()))}</p>")
        return self

    def numbers(self, values: Mapping[str, Cell]) -> Section:
        """Add a row of large numbers with labels."""
        entries = "".join(
            f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(shown(value))}</dd></div>"
            for label, value in values.items()
        )
        self._parts.append(f'<dl class="numbers">{entries}</dl>')
        return self

    def table(self, table: Table) -> Section:
        """Add a table."""
        self._parts.append(table.to_html())
        return self

    def picture(self, data: bytes, caption: str, *, alt: str = "", narrow: bool = False) -> Section:
        """Add an encoded image with its caption (see :class:`Picture`)."""
        self._parts.append(Picture(data, caption, alt, narrow).to_html())
        return self

    def code(self, source: str) -> Section:
        """Add a block of code or output, verbatim."""
        self._parts.append(f'<pre tabindex="0"><code>{html.escape(source.strip(chr(10)))}</code></pre>')
        return self

    def markup(self, source: str) -> Section:
        """Add HTML as it is."""
        self._parts.append(source)
        return self

    def body(self) -> str:
        """The contents as HTML, without the title."""
        return "\n".join(self._parts)

    @property
    def anchor(self) -> str:
        """The anchor of links to the section."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-") or "section"

    def to_html(self) -> str:
        """The section as an HTML element."""
        return f'<section id="{self.anchor}">\n<h2>{html.escape(self.title)}</h2>\n{self.body()}\n</section>'


@dataclass(frozen=True)
class Report:
    """A page: a title, an introduction and sections.

    >>> page = Report("Two tokens", lead="One leads.")
    >>> _ = page.section("Numbers").text("As `simulate` found.").numbers({"leaders": 1})
    >>> "<dd>1</dd>" in page.to_html()
    True
    """

    title: str
    lead: str = ""
    footer: str = f"Made by hardmax {__version__}. Everything on this page is inside this file."
    sections: list[Section] = field(default_factory=list)

    def section(self, title: str) -> Section:
        """Append a section; it is returned."""
        section = Section(title)
        if any(section.anchor == other.anchor for other in self.sections):
            raise InputError("title", repr(title), "must be new on this page", "give every section its own title")
        self.sections.append(section)
        return section

    def to_html(self) -> str:
        """The page as HTML."""
        style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
        links = "".join(f'<li><a href="#{s.anchor}">{html.escape(s.title)}</a></li>' for s in self.sections)
        contents = f'<nav aria-label="On this page"><ul>{links}</ul></nav>' if len(self.sections) > 1 else ""
        lead = f'<p class="lead">{_inline(self.lead)}</p>' if self.lead else ""
        body = "\n".join(section.to_html() for section in self.sections)
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(self.title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{html.escape(self.title)}</h1>
{lead}
{contents}
</header>
<main>
{body}
</main>
<footer><p>{_inline(self.footer)}</p></footer>
</body>
</html>
"""

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; the file appears when it is complete."""
        return write_text(path, self.to_html())


def _inline(words: str) -> str:
    """Escaped text in which `backticks` mark code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words))


def write_results(folder: Path, figures: Mapping[str, Figure], tables: Mapping[str, Table]) -> None:
    """Write figures as PNG and PDF, tables as CSV, JSON and Markdown with their notes."""
    for name, figure in figures.items():
        save_figure(figure, folder / f"{name}.png")
        save_figure(figure, folder / f"{name}.pdf")
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv())
        write_text(folder / f"{name}.json", table.to_json())
        write_text(folder / f"{name}.md", f"{table.to_markdown()}\n\n{table.note}\n")
