"""Output of a notebook for the value of a cell: the figure, where there is one."""

import io

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import hardmax as hm
from hardmax.datasets import four_configurations, half_space_example
from hardmax.figures import draw_cluster_sizes, draw_convergence
from hardmax.text.pretrained import shipped_model

_TOKENS = four_configurations()[0].tokens
_LAYER = hm.HardmaxLayer(0.5)


def _shown(value: object) -> dict[str, object]:
    """The representations that IPython's display would collect, by the methods it looks for."""
    methods = {name: getattr(value, f"_repr_{name}_", None) for name in ("html", "svg", "png", "jpeg", "markdown")}
    given = {name: method() for name, method in methods.items() if callable(method)}
    return {name: shown for name, shown in given.items() if shown is not None}


def _explained() -> Axes:
    return shipped_model().explain("a wonderful film with a dull ending").draw()


_CELLS = {
    "draw_tokens of a run": lambda: hm.draw_tokens(hm.simulate(_TOKENS, _LAYER, depth=3)),
    "draw_tokens of a limit": lambda: hm.draw_tokens(hm.equilibrium(_TOKENS)),
    "draw_tokens in space": lambda: hm.draw_tokens(hm.equilibrium(np.eye(3))),
    "draw_attention_geometry": lambda: hm.draw_attention_geometry(half_space_example(), _LAYER),
    "draw_cluster_sizes": lambda: draw_cluster_sizes(hm.equilibrium(_TOKENS)),
    "draw_convergence": lambda: draw_convergence(hm.simulate(_TOKENS, _LAYER, depth=9)),
    "Explanation.draw": _explained,
    "draw": lambda: hm.draw(hm.equilibrium(_TOKENS)),
    "draw_panels": lambda: hm.draw_panels(hm.simulate(_TOKENS, _LAYER, depth=3)),
}


@pytest.mark.parametrize("cell", _CELLS)
def test_a_drawing_is_shown_as_a_picture(cell: str) -> None:
    value = _CELLS[cell]()
    shown = _shown(value)
    assert set(shown) == {"png"}
    with Image.open(io.BytesIO(shown["png"])) as picture:
        assert min(picture.size) > 200
        assert len(picture.getcolors(maxcolors=10**6)) > 20  # not an empty frame


def test_axes_show_their_whole_figure_as_it_is_then() -> None:
    ax = hm.draw_tokens(hm.equilibrium(_TOKENS))
    before = _shown(ax)["png"]
    ax.set_title("another title")
    after = _shown(ax)["png"]
    assert after == _shown(ax.figure)["png"] != before


def test_axes_of_somebody_else_stay_theirs() -> None:
    ax = Figure().add_subplot()
    assert hm.draw_tokens(hm.equilibrium(_TOKENS), ax=ax) is ax
    assert _shown(ax) == {}
