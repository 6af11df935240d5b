"""Animations: the right frames, in a file that appears when it is complete."""

import itertools
import os
import sys

import numpy as np
import pytest
from PIL import Image

import hardmax as hm
from hardmax.datasets import four_configurations, make_tokens
from hardmax.errors import FileError, InputError, MissingExtraError
from hardmax.figures import animate_tokens
from hardmax.figures import tokens as module


def _run(depth=3):
    return hm.simulate(four_configurations()[1].tokens, hm.HardmaxLayer(0.5), depth=depth)


def _frames(path):
    with Image.open(path) as film:
        frames = []
        for k in range(film.n_frames):
            film.seek(k)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
        return frames, film.info["duration"]


def test_gif_has_a_frame_for_every_moment_and_moves_smoothly(tmp_path):
    path = animate_tokens(_run(), tmp_path / "film.gif", fps=10, seconds_per_layer=0.4, progress=False)
    with Image.open(path) as film:
        lengths = []
        for k in range(film.n_frames):
            film.seek(k)
            lengths.append(film.info["duration"])
    assert sum(lengths) == 100 * (3 * 4 + 12)  # three layers of four frames, then the last is held
    frames, _ = _frames(path)
    assert len(frames) == 3 * 4 + 1  # equal frames in a row are stored as one, and only the last is held
    changes = [np.abs(b - a).sum() for a, b in itertools.pairwise(frames)]
    assert min(changes) > 0
    assert os.listdir(tmp_path) == ["film.gif"]


def test_colours_of_a_gif_are_those_of_the_leaders(tmp_path):
    from hardmax.drawing.style import PALETTE

    frames, _ = _frames(animate_tokens(_run(1), tmp_path / "film.gif", fps=2, progress=False))
    pixels = frames[0].reshape(-1, 3)
    assert (pixels[0] == 255).all()
    for colour in PALETTE[:6]:
        wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert (pixels == wanted).all(axis=1).any()  # to the last digit: each fills an area


def test_mp4_is_a_film_of_the_right_length(tmp_path):
    import imageio_ffmpeg

    path = animate_tokens(_run(2), tmp_path / "film.mp4", fps=10, seconds_per_layer=0.3, progress=False)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert count == 2 * 3 + 12
    assert seconds == pytest.approx(1.8, abs=0.11)
    reader = imageio_ffmpeg.read_frames(str(path))
    about = next(reader)
    first = np.frombuffer(next(reader), dtype=np.uint8)
    reader.close()
    assert about["codec"] == "h264"
    assert first.mean() > 200  # mostly white paper
    assert first.min() < 100  # and something on it
    assert os.listdir(tmp_path) == ["film.mp4"]


def test_space_and_projection_can_be_filmed(tmp_path):
    for d in (1, 3, 5):
        run = hm.simulate(make_tokens("gaussian", 12, d, 0), hm.HardmaxLayer(0.5), depth=2)
        path = animate_tokens(run, tmp_path / f"film{d}.gif", fps=4, progress=False)
        assert len(_frames(path)[0]) > 2
    run = hm.simulate(make_tokens("gaussian", 12, 3, 0), hm.HardmaxLayer(0.5), depth=1)
    assert animate_tokens(run, tmp_path / "film.mp4", fps=4, progress=False).stat().st_size > 0


def test_layers_at_which_nothing_moves_are_left_out():
    kept = hm.simulate(four_configurations()[0].tokens, hm.HardmaxLayer(0.5), depth=200).tokens
    last = module._last_moving(kept)
    assert 5 < last < 30
    assert np.abs(kept[last:] - kept[-1]).max() <= 5e-3 * np.ptp(kept[0], axis=0).max()


def test_interrupted_film_leaves_nothing(tmp_path, monkeypatch):
    def fail(canvas):
        raise RuntimeError("no more paint")

    monkeypatch.setattr(module, "pixels", fail)
    for name in ("film.gif", "film.mp4"):
        with pytest.raises(RuntimeError, match="no more paint"):
            animate_tokens(_run(), tmp_path / name, progress=False)
    assert os.listdir(tmp_path) == []


def test_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\(the extra: video\)"):
        animate_tokens(_run(), tmp_path / "film.mp4", progress=False)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"path": "film.avi"}, FileError, r"film\.avi: the suffix '\.avi' names no format: .*\.gif, \.mp4"),
        ({"path": "film"}, FileError, "has no suffix"),
        ({"path": "absent/film.gif"}, FileError, "absent does not exist"),
        ({"fps": 0}, InputError, "fps must be a whole number, at least 1"),
        ({"fps": 60}, InputError, "fps must be at most 50, got 60"),
        ({"seconds_per_layer": 0}, InputError, "seconds_per_layer must lie in"),
        ({"run": "short"}, InputError, "run must have at least two stored layers"),
    ],
)
def test_mistakes_are_named(tmp_path, change, error, message):
    path = tmp_path / change.pop("path", "film.gif")
    run = _run(0) if change.pop("run", None) else _run()
    with pytest.raises(error, match=message):
        animate_tokens(run, path, progress=False, **change)
    assert os.listdir(tmp_path) == []
