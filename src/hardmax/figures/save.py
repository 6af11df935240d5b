"""Figures and animations as files, in the format of the suffix, and functions for the frames of all animations."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from ..drawing.style import styled
from ..errors import FileError, InputError, MissingExtraError
from ..files import replacing
from ..inputs import as_count
from ..progress import Ticker

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
        # The background is that of the figure: the style would write white around the axes of a dark one.
        whole.savefig(buffer, format=encoding, dpi=dpi, metadata=undated.get(encoding), facecolor="auto")
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


MOVIE_FORMATS = (".gif", ".mp4")
Frames = Callable[[Ticker], Iterator[np.ndarray]]
"""Frames of shape (height, width, 3), of bytes, with even height and width as H.264 requires; one tick per frame."""


def checked_target(
    path: str | os.PathLike[str], fps: int, argument: str, seconds: float, usual: float
) -> tuple[Path, int]:
    """The file and the frames per second, after checks of both and of ``argument``, a time in seconds."""
    target = Path(path)
    require_suffix(target, MOVIE_FORMATS)
    fps = as_count("fps", fps, least=1)
    if not 0 < seconds <= 60:
        raise InputError(argument, seconds, "must lie in (0, 60]", f"pass for example {usual:g}")
    return target, fps


def write_movie(target: Path, frames: Frames, count: int, fps: int, progress: bool | None) -> Path:
    """Write ``count`` frames to ``target``, which appears when the file is complete."""
    suffix = require_suffix(target, MOVIE_FORMATS)
    if suffix == ".mp4":
        require_ffmpeg()
    write = _write_gif if suffix == ".gif" else _write_mp4
    with replacing(target) as draft, Ticker("frames", count, progress=progress) as ticker:
        write(draft, frames(ticker), fps)
    return target


def fix_layout(figure: Figure) -> None:
    """Compute the position of the axes once for all frames, because that takes longer than drawing."""
    for _ in range(2):  # axes of equal scales need two rounds
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def eased(share: float) -> float:
    """Share of the way after a share of the time, for a motion that starts and stops softly.

    >>> eased(0.0), eased(0.5), eased(1.0)
    (0.0, 0.5, 1.0)
    """
    return share * share * (3 - 2 * share)


def pixels(canvas: Any) -> np.ndarray:
    """The canvas as a frame, shape (height, width, 3); an odd last row or column is cut off."""
    canvas.draw()
    frame = np.asarray(canvas.buffer_rgba())[:, :, :3]
    return np.ascontiguousarray(frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2])


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: int) -> None:
    pictures = list(frames)
    colours = _common_colours(pictures)
    # The palette's number of every colour there is; Pillow's own search takes a neighbour of the nearest one.
    numbers = np.full(2**24, -1, dtype=np.int16)
    images = []
    for picture in pictures:
        codes = _codes(picture)
        new = np.unique(codes[numbers[codes] < 0])
        for some in np.array_split(new, 1 + len(new) // 4096):
            away = _parts(some)[:, None].astype(np.int32) - colours[None]
            numbers[some] = (away**2).sum(axis=2).argmin(axis=1)
        image = Image.fromarray(numbers[codes].astype(np.uint8).reshape(picture.shape[:2]))
        image.putpalette(colours.ravel().tolist())
        images.append(image)
    duration = round(1000 / fps)
    images[0].save(path, save_all=True, append_images=images[1:], duration=duration, loop=0, optimize=False)


_AREAS = 128
"""Colours of a GIF that are those of areas: half of all, which leaves as many for the edges between them."""


def _common_colours(pictures: list[np.ndarray]) -> np.ndarray:
    """Up to 256 colours for all frames, or they would flicker; taken from the first and the last frame, shape (n, 3).

    Colours of areas, which fill most of a picture, are among them as they are; the others are those of edges.
    """
    seen, counts = np.unique(np.concatenate([_codes(pictures[0]), _codes(pictures[-1])]), return_counts=True)
    colours = _parts(seen[np.argsort(-counts, kind="stable")])
    areas, edges = colours[:_AREAS], colours[_AREAS:]
    if len(edges) > 256 - _AREAS:
        method = Image.Quantize.MAXCOVERAGE
        found = Image.fromarray(edges[None]).quantize(256 - _AREAS, method=method, dither=Image.Dither.NONE)
        edges = np.array(found.getpalette(), dtype=np.uint8).reshape(-1, 3)[: 256 - _AREAS]
    return np.concatenate([areas, edges])


def _codes(picture: np.ndarray) -> np.ndarray:
    """One number per pixel for its colour."""
    red, green, blue = picture.reshape(-1, 3).astype(np.int32).T
    return red << 16 | green << 8 | blue


def _parts(codes: np.ndarray) -> np.ndarray:
    """The colours of such numbers, shape (n, 3)."""
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1).astype(np.uint8)


def require_ffmpeg() -> None:
    """Raise an error that names the extra where ffmpeg is missing."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        raise MissingExtraError("imageio-ffmpeg", "video", "writing MP4") from None


def _write_mp4(path: Path, frames: Iterator[np.ndarray], fps: int) -> None:
    import imageio_ffmpeg

    first = next(frames)
    size = (first.shape[1], first.shape[0])
    quality = ["-crf", "20", "-movflags", "+faststart"]
    writer = imageio_ffmpeg.write_frames(
        str(path),
        size,
        fps=fps,
        codec="libx264",
        quality=None,
        macro_block_size=2,
        ffmpeg_log_level="error",
        output_params=quality,
    )
    writer.send(None)
    try:
        writer.send(first)
        for frame in frames:
            writer.send(frame)
    finally:
        writer.close()
