"""Forecasting, as a person does it: upload a table, fit, look back, download."""

import datetime
import itertools
import math
import random
import re

from playwright.sync_api import Page, expect

from explorers import until


def _choose(page: Page, name: str, data: bytes) -> None:
    page.get_by_label("Or upload a CSV").set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})


def _waves(samples: int) -> bytes:
    rows = (f"{0.1 * k:.2f},{math.sin(0.1 * k):.6f},{math.cos(0.1 * k):.6f}" for k in range(samples))
    return ("time,height,speed\n" + "\n".join(rows)).encode()


_ENDS = ("lower", "upper")


def test_upload_a_csv_and_get_a_forecast(explorer, page, shoot):
    page.goto(f"{explorer}/forecasting?system=sinusoids&samples=100&steps=60&seconds=0.5")
    expect(page.locator(".empty")).to_contain_text("No forecast yet")
    fitted = page.get_by_role("heading", name="Fitted model")
    expect(fitted).to_be_hidden()  # no empty card
    _choose(page, "waves.csv", _waves(150))
    expect(page.locator(".message.good")).to_contain_text("waves.csv is read")
    page.get_by_role("button", name="Fit and forecast").click()
    expect(fitted).to_be_visible()
    expect(page.get_by_text("Eigenvalues of the linear path")).to_be_visible()
    expect(page.get_by_text("Outcome: ")).to_contain_text("60 steps")
    with page.expect_download() as waiting:
        page.get_by_text("Download the forecast").click()
    rows = waiting.value.path().read_text().splitlines()
    ends = ",".join(f"{name} {end} {level} %" for name in ("height", "speed") for level in (68, 95) for end in _ENDS)
    assert rows[0] == f"time,height,height spread,speed,speed spread,{ends}"
    time, height = map(float, rows[1].split(",")[:2])
    assert abs(height - math.sin(time)) < 0.05
    with page.expect_download() as waiting:
        page.get_by_text("Download the model").click()
    assert waiting.value.path().read_bytes().startswith(b"PK")
    shoot(page, "forecasting-upload")


def test_a_model_without_attention_is_shown_without_an_alarm(explorer, page, shoot):
    page.goto(f"{explorer}/forecasting?system=sinusoids&samples=100&steps=40&seconds=0.5")
    expect(page.get_by_text("100 samples")).to_be_visible()
    _choose(page, "short.csv", _waves(60))  # too few windows to train attention on
    expect(page.locator(".message.good")).to_contain_text("short.csv is read")
    page.get_by_role("button", name="Fit and forecast").click()
    expect(page.get_by_text("Attention was not trained for this model")).to_be_visible()
    expect(page.get_by_text("the linear path alone")).to_be_visible()
    expect(page.locator(".message.error")).to_have_count(0)
    expect(page.get_by_role("button", name="Backtest and baselines")).to_be_enabled()
    shoot(page, "forecasting-without-attention")


def test_a_forecast_asked_for_before_its_series_is_there(explorer, page):
    page.goto(f"{explorer}/forecasting?system=sinusoids&samples=100&steps=40&seconds=0.5&theme=dark")
    fit = page.get_by_role("button", name="Fit and forecast")
    fit.click()  # as soon as it can be pressed: the page is still told of the dark, and makes the series
    outcome = page.get_by_text("Outcome: ")
    expect(outcome).to_contain_text("40 steps")
    until(page, "Bokeh.documents[0].get_model_by_name('fan').title.text_color === '#e8edf1'")
    page.get_by_label("System").select_option(label="Airfoil in flutter")
    fit.click()
    expect(page.get_by_text("typical section")).to_be_visible()
    expect(page).to_have_url(re.compile("system=airfoil&fit=1"))
    expect(outcome).to_contain_text("40 steps")
    expect(page.get_by_role("button", name="plunge")).to_be_visible()
    expect(page.locator(".stale")).to_be_hidden()


# Every value of the progress bar, as it is written.
_WATCH_THE_BAR = """() => {
  window.shares = [];
  const all = (root) => {
    for (const one of root.querySelectorAll("*")) {
      if (one.matches("progress") && one.hasAttribute("value") && one.value !== window.shares.at(-1)) {
        window.shares.push(one.value);
      }
      if (one.shadowRoot) { all(one.shadowRoot); }
    }
  };
  setInterval(() => all(document), 50);
}"""


