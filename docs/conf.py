"""How the documentation is built. Nothing here asks the network for anything."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

from sphinx.application import Sphinx

import hardmax

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "hardmax"
author = "The hardmax developers"
copyright = author
version = release = hardmax.__version__

extensions = [
    "commands",
    "elsewhere",
    "markdown_page",
    "mathml",
    "navigation",
    "notebook_words",
    "return_types",
    "source_links",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_extensions",
    "tutorials",  # scripts, from which pages and notebooks are made in auto_tutorials
    "**/sg_execution_times.rst",
    "auto_*/**.ipynb",
    "auto_*/**.py",
]
templates_path = ["_templates"]
nitpicky = False
default_role = "code"

extensions += ["benchmark_records", "paper_records"]

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"hardmax {release}"
html_static_path = ["_static"]
html_css_files = ["hardmax.css"]
html_search_scorer = str(Path(__file__).parent / "_extensions" / "scorer.js")

toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
napoleon_use_rtype = False
napoleon_attr_annotations = False

_reference = Path(__file__).parent / "reference"
autosummary_context = {"options_of": tomllib.loads((_reference / "members.toml").read_text(encoding="utf-8"))}
_listed = [
    line.strip()
    for page in sorted(_reference.glob("*.rst"))
    for line in page.read_text(encoding="utf-8").splitlines()
    if line.startswith("   hardmax.")
]
# Where files are found whatever their case, `hardmax.leaders` and `hardmax.Leaders` would be one page.
_alike = Counter(name.lower() for name in _listed)
autosummary_filename_map = {
    name: f"{name}-class" for name in _listed if _alike[name.lower()] > 1 and name.rpartition(".")[2][0].isupper()
}

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "../gallery"],
    "gallery_dirs": ["auto_tutorials", "auto_gallery"],
    "filename_pattern": r"(plot|tutorial)_",
    "ignore_pattern": r"measure\.py$",
    "backreferences_dir": "reference/examples",
    "doc_module": ("hardmax",),
    "reference_url": {"hardmax": None},
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 5,
    "image_scrapers": ("matplotlib", "loose_figures"),
    "remove_config_comments": True,
}


def _head_examples(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Give the example at the end of a docstring its own section, so that it is not read as a parameter."""
    if "Parameters" in lines and "Examples" not in lines:
        start = next((k for k, line in enumerate(lines) if line.startswith(">>>")), None)
        if start is not None:
            lines[start:start] = ["Examples", "--------", ""]


_plain_words: dict[str, list[str]] = {}


def _keep_plain(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    if what in ("attribute", "property"):
        _plain_words[name] = list(lines)


def _restore_plain(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Undo what napoleon does to attributes: it reads whatever stands before a colon as a type."""
    if name in _plain_words:
        lines[:] = _plain_words.pop(name)


def setup(app: Sphinx) -> None:
    # Napoleon reads sections at priority 500.
    app.connect("autodoc-process-docstring", _head_examples, priority=100)
    app.connect("autodoc-process-docstring", _keep_plain, priority=100)
    app.connect("autodoc-process-docstring", _restore_plain, priority=900)
