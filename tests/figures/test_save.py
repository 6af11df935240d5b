"""Figures are written whole, in the format that the suffix names."""

import os

import matplotlib.image
import pytest
from matplotlib.figure import Figure

from hardmax.errors import FileError, InputError
from hardmax.figures import save_figure


def _figure():
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([0, 1])
    return figure


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.svg", b"<?xml"), ("a.html", b"<!doctype html>")],
)
def test_format_by_suffix(tmp_path, name, start):
    path = save_figure(_figure(), tmp_path / name)
    assert path.read_bytes().startswith(start)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_same_drawing_same_bytes(tmp_path, suffix):
    first = save_figure(_figure(), tmp_path / f"a.{suffix}").read_bytes()
    assert save_figure(_figure(), tmp_path / f"b.{suffix}").read_bytes() == first


def test_html_carries_the_picture_inside(tmp_path):
    page = save_figure(_figure(), tmp_path / "a.html").read_text()
    assert "data:image/png;base64," in page
    assert "http" not in page


@pytest.mark.parametrize("name", ["a.bmp", "a", "a.gif"])
def test_unknown_suffix_is_refused_with_the_known_ones(tmp_path, name):
    with pytest.raises(FileError, match=r"one of \.png, \.pdf, \.svg, \.html"):
        save_figure(_figure(), tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileError, match="the folder .*absent does not exist"):
        save_figure(_figure(), tmp_path / "absent" / "a.png")


def test_failure_keeps_the_old_picture(tmp_path):
    path = save_figure(_figure(), tmp_path / "a.png")
    before = path.read_bytes()
    broken = _figure()
    broken.axes[0].set_title(r"$\notacommand$")
    with pytest.raises(ValueError, match="notacommand"):
        save_figure(broken, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.png"]


def test_axes_are_saved_with_their_figure_and_other_things_refused(tmp_path):
    ax = Figure().subplots()
    assert save_figure(ax, tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="figure must be a Figure or Axes, got a NoneType"):
        save_figure(None, tmp_path / "b.png")
    assert not (tmp_path / "b.png").exists()


def test_the_background_of_a_dark_figure_is_dark_around_its_axes(tmp_path):
    figure = _figure()
    figure.set_facecolor("#1a2229")
    picture = matplotlib.image.imread(save_figure(figure, tmp_path / "a.png"))
    assert (255 * picture[2, 2]).round().tolist() == [0x1A, 0x22, 0x29, 255]
    assert "fill: #1a2229" in save_figure(figure, tmp_path / "a.svg").read_text()
