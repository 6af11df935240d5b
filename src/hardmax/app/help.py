"""The documentation of public names, from the docstrings, so that it is there without a network."""

from __future__ import annotations

import html
import inspect
import re
from typing import Any

from tornado.web import HTTPError, RequestHandler

import hardmax

from .look import static

_NAMES = frozenset(hardmax.__all__) - {"__version__"}
_ROLE = re.compile(r":\w+:`~?([^`<]+?)(?: <[^`]+>)?`")
_LITERAL = re.compile(r"``([^`]+)``")


def help_page(name: str) -> str:
    """A page with the signature and the docstring of a public name."""
    thing: Any = getattr(hardmax, name)
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = ""
    words = html.escape(inspect.cleandoc(thing.__doc__ or "No words yet."))
    words = _LITERAL.sub(r"<code>\1</code>", _ROLE.sub(r"<code>\1</code>", words))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name} · hardmax</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{static('page.css')}.doc{{white-space:pre-wrap;max-width:90ch}}</style></head><body>"
        f'<header><a class="brand" href="../">hardmax <span>explorer</span></a></header><main><h1>hardmax.{name}</h1>'
        f"<p><code>{html.escape(name + signature)}</code></p>"
        f'<div class="doc">{words}</div></main></body></html>'
    )


class Help(RequestHandler):
    """Answers ``docs/<name>``."""

    def get(self, name: str) -> None:
        if name not in _NAMES:
            raise HTTPError(404)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(help_page(name))
