"""The home page: a gallery of examples, each with a small picture and the address of the page that shows it.

The pictures are drawn by the figures of the library and are part of the package; ``python -m hardmax.app.home.gallery``
draws them again.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from matplotlib.text import Text
from PIL import Image

import hardmax as hm

from ..look import STATIC

HEADING = "Tokens are points, layers are time"
TEXT = (
    "See what attention does: every word, sample or token is a point that moves, layer by layer, towards the points it "
    "listens to. Pick an example, or bring your own; everything runs on this machine."
)
PICTURES = STATIC / "gallery"
WIDTH, HEIGHT = 480, 270
"""Pixels of a picture, more than a card shows, for sharp screens."""
_COLOURS = 64


@dataclass(frozen=True)
class Example:
    """A card of the gallery; its picture is ``name`` with the suffix .png."""

    name: str
    page: str
    title: str
    words: str
    query: tuple[tuple[str, str], ...]
    draw: Callable[[Any], None]
    """Draws on a Matplotlib figure."""

    @property
    def address(self) -> str:
        """Where the example is shown, from the home page."""
        return f"./{self.page}?{urlencode(self.query)}" if self.query else f"./{self.page}"


def _axes(figure: Any) -> Any:
    return figure.add_axes((0.05, 0.08, 0.9, 0.84))


def _tokens(name: str, layer: int | None) -> Callable[[Any], None]:
    def draw(figure: Any) -> None:
        from ...datasets.configurations import four_configurations
        from ...figures.tokens import draw_tokens

        tokens = next(one.tokens for one in four_configurations() if one.name == name)
        if layer is None:
            limit = hm.equilibrium(tokens, hm.HardmaxLayer(alpha=0.5))
            draw_tokens(limit, start=tokens, ax=_axes(figure), title="")
        else:
            run = hm.simulate(tokens, hm.HardmaxLayer(alpha=0.5), depth=layer)
            draw_tokens(run, layer=layer, ax=_axes(figure), title="", hull=True)

    return draw


def _words(name: str) -> Callable[[Any], None]:
    def draw(figure: Any) -> None:
        from ..text.state import EXAMPLES, shipped
        from ..text.view import in_class_colours

        why, axes = shipped().model.explain(EXAMPLES[name][1]), _axes(figure)
        why.draw(axes)
        in_class_colours(axes, why)

    return draw


def _word_map(figure: Any) -> None:
    from ...figures.text import draw_word_map
    from ..text.state import shipped_survey

    draw_word_map(shipped_survey(), _axes(figure), top=12)


def _network(name: str) -> Callable[[Any], None]:
    def draw(figure: Any) -> None:
        from ...figures.interpolation import draw_construction
        from ..networks.state import Choices

        network = Choices.from_query({"example": name}).recipe().build(lambda *_: None)
        draw_construction(network, figure)
        for axes in figure.axes[1:4]:  # the first stage, and the targets
            axes.remove()
        figure.axes[0].set_position((0.03, 0.06, 0.45, 0.88))
        figure.axes[-1].set_position((0.52, 0.06, 0.45, 0.88))

    return draw


def _forecast(name: str) -> Callable[[Any], None]:
    def draw(figure: Any) -> None:
        from ...figures.forecasting import draw_forecast
        from ..forecasting.state import make_data

        data = make_data(name, 600, 200)
        model = hm.TimeDelayedTransformer(model="ng-rc", budget=None, random_state=0, progress=False)
        ahead = model.fit(data.values[:, :1], times=data.times).forecast(200)
        future = None if data.future is None else data.future[1][:, :1]
        draw_forecast(data.values[:, :1], ahead, dt=model.dt_, truth=future, past=250, figure=figure)
        figure.axes[0].set_position((0.05, 0.14, 0.9, 0.72))

    return draw


def _portrait(figure: Any) -> None:
    from ...figures.forecasting import draw_phase_portrait
    from ..forecasting.state import make_data

    data = make_data("lorenz", 1500, 300)
    assert data.future is not None  # noqa: S101 (systems have one)
    draw_phase_portrait(data.values[:, [0, 2]], data.future[1][:, [0, 2]], ax=_axes(figure))


def _angles(figure: Any) -> None:
    from ...figures.sphere import draw_angles
    from ..meanfield.state import STEP, MeanFieldState

    state = MeanFieldState(n=240)
    law = state.law
    draw_angles(hm.simulate(law.points, state.flow, time=12.0, step=STEP, weights=law.weights), _axes(figure))


def _kuramoto(figure: Any) -> None:
    from ...figures.sphere import draw_angles

    draw_angles(hm.zoo.kuramoto(coupling=1.0, n=60).run(time=8.0, random_state=0), _axes(figure))


def _heads(figure: Any) -> None:
    from ...figures.transformers import draw_who_attends
    from ..real_model.shelf import CONTROLS

    model = CONTROLS[0].load()
    ids = list(range(11))
    who = hm.models.attention_targets(model, ids)
    layer, head = who.leading_head()
    shown = [str(number) for number in ids]
    draw_who_attends(shown, who.targets[layer, head], who.weights[layer, head], sinks=who.sinks, ax=_axes(figure))


EXAMPLES = (
    Example(
        "leaders", "tokens", "Leaders and followers",
        "Tokens move towards the few that lead them. Drag one outwards until it leads.", (), _tokens("cloud", 3),
    ),
    Example(
        "review", "text", "Why is this review positive?",
        "The few words that decide, and what changes when one is struck out.", (), _words("cast"),
    ),
    Example(
        "lorenz", "forecasting", "Forecast the Lorenz attractor",
        "A chaotic series continued beside its true future, with the expected error.",
        (("system", "lorenz"), ("fit", "1")), _portrait,
    ),
    Example(
        "circle", "meanfield", "Clusters that form, stay and dissolve",
        "Tokens on a circle gather in clusters, and may leave them again.", (), _angles,
    ),
    Example(
        "compiled", "networks", "A transformer without training",
        "Three sequences compiled into exact weights, with a proof.", (), _network("overlap"),
    ),
    Example(
        "faces", "tokens", "The limit of infinite depth",
        "Where every token ends: at a leader, or on a face between several.",
        (("start", "equals"), ("limit", "1")), _tokens("equals", None),
    ),
    Example(
        "wing", "forecasting", "A wing in flutter",
        "The lift of an airfoil, forecast from 600 samples.",
        (("system", "airfoil"), ("fit", "1")), _forecast("airfoil"),
    ),
    Example(
        "two-reviews", "text", "Two reviews side by side",
        "A masterpiece beside a waste of two hours, and the map of all words.",
        (("example", "quiet"), ("beside-example", "waste")), _word_map,
    ),
    Example(
        "oscillators", "models", "Models of attention",
        "Thirteen models from the literature, from Kuramoto to rank collapse.", (("model", "kuramoto"),), _kuramoto,
    ),
    Example(
        "classes", "networks", "Classes instead of targets",
        "Triangles and squares, told apart exactly.", (("example", "classes"),), _network("classes"),
    ),
    Example(
        "ties", "tokens", "Ties that break",
        "Tokens with two equally good choices, and the layer in which one wins.",
        (("start", "broken-ties"),), _tokens("broken-ties", 2),
    ),
    Example(
        "heads", "real_model", "Inside a trained transformer",
        "Which word attends to which, head by head.", (), _heads,
    ),
)  # fmt: skip
"""The gallery, in the order of the home page."""


def gallery(slugs: Sequence[str], titles: Sequence[str]) -> str:
    """The cards of the examples of these pages, as HTML."""
    called = dict(zip(slugs, titles, strict=True))
    cards = [
        f'<a class="example" href="{html.escape(one.address)}"><img src="./gallery/{one.name}.png" alt="" '
        f'width="{WIDTH}" height="{HEIGHT}"><span class="kind">{html.escape(called[one.page])}</span>'
        f"<h2>{html.escape(one.title)}</h2><p>{html.escape(one.words)}</p></a>"
        for one in EXAMPLES
        if one.page in called
    ]
    return f'<div class="examples">{"".join(cards)}</div>'


def draw_picture(example: Example) -> bytes:
    """The picture of an example as PNG, without names and numbers, which could not be read at its size."""
    from ...drawing.style import new_figure

    dots = 150
    figure = new_figure(WIDTH / dots, HEIGHT / dots)
    figure.set_layout_engine("none")
    example.draw(figure)
    for text in figure.findobj(Text):
        text.set_visible(False)
    for axes in figure.axes:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.grid(False)
        if (legend := axes.get_legend()) is not None:
            legend.remove()
    buffer, small = io.BytesIO(), io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots, facecolor="white")
    # A palette holds the few colours of a figure in a third of the bytes.
    Image.open(buffer).convert("RGB").quantize(_COLOURS).save(small, "png", optimize=True)
    return small.getvalue()


@cache
def picture(name: str) -> bytes:
    """The stored picture of an example."""
    return (PICTURES / f"{name}.png").read_bytes()


def main(folder: Path = PICTURES) -> None:
    """Draw all pictures again."""
    folder.mkdir(exist_ok=True)
    for example in EXAMPLES:
        (folder / f"{example.name}.png").write_bytes(draw_picture(example))


if __name__ == "__main__":
    main()
