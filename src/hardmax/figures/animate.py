"""Films of a run: tokens glide from layer to layer while colours say whom they listen to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from ..dynamics.trajectory import Trajectory
from ..errors import InputError, MissingExtraError
from ..files import replacing
from ..geometry.result_arrays import states
from ..inputs import as_count
from ..progress import Ticker
from ._marks import Marks
from ._scene import Scene, scene_of_layer
from ._stage import Stage, leaders_of
from ._style import styled
from ._view import axes_for, is_space, view_of
from .save import require_suffix

FORMATS = (".gif", ".mp4")
_DPI = 100
_LAST_FRAMES = 1.2
"""Seconds for which the last layer is held, so that a film in a loop can be read."""
_STILL = 5e-3
"""Layers after which no token moves by more than this, relative to the picture, are not shown."""
_MOST_TURN = 40.0


def animate_tokens(
    run: Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: int = 20,
    seconds_per_layer: float = 0.5,
    progress: bool | None = None,
) -> Path:
    """Write a film of a run as GIF, or as MP4 with the extra ``video``, by the suffix of ``path``.

    Between two kept layers tokens glide, starting and stopping softly. Layers at which nothing moves any more
    are left out. Tokens of three coordinates are shown in space (which turns slowly in MP4; a GIF would be huge), those
    of more in projection. The file appears when the film is complete.

    Parameters
    ----------
    run
        A run with at least two kept layers.
    path
        The file to write, ending in ``.gif`` or ``.mp4``.
    fps
        Frames per second, up to 50.
    seconds_per_layer
        How long a layer takes.
    progress
        Show a progress bar: True, False, or None for only when it takes long and there is a terminal.
    """
    target = Path(path)
    suffix = require_suffix(target, FORMATS)
    fps = as_count("fps", fps, least=1)
    if fps > 50:
        raise InputError("fps", fps, "must be at most 50", "no GIF is played faster than 50 frames per second")
    if not 0 < seconds_per_layer <= 60:
        raise InputError("seconds_per_layer", seconds_per_layer, "must lie in (0, 60]", "pass for example 0.5")
    kept = states(run)
    if len(kept) < 2:
        raise InputError("run", f"{len(kept)} kept layer", "must have at least two kept layers", 'use keep="all"')
    if suffix == ".mp4":
        _require_ffmpeg()
    film = _Film(run, kept, fps, seconds_per_layer, turning=suffix == ".mp4")
    write = _write_gif if suffix == ".gif" else _write_mp4
    with replacing(target) as draft, Ticker("frames", film.count, progress=progress) as ticker:
        write(draft, film.frames(ticker), fps)
    return target


class _Film:
    """All frames of a run, one after the other."""

    def __init__(self, run: Trajectory, kept: np.ndarray, fps: int, seconds_per_layer: float, turning: bool) -> None:
        self._run, self._kept, self._turning = run, kept, turning
        self._steps = max(1, round(fps * seconds_per_layer))
        self._hold = max(1, round(fps * _LAST_FRAMES))
        self._last = _last_moving(kept)
        self.count = self._last * self._steps + self._hold

    def frames(self, ticker: Ticker) -> Iterator[np.ndarray]:
        """Pictures as arrays (height, width, 3) of bytes, with even height and width as video wants."""
        scenes = [scene_of_layer(self._run, k) for k in range(self._last + 1)]
        with styled():
            stage = Stage.of(view_of(self._kept[0], None), scenes, leaders_of(self._run, scenes))
            ax = axes_for(stage.view)
            figure = cast(Figure, ax.figure)
            figure.set_dpi(_DPI)
            canvas: Any = FigureCanvasAgg(figure)
            shown = 0
            for k, scene in enumerate(scenes):
                last = k == self._last
                marks = self._paint(stage, scene, k, ax)
                if k == 0:
                    _lay_out(figure)
                following = None if last else self._kept[k + 1]
                for step in range(self._hold if last else self._steps):
                    if following is not None and step:
                        share = _eased(step / self._steps)
                        now = (1 - share) * scene.positions + share * following
                        marks.move(stage.view.place(now, spread=True))
                    if self._turning and is_space(ax):
                        ax.view_init(elev=22, azim=-60 + _MOST_TURN * shown / self.count)  # type: ignore[attr-defined]
                    shown += 1
                    ticker.advance()
                    yield _pixels(canvas)

    def _paint(self, stage: Stage, scene: Scene, k: int, ax: Axes) -> Marks:
        ax.clear()
        last = k == self._last
        layer = self._run.layers[k]
        title = f"layer {layer}" if self._run.times is None else f"time {self._run.times[k]:.3g}"
        hull = scene.positions[scene.leads] if last else None
        return stage.paint(ax, scene, hull=hull, paths=self._kept[: k + 1], title=title)


def _last_moving(kept: np.ndarray) -> int:
    """The first kept layer from which on every token stays where it is, to the eye."""
    size = float(np.ptp(kept[0], axis=0).max()) or 1.0
    away = np.abs(kept - kept[-1]).max(axis=(1, 2))
    moving = np.flatnonzero(away > _STILL * size)
    return max(1, min(int(moving[-1]) + 1 if len(moving) else 1, len(kept) - 1))


def _lay_out(figure: Figure) -> None:
    """Find the place of the axes once; layers share it, and finding it takes longer than drawing."""
    for _ in range(2):  # axes of equal scales need two rounds
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _eased(share: float) -> float:
    return share * share * (3 - 2 * share)


def _pixels(canvas: Any) -> np.ndarray:
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]
    return np.ascontiguousarray(pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2])


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: int) -> None:
    pictures = [Image.fromarray(frame) for frame in frames]
    palette = _common_palette(pictures)
    indexed = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    duration = round(1000 / fps)
    indexed[0].save(path, save_all=True, append_images=indexed[1:], duration=duration, loop=0, optimize=False)


def _common_palette(pictures: list[Image.Image]) -> Image.Image:
    """One palette for the whole film, or colours would flicker; it is taken from the first and the last picture."""
    width, height = pictures[0].size
    sample = Image.new("RGB", (width, 2 * height))
    sample.paste(pictures[0], (0, 0))
    sample.paste(pictures[-1], (0, height))
    found = sample.quantize(255, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    colours = np.array(found.getpalette()).reshape(-1, 3)
    colours[colours.sum(axis=1).argmax()] = 255  # the paper stays white
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours.ravel().tolist())
    return palette


def _require_ffmpeg() -> None:
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