def test_the_forecast_that_the_page_offers_first_and_a_search_that_takes_as_long_as_it_may(
    server, explorer, page, shoot
):
    page.goto(f"{explorer}/forecasting?seconds=3")
    expect(page.get_by_text("Lorenz '63: 600 samples")).to_be_visible()
    page.evaluate(_WATCH_THE_BAR)
    fit = page.get_by_role("button", name="Fit and forecast")
    fit.click()
    expect(page.get_by_text("Outcome: ")).to_contain_text("200 steps", timeout=120_000)
    shares = page.evaluate("window.shares")
    assert len(shares) >= 4  # the bar moves
    assert shares == sorted(shares)
    expect(page.get_by_text("Attention over the lags")).to_be_visible()
    expect(page.locator(".message.error")).to_have_count(0)
    shoot(page, "forecasting-first")
    # A search of 5,000 samples without a limit computes for six seconds and more. Processor time is compared, so that
    # other work on the machine does not count; simple models are compared after the search, and the page is drawn.
    page.goto(f"{explorer}/forecasting?samples=5000&seconds=1")
    expect(page.get_by_text("Lorenz '63: 5,000 samples")).to_be_visible()
    before = server.processor_seconds
    fit.click()
    expect(page.get_by_text("Outcome: ")).to_contain_text("200 steps", timeout=120_000)
    assert server.processor_seconds - before < 4


_WIDTHS = """() => {
  const {low, high} = Bokeh.documents[0].get_model_by_name("68 %").data;
  return [...high].map((top, k) => top - low[k]);
}"""


def test_days_are_called_days_and_the_fan_does_not_pinch(explorer, page, shoot):
    page.goto(f"{explorer}/forecasting?system=sinusoids&samples=100&steps=120&seconds=1")
    expect(page.get_by_text("100 samples")).to_be_visible()
    noise = random.Random(0)  # noqa: S311 (no secret)
    began = datetime.date(2023, 1, 1)
    days = (began + datetime.timedelta(days=k) for k in range(400))
    rows = (f"{day},{10 + 5 * math.sin(k / 58) + noise.gauss(0, 1):.3f}" for k, day in enumerate(days))
    _choose(page, "river.csv", ("date,level\n" + "\n".join(rows)).encode())
    expect(page.get_by_text("400 samples of 1 channel, 1 day apart")).to_be_visible()
    page.get_by_role("button", name="Fit and forecast").click()
    expect(page.get_by_text("Outcome: ")).to_contain_text("120 steps")
    expect(page.get_by_text("shaded: intervals that hold 68 % and 95 % of the samples")).to_be_visible()
    until(page, f"({_WIDTHS})().length === 120")
    widths = page.evaluate(_WIDTHS)
    assert min(widths) == widths[0] > 0.5  # the noise alone is one
    assert all(after >= 0.999 * before for before, after in itertools.pairwise(widths))
    page.get_by_role("button", name="Backtest and baselines").click()
    expect(page.locator("table")).to_contain_text("days")
    expect(page.locator("dfn.term[data-term='coverage'], dfn.term[data-term='intervals']").first).to_be_visible()
    assert "86400" not in page.locator("body").inner_text()
    shoot(page, "forecasting-days")


