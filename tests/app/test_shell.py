"""The frame of all pages: addresses, messages, files, the end of a visit, and what it says about itself."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import hardmax
from hardmax.app.guide import GLOSSARY, TOURS, guide_of
from hardmax.app.home import gallery as home
from hardmax.app.jobs import Job, JobPool
from hardmax.app.look import DAY, NIGHT, PALETTE, STATIC, highlighted, leader_colours
from hardmax.app.server import build_home, help_page, load_page, slugs
from hardmax.app.session import Session
from hardmax.app.shell import Tools, address_of, query_of
from hardmax.app.tokens.page import TokensPage
from hardmax.cli.app import app
from hardmax.errors import HardmaxError, InputError
from visits import Visit, contrast


def test_every_page_says_what_it_is() -> None:
    for slug in slugs():
        page = load_page(slug)
        assert page.slug == slug
        assert len(page.text) > 100
        assert re.fullmatch(r"\d{4}\.\d{5}", page.paper)
        for name in page.functions:
            assert name in hardmax.__all__
            assert f"hardmax.{name}" in help_page(name)
    with pytest.raises(InputError, match="--pages is not a page, got 'nothing': choose among tokens"):
        load_page("nothing")


def test_the_first_page_links_to_all_pages() -> None:
    pages = [load_page(slug) for slug in slugs()]
    words = build_home(pages).object
    for page in pages:
        assert re.search(rf'href="\./{page.slug}["?]', words)
        assert html.escape(page.title) in words
    assert 'href="./text' not in build_home([load_page("tokens")]).object  # a page that is not served has no card


def test_every_example_has_a_picture_and_an_address_that_its_page_takes() -> None:
    assert sorted(path.stem for path in home.PICTURES.iterdir()) == sorted(one.name for one in home.EXAMPLES)
    for one in home.EXAMPLES:
        assert imread(home.PICTURES / f"{one.name}.png").shape[:2] == (home.HEIGHT, home.WIDTH)
        page = load_page(one.page)()
        page.restore(dict(one.query))
        kept = page.state() if one.query else {}
        # A page may leave out what it shows anyway.
        assert {name: kept.get(name, value) for name, value in one.query} == dict(one.query)
        assert kept or not one.query or one.name == "oscillators"


@pytest.mark.parametrize("name", ["faces", "compiled"])
def test_the_pictures_are_those_that_the_library_draws(name: str) -> None:
    one = next(one for one in home.EXAMPLES if one.name == name)
    drawn, stored = imread(io.BytesIO(home.draw_picture(one))), imread(home.PICTURES / f"{name}.png")
    assert np.abs(drawn[..., :3] - stored[..., :3]).mean() < 0.02  # other versions of Matplotlib smooth otherwise


def test_every_page_has_a_tour_of_five_stops_and_the_glossary_is_no_markup() -> None:
    assert set(TOURS) == {"", *slugs()}
    for slug, stops in TOURS.items():
        assert len(stops) == 5, slug
        assert all(words.endswith((".", "?")) and len(words) <= 120 for _, words in stops), slug
    assert all(words.endswith(".") and len(words) <= 120 for words in GLOSSARY.values())
    assert "<" not in guide_of("text")
    assert json.loads(guide_of("text"))["stops"][1]["at"] == "Answer"


def test_code_is_highlighted_and_stays_the_same_code() -> None:
    code = "import re\nx = f'a{1!r}' + \"<b>\"  # é & <i>\nif not x:\n    print(0.5, '''two\nlines''')\n"
    for text in (code, "x = (", "'open"):
        assert html.unescape(re.sub(r"<[^>]+>", "", highlighted(text))) == text
    assert '<span class="keyword">not</span>' in highlighted(code)
    assert '<span class="comment"># é &amp; &lt;i&gt;</span>' in highlighted(code)


def test_queries_are_read_and_written_within_bounds() -> None:
    assert query_of({"a": [b"1", b"2"], "b": [b"\xff"], "c": [b"x" * 10_000], "d": []}) == {"a": "1"}
    assert address_of({"a": "1 2", "b": "é"}) == "?a=1+2&b=%C3%A9"
    assert address_of({"a": "x" * 10_000}) == "?"
    assert address_of({}) == "?"


def test_messages_are_text() -> None:
    session = Session(JobPool(workers=1))
    session.show_message("<script>alert(1)</script>" + "x" * 5000, "error")
    assert "<script>" not in session.messages.object
    assert 'role="alert"' in session.messages.object
    assert len(session.messages.object) < 1000
    session.clear_message()
    assert session.messages.visible is False


def test_errors_become_messages_and_surprises_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    session = Session(JobPool(workers=1))

    def ours() -> None:
        raise HardmaxError("use another <value>")

    def surprise() -> None:
        raise ZeroDivisionError("secret path")

    session.guarded(ours)()
    assert "use another &lt;value&gt;" in session.messages.object
    assert caplog.records == []
    session.guarded(surprise)()
    assert "secret" not in session.messages.object
    assert "secret path" in caplog.text


def test_work_that_has_just_begun_has_a_bar_that_moves() -> None:
    session = Session(JobPool(workers=1))
    for fraction, value in ((None, None), (0.0, None), (0.25, 'value="0.250"'), (1.0, 'value="1.000"')):
        job = Job("Fitting", lambda _: None)
        job.fraction = fraction
        session._show_job(job)
        assert (value or "<progress") in session._bar.object
        assert ("value=" in session._bar.object) == (value is not None)


def test_the_folder_of_a_visit_goes_with_it() -> None:
    session = Session(JobPool(workers=1))
    folder = session.folder
    (folder / "upload.csv").write_text("1,2")
    assert session.folder == folder
    session.close()
    assert not folder.exists()
    session.close()


def test_tools_show_the_code_and_save_the_view() -> None:
    visit = Visit(TokensPage(), {"n": "5"})
    tools = Tools(visit.page, visit.session)
    tools.refresh()
    assert tools.code.visible is False
    tools.show_code.value = True
    assert "hm.HardmaxLayer(0.5)" in re.sub(r"<[^>]+>", "", tools.code.object)
    assert tools._file("png").read(4) == b"\x89PNG"
    assert b"<svg" in tools._file("svg").read(1000)
    assert b"<!doctype html>" in tools._file("html").read(100)
    visit.page._computed = None
    with pytest.raises(HardmaxError, match="nothing to save yet"):
        tools._file("png")
    visit.close()


def test_pictures_follow_the_light() -> None:
    session = Session(JobPool(workers=1))
    plot = session.figure(title="a")
    seen = []
    session.lighting.follow(seen.append)
    session.lighting.switch(True)
    assert plot.title.text_color == NIGHT.ink
    assert plot.xaxis[0].major_label_text_color == NIGHT.soft
    session.lighting.switch(False)
    assert plot.title.text_color == DAY.ink
    assert seen == [DAY, NIGHT, DAY]


@pytest.mark.parametrize("light", [DAY, NIGHT])
def test_words_can_be_read_in_both_lights(light: object) -> None:
    """The contrast that the accessibility guidelines ask for, 4.5 to 1."""
    for ink in (light.ink, light.soft):
        assert contrast(ink, light.card) >= 4.5


def test_every_leader_can_be_seen_at_night() -> None:
    night, day = leader_colours(NIGHT), leader_colours()
    assert all(contrast(colour, NIGHT.card) >= 3 for colour in night)
    assert len(set(night)) == len(night)
    seen = [contrast(colour, NIGHT.card) >= 3 for colour in day]
    assert [one for one, good in zip(night, seen, strict=True) if good] == [
        one for one, good in zip(day, seen, strict=True) if good
    ]  # the others are as in the light
    assert all(seen[: len(PALETTE)])


def test_nothing_that_is_shipped_points_outside() -> None:
    for file in (path for path in Path(STATIC).iterdir() if path.is_file()):
        outside = set(re.findall(r"https?://[\w.-]+", file.read_text(encoding="utf-8")))
        assert outside <= {"https://arxiv.org"}, file  # a link, followed by a person
        assert "@import" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--address", "0.0.0.0"], "add --public to let every user"),  # noqa: S104 - refused
        (["--port", "99999"], "--port must lie in 0 … 65535"),
        (["--port", "x"], "--port must be a whole number"),
        (["--pages", "nothing"], "--pages is not a page"),
    ],
)
def test_the_command_refuses_in_words(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["explore", "--no-browser", *arguments])
    assert result.exit_code == 2
    assert words in result.output


def test_the_command_says_what_public_means(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        port = 1234
        pool = JobPool(workers=1)

        def run_until_shutdown(self) -> None:
            return

    asked: dict[str, object] = {}

    def make(wanted: object, **options: object) -> Fake:
        asked.update(options, wanted=wanted)
        return Fake()

    monkeypatch.setattr("hardmax.app.server.make_server", make)
    arguments = ["explore", "--address", "0.0.0.0", "--public", "--no-browser", "--pages", "tokens, meanfield"]  # noqa: S104
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "every user who can reach this machine can use the explorer" in result.output
    assert "http://localhost:1234/" in result.output
    assert asked["wanted"] == ["tokens", "meanfield"]
    assert asked["open_browser"] is False
    quiet = CliRunner().invoke(app, ["explore", "--no-browser"])
    assert "everybody" not in quiet.output


def test_without_the_extra_the_command_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == "panel" or name.startswith("hardmax.app")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "panel", None)
    result = CliRunner().invoke(app, ["explore", "--no-browser"])
    assert result.exit_code == 2
    assert re.search(r"pip install .*panel.* \(the extra: app\)", " ".join(result.output.split()))
