"""The frame around every page: header, tools (code, link, downloads) and the light switch."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource, CustomJS, Div

from ..errors import HardmaxError
from ..figures.save import figure_bytes
from .download import Download
from .guide import guide_of
from .jobs import Job
from .look import NIGHT, ExplorerDesign, code_box, static
from .page import Page
from .session import Session
from .standalone import standalone_cards

_FORMATS = ("png", "svg", "html")
_FILMS = ("gif", "mp4")
# Browsers and proxies accept addresses of about 8,000 characters.
_LONGEST_ADDRESS = 7_000
_LONGEST_VALUE = 7_000
"""Characters; common servers and browsers accept addresses of 8,000."""

# The browser stores the theme and sends it only to this server, which draws in it.
_SWITCH_LIGHT = """
const theme = cb_obj.active ? "dark" : "light";
if (document.documentElement.dataset.theme !== theme) {  // pressed, not only told by page.html
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("hardmax-theme", theme); } catch (e) {}
}
"""
_REPLACE_ADDRESS = 'window.history.replaceState(null, "", window.location.pathname + cb_obj.text);'
_COPY_ADDRESS = """
navigator.clipboard.writeText(window.location.href);
const before = button.label; button.label = "Copied"; setTimeout(() => { button.label = before; }, 1500);
"""

_SAVE = """
const [name] = parcel.data.name, [bytes] = parcel.data.bytes;
if (name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], {type: "application/octet-stream"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
"""


def query_of(arguments: Mapping[str, Sequence[bytes]]) -> dict[str, str]:
    """The query of an address as text: the first value of each name; undecodable and too long ones are left out."""
    read: dict[str, str] = {}
    for name, values in arguments.items():
        if values and len(values[0]) <= _LONGEST_VALUE:
            try:
                read[name] = values[0].decode("utf-8")
            except UnicodeDecodeError:
                continue
    return read


def address_of(state: Mapping[str, str]) -> str:
    """The query that stores a state; an empty one where it would be too long."""
    query = urlencode(state)
    return f"?{query}" if query and len(query) <= _LONGEST_ADDRESS else "?"


class Tools:
    """The buttons on every page: Python code, link, and downloads of the view."""

    def __init__(self, page: Page, session: Session, body: Any = None) -> None:
        self._page, self._session, self._body = page, session, body
        self.code = pn.pane.HTML("", css_classes=["python"], visible=False, sizing_mode="stretch_width", margin=0)
        self.show_code = pn.widgets.Toggle(label="Show the Python code", width=190, margin=0)
        self.show_code.param.watch(session.guarded(lambda _: self.refresh()), "value")
        copy = pn.widgets.Button(label="Copy link", width=92, margin=0)
        copy.js_on_click(args={"button": copy}, code=_COPY_ADDRESS)
        self._address = Div(text="", visible=False)
        self._address.js_on_change("text", CustomJS(code=_REPLACE_ADDRESS))
        files = [self._download(kind) for kind in _FORMATS]
        if type(page).film is not Page.film:
            files += [self._film_button(kind) for kind in _FILMS]
        self._parcel = ColumnDataSource({"name": [""], "bytes": [np.zeros(0, dtype=np.uint8)]})
        save = CustomJS(args={"parcel": self._parcel}, code=_SAVE)
        self._parcel.js_on_change("data", save)
        self._address.js_on_change("name", save)  # only so that the parcel is part of the document
        address = pn.pane.Bokeh(self._address, width=0, height=0, margin=0)
        back = () if page.history is None else page.history.buttons
        self.row = pn.Row(*back, self.show_code, copy, *files, address, css_classes=["tools"], margin=(4, 0))

    def refresh(self) -> None:
        """Update the address and, when it is open, the code."""
        self._address.text = address_of(self._page.state())
        self.code.visible = bool(self.show_code.value)
        if self.show_code.value:
            self.code.object = code_box(self._page.code())

    def _download(self, kind: str) -> Any:
        return Download(
            callback=self._session.guarded(lambda: self._file(kind)),
            filename=f"hardmax-{self._page.slug}.{kind}",
            label=kind.upper(),
            embed=False,
            width=62,
            margin=0,
            icon=None,
            description=f"Save this view as {kind.upper()}",
        )

    def _film_button(self, kind: str) -> Any:
        words = f"Save the motion as a film ({kind.upper()})"
        button = pn.widgets.Button(label=kind.upper(), width=62, margin=0, description=words)
        button.on_click(self._session.guarded(lambda _: self._start_film(kind)))
        return button

    def _start_film(self, kind: str) -> None:
        """Draw the film in the background and send it to the browser, which saves it."""
        name = f"hardmax-{self._page.slug}.{kind}"
        path = self._session.folder / f"film.{kind}"

        def work(job: Job) -> bytes:
            made = self._page.film(path, job.tell)
            if made is None:
                raise HardmaxError("there is nothing to save yet: the page has no motion")
            data = made.read_bytes()
            made.unlink()
            return data

        def send(data: bytes) -> None:
            self._parcel.data = {"name": [name], "bytes": [np.frombuffer(data, dtype=np.uint8)]}
            self._session.show_message(f"{name}: {len(data) / 1e6:.1f} MB.", "good")

        self._session.start("Drawing the film", work, send)

    def _file(self, kind: str) -> io.BytesIO:
        page = self._page.page() if kind == "html" else None
        if page is not None:
            return io.BytesIO(page.encode())
        figure = self._page.figure()
        if figure is None:
            raise HardmaxError("there is nothing to save yet: the page has no figure")
        if kind == "html" and self._body is not None:
            dark = self._session.lighting.light == NIGHT
            return io.BytesIO(standalone_cards(self._page.title, self._body, dark=dark).encode())
        return io.BytesIO(figure_bytes(figure, kind))


def _light_switch(session: Session) -> Any:
    switch = pn.widgets.Toggle(label="Dark", width=70, margin=0, tags=["light-switch"])  # found by page.html
    switch.jscallback(value=_SWITCH_LIGHT)
    switch.param.watch(session.guarded(lambda event: session.lighting.switch(bool(event.new))), "value")
    return switch


def frame_variables(
    entries: Sequence[Mapping[str, object]],
    heading: str,
    text: str,
    *,
    slug: str = "",
    task: str = "",
    paper: str = "",
    functions: Sequence[str] = (),
    scripts: Sequence[str] = (),
) -> dict[str, Any]:
    """The variables of static/page.html, the same at every visit to a page."""
    return {
        "page_css": static("page.css"),
        "names_js": static("names.js"),
        "connection_js": static("connection.js"),
        "player_js": static("motion.js") + static("stage.js") + static("player.js"),
        "entries": list(entries),
        "home": "./",
        "heading": heading,
        "text": text,
        "task": task,
        "paper": paper,
        "functions": list(functions),
        "scripts": [static(name) for name in (*scripts, "guide.js")],
        "guide": guide_of(slug),
    }


def page_variables(page: Page | type[Page], entries: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """The variables of the frame of a page."""
    return frame_variables(
        entries,
        page.title,
        page.text,
        slug=page.slug,
        task=page.task,
        paper=page.paper,
        functions=page.functions,
        scripts=page.scripts,
    )


class _Frame(pn.Template):  # type: ignore[misc]
    """A template that does not describe itself: Panel would write out all its parts each time one is added."""

    def __repr__(self) -> str:
        return type(self).__name__


def frame(main: Any, session: Session, variables: Mapping[str, Any], tools: Any = None) -> Any:
    """The template of a whole page around ``main``; pages with a ``task`` have ``tools``."""
    template = _Frame(static("page.html"), design=ExplorerDesign)
    for name, value in variables.items():
        template.add_variable(name, value)
    template.add_panel("light", _light_switch(session))
    if tools is not None:
        template.add_panel("tools", tools)
    template.add_panel("main", main)
    return template


def framed_page(page: Page, session: Session, entries: Sequence[Mapping[str, object]]) -> Any:
    """A page in its frame; an error while it is built is shown as a message."""
    body = session.guarded(page.build)(session)
    tools = Tools(page, session, body)
    session.on_change(tools.refresh)
    parts = [tools.code, session.messages, session.progress, *([] if body is None else [body])]
    main = pn.Column(*parts, css_classes=["parts"], sizing_mode="stretch_width")
    return frame(main, session, page_variables(page, entries), tools.row)
