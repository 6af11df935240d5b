"""The page: what is put in comes out, in order, escaped, and needs nothing outside the file."""

import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from hardmax.errors import FileError, InputError
from hardmax.reproduce.report import Picture, Report, Table, shown

_VOID = {"meta", "img", "br", "link"}


class _Balanced(HTMLParser):
    """Collects tags and text and insists that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def _parsed(page: Report) -> _Balanced:
    parser = _Balanced()
    parser.feed(page.to_html())
    parser.close()
    assert parser.open == []
    return parser


def _png() -> bytes:
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([0, 1])
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _page() -> Report:
    page = Report("Leaders & <followers>", lead="One `leads`.")
    stop = page.section("Who leads?")
    stop.text("First.\n\nSecond <b>.").numbers({"leaders": 3, "share": 0.25}).code("a < b")
    stop.picture(_png(), "A line.", alt='from 0 to "1"')
    page.section("Table").table(Table("Sizes", ("who", "tokens"), (("a & b", 1200), ("c", None)), note="by count"))
    return page


def test_parts_appear_in_order_and_escaped():
    parsed = _parsed(_page())
    text = " ".join(" ".join(parsed.text).split())
    for words in (
        "Leaders & <followers>",
        "Who leads?",
        "First.",
        "Second <b>.",
        "3",
        "0.25",
        "a < b",
        "A line.",
    ):
        assert words in text
    places = [text.rindex(words) for words in ("First.", "Second <b>.", "0.25", "a < b", "A line.", "a & b", "1,200")]
    assert places == sorted(places)
    assert [tag for tag, _ in parsed.seen].count("section") == 2


def test_page_is_self_contained():
    page = _page().to_html()
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    sources = [attrs["src"] for tag, attrs in _parsed(_page()).seen if tag == "img"]
    assert len(sources) == 1
    assert sources[0].startswith("data:image/png;base64,")


def test_links_lead_to_sections():
    parsed = _parsed(_page())
    targets = [attrs["href"][1:] for tag, attrs in parsed.seen if tag == "a"]
    assert targets == [attrs["id"] for tag, attrs in parsed.seen if tag == "section"] == ["who-leads", "table"]


def test_every_picture_has_words_for_those_who_cannot_see_it():
    alts = [attrs["alt"] for tag, attrs in _parsed(_page()).seen if tag == "img"]
    assert alts == ['from 0 to "1"']
    assert 'alt="A line."' in Picture(_png(), "A line.").to_html()


def test_numeric_columns_are_flush_right_and_words_are_not():
    table = Table("t", ("name", "count", "mixed"), (("a", 1, 2), ("b", None, "3")))
    assert [table.numeric(c) for c in range(3)] == [False, True, False]
    assert table.to_html().count('class="number"') == 3  # one head, two cells


def test_table_written_for_programs_keeps_every_digit():
    table = Table("t", ("n", "value", "ok"), ((np.int64(3), 1 / 3, True), (1, None, False)), note="note")
    assert table.to_csv() == f"n,value,ok\n3,{1 / 3},True\n1,,False\n"
    assert f'"value": {1 / 3}' in table.to_json()
    assert '"n": 3' in table.to_json()


def test_table_with_a_short_row_is_refused():
    with pytest.raises(ValueError, match=r"'t': a row of 1 cells under 2 columns"):
        Table("t", ("a", "b"), ((1,),))


@pytest.mark.parametrize(
    ("value", "words"),
    [(1000, "1,000"), (0.5, "0.5"), (12345.678, "12,346"), (None, "–"), (False, "no"), ("x", "x")],
)
def test_cells_in_words(value, words):
    assert shown(value) == words


def test_what_is_no_picture_is_refused():
    with pytest.raises(InputError, match="must be the bytes of a PNG"):
        Picture(b"hello", "caption")


def test_two_sections_of_one_name_are_refused():
    page = Report("p")
    page.section("Once")
    with pytest.raises(InputError, match="must be new on this page"):
        page.section("once")


def test_page_is_written_whole_and_names_a_missing_folder(tmp_path):
    path = _page().write(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == _page().to_html()
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileError, match="does not exist"):
        _page().write(tmp_path / "absent" / "page.html")
