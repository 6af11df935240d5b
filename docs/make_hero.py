"""Draw the wide picture at the head of the README: ``python docs/make_hero.py``."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

import hardmax as hm
from hardmax.datasets import make_tokens
from hardmax.figures import draw_panels, figure_bytes, new_figure
from hardmax.files import write_bytes

PANELS = {0: "3,000 tokens", 1: "one layer", 3: "three layers", 60: "infinitely many"}


def main() -> None:
    tokens = make_tokens("gaussian", 3_000, 2, random_state=11)
    run = hm.simulate(tokens, hm.HardmaxLayer(alpha=0.5), depth=60)
    figure = new_figure(12.8, 3.6)
    axes = figure.subplots(1, len(PANELS))
    draw_panels(run, list(PANELS), axes=list(axes), trails=False)
    for ax, words in zip(axes, PANELS.values(), strict=True):
        ax.set_axis_off()
        ax.set_title("", loc="left")
        ax.set_title(words, loc="center", fontsize=13, y=-0.06)
    # A small palette keeps the file small; the picture has few colours anyway.
    with Image.open(io.BytesIO(figure_bytes(figure, dpi=130))) as picture:
        small = picture.convert("RGB").quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    small.save(buffer, format="png", optimize=True)
    write_bytes(Path(__file__).parent / "_static" / "hero.png", buffer.getvalue())


if __name__ == "__main__":
    main()