def _load(page: Page, name: str, data: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    page.get_by_label("Or load a saved model").set_input_files(file)


def test_a_model_goes_out_as_a_file_and_comes_back(explorer, page, shoot):
    address = f"{explorer}/forecasting?system=airfoil&samples=150&steps=60&seconds=0.5"
    page.goto(address)
    expect(page.get_by_text("150 samples")).to_be_visible()  # what the address asks for has been read
    page.get_by_role("button", name="Fit and forecast").click()
    outcome = page.get_by_text("Outcome: ")
    expect(outcome).to_be_visible()  # what it is depends on how much of the search the machine could do
    said = outcome.inner_text()
    with page.expect_download() as waiting:
        page.get_by_text("Download the model").click()
    data = waiting.value.path().read_bytes()
    page.goto(address)
    expect(page.get_by_text("150 samples")).to_be_visible()  # a model is loaded beside a series
    expect(page.locator(".empty")).to_contain_text("No forecast yet")
    words = page.locator(".message.error")
    _load(page, "model.zip", b"PK\x03\x04" + bytes(1000))
    expect(words).to_contain_text("is no ZIP archive")
    _load(page, "code.safetensors", b"\x80\x04\x95" + bytes(1000))
    expect(words).to_contain_text("was not written by hardmax")
    expect(page.locator(".empty")).to_be_visible()
    _load(page, "model.zip", data)
    expect(page.locator(".message.good")).to_contain_text("model.zip is loaded")
    expect(outcome).to_have_text(said)
    expect(page.get_by_text("Eigenvalues of the linear path")).to_be_visible()
    page.get_by_role("button", name="Backtest and baselines").click()
    expect(page.locator("table")).to_contain_text("persistence")
    shoot(page, "forecasting-loaded")
    page.get_by_label("System").select_option(label="Lorenz '63")
    expect(page.get_by_text("Lorenz '63: 150 samples")).to_be_visible()
    _load(page, "model.zip", data)
    expect(words).to_contain_text("was fitted to samples 2 apart")


def test_a_system_with_its_backtest(explorer, page, shoot):
    page.goto(f"{explorer}/forecasting?system=airfoil&samples=150&steps=60&seconds=0.5")
    expect(page.get_by_text("150 samples")).to_be_visible()
    page.get_by_role("button", name="Fit and forecast").click()
    expect(page.get_by_text("true future")).to_be_visible()
    page.get_by_role("button", name="lift").click()
    expect(page).to_have_url(re.compile("channel=2"))
    page.get_by_role("button", name="Backtest and baselines").click()
    expect(page.locator("table")).to_contain_text("persistence")
    for name in ("time-delayed transformer", "time-delayed dynamic mode decomposition", "next-generation reservoir"):
        expect(page.get_by_text(name).last).to_be_visible()
    # The key names the curves that are drawn, each once, outside the plot.
    for name in ("TD-TF (this model)", "persistence", "TD-DMD (linear)", "NG-RC (polynomial)"):
        expect(page.locator("span:has(> svg)", has_text=name)).to_have_count(1)
    shoot(page, "forecasting")


def test_cancel_a_fit_then_hostile_tables_and_the_page_lives_on(explorer, page):
    page.goto(f"{explorer}/forecasting?system=lorenz&samples=1500&seconds=20")
    expect(page.get_by_text("1,500 samples")).to_be_visible()
    page.get_by_role("button", name="Fit and forecast").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("progress")).to_be_hidden()
    expect(page.locator(".empty")).to_contain_text("No forecast yet")
    page.get_by_label("System").select_option(label="Airfoil in flutter")
    expect(page.get_by_text("typical section")).to_be_visible()
    words = page.locator(".message.error")
    _choose(page, "wide.csv", b",".join(b"7" for _ in range(10**6)))
    expect(words).to_contain_text("1,000,000 columns")
    _choose(page, "bomb.csv", b"PK\x03\x04" + bytes(1000))
    expect(words).to_contain_text("is a ZIP archive")
    _choose(page, "formula.csv", b"y\n" + b"=1+1\n" * 99)
    expect(words).to_contain_text("formula.csv")
    _choose(page, "nan.csv", b"y,z\n" + b"1,2\n,3\n" * 99)
    expect(page.locator(".message.good")).to_contain_text("nan.csv is read")
    page.get_by_role("button", name="Fit and forecast").click()
    expect(words).to_contain_text("tick Fill gaps by interpolation")
    fill = page.get_by_label("Fill gaps by interpolation")
    fill.check()
    expect(page).to_have_url(re.compile("fill=1"))
    _choose(page, "waves.csv", _waves(120))
    expect(page.locator(".message.good")).to_contain_text("waves.csv is read")
    expect(fill).not_to_be_checked()
    expect(page).not_to_have_url(re.compile("fill=1"))
    page.get_by_role("button", name="Fit and forecast").click()
    expect(page.get_by_text("Outcome: ")).to_contain_text("200 steps")


def test_a_number_beyond_its_bounds_is_the_nearest_that_is_allowed(explorer, page):
    page.goto(f"{explorer}/forecasting?samples=100&steps=40&seconds=0.5")
    expect(page.get_by_text("100 samples")).to_be_visible()
    ahead = page.get_by_role("textbox", name="Steps ahead")
    for typed, taken in (("-5", "1"), ("9999", "2000"), ("9999", "2000"), ("41", "41")):
        ahead.fill(typed)
        ahead.press("Enter")
        expect(ahead).to_have_value(taken)
        expect(page).to_have_url(re.compile(f"steps={taken}&"))
    for nothing in ("", "-"):
        ahead.fill(nothing)
        ahead.press("Enter")
        expect(ahead).to_have_value("41")
    ahead.fill("42")  # and the field takes numbers as before
    ahead.press("Enter")
    expect(page).to_have_url(re.compile("steps=42&"))


