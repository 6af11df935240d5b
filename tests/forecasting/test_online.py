"""Updates against a refit of the readouts from scratch, gaps, files, and the drift alarm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.errors import FileError, InputError
from hardmax.forecasting import Drift
from hardmax.forecasting.data.delay_windows import lags, principal
from hardmax.forecasting.features.feature_map import FeatureMap
from hardmax.forecasting.features.lag_network import new_network
from hardmax.forecasting.features.reservoir import draw_reservoir
from hardmax.forecasting.online import _draw
from hardmax.forecasting.recursive_readout import RecursiveReadout, Sums
from hardmax.forecasting.search.readout_search import (
    BY_MODES,
    Learner,
    gram,
    ridge_path,
    ridge_path_of_gram,
    through_modes,
    triangle,
)

_SEED = 5


def _lorenz(samples: int, channels: int) -> np.ndarray:
    z = hm.datasets.lorenz63(samples).values[:, :channels]
    return (z - z.mean(axis=0)) / z.std(axis=0)


def _maps(channels: int, trajectory: np.ndarray) -> dict[str, tuple[FeatureMap, float, float]]:
    """Feature maps of every kind, with window noise and ridge."""
    rng = np.random.default_rng(0)
    pool = draw_reservoir(channels, 25, rng).scaled(0.8, 0.5, 0.7, 12)
    network = new_network("attention", 4, channels, rng, width=3, hidden=5)
    scales = (np.ones(network.size),)
    polynomial = FeatureMap(channels, polynomial=lags(channels, 2, 3), degree=3)
    return {
        "lags": (FeatureMap(channels, lags(channels, 6)), 0.0, 1e-28),
        "lags, ridge": (FeatureMap(channels, lags(channels, 6)), 0.0, 1e-3),
        "polynomial": (polynomial, 0.0, 1e-9),
        "polynomial, noise": (polynomial, 1e-2, 1e-7),
        "attention": (
            FeatureMap(channels, lags(channels, 2), tokens=lags(channels, 4), networks=(network,), scales=scales),
            1e-3,
            1e-6,
        ),
        "reservoir": (FeatureMap(channels, lags(channels, 1), reservoir=pool), 0.0, 1e-8),
        "reservoir, noise": (FeatureMap(channels, lags(channels, 1), reservoir=pool), 1e-2, 1e-6),
        "modes": (
            FeatureMap(channels, lags(channels, 1), polynomial=principal([trajectory], 10, 3)),
            0.0,
            BY_MODES,
        ),
    }


def _pieces(rows: np.ndarray, known: np.ndarray) -> list[tuple[int, int]]:
    """First and last (exclusive) row of every stretch without gaps."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _refit(
    learner: Learner, features: FeatureMap, noise: float, ridge: float, new: np.ndarray, outputs: int
) -> np.ndarray:
    """Readout from all rows, written from the rule: one trajectory per copy, cut at the gaps, solved from scratch."""
    old, noisy_old = learner.pieces[-1], learner.noisy(noise)
    copies = len(noisy_old) // len(learner.pieces)
    clean = np.concatenate([old, new])
    known = np.isfinite(clean).all(axis=1)
    blank = RecursiveReadout.start(learner, features, noise, ridge)
    drawn = noise * _draw(_SEED, blank, 0, len(new), new.shape[1])
    columns = []
    for j in range(outputs):
        rows, targets = [], []
        for copy in range(copies):
            for piece in range(len(learner.pieces) - 1):
                other = noisy_old[copy * len(learner.pieces) + piece]
                rows.append(features.along(other))
                latest = other[features.window - 1 : -1, j]
                targets.append(learner.pieces[piece][features.window :, j] - latest)
            start = noisy_old[copy * len(learner.pieces) + len(learner.pieces) - 1]
            noisy = np.concatenate([start, new + drawn[copy]])
            for a, b in _pieces(clean, known):
                # The sample after the stretch is a target where its own channel was observed.
                end = b + 1 if b < len(clean) and np.isfinite(clean[b, j]) else b
                if end - a <= features.window:
                    continue
                stretch = np.nan_to_num(noisy[a:end])
                rows.append(features.along(stretch))
                targets.append(clean[a + features.window : end, j] - noisy[a + features.window - 1 : end - 1, j])
        found, wanted = np.concatenate(rows), np.concatenate(targets)[:, None]
        ridges = np.array([ridge])
        if noise > 0:
            columns.append(ridge_path_of_gram(gram(found, wanted), features.size, 1, len(found), ridges)[0][:, 0])
        else:
            columns.append(ridge_path(triangle(found, wanted), features.size, 1, len(found), ridges)[0][:, 0])
    return np.stack(columns, axis=1)


