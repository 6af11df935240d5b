"""Unusual inputs: accepted as meant, or refused with a remedy."""

import numpy as np
import pandas
import pytest
import scipy.sparse
import torch

import hardmax as hm

TOKENS = [[2, 0], [1, 1], [-1, 0], [0, -3]]
LAYER = hm.HardmaxLayer(alpha=0.5)
B, V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (
            np.ma.array([[1.0, 5.0], [2.0, 2.0]], mask=[[False, True], [False, False]]),
            r"tokens must not be masked, got a masked value at index \(0, 1\): remove or impute",
        ),
        ([[1, 2], [3]], r"got \[\[1, 2\], \[3\]\]: every row needs the same length$"),
        (np.array([[1j, 2]]), r"pass rows of numbers, .* \(it holds complex128\)"),
        ([["1", "2"]], r"pass rows of numbers, .* \(it holds <U1\)"),
        (None, r"got None: pass rows of numbers, .* \(None is not a number\)"),
        (scipy.sparse.eye_array(2), r"a sparse matrix: pass its \.toarray\(\)"),
        (pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}), r"got a b 0 1 x 1 2 y: .* \('x' is not a number\)"),
    ],
)
def test_what_is_no_array_of_numbers(tokens: object, message: str) -> None:
    with pytest.raises(hm.InputError, match=message):
        hm.equilibrium(tokens)  # type: ignore[arg-type]


def test_a_masked_array_without_masked_values_is_an_array() -> None:
    plain = hm.equilibrium(TOKENS, LAYER)
    masked = hm.equilibrium(np.ma.array(TOKENS), LAYER)
    np.testing.assert_array_equal(masked.positions, plain.positions)


@pytest.mark.parametrize("stop", [hm.Decided, 5, [hm.Decided(), "soon"]])
def test_a_stop_rule_is_a_rule(stop: object) -> None:
    with pytest.raises(hm.InputError, match=r"stop must be a rule, got .*: pass for example Decided\(\)"):
        hm.simulate(TOKENS, LAYER, depth=3, stop=stop)  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", [[-1], [0, 7], [], [0.5], [True]])
def test_layers_to_keep_lie_within_the_run(keep: list[int]) -> None:
    with pytest.raises(hm.InputError, match=r"keep must list layers from 0 to depth = 3, got \["):
        hm.simulate(TOKENS, LAYER, depth=3, keep=keep)


def test_only_hardmax_chooses() -> None:
    with pytest.raises(hm.InputError, match=r"layer must choose: other layers attend to every token, got softmax"):
        hm.choose(TOKENS, hm.SoftmaxLayer())


def test_pictures_of_layers_need_layers() -> None:
    limit = hm.equilibrium(TOKENS, LAYER)
    with pytest.raises(hm.InputError, match=r"run must be a Trajectory, got Equilibrium: a limit has no layers"):
        hm.draw_panels(limit)  # type: ignore[arg-type]
    with pytest.raises(hm.InputError, match=r"run must be a Trajectory, got a Equilibrium: a limit has no layers"):
        hm.animate_tokens(limit, "limit.gif")  # type: ignore[arg-type]
    assert len(hm.draw_panels(hm.simulate(TOKENS, LAYER, depth=3), layers=2).axes) == 1


