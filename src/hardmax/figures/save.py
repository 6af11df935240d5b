"""Figures as files, in the format of the suffix."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..drawing.style import styled
from ..errors import FileError, InputError
from ..files import replacing

FORMATS = (".png", ".pdf", ".svg", ".html")
# Sharp in print at the size of a column.
_DPI = 200


def save_figure(figure: Figure | Axes, path: str | os.PathLike[str], *, dpi: int = _DPI) -> Path:
    """Write a figure as PNG, PDF, SVG or an HTML page, by the suffix of ``path``.

    The file appears when it is complete; an error leaves the previous file as it was.

    Parameters
    ----------
    figure
        A figure, or axes of it.
    path
        The file to write, ending in ``.png``, ``.pdf``, ``.svg`` or ``.html``.
    dpi
        Pixels per inch.

    Returns
    -------
    Path
        The file that was written.
    """
    target = Path(path)
    suffix = require_suffix(target, FORMATS)
    with replacing(target) as draft:
        draft.write_bytes(figure_bytes(figure, suffix[1:], dpi=dpi))
    return target


def require_suffix(path: Path, known: tuple[str, ...]) -> str:
    """The suffix of ``path`` in lower case; an error if it is not among ``known``."""
    suffix = path.suffix.lower()
    if suffix not in known:
        problem = f"the suffix {path.suffix!r} names no format" if path.suffix else "has no suffix to name a format"
        raise FileError(path, problem, f"end the name in one of {', '.join(known)}")
    return suffix


def figure_bytes(figure: Figure | Axes, kind: str = "png", *, dpi: int = _DPI) -> bytes:
    """The figure as an encoded file.

    Parameters
    ----------
    figure
        A figure, or axes of it.
    kind
        "png", "pdf", "svg" or "html".
    dpi
        Pixels per inch.

    Returns
    -------
    bytes
        The contents of the file; the same figure gives the same bytes.
    """
    whole = figure.get_figure(root=True) if isinstance(figure, Axes) else figure
    if not isinstance(whole, Figure):
        raise InputError("figure", f"a {type(whole).__name__}", "must be a Figure or Axes", "pass a result of draw(…)")
    buffer = io.BytesIO()
    encoding = "png" if kind == "html" else kind
    # Without dates the same drawing gives the same bytes.
    undated: dict[str, dict[str, object]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with styled():
        whole.draw_without_rendering()  # axes of equal scales find their place only at the second layout
        whole.savefig(buffer, format=encoding, dpi=dpi, metadata=undated.get(encoding))
    data = buffer.getvalue()
    return _page(data) if kind == "html" else data


def _page(png: bytes) -> bytes:
    source = base64.b64encode(png).decode("ascii")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>hardmax</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>body{margin:0;background:#fff}img{display:block;max-width:100%;height:auto;margin:auto}</style>"
        f'</head><body><img alt="Figure made by hardmax" src="data:image/png;base64,{source}"></body></html>\n'
    ).encode()
