"""Pictures of the gallery that pyplot knows nothing of: figures that a script keeps in a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape_figures(block: tuple[str, str, int], block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save each figure that is bound to a name, itself or by its axes, unless pyplot knows it or it is saved."""
    saved = block_vars.setdefault("saved_figures", [])
    paths = []
    for named in list(block_vars["example_globals"].values()):
        value = named.get_figure(root=True) if isinstance(named, Axes) else named
        if isinstance(value, Figure) and not hasattr(value, "number") and not any(value is one for one in saved):
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=150)
            saved.append(value)
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Callable[..., str]:
    """What sphinx-gallery asks a module for that is named among its scrapers."""
    return scrape_figures