def _updated(learner: Learner, rule: tuple[FeatureMap, float, float], new: np.ndarray, blocks: list[int]) -> np.ndarray:
    features, noise, ridge = rule
    readout = RecursiveReadout.start(learner, features, noise, ridge)
    rows, at = learner.pieces[-1][-features.window :], 0
    for block in blocks:
        part = new[at : at + block]
        both = np.concatenate([rows, part])
        drawn = _draw(_SEED, readout, at, len(part), new.shape[1])
        known, seen = np.isfinite(both).all(axis=1), np.isfinite(part[:, : learner.outputs])
        readout = readout.extended(np.nan_to_num(both), known, seen, drawn)
        rows, at = both[-features.window :], at + len(part)
    return readout.member().readouts[0]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("gap", [False, True])
def test_updates_are_a_refit_on_all_data(channels: int, gap: bool) -> None:
    z = _lorenz(360, channels)
    new = z[300:].copy()
    if gap:
        new[10, 0] = np.nan
        new[11] = np.nan
        new[40, channels - 1] = np.nan
    learner = Learner([z[:90], z[90:300]], channels, _SEED)
    for name, rule in _maps(channels, z[:300]).items():
        features, noise, ridge = rule
        if ridge == BY_MODES:
            continue
        expected = _refit(learner, features, noise, ridge, new, channels)
        probes = features.along(z[100:300])
        for blocks in ([60], [1] * 60, [7, 30, 23]):
            found = _updated(learner, rule, new, blocks)
            np.testing.assert_allclose(probes @ found, probes @ expected, atol=1e-8, err_msg=f"{name}, {len(blocks)}")
        before = RecursiveReadout.start(learner, *rule).member().readouts[0]
        assert np.abs(probes @ (before - expected)).max() > 1e-7, name  # the new samples make a difference


@pytest.mark.parametrize("gap", [False, True])
def test_readouts_by_modes_are_refitted_too(gap: bool) -> None:
    z = _lorenz(420, 2)
    new = z[300:].copy()
    if gap:
        new[50] = np.nan
    learner = Learner([z[:90], z[90:300]], 2, _SEED)
    rule = _maps(2, z[:300])["modes"]
    embedding = rule[0].polynomial
    clean = np.concatenate([z[90:300], new])
    parts = [z[:90], *(clean[a:b] for a, b in _pieces(clean, np.isfinite(clean).all(axis=1)))]
    assert embedding is not None
    assert embedding.matrix is not None
    views = [np.lib.stride_tricks.sliding_window_view(part.reshape(-1), 20)[::2] for part in parts]
    back = embedding.matrix / (embedding.matrix**2).sum(axis=0)
    expected = through_modes([embedding(view) for view in views], back[-2:].T, 2, 2)
    for blocks in ([120], [1] * 120, [7, 50, 63]):
        np.testing.assert_allclose(_updated(learner, rule, new, blocks), expected, rtol=1e-8, atol=1e-8)


@given(st.integers(0, 10_000), st.integers(0, 30), st.sampled_from([1e-28, 1e-8, 1e-2]), st.booleans())
@settings(deadline=None, max_examples=25)
def test_sums_are_those_of_all_rows_on_grids(seed: int, more: int, ridge: float, noisy: bool) -> None:
    # Small integers and repeated rows: factors may be singular, where the truncated solution of the fit is taken.
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 2, (3 + more, 4)).astype(float)
    targets = rng.integers(-2, 3, (len(features), 2)).astype(float)
    cut = int(rng.integers(0, len(features)))
    sums = Sums.of(features[:cut], targets[:cut], by_gram=noisy)
    for row in range(cut, len(features)):
        sums = sums.add(features[row : row + 1], targets[row : row + 1])
    path = ridge_path_of_gram(gram(features, targets), 4, 2, len(features), np.array([ridge]))[0]
    if not noisy:
        square = np.concatenate([features, np.zeros((6, 4))]), np.concatenate([targets, np.zeros((6, 2))])
        path = ridge_path(triangle(*square), 4, 2, len(features), np.array([ridge]))[0]
    np.testing.assert_allclose(features @ sums.solve(2, ridge), features @ path, atol=1e-6 if noisy else 1e-8)


