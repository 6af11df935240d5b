"""How the documentation is built. Nothing here asks the network for anything."""

from __future__ import annotations

from sphinx.application import Sphinx

import hardmax

project = "hardmax"
author = "The hardmax developers"
copyright = author
version = release = hardmax.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_gallery/**.ipynb", "auto_gallery/**.py"]
nitpicky = False
default_role = "code"

html_theme = "furo"
html_title = f"hardmax {release}"
html_static_path = ["_static"]
html_css_files = ["hardmax.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 5,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
}


def _head_examples(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Give the example at the end of a docstring its own section, so that it is not read as a parameter."""
    if "Parameters" in lines and "Examples" not in lines:
        start = next((k for k, line in enumerate(lines) if line.startswith(">>>")), None)
        if start is not None:
            lines[start:start] = ["Examples", "--------", ""]


def setup(app: Sphinx) -> None:
    # Before napoleon, which reads the sections.
    app.connect("autodoc-process-docstring", _head_examples, priority=100)