def test_undo_of_settings_and_tables_shows_no_forecast_of_others(explorer, page):
    page.goto(f"{explorer}/forecasting?system=sinusoids&samples=100&steps=40&seconds=0.5")
    about = page.get_by_text(re.compile("samples of"))
    expect(about).to_contain_text("100 samples")
    page.get_by_role("button", name="Fit and forecast").click()
    outcome, stale, waiting = page.get_by_text("Outcome: "), page.locator(".stale"), page.locator(".empty")
    expect(outcome).to_contain_text("40 steps")
    expect(stale).to_be_hidden()
    said = outcome.inner_text()
    undo, redo = page.get_by_role("button", name="Undo"), page.get_by_role("button", name="Redo")
    page.locator(".noUi-handle").first.press("ArrowRight")  # seconds of search
    expect(page).to_have_url(re.compile("seconds=1$|seconds=1&"))
    expect(stale).to_be_visible()  # the forecast of half a second is still there, and marked
    page.locator("body").press("Control+z")
    expect(page).to_have_url(re.compile("seconds=0.5"))
    expect(stale).to_be_hidden()
    expect(outcome).to_have_text(said)
    system = page.get_by_label("System")
    system.select_option(label="Airfoil in flutter")
    expect(page.get_by_text("typical section")).to_be_visible()
    expect(waiting).to_contain_text("No forecast yet")
    _choose(page, "waves.csv", _waves(150))
    expect(about).to_contain_text("waves.csv: 150 samples")
    page.get_by_role("textbox", name="Steps ahead").fill("30")
    page.get_by_role("textbox", name="Steps ahead").press("Enter")
    expect(page).to_have_url(re.compile("steps=30"))
    page.get_by_role("button", name="Fit and forecast").click()
    expect(outcome).to_contain_text("30 steps")
    undo.click()
    expect(page.get_by_role("textbox", name="Steps ahead")).to_have_value("40")
    expect(waiting).to_contain_text("No forecast yet")
    expect(outcome).to_have_count(0)
    expect(about).to_contain_text("waves.csv: 150 samples")
    undo.click()
    expect(system).to_have_value("Airfoil in flutter")
    expect(page.get_by_text("typical section")).to_be_visible()
    expect(page.get_by_label("Fill gaps by interpolation")).to_be_hidden()
    undo.click()
    expect(system).to_have_value("Sinusoids with noise")
    expect(outcome).to_have_text(said)  # the forecast of these settings
    expect(stale).to_be_hidden()
    expect(undo).to_be_disabled()
    for _ in range(3):
        expect(redo).to_be_enabled()
        redo.click()
    expect(about).to_contain_text("waves.csv: 150 samples")
    expect(outcome).to_contain_text("30 steps")
    expect(stale).to_be_hidden()
    expect(redo).to_be_disabled()
    page.get_by_role("button", name="Reset").click()
    expect(about).to_contain_text("600 samples")
    expect(page).to_have_url(re.compile("samples=600&steps=200&seconds=3&system=lorenz$"))


def test_a_table_of_twelve_channels_fits_a_phone(explorer, page, shoot):
    page.goto(f"{explorer}/forecasting?system=airfoil&samples=100&steps=40&seconds=0.5")
    expect(page.get_by_text("100 samples")).to_be_visible()
    expect(page.get_by_role("button", name="plunge")).to_be_visible()
    names = [f"a rather long name {k}" for k in range(12)]
    rows = (",".join(f"{math.sin(0.1 * k + shift):.5f}" for shift in range(12)) for k in range(150))
    _choose(page, "twelve.csv", (",".join(names) + "\n" + "\n".join(rows)).encode())
    expect(page.locator(".message.good")).to_contain_text("twelve.csv is read")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("combobox", name="Channel", exact=True).select_option(label=names[10])
    expect(page).to_have_url(re.compile("channel=10"))
    expect(page.get_by_role("button", name="plunge")).to_have_count(0)
    until(page, f"Bokeh.documents[0].get_model_by_name('fan').left[0].axis_label.text === '{names[10]}'")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shoot(page, "forecasting-twelve-phone", whole=False)
    page.locator("body").press("Control+z")
    expect(page.get_by_role("combobox", name="Channel", exact=True)).to_have_value(names[0])
    until(page, f"Bokeh.documents[0].get_model_by_name('fan').left[0].axis_label.text === '{names[0]}'")


def test_a_table_or_a_model_that_arrives_during_a_fit_ends_it(explorer, page):
    page.goto(f"{explorer}/forecasting?system=airfoil&samples=150&steps=60&seconds=0.5")
    expect(page.get_by_text("150 samples")).to_be_visible()
    fit, cancel = page.get_by_role("button", name="Fit and forecast"), page.get_by_role("button", name="Cancel")
    fit.click()
    outcome = page.get_by_text("Outcome: ")
    expect(outcome).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_text("Download the model", exact=True).click()
    model = waiting.value.path().read_bytes()
    page.goto(f"{explorer}/forecasting?system=airfoil&samples=150&steps=60&seconds=20")
    expect(page.get_by_text("150 samples")).to_be_visible()
    fit.click()
    expect(cancel).to_be_visible()
    _load(page, "model.zip", model)
    expect(page.locator(".message.good")).to_contain_text("model.zip is loaded")
    expect(cancel).to_be_hidden()
    expect(outcome).to_be_visible()
    fit.click()
    expect(cancel).to_be_visible()
    _choose(page, "waves.csv", _waves(150))  # of fewer channels: the forecast of the others could not be drawn
    expect(page.locator(".message.good")).to_contain_text("waves.csv is read")
    expect(cancel).to_be_hidden()
    expect(page.locator(".empty")).to_contain_text("No forecast yet")
    expect(page.locator(".stale")).to_be_hidden()