def _fitted(z: np.ndarray, **given: object) -> hm.TimeDelayedTransformer:
    return hm.TimeDelayedTransformer(random_state=0, restarts=1, seconds=0.4, progress=False).fit(z, dt=0.02, **given)


@pytest.fixture(scope="module")
def model_and_future() -> tuple[hm.TimeDelayedTransformer, np.ndarray]:
    z = hm.datasets.lorenz63(600).values
    return _fitted(z[:400]), z[400:]


def _copy(model: hm.TimeDelayedTransformer) -> hm.TimeDelayedTransformer:
    return hm.TimeDelayedTransformer(**model.get_params())._store(model._state())


def test_forecasts_start_from_the_newest_sample(model_and_future: tuple[hm.TimeDelayedTransformer, np.ndarray]) -> None:
    model, future = model_and_future
    updated = _copy(model).update(future[:30])
    np.testing.assert_array_equal(updated.last_window_, future[:30][-model.window :])
    assert updated.last_time_ == pytest.approx(model.last_time_ + 30 * model.dt_)
    ahead = updated.forecast(10)
    assert np.abs(ahead.values - future[30:40]).max() < 1.0
    assert ahead.times[0] == pytest.approx(updated.last_time_ + model.dt_)
    one_by_one = _copy(model)
    for sample in future[:30]:
        one_by_one.update(sample)
    np.testing.assert_allclose(one_by_one.forecast(10).values, ahead.values, atol=1e-6)
    assert one_by_one.drift_.samples == 30
    assert one_by_one.update(np.empty((0, 3))).drift_.samples == 30
    # The readouts are those of a refit on all data.
    search = model.fitted_
    assert search is not None
    rows = [np.concatenate([*model._rows, model.units_.normalise(future[:30])])]
    source = search.selection.chosen.sources[0]
    if source.noise == 0:
        learner = Learner(rows, 3, model.seed_)
        expected = learner.readouts([source.features], 0.0, np.array([source.ridge]))[0][0]
        probes = source.features.along(rows[0])
        found = updated.predictor_.members[0].readouts[0]
        np.testing.assert_allclose(probes @ found, probes @ expected, atol=1e-8)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_readouts_are_solved_when_a_forecast_needs_them(
    model_and_future: tuple[hm.TimeDelayedTransformer, np.ndarray], count: int
) -> None:
    model, future = model_and_future
    # Noise in the new samples, so that learning them makes a difference.
    new = future[:count] + 0.1 * np.random.default_rng(0).standard_normal((count, 3))
    together = _copy(model).update(new)
    silent, asked = _copy(model), _copy(model)
    for sample in new:
        silent.update(sample)
        asked.update(sample)
        asked.forecast(3)
    assert silent.predictor_ is not None
    assert silent.predictor_ is silent.predictor_
    # Forecasts in between change nothing, neither the readouts nor the alarm.
    np.testing.assert_array_equal(asked.forecast(20).values, silent.forecast(20).values)
    assert asked.drift_ == silent.drift_
    solved, wanted = silent.predictor_, together.predictor_
    assert wanted is not None
    for found, other, before in zip(solved.members, wanted.members, model.predictor_.members, strict=True):
        probes = found.features.along(model._rows[0])
        np.testing.assert_allclose(probes @ found.readouts[0], probes @ other.readouts[0], atol=1e-8)
        assert np.abs(probes @ (found.readouts[0] - before.readouts[0])).max() > 1e-6
    np.testing.assert_array_equal(solved.fade.half_range, wanted.fade.half_range)


