"""Results as data first, text second: tables of measured values, and checks of them against targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

Cell = str | float | int | None


@dataclass(frozen=True)
class Check:
    """A figure that was promised, and whether it was reached."""

    what: str
    value: float
    target: float
    at_least: bool = True
    unit: str = "x"

    @property
    def passed(self) -> bool:
        """Whether the target was reached."""
        return self.value >= self.target if self.at_least else self.value <= self.target

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        verdict = "PASS" if self.passed else "missed"
        return (
            f"{verdict:6}  {self.what}: {number(self.value)} {self.unit}"
            f" (target {sign} {number(self.target)} {self.unit})"
        )


@dataclass
class Report:
    """One benchmark: a table with notes, and its checks."""

    title: str
    columns: Sequence[str]
    rows: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def as_data(self) -> dict[str, object]:
        """Everything as plain values, for a file."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": self.rows,
            "notes": self.notes,
            "checks": [{**asdict(check), "passed": check.passed} for check in self.checks],
        }

    def __str__(self) -> str:
        body = [[_shown(cell) for cell in row] for row in self.rows]
        widths = [max(len(line[k]) for line in [list(self.columns), *body]) for k in range(len(self.columns))]
        lines = [
            self.title,
            "=" * len(self.title),
            _line(self.columns, widths),
            _line(["-" * w for w in widths], widths),
        ]
        lines += [_line(row, widths) for row in body]
        lines += [f"  {note}" for note in self.notes]
        lines += [str(check) for check in self.checks]
        return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    return "  ".join([first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))])


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else number(cell)


def number(value: float) -> str:
    """Three digits that matter, without an exponent where it can be read.

    >>> number(0.01234), number(1234.5), number(2)
    ('0.0123', '1,234', '2')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}"
