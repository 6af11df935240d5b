"""The pages, in the order of the navigation; a new page is a module and one line here."""

from __future__ import annotations

from importlib import import_module

from ..errors import InputError
from .page import Page

_PAGES: dict[str, str] = {
    "tokens": "TokensPage",
    "text": "TextPage",
    "networks": "NetworksPage",
    "forecasting": "ForecastingPage",
    "meanfield": "MeanFieldPage",
}


def slugs() -> tuple[str, ...]:
    """The names of all pages."""
    return tuple(_PAGES)


def load_page(slug: str) -> type[Page]:
    """The class of a page."""
    if slug not in _PAGES:
        raise InputError("--pages", repr(slug), "is not a page", f"choose among {', '.join(_PAGES)}")
    found: type[Page] = getattr(import_module(f".{slug}.page", __package__), _PAGES[slug])
    return found
