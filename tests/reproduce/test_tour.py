"""The tour: every stop fills its section with numbers that are computed."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hardmax.reproduce import clustering, tour
from hardmax.reproduce.report import Section
from hardmax.reproduce.tour import STOPS, Stop, take_tour


@pytest.fixture(autouse=True)
def _fewer_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "_MILLION", 2000)
    monkeypatch.setattr(clustering, "TOKENS", (5, 20))


def _shown(show: object) -> str:
    section = Section("A stop")
    show(section)  # type: ignore[operator]
    return section.to_html()


def _number(page: str, label: str) -> str:
    found = re.search(rf"<dt>{re.escape(label)}</dt><dd>([^<]*)</dd>", page)
    assert found, label
    return found[1]


def test_leaders() -> None:
    page = _shown(tour.show_leaders)
    assert "data:image/png;base64," in page
    assert "(2.4, 0.7)" in page


def test_a_million() -> None:
    page = _shown(tour.show_a_million)
    assert _number(page, "tokens") == "2,000"
    assert float(_number(page, "seconds to infinite depth")) < 60
    assert int(_number(page, "leaders")) >= 3


def test_ties_are_certified() -> None:
    page = _shown(tour.show_ties)
    assert _number(page, "exact run agrees with the rounded one") == "yes"
    assert _number(page, "tokens tied for ever") == "5"
    assert _number(page, "late leader emerges at layer") == "3"
    assert page.count("data:image/png;base64,") == 2


def test_softmax_tends_to_hardmax() -> None:
    assert "data:image/png;base64," in _shown(tour.show_softmax)


def test_facts_hold() -> None:
    page = _shown(tour.show_facts)
    assert _number(page, "violations") == "0"
    assert int(_number(page, "statements measured")) > 100


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("src", "href") and value and not value.startswith(("data:", "#")):
                self.outside.append(value)


def test_the_page_has_every_stop_and_needs_nothing_else(tmp_path: Path) -> None:
    def show(section: Section) -> None:
        section.text("Seen.")

    arrived: list[tuple[int, int, str]] = []
    stops = tuple(Stop(stop.title, show) for stop in STOPS)
    take_tour(tmp_path / "tour.html", stops=stops, arrive=lambda *where: arrived.append(where))
    page = (tmp_path / "tour.html").read_text()
    assert arrived == [(k + 1, len(STOPS), stop.title) for k, stop in enumerate(STOPS)]
    assert page.count("Seen.") == len(STOPS)
    links = _Links()
    links.feed(page)
    assert links.outside == []