def test_few_updates_solve_the_readouts(
    model_and_future: tuple[hm.TimeDelayedTransformer, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, future = model_and_future
    solve, calls = RecursiveReadout.member, []

    def counted(readout: RecursiveReadout) -> object:
        calls.append(readout)
        return solve(readout)

    monkeypatch.setattr(RecursiveReadout, "member", counted)
    updated = _copy(model)
    for sample in future[:60]:
        updated.update(sample)
    assert updated._online is not None
    # The record has 400 samples, of which one in a hundred is four: one update in five or so.
    each = len(updated._online.readouts)
    assert 10 * each <= len(calls) <= 15 * each
    before = len(calls)
    updated.forecast(5)
    updated.forecast(5)
    assert len(calls) - before in (0, each)


def test_gaps_are_filled_for_forecasts_and_not_learned(
    model_and_future: tuple[hm.TimeDelayedTransformer, np.ndarray],
) -> None:
    model, future = model_and_future
    missing = future[:60].copy()
    missing[57, 1] = np.nan
    updated = _copy(model).update(missing)
    assert np.isfinite(updated.last_window_).all()
    assert np.abs(updated.last_window_[-3, 1] - future[57, 1]) < 0.5
    np.testing.assert_array_equal(updated.last_window_[-3, [0, 2]], future[57, [0, 2]])
    assert np.abs(updated.forecast(5).values - future[60:65]).max() < 2.0
    assert updated.drift_.predicted == 58  # the two samples after the gap have no whole window
    wholly = _copy(model).update(np.full((3, 3), np.nan))
    assert wholly.drift_.predicted == 0
    for before, after in zip(model.predictor_.members, wholly.predictor_.members, strict=True):
        probes = before.features.along(model._rows[0])
        np.testing.assert_allclose(probes @ after.readouts[0], probes @ before.readouts[0], atol=1e-8)


def test_updates_persist_in_files(
    model_and_future: tuple[hm.TimeDelayedTransformer, np.ndarray], tmp_path: object
) -> None:
    model, future = model_and_future
    with_gap = future[:40].copy()
    with_gap[20, 0] = np.nan
    updated = _copy(model).update(with_gap)
    updated.save(f"{tmp_path}/updated")
    loaded = hm.load_forecaster(f"{tmp_path}/updated")
    assert loaded.drift_ == updated.drift_
    behind = _copy(model).update(future[:2])
    assert behind._online is not None
    assert behind._online.behind == 2
    behind.save(f"{tmp_path}/behind")
    later = hm.load_forecaster(f"{tmp_path}/behind")
    np.testing.assert_array_equal(later.forecast(20).values, behind.forecast(20).values)
    assert later.update(future[2:30]).drift_ == behind.update(future[2:30]).drift_
    both = [one.update(future[40:90]) for one in (updated, loaded)]
    np.testing.assert_allclose(both[0].forecast(20).values, both[1].forecast(20).values, atol=1e-9)
    assert both[0].drift_ == both[1].drift_
    _copy(model).save(f"{tmp_path}/fresh", updatable=True)
    fresh = hm.load_forecaster(f"{tmp_path}/fresh").update(future[:30])
    np.testing.assert_allclose(fresh.forecast(9).values, _copy(model).update(future[:30]).forecast(9).values, atol=1e-9)
    _copy(model).save(f"{tmp_path}/plain")
    with pytest.raises(InputError, match="save the fitted model with updatable=True"):
        hm.load_forecaster(f"{tmp_path}/plain").update(future[:3])


def test_damaged_sums_are_refused(
    model_and_future: tuple[hm.TimeDelayedTransformer, np.ndarray], tmp_path: object
) -> None:
    from hardmax.forecasting.model_files import KIND
    from hardmax.tensor_files import read, write

    model, _ = model_and_future
    place = _copy(model).save(f"{tmp_path}/model", updatable=True) / "model.safetensors"
    recipe, arrays = read(place, KIND)
    kind, form = recipe.pop("kind"), recipe.pop("format")
    write(place, kind, recipe, arrays | {"online.readout0.sums0": np.eye(3)})
    with pytest.raises(FileError, match="online.readout0.sums0"):
        hm.load_forecaster(place.parent)
    recipe["online"]["places"] = recipe["online"]["places"][1:]
    write(place, kind, recipe, arrays)
    with pytest.raises(FileError, match="do not belong to its models"):
        hm.load_forecaster(place.parent)
    assert form == 1


def test_inputs_are_continued() -> None:
    rng = np.random.default_rng(3)
    u = rng.standard_normal((400, 1))
    z = np.zeros((400, 1))
    for k in range(1, 400):
        z[k] = 0.8 * z[k - 1] + u[k] + 0.3 * u[k - 1]
    model = hm.TimeDelayedTransformer(4, random_state=0, restarts=1, seconds=0.5, progress=False).fit(
        z[:300], u=u[:300]
    )
    model.update(z[300:350], u=u[300:350])
    np.testing.assert_allclose(model.forecast(50, u=u[350:]).values, z[350:], atol=1e-4)
    np.testing.assert_array_equal(model.last_inputs_, u[350 - model.window : 350])
    assert not model.drift_.alarm
    with pytest.raises(InputError, match="u is needed by a model fitted with inputs"):
        model.update(z[350:351])


def test_bad_samples_are_refused(model_and_future: tuple[hm.TimeDelayedTransformer, np.ndarray]) -> None:
    model, future = model_and_future
    with pytest.raises(InputError, match=r"samples must be \(samples, 3\), got shape \(4, 2\)"):
        _copy(model).update(future[:4, :2])
    with pytest.raises(InputError, match="samples must be finite or NaN"):
        _copy(model).update(np.full((1, 3), np.inf))
    with pytest.raises(InputError, match="u was not used in fit"):
        _copy(model).update(future[:2], u=future[:2])
    paper = hm.TimeDelayedTransformer(2, recipe="paper", seconds=0.2, random_state=0, progress=False).fit(future[:60])
    with pytest.raises(InputError, match="has a readout trained by AdamW"):
        paper.update(future[60:62])
    with pytest.raises(hm.forecasting.NotFittedError):
        hm.TimeDelayedTransformer().update(future)


def test_the_alarm_follows_the_cumulative_sum() -> None:
    rng = np.random.default_rng(0)
    calm = Drift().after(rng.standard_normal(3000) ** 2)
    assert not calm.alarm
    assert calm.error_ratio == pytest.approx(1.0, abs=0.05)
    assert "No drift in 3000 samples" in str(calm)
    parts = Drift()
    squares = rng.standard_normal(300) ** 2
    for some in np.array_split(squares, 7):
        parts = parts.after(some)
    assert parts.statistic == pytest.approx(Drift().after(squares).statistic)
    assert parts.error_ratio == pytest.approx(float(np.sqrt(squares.mean())))
    grown = calm.after((2.0 * rng.standard_normal(100)) ** 2)
    assert 3000 < grown.alarm_at <= 3060
    assert "Fit the model again" in str(grown)
    assert not Drift().after(np.array([1e6])).alarm  # one outlier is no drift
    assert Drift().after(np.array([1e6, 1e6, 1e6])).alarm_at == 3
    assert Drift().after(np.array([np.nan])).predicted == 0
    assert "none of them after a window without gaps" in str(Drift().after(np.array([np.nan])))


def test_changed_dynamics_raise_the_alarm() -> None:
    rng = np.random.default_rng(1)

    def series(count: int, frequency: float) -> np.ndarray:
        return np.sin(frequency * np.arange(count))[:, None] + 0.05 * rng.standard_normal((count, 1))

    model = hm.TimeDelayedTransformer(20, random_state=0, restarts=1, seconds=0.3, progress=False)
    model.fit(series(300, 0.3))
    same = _copy(model).update(0.05 * rng.standard_normal((300, 1)) + np.sin(0.3 * np.arange(300, 600))[:, None])
    assert not same.drift_.alarm
    assert 1 <= _copy(model).update(series(200, 0.5)).drift_.alarm_at < 60


@pytest.mark.parametrize("kind", ["persistence", "median", "smoothing", "seasonal-naive", "auto"])
def test_errors_of_simple_models_are_compared_with_their_own(kind: str) -> None:
    noise = np.random.default_rng(2).standard_normal(900)
    waves = 3 * np.sin(np.arange(900) * 2 * np.pi / 12) + noise
    model = hm.TimeDelayedTransformer(model=kind, seconds=0.3, random_state=0, progress=False).fit(waves[:500])
    calm = _copy(model).update(waves[500:]).drift_
    assert not calm.alarm
    assert 0.9 < calm.error_ratio < 1.1
    waves[500:] += 2.5 * noise[::-1][:400]
    assert _copy(model).update(waves[500:]).drift_.alarm


def test_a_constant_channel_that_moves_raises_the_alarm(tmp_path: object) -> None:
    z = np.stack([np.sin(0.3 * np.arange(200)), np.full(200, 5.0)], axis=1)
    model = _fitted(z[:150])
    calm = _copy(model).update(z[150:])
    assert not calm.drift_.alarm
    z[170:, 1] = [np.nan, *[9.0] * 29]
    for blocks in ([50], [10, 15, 25]):
        moved, at = _copy(model), 150
        for block in blocks:
            moved.update(z[at : at + block])
            at += block
        assert moved.drift_.alarm
        assert moved.drift_.constant_until == 22
        assert "constant in the fit moved at sample 22 of 50" in str(moved.drift_)
    loaded = hm.load_forecaster(moved.save(f"{tmp_path}/moved"))
    assert loaded.drift_ == moved.drift_
