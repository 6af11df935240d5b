"""What a paper's page shows, as files beside it: every figure as a picture and every table as data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from ..figures.save import save_figure
from ..files import write_text
from .tables import Table


def write_results(folder: Path, figures: Mapping[str, Figure], tables: Mapping[str, Table]) -> None:
    """Figures as PNG and PDF, tables as CSV, JSON and Markdown with their notes."""
    for name, figure in figures.items():
        save_figure(figure, folder / f"{name}.png")
        save_figure(figure, folder / f"{name}.pdf")
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", table.to_csv())
        write_text(folder / f"{name}.json", table.to_json())
        write_text(folder / f"{name}.md", f"{table.to_markdown()}\n\n{table.note}\n")
