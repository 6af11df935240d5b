"""The spread of a forecast: validation errors per step, their extrapolation, and how often they cover the error."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hardmax as hm
from hardmax.datasets import airfoil, lorenz63
from hardmax.errors import InputError
from hardmax.forecasting.error_growth import ErrorGrowth, amplification, measure_growth
from hardmax.forecasting.forecaster import TimeDelayedTransformer
from hardmax.forecasting.rollout import roll
from hardmax.forecasting.search.held_out import held_out_folds
from hardmax.forecasting.search.model_search import fit_family
from hardmax.forecasting.search.readout_search import Learner
from hardmax.forecasting.settings import Settings

_OLD = Path(__file__).parent / "files" / "forecaster_format_1"


def test_the_growth_is_that_of_its_formula() -> None:
    rng = np.random.default_rng(0)
    truths = [rng.standard_normal((5, 9, 2)), rng.standard_normal((4, 6, 2))]
    paths = [truth + 0.5 * rng.standard_normal(truth.shape) for truth in truths]
    found = measure_growth(paths, truths)
    for j in range(2):
        worst = 0.0
        for k in range(9):
            squares = [
                (p[s, k, j] - t[s, k, j]) ** 2
                for p, t in zip(paths, truths, strict=True)
                for s in range(len(p))
                if k < p.shape[1]
            ]
            worst = max(worst, float(np.sqrt(sum(squares) / len(squares))))
            assert found.per_step[k, j] == pytest.approx(worst, rel=1e-12)
        late = np.concatenate([paths[0][:, 7:, j].ravel(), paths[1][:, 5:, j].ravel()])
        assert found.limit[j] == pytest.approx(np.sqrt(1 + (late**2).mean()), rel=1e-12)


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_exponential_and_power_growth_go_on_as_they_were(rate: float) -> None:
    steps = np.arange(1, 101.0)
    errors = np.stack([1e-9 * np.exp(rate * steps[:40]), 1e-9 * steps[:40] ** 1.7], axis=1)
    ahead = ErrorGrowth(errors, np.array([1e9, 1e9])).ahead(100)
    np.testing.assert_allclose(ahead[:, 0], 1e-9 * np.exp(rate * steps), rtol=1e-6)
    np.testing.assert_allclose(ahead[:, 1], 1e-9 * steps**1.7, rtol=1e-6)
    limited = ErrorGrowth(errors, np.array([1.2, 1.2])).ahead(10_000)
    assert limited.max() == 1.2
    assert (np.diff(limited, axis=0) >= 0).all()


def test_differences_are_amplified_as_by_their_formula() -> None:
    rng = np.random.default_rng(3)
    differences = 1e-6 * rng.standard_normal((5, 12, 2)) * np.exp(0.2 * np.arange(12))[:, None]
    found = amplification(differences, 4)
    assert found.shape == (8, 2)
    for j in range(2):
        size = [np.sqrt(sum(differences[s, k, j] ** 2 for s in range(5)) / 5) for k in range(12)]
        largest = 1.0
        for k in range(8):
            largest = max(largest, size[4 + k] / size[3])
            assert found[k, j] == pytest.approx(largest, rel=1e-12)
    np.testing.assert_array_equal(amplification(np.zeros((3, 9, 1)), 2), 1.0)


def test_errors_beyond_those_measured_grow_as_differences_do() -> None:
    steps = np.arange(1, 301.0)
    # Errors of every step add up at first, as a power; differences grow exponentially, and were followed for 100 steps.
    errors = 1e-9 * steps[:40, None] ** 1.7
    amplified = np.exp(0.08 * steps[:100, None])
    ahead = ErrorGrowth(errors, np.array([1e9]), amplified=amplified).ahead(300)[:, 0]
    expected = np.maximum(1e-9 * steps**1.7, errors[-1, 0] * np.exp(0.08 * (steps - 40)))
    np.testing.assert_array_equal(ahead[:40], errors[:, 0])
    np.testing.assert_allclose(ahead[40:], expected[40:], rtol=1e-9)
    assert ahead[-1] > 1e4 * ErrorGrowth(errors, np.array([1e9])).ahead(300)[-1, 0]
    # An exponential fit to the measured errors is not carried on where it is known that differences do not grow.
    fast = 1e-9 * np.exp(0.2 * steps[:40, None])
    calm = ErrorGrowth(fast, np.array([1e9]), amplified=np.ones((100, 1))).ahead(300)[:, 0]
    assert calm[-1] < 1e-3 * ErrorGrowth(fast, np.array([1e9])).ahead(300)[-1, 0]
    limited = ErrorGrowth(errors, np.array([1.2]), amplified=amplified).ahead(10_000)
    assert limited.max() == 1.2
    assert (np.diff(limited, axis=0) >= 0).all()


def test_differences_grow_at_the_rate_of_the_system() -> None:
    z = lorenz63(2200, 0.05).values
    model = TimeDelayedTransformer(12, horizon=60, random_state=0, progress=False).fit(z[:1500], dt=0.05)
    assert model.predictor_ is not None
    assert model.predictor_.errors is not None
    amplified = model.predictor_.errors.amplified
    assert amplified is not None
    assert amplified.shape == (180, 3)
    rates = np.log(amplified[-1]) / (0.05 * len(amplified))
    # Lyapunov exponent .906; root mean squares over the starts grow somewhat faster than typical differences.
    assert ((rates > 0.7) & (rates < 1.6)).all(), rates
    starts = np.linspace(1560, 1950, 20).astype(int)
    windows = np.stack([z[k - model.window : k] for k in starts])
    ahead = model.forecast(240, window=windows)
    truth = np.stack([z[k : k + 240] for k in starts])
    band = ahead.interval(0.95)
    inside = ((band.lower <= truth) & (truth <= band.upper))[:, 120:]
    assert inside.mean() > 0.85, inside.mean()


def test_beyond_the_validation_steps_it_grows_at_least_as_a_random_walk_and_never_decreases() -> None:
    flat = ErrorGrowth(np.full((20, 1), 0.1), np.array([1.0]))
    np.testing.assert_allclose(flat.ahead(80)[-1], 0.2)
    for known in range(1, 6):
        short = ErrorGrowth(np.full((known, 1), 0.1), np.array([1.0])).ahead(50)
        assert short.shape == (50, 1)
        assert (np.diff(short[:, 0]) >= 0).all()
    beyond = ErrorGrowth(np.full((20, 1), 7.0), np.array([1.4])).ahead(80)
    np.testing.assert_array_equal(beyond, 7.0)  # what was measured above the limit is not made smaller


def test_the_errors_are_those_of_the_choice_fitted_without_what_it_forecasts() -> None:
    z = lorenz63(400, 0.05).values
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    for data in ([z], [z[:130], z[130:260], z[260:]]):
        found = fit_family(data, 3, Settings(8, None, 1, None, None, 0, False))
        folds = [held.fold for held in held_out_folds(data, 3, found.plan.longest, found.plan.horizon)]
        assert len(folds) == (5 if len(data) == 1 else 2)
        squares, count = 0.0, 0
        for fold, share in zip(folds, (0.8, 0.9, 0.7, 0.6, 0.5), strict=False):
            if len(data) == 1:
                assert fold.training[0].shape[0] == round(400 * share)
                known = z[round(400 * share) :][: fold.horizon]
                np.testing.assert_array_equal(fold.truth[0, : len(known)], known)
                assert np.isnan(fold.truth[0, len(known) :]).all()
            learner = Learner(fold.training, 3, 0)
            members = []
            for source in found.selection.chosen.sources:
                solved = learner.readouts([source.features], source.noise, np.array([source.ridge]))
                members.append(type(source.member)(source.features, solved[0]))
            fade = found.predictor.fade
            path = roll(members, fold.windows, fold.horizon, future=None, fade=fade)[0]
            squares = squares + ((path - fold.truth) ** 2)[:, 0].sum(axis=0)
            count += len(path)
        errors = found.predictor.errors
        assert errors is not None
        np.testing.assert_allclose(errors.per_step[0], np.sqrt(squares / count), rtol=1e-3)


def _oscillation(seed: int) -> np.ndarray:
    rng, z = np.random.default_rng(seed), np.zeros(1200)
    for k in range(2, len(z)):
        z[k] = 1.5 * z[k - 1] - 0.7 * z[k - 2] + rng.standard_normal()
    return z[:, None]


def _waves(seed: int) -> np.ndarray:
    rng, t = np.random.default_rng(seed), np.arange(1200)
    return (np.sin(0.21 * t + seed) + 0.5 * np.sin(0.073 * t) + 0.1 * rng.standard_normal(1200))[:, None]


def _lorenz(seed: int) -> np.ndarray:
    z = lorenz63(1200, 0.05, random_state=seed).values
    return z + 0.02 * z.std(axis=0) * np.random.default_rng(seed).standard_normal(z.shape)


def _wing(seed: int) -> np.ndarray:
    return airfoil(1200, initial_pitch=0.05 + 0.02 * seed).values


_Series = Callable[[int], np.ndarray]
_Fit = Callable[[_Series, int], tuple[np.ndarray, TimeDelayedTransformer]]


@pytest.fixture(scope="module")
def fitted() -> _Fit:
    """A series of 1200 samples, and a model fitted to the first third; each computed once."""

    @cache
    def fit(make: _Series, seed: int) -> tuple[np.ndarray, TimeDelayedTransformer]:
        z = make(seed)
        return z, TimeDelayedTransformer(12, restarts=1, random_state=seed, progress=False).fit(z[:400])

    return fit


def _coverage(z: np.ndarray, model: TimeDelayedTransformer, steps: int = 80) -> tuple[float, float]:
    starts = np.linspace(600, len(z) - steps, 30).astype(int)
    ahead = model.forecast(steps, window=np.stack([z[k - model.window : k] for k in starts]))
    errors = np.abs(ahead.values - np.stack([z[k : k + steps] for k in starts]))
    assert (np.diff(ahead.spread, axis=1) >= 0).all()
    return float((errors <= ahead.spread).mean()), float((errors <= 2 * ahead.spread).mean())


@pytest.mark.parametrize(
    ("make", "least", "most"), [(_oscillation, 0.6, 0.8), (_waves, 0.6, 0.8), (_lorenz, 0.6, 0.95), (_wing, 0.6, 1.0)]
)
def test_the_spread_covers_the_error_as_often_as_it_says(
    fitted: _Fit, make: _Series, least: float, most: float
) -> None:
    # Errors of chaotic systems have heavy tails, so more than 68 % lie within one root mean square. The standard
    # deviation over seeds is 0.07.
    found = np.mean([_coverage(*fitted(make, seed)) for seed in range(3)], axis=0)
    assert least <= found[0] <= most, found
    assert found[1] >= 0.88, found


def test_the_spread_of_the_published_recipe_is_measured_too() -> None:
    z = _waves(0)
    model = TimeDelayedTransformer(16, recipe="paper", restarts=1, seconds=2.0, random_state=0, progress=False)
    one, two = _coverage(z, model.fit(z[:400]))
    assert 0.5 <= one <= 0.95
    assert two >= 0.85


def test_no_model_that_diverges_enters_the_spread(fitted: _Fit) -> None:
    # On the limit cycle errors are tiny; so must be the spread, whatever other candidates do.
    z, model = fitted(_wing, 0)
    ahead = model.forecast(100)
    assert np.abs(ahead.values - z[400:500]).max() < 1e-5
    assert (ahead.spread < 1e-4 * z.std(axis=0)).all()


def test_a_file_of_the_first_format_forecasts_as_before_and_says_that_its_spread_is_not_known() -> None:
    model = hm.load_forecaster(_OLD)
    ahead = model.forecast(6)
    expected = json.loads((_OLD / "expected.json").read_text())["values"]
    np.testing.assert_allclose(ahead.values, expected, rtol=1e-9)
    assert np.isnan(ahead.spread[:, 0]).all()
    assert (ahead.spread[:, 1] == 0).all()  # a constant channel
    assert json.loads(json.dumps(ahead.data()))["spread"][0] == [None, 0.0]


def test_the_spread_is_saved_with_the_model_and_has_the_inputs_and_the_units_of_the_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    u = rng.standard_normal(300)
    z = np.zeros(300)
    for k in range(1, 300):
        z[k] = 0.9 * z[k - 1] + u[k] + 0.3 * rng.standard_normal()
    known, coming = u[:250], u[250:, None]
    small = TimeDelayedTransformer(4, restarts=1, random_state=0, progress=False).fit(z[:250], u=known)
    large = TimeDelayedTransformer(4, restarts=1, random_state=0, progress=False).fit(1e6 * z[:250], u=known)
    spread = small.forecast(50, u=coming).spread
    np.testing.assert_allclose(large.forecast(50, u=coming).spread, 1e6 * spread, rtol=1e-6)
    # The error of the best forecast is 0.3 at first and 0.3 / sqrt(1 - 0.81) = 0.69 in the end.
    assert spread[0, 0] == pytest.approx(0.3, rel=0.3)
    assert spread[24, 0] == pytest.approx(0.69, rel=0.4)
    assert spread[24, 0] <= spread[-1, 0] <= 1.5 * spread[24, 0]
    again = hm.load_forecaster(small.save(tmp_path / "saved"))
    np.testing.assert_array_equal(again.forecast(50, u=coming).spread, spread)


def _fields(noise: float) -> np.ndarray:
    t, x = np.arange(240)[:, None], np.linspace(0, 1, 30)[None]
    clean = np.sin(0.3 * t) * np.sin(np.pi * x) + 0.4 * np.cos(0.11 * t) * np.sin(2 * np.pi * x)
    return (clean + noise * np.random.default_rng(0).standard_normal(clean.shape)).reshape(240, 5, 6)


def test_fields_have_a_spread_at_every_point() -> None:
    fields = _fields(0.05)
    model = TimeDelayedTransformer(10, pod=2, restarts=1, random_state=0, progress=False).fit(fields[:200])
    ahead = model.forecast(40)
    spread = model.reconstruct_spread(ahead)
    assert spread.shape == (40, 5, 6)
    np.testing.assert_array_equal(model.reconstruct_spread(ahead.spread), spread)
    errors = np.abs(model.reconstruct(ahead) - fields[200:])
    assert 0.55 <= (errors <= spread).mean() <= 0.85
    assert (errors <= 2 * spread).mean() >= 0.88
    # One point by hand: the squares of the modes there, and of what they leave out, add up.
    assert model.pod_ is not None
    flat = fields[:200].reshape(200, 30)
    rest = flat - model.pod_.reconstruct(model.pod_.reduce(fields[:200])).reshape(200, 30)
    square = sum((ahead.spread[7, k] * model.pod_.modes[k, 8]) ** 2 for k in range(2)) + (rest[:, 8] ** 2).mean()
    assert spread[7].reshape(30)[8] == pytest.approx(np.sqrt(square))
    with pytest.raises(InputError, match="spread must end in 2 coefficients"):
        model.reconstruct_spread(np.ones((3, 5)))


def test_gaps_in_fields_are_filled_on_request() -> None:
    fields = _fields(0.0)
    holes = fields.copy()
    holes[50:53, 2, 3] = np.nan
    model = TimeDelayedTransformer(10, pod=2, restarts=1, random_state=0, progress=False)
    with pytest.raises(InputError, match="has gaps"):
        model.fit(holes[:200])
    with pytest.raises(InputError, match="gaps must be one of"):
        model.fit(holes[:200], gaps="ignore")  # type: ignore[arg-type]
    model.fit(holes[:200], gaps="interpolate")
    assert "3 missing values were interpolated linearly." in model.report_.sentences
    error = np.abs(model.reconstruct(model.forecast(20)) - fields[200:220]).max()
    assert error < 0.05