def test_tensors_that_require_gradients_are_read_like_others() -> None:
    points = torch.tensor([[2.0, 0.5], [1.0, 1.0], [-1.0, 0.2], [0.3, -3.0]], dtype=torch.float64)
    tokens = torch.nn.functional.normalize(points, dim=1).requires_grad_()
    matrix = torch.tensor(B, requires_grad=True)
    flow = hm.SphereFlow(matrix, V, 3.0, few_tokens="ignore")
    run = hm.simulate(tokens, flow, time=1.0)
    assert run.tokens.requires_grad
    assert hm.simulate(tokens.detach(), flow, time=1.0).tokens.requires_grad
    assert run.to_xarray()["tokens"].shape == tuple(run.tokens.shape)
    again = hm.simulate(tokens.detach(), hm.SphereFlow(B, V, 3.0, few_tokens="ignore"), time=1.0)
    np.testing.assert_allclose(hm.phases(run).distances, hm.phases(again).distances, rtol=1e-12)
    np.testing.assert_allclose(hm.lyapunov(run).rayleigh, hm.lyapunov(again).rayleigh, rtol=1e-12)
    law = hm.low_temperature_limit(tokens, matrix, V)
    assert torch.equal(law.positions, hm.low_temperature_limit(tokens.detach(), B, V).positions)
    exact = hm.zero_temperature_solution(tokens, matrix, V, time=1.0)
    assert torch.equal(exact, hm.zero_temperature_solution(tokens.detach(), B, V, time=1.0))
    limit = hm.equilibrium(tokens, hm.HardmaxLayer(A=matrix))
    assert limit.polytope.dimension == 2


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (
            lambda: hm.simulate(TOKENS, LAYER, depth=0),
            "<Trajectory of 4 tokens in 2 dimensions, 1 state stored; depth reached: 0 layers were run and 1 token is "
            "still undecided>",
        ),
        (
            lambda: hm.equilibrium(TOKENS, LAYER),
            "<Equilibrium of 4 tokens in 2 dimensions: 3 leaders, 0 limit points on faces; decided: 3 leaders, every "
            "token decided by layer 1>",
        ),
        (lambda: hm.equilibrium(TOKENS).polytope, "<Polytope: a polygon with 3 vertices in 2 coordinates>"),
        (lambda: hm.wasserstein([[0.0, 0.0]], [[3.0, 4.0]]), "<Transport: W2 = 5 (method atoms)>"),
        (lambda: hm.circle_quantiles(5), "<Measure of 5 points of equal weights in 2 dimensions>"),
        (
            lambda: hm.low_temperature_limit([[0.6, 0.8]], B, V),
            "<LowTemperatureLimit of 1 tokens: limit on two antipodal points: leading eigenvalue 4, gap 2>",
        ),
    ],
)
def test_results_show_themselves_in_a_line(make: object, wanted: str) -> None:
    assert repr(make()) == wanted  # type: ignore[operator]


def test_tables_show_themselves_as_tables() -> None:
    limit = hm.equilibrium(TOKENS, LAYER)
    for table in (hm.leaders(limit), hm.clusters(limit)):
        assert repr(table) == str(table)
        assert table._repr_html_().count("<tr") == len(table) + 1
    report = hm.check_theorem(limit)
    assert repr(report) == str(report)


def test_ties_read_and_compare_like_a_dict() -> None:
    tied = hm.equilibrium([[2, 2], [-2, 2], [0, 1]], LAYER)
    assert repr(tied.ties) == "Ties({2: [0, 1]})"
    assert tied.ties == {2: [0, 1]}
    assert tied.ties == hm.simulate([[2, 2], [-2, 2], [0, 1]], LAYER, depth=2).leadership.ties
    assert tied.ties != {2: [0, 2]}
    assert tied.ties != {}
    assert tied.ties != [2]
    many = hm.equilibrium([[2, 2], [-2, 2], *([0, k / 8] for k in range(1, 8))], LAYER)
    assert repr(many.ties).endswith("6: [0, 1], … 7 in all})")


def test_a_limit_goes_to_xarray_like_a_run() -> None:
    limit = hm.equilibrium(torch.tensor(TOKENS, dtype=torch.float32), LAYER, weights=[1, 2, 3, 4])
    data = limit.to_xarray()
    assert data["positions"].sel(token=1).values.tolist() == [2.0, 0.0]
    assert data["follows"].values.tolist() == [0, 0, 2, 3]
    assert data["leader"].values.tolist() == [0, 2, 3]
    assert data["weights"].values.tolist() == [1, 2, 3, 4]
    assert data.attrs["outcome"] == "decided"
