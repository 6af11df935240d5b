"""The Models page without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.app.models import page as page_module
from hardmax.app.models.computed import MOST_NUMBERS, compute, seconds
from hardmax.app.models.page import ModelsPage
from hardmax.app.models.state import FRAMES, TITLES, WORDS, ModelsState, durations, parameters_of
from hardmax.app.models.view import colours_of, equation_html
from hardmax.errors import InputError
from visits import Visit, run_code

# Quick runs of all models.
SMALL = {
    "kuramoto": {"n": "40", "duration": "2", "width": "0.2"},
    "sphere_attention": {"n": "8", "duration": "0.5"},
    "metastable": {"n": "9", "duration": "7.5", "centres": "0,2"},
    "causal_sphere": {"n": "6", "duration": "1.5", "d": "4"},
    "normalisation": {"n": "6", "step": "0.1", "scheme": "mixed"},
    "equiangular": {"n": "7", "duration": "1", "rho": "0.3"},
    "long_context": {"n": "30", "gamma": "2"},
    "noisy": {"n": "20", "duration": "1", "normalised": "True"},
    "multi_head": {"n": "5", "duration": "0.6", "betas": "1,2,3"},
    "value_spectrum": {"n": "12", "duration": "2", "spectrum": "1,0.2,-1"},
    "sinkhorn": {"n": "8", "duration": "0.2", "d": "3"},
    "frank_wolfe": {"n": "12", "duration": "9", "d": "3", "sign": "1"},
    "rank_collapse": {"n": "6", "skip": "0.5"},
}
NAMES = [*SMALL]


def small(name: str, **more: str) -> ModelsState:
    return ModelsState.from_query({"model": name, **SMALL[name], **more})


def test_every_model_of_the_library_is_offered_with_words_and_an_equation() -> None:
    assert set(hm.zoo.MODELS) == set(SMALL) == set(TITLES) == set(WORDS)
    for name in hm.zoo.MODELS:
        equation = equation_html(getattr(hm.zoo, name)().equation)
        assert "<svg" in equation
        assert "<code>" not in equation  # the fallback for what cannot be drawn
        assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", equation)
    assert "<code>\\unknown{x}</code>" in equation_html(r"\unknown{x}")


@pytest.mark.parametrize("name", NAMES)
def test_the_bounds_of_all_parameters_are_accepted_by_the_library(name: str) -> None:
    for parameter in parameters_of(name):
        for value in (*parameter.options.values(), *((parameter.low, parameter.high) if parameter.high else ())):
            kind = type(parameter.default)
            assert ModelsState(name).with_value(parameter.name, kind(value)).model.n >= 2
    low, high, step = durations(ModelsState(name).model)
    assert low <= ModelsState(name).model.duration <= high
    assert step > 0
    assert [*ModelsState(name, duration=1e9).run_options().values()] == [high]
    assert [*ModelsState(name, duration=0).run_options().values()] == [low]


@pytest.mark.parametrize("name", NAMES)
def test_picture_table_and_code_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    state = small(name, frame="25", seed="3")
    assert [key for key, _ in state.values] == sorted(set(SMALL[name]) - {"duration"})
    seen = compute(state)
    model = getattr(hm.zoo, name)(**state.arguments)
    run = model.run(**state.run_options(), random_state=3)
    assert np.array_equal(seen.run.tokens, run.tokens)
    assert seen.frames[seen.shown] == round(25 * (len(run) - 1) / FRAMES)
    for measure, measured, theory in seen.rows:
        assert measured == pytest.approx(model.measure(measure, run), nan_ok=True)
        assert (theory is None) == (measure not in model.theory)
    found = dict(zip([row[0] for row in seen.rows], [row[1:] for row in seen.rows], strict=True))
    for measure, both in model.compare(run).items():
        assert found[measure] == pytest.approx(both)
    # The last point of the curve is the number in the table.
    assert seen.curve.measured[-1] == pytest.approx(found[seen.curve.measure][0], nan_ok=True)

    # All of the code but the drawing, which is as slow as everything else.
    lines, drawing, _ = state.code().partition("ax = ")
    assert drawing
    printed = run_code(lines + 'import numpy\nnumpy.save("tokens", run.tokens)\n', tmp_path)
    for measure, (measured, theory) in found.items():
        assert f"{measure}: {measured:.10g}\n" in printed
        if theory is not None:
            assert f"{measure}: {measured:.10g}, in theory {theory:.10g}\n" in printed
    assert np.array_equal(np.load(tmp_path / "tokens.npy"), seen.flat.tokens)


@pytest.mark.parametrize("name", ["kuramoto", "frank_wolfe"])
def test_the_code_draws(name: str, tmp_path: Path) -> None:
    run_code(small(name).code(), tmp_path)
    assert (tmp_path / f"{name}.png").exists()


def test_projections_keep_what_they_say() -> None:
    seen = compute(small("equiangular"))
    # The polygon has the radius sqrt(1 - cosine), and the curve is the cosine.
    radii = np.linalg.norm(seen.points, axis=2)
    assert radii == pytest.approx(np.broadcast_to(np.sqrt(1 - seen.curve.measured)[:, None], radii.shape), abs=1e-9)
    assert "regular polygon" in seen.words()
    seen = compute(small("sinkhorn"))
    spread = np.var(seen.run.tokens.reshape(-1, 3), axis=0).sum()
    shown = np.var(seen.flat.tokens.reshape(-1, 2), axis=0)
    assert shown[0] > shown[1] > spread - shown.sum() > 0
    assert "principal axes" in seen.words()
    z = compute(small("value_spectrum"))
    assert np.array_equal(z.flat.tokens, hm.zoo.rescaled(z.run, (1.0, 0.2, -1.0))[..., :2])
    line = compute(small("value_spectrum", spectrum="1"))
    assert line.points.shape[2] == 2
    assert compute(small("kuramoto")).words() == ""


def test_a_page_is_driven() -> None:
    visit = Visit(ModelsPage(), {"model": "frank_wolfe", "n": "12"})
    page = visit.page
    plotted = page._plane.tokens.data
    assert np.array_equal(plotted["x"], page._computed.points[page._computed.shown, :, 0])
    assert plotted["colour"] == colours_of(page._computed)
    assert len(page._plane.trails.data["xs"]) == 12
    assert not page._plane.rim.visible
    assert "arxiv.org/abs/2508.09628" in page._equation.object
    assert "contraction" in page._table.object
    page._steps.player.value = page._steps.player.end
    assert page.state()["frame"] == str(FRAMES)
    assert np.array_equal(page._plane.tokens.data["y"], page._computed.run.final[:, 1])
    page._zoom.value = True
    assert abs(float(np.mean(page._plane.tokens.data["x"]))) < 1e-12
    assert page._plane.trails.data["xs"] == []
    page._measure.value = "norm"
    assert page._curve.data.data["measured"][-1] == page._computed.model.measure("norm", page._computed.run)
    assert page.figure() is not None
    page._name.value = "rank_collapse"
    assert page.state() == {"model": "rank_collapse"}
    page._go(small("causal_sphere"))
    visit.settle()
    assert page.state() == {"model": "causal_sphere", **SMALL["causal_sphere"]}
    assert page._plane.rim.visible
    assert page._picture.css_classes == []
    assert page._plane.tokens.data["shape"][-1] == "star"
    assert page._plane.tokens.data["token"][-1] == 0
    again = ModelsPage()
    again.restore(page.state())
    assert again.code() == page.code()
    visit.close()


def test_short_and_long_runs_are_live_and_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds(ModelsState("rank_collapse")) < page_module._LIVE < seconds(ModelsState("noisy"))
    visit = Visit(ModelsPage(), {"model": "rank_collapse", "n": "6"})
    started: list[str] = []
    monkeypatch.setattr(visit.session, "start", lambda name, work, then: started.append(name))
    page = visit.page
    page._seed.value = 5
    assert started == []
    assert page._computed.state.seed == 5
    page._name.value = "noisy"
    assert started == ["Running the model"]
    assert page._picture.css_classes == ["dimmed"]
    # Playing the old picture meanwhile does not start the run again, and the setting is used when it ends.
    page._steps.player.value = 1
    page._trails.value = False
    assert started == ["Running the model"]
    assert page.state()["trails"] == "0"
    page._seed.value = 6
    assert started == ["Running the model"] * 2
    visit.close()


def test_mistakes_are_messages_and_the_last_picture_stays() -> None:
    visit = Visit(ModelsPage(), {"model": "rank_collapse", "n": "6"})
    page = visit.page
    before = page._computed
    tokens = page._parameters[3]
    assert tokens.label == "Number of tokens"
    tokens.value = 7
    assert "must be even" in visit.message
    assert page._computed is before
    assert page.state() == {"model": "rank_collapse", "n": "6"}
    tokens.value = 8
    assert visit.message == ""
    assert page._computed.model.n == 8
    tokens.value = 10**9
    assert (page._state.model.n, tokens.value) == (1000, 1000)
    assert "Number of tokens: 1,000,000,000 is not between 2 and 1,000" in visit.message
    tokens.value = 6
    page._seed.value = -4
    assert (page._state.seed, page._seed.value) == (0, 0)
    assert "Seed: -4 is not between 0 and" in visit.message
    step = parameters_of("rank_collapse")[0]
    page._typed(step, 1e9, page._parameters[0])  # more than a slider sends
    assert dict(page._state.values)["beta"] == step.high
    page._go(small("metastable"))
    visit.settle()
    for text in ("0, banana", "", "nan, 1", "1", ",".join("123456789")):
        page._parameters[1].value = text
        assert "centres" in visit.message, text
    page._parameters[1].value = "0 1 2"
    assert visit.message == ""
    visit.close()


def test_a_run_that_would_fill_the_memory_is_refused() -> None:
    state = ModelsState.from_query({"model": "normalisation", "n": "128", "step": "0.005"})
    with pytest.raises(InputError, match="is too large for this duration"):
        compute(state)
    assert MOST_NUMBERS < 1600 * 128 * 128


words = st.one_of(st.text(max_size=8), st.floats().map(str), st.integers(-5, 10**6).map(str))
keys = [*{parameter.name for name in NAMES for parameter in parameters_of(name)}]
keys += ["seed", "duration", "frame", "measure", "trails", "zoom"]


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([*NAMES, "unknown"]), st.dictionaries(st.sampled_from(keys), words, max_size=6))
def test_any_address_gives_a_state_that_comes_back(name: str, query: dict[str, str]) -> None:
    state = ModelsState.from_query({"model": name, **query})
    assert state.model.n >= 2
    assert ModelsState.from_query(state.to_query()) == state
    compile(state.code(), "<code>", "exec")
