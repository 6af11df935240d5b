"""Links that keep uploads: a second visit at the same address shows the same data, model and code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from hardmax.app.forecasting.page import ForecastingPage
from hardmax.app.forecasting.state import UPLOAD, model_archive
from hardmax.app.networks.page import NetworksPage
from hardmax.app.page import Page
from hardmax.app.real_model.page import RealModelPage
from hardmax.app.shell import address_of
from hardmax.app.text.page import TextPage
from hardmax.app.text.state import EXAMPLES, model_bytes, shipped
from hardmax.app.uploads import Upload
from made_up_texts import opinions
from visits import Visit

_WAVES = Upload(
    "waves.csv",
    ("time,height\n" + "".join(f"{k / 10},{np.sin(k / 10) if k != 30 else ''}\n" for k in range(160))).encode(),
)
_UNKNOWN = "0123456789" * 4


def _random(seed: int, size: int = 9_000) -> str:
    """A text that does not fit into an address, packed or not."""
    words = np.random.default_rng(seed).integers(0, 10**6, size=size // 7)
    return " ".join(["a wonderful film", *(f"{word:06d}" for word in words)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _again(visit: Visit, kind: type[Page]) -> Visit:
    """A second visit at the address of the first, whose state and code must be the same."""
    state = visit.page.state()
    assert len(address_of(state)) > 1
    assert not any(value == "" for value in state.values())
    opened = Visit(kind(), state)
    assert opened.page.state() == state
    assert _up_to_the_search(opened.page.code()) == _up_to_the_search(visit.page.code())
    return opened


def _up_to_the_search(code: str) -> str:
    """The code of a page; of a forecast the lines that make its series.

    Whether a search ends by itself within its half second depends on the machine, and the lines after it on that.
    """
    return code.partition("# The search on the page")[0].partition("model = hm.TimeDelayedTransformer")[0]


def _forget(folder: Path) -> None:
    for path in folder.rglob("*.upload"):
        path.unlink()


def _forecast() -> Visit:
    visit = Visit(ForecastingPage(), {"steps": "30", "seconds": "0.5", "samples": "100"})
    page = visit.page
    page._fill.value = True
    page._take(_WAVES)
    page._begin()
    visit.settle()
    return visit


def test_a_series_with_its_forecast_and_undo(folder: Path) -> None:
    visit = _forecast()
    assert {"kept", "fill", "fit"} <= set(visit.page.state())
    again = _again(visit, ForecastingPage)
    page: Any = again.page
    assert page._which.value == UPLOAD
    assert page._which.options["waves.csv"] == UPLOAD
    assert np.array_equal(page._data.values, visit.page._data.values, equal_nan=True)
    assert page._fit.forecast.values.shape == (30, 1)
    assert "it is stored on this machine for 30 days" in page._stored_note.object
    page._which.value = "airfoil"
    again.settle()
    assert "kept" not in page.state()
    page.history.step(-1)
    again.settle()
    assert page._data.series.names == ("height",)
    assert page.state()["kept"] == visit.page.state()["kept"]
    page.history.reset.clicks += 1
    again.settle()
    assert "kept" not in page.state()
    again.close()
    link = visit.page.state()
    _forget(folder)
    gone = Visit(ForecastingPage(), link)
    assert "The table of this link is not stored on this machine, or no longer" in gone.message
    assert "upload it again" in gone.message
    assert gone.page._data is not None
    assert gone.page._which.value == "lorenz"
    gone.close()
    visit.close()


def test_a_model_of_forecasts(folder: Path) -> None:
    visit = _forecast()
    file = Upload("model.zip", model_archive(visit.page._fit, visit.session.folder))
    values = visit.page._fit.forecast.values
    visit.page._load(file)
    again = _again(visit, ForecastingPage)
    assert np.array_equal(again.page._fit.forecast.values, values)
    assert again.page._fit.file == file
    again.page._ahead.value = 40  # the forecast is then one of other settings
    assert "model" not in again.page.state()
    again.close()
    gone = Visit(ForecastingPage(), visit.page.state() | {"model": _UNKNOWN})
    assert gone.message.startswith("The model of this link is not stored")
    assert gone.page._data.series.names == ("height",)
    gone.close()
    visit.close()


def test_a_stored_file_of_another_page_is_no_series(folder: Path) -> None:
    visit = Visit(ForecastingPage(), {"seconds": "0.5"})
    page: Any = visit.page
    name = page._store.keep(Upload("letters.csv", b"no,numbers\nhere,at all\n"))
    visit.close()
    opened = Visit(ForecastingPage(), {"kept": name})
    assert "table of this link" in opened.message
    assert opened.page._data.series.source
    opened.close()


def test_two_texts(folder: Path) -> None:
    visit = Visit(TextPage())
    page: Any = visit.page
    page._area.value_input = _random(0)
    page._both.value = True
    page._other_area.value_input = _random(1)
    assert {"text-kept", "beside-kept"} <= set(page.state())
    assert "The link keeps your text" in page._length.object
    assert "The link keeps your second text" in page._other_length.object
    again = _again(visit, TextPage)
    assert (again.page._typed, again.page._other) == (_random(0), _random(1))
    again.close()
    page.history.step(-1)
    page.history.step(-1)
    assert "beside-kept" not in page.state()
    page.history.step(1)
    page.history.step(1)
    link = page.state()
    assert "beside-kept" in link
    _forget(folder)
    gone = Visit(TextPage(), link)
    assert "The text of this link is not stored" in gone.message
    assert "The second text of this link is not stored" in gone.message
    assert (gone.page._typed, gone.page._other) == ("", "")
    gone.close()
    visit.close()


def test_two_texts_that_are_packed_share_the_address() -> None:
    visit = Visit(TextPage())
    page: Any = visit.page
    page._area.value_input = _random(0, 5_000)
    alone = page.state()
    page._both.value = True
    page._other_area.value_input = _random(1, 5_000)
    assert "text-packed" in alone
    _again(visit, TextPage).close()
    visit.close()


def test_a_model_of_texts_and_one_trained_on_a_table(folder: Path) -> None:
    visit = Visit(TextPage())
    page: Any = visit.page
    texts, labels = opinions(60)
    table = pandas.DataFrame({"id": range(60), "review": texts, "label": labels}).to_csv(index=False).encode()
    page._take_table(Upload("letters.csv", table))
    page._begin.clicks += 1
    visit.settle()
    page._plane.struck.data = {"word": ["dull"]}
    assert page.state()["columns"] == "1,2"
    again = _again(visit, TextPage)
    assert again.page._using.story == page._using.story
    assert np.array_equal(again.page._explanation.logits, page._explanation.logits)
    assert again.page._struck == ("dull",)
    assert again.page.history.undo.disabled
    again.close()
    trained = page.state()
    page._load(Upload("own.safetensors", model_bytes(page._using, visit.session.folder)))
    assert "table" not in page.state()
    again = _again(visit, TextPage)
    assert again.page._using.title == "own.safetensors"
    again.page._back.clicks += 1
    assert "model" not in again.page.state()
    again.page.history.step(-1)
    assert again.page.state() == page.state()
    again.close()
    links = {"model": page.state(), "training table": trained}
    _forget(folder)
    for noun, link in links.items():
        gone = Visit(TextPage(), link)
        assert f"The {noun} of this link is not stored" in gone.message
        assert gone.page._using is shipped()
        assert gone.page._typed == EXAMPLES["cast"][1]
        gone.close()
    visit.close()


def test_columns_that_a_table_does_not_have_are_a_message() -> None:
    visit = Visit(TextPage())
    name = visit.page._store.keep(Upload("letters.csv", b"text,label\na,b\n"))
    visit.close()
    opened = Visit(TextPage(), {"table": name, "columns": "0,7"})
    assert "letters.csv: has 2 columns" in opened.message
    assert opened.page.state() == {"example": "cast"}  # what is shown: the shipped model
    opened.close()


def test_many_sequences_and_a_network(folder: Path) -> None:
    visit = Visit(NetworksPage(), {"construction": "fewest"})
    page: Any = visit.page
    numbers = np.random.default_rng(0).integers(1, 10**9, size=(250, 4))
    lines = "\n".join(f"({k}, {a}/{b}) -> ({c}/{d}, {k})" for k, (a, b, c, d) in enumerate(numbers.tolist()))
    page._area.value_input = lines
    assert set(page.state()) >= {"lines-kept"}
    assert "The link keeps your sequences: they are stored" in page._stored_note.object
    fresh = NetworksPage()
    fresh.restore(page.state())
    assert fresh._choices == page._choices
    page.history.step(-1)
    assert "lines-kept" not in page.state()
    page.history.step(1)
    link = page.state()
    assert "lines-kept" in link
    page._area.value_input = "(0, 0) -> (1, 1)"
    page._compile()
    visit.settle()
    data = page._archive().getvalue()
    page._how.value = "leaders"
    page._check(Upload("network.zip", data))
    visit.settle()
    assert "verify(folder)" in page.code()
    again = _again(visit, NetworksPage)
    assert again.message.startswith("PROVED")
    assert again.page._done.file == Upload("network.zip", data)
    again.page._wide.value = 5
    assert "network" not in again.page.state()
    again.page.history.step(-1)
    assert again.page.state() == page.state()
    again.close()
    named = page.state()
    _forget(folder)
    for state, words in ((link, "sequences of this link are not"), (named, "network of this link is not")):
        gone = Visit(NetworksPage(), state)
        assert words in gone.message
        gone.close()
    visit.close()


def test_a_long_text_of_the_real_model(folder: Path) -> None:
    visit = Visit(RealModelPage(), {"text": "a short text"})
    page: Any = visit.page
    text = "".join(map(chr, np.random.default_rng(0).integers(0x4E00, 0x9000, size=1_990).tolist()))
    page._area.value = text
    visit.settle()
    assert "text-kept" in page.state()
    assert "The link keeps your text" in page._stored_note.object
    again = _again(visit, RealModelPage)
    assert again.page._state.text == text
    again.close()
    link = page.state()
    _forget(folder)
    gone = Visit(RealModelPage(), link)
    assert "text of this link is not stored" in gone.message
    assert gone.page._state.text == ""
    gone.close()
    visit.close()


def test_where_nothing_can_be_stored_the_pages_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    visit = Visit(ForecastingPage())
    visit.page._take(_WAVES)
    assert "does not keep your table" in visit.page._stored_note.object
    assert "it stays with this visit" in visit.page._stored_note.object
    assert "kept" not in visit.page.state()
    visit.close()
    visit = Visit(TextPage())
    visit.page._area.value_input = _random(0)
    assert "does not keep your text" in visit.page._length.object
    visit.page._load(Upload("own.safetensors", model_bytes(shipped(), visit.session.folder)))
    assert "does not keep your model" in visit.page._stored_note.object
    assert visit.page.state() == {"text": ""}
    visit.close()
