"""Draw the packages of hardmax in the order of their imports: ``python docs/make_rooms.py``."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

# A package imports packages of lower rows; in the first two rows also the one to its right.
ROWS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("cli", "one file per command"), ("app", "the explorer,\none folder per page")),
    (("reproduce", "figures and tables of the papers"), ("sweeps", "grids of runs")),
    (("figures", "pictures and films"), ("storage", "files of results"), ("datasets", "made, shipped, read")),
    (
        ("text", "words, model,\ntraining"),
        ("interpolation", "constructions,\nevaluation"),
        ("forecasting", "features, search,\nmodels"),
        ("meanfield", "flows on the\nsphere, phases"),
        ("models", "trained trans-\nformers, probe"),
        ("zoo", "models of\nthe field"),
    ),
    (("geometry", "leaders, clusters, theorem: analyse a run"),),
    (("dynamics", "many layers: simulate, equilibrium"),),
    (("attention", "one layer: layers, exact search, GPU kernels"),),
    (
        ("tables", "one reader of tables:\nencodings, dialects, dates"),
        ("shared modules", "inputs, polytopes, distributed,\nprogress, threads, files, errors"),
    ),
)
COLOURS = ("#e8eef7", "#e8eef7", "#eef3e6", "#fdf1e3", "#f3e9f5", "#f3e9f5", "#f3e9f5", "#eeeeee")
HEIGHT, GAP = 1.0, 0.22


def draw_row(ax: Axes, boxes: tuple[tuple[str, str], ...], y: float, colour: str) -> None:
    """One row of boxes of equal width."""
    width = (12.0 - GAP * (len(boxes) - 1)) / len(boxes)
    for k, (name, words) in enumerate(boxes):
        x = k * (width + GAP)
        box = FancyBboxPatch((x, y), width, HEIGHT, boxstyle="round,pad=0,rounding_size=0.12", fc=colour, ec="#777777")
        ax.add_patch(box)
        centre = x + width / 2
        ax.text(centre, y + 0.7, name, ha="center", va="center", fontsize=11, fontweight="bold")
        ax.text(centre, y + 0.31, words, ha="center", va="center", fontsize=8.5, color="#333333", linespacing=1.1)


def main() -> None:
    """Draw all rows and save the picture."""
    figure = Figure(figsize=(9.0, 7.2))
    ax = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    for row, boxes in enumerate(ROWS):
        draw_row(ax, boxes, -row * (HEIGHT + GAP), COLOURS[row])
    ax.set_xlim(-0.1, 12.1)
    ax.set_ylim(-(len(ROWS) - 1) * (HEIGHT + GAP) - 0.1, HEIGHT + 0.1)
    ax.axis("off")
    figure.savefig(Path(__file__).parent / "_static" / "rooms.png", dpi=150, facecolor="white")


if __name__ == "__main__":
    main()
