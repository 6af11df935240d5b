"""``hardmax simulate`` on good input: its output and files."""

import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import hardmax as hm
from hardmax.cli.app import app
from hardmax.cli.options import read_number, read_step, read_whole
from hardmax.storage.token_tables import read_tokens, write_tokens
from verifiers.corpus import by_program

# Tokens 0, 1 and 3 lead; token 2 follows 0 and 1 for ever and ends on the edge between them.
_TIED = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0], [-1.0, 0.0]])


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _simulate(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["simulate", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_runs_without_arguments() -> None:
    told = _simulate().stdout
    assert "200 in 2 dimensions (gaussian, seed 0)" in told
    for label in ("tokens", "layer", "theorem", "leaders", "clusters", "ties", "decided", "outcome", "time"):
        assert f"\n{label:<10}" in "\n" + told
    assert os.listdir() == []


def test_summary_names_leaders_ties_and_faces() -> None:
    write_tokens(_TIED, "tied.csv")
    told = _simulate("tied.csv").stdout
    assert "4 in 2 dimensions (tied.csv)" in told
    assert "leaders   3, all from layer 0" in told
    assert "token 0  1 follower   since layer 0  at (1, 1)" in told
    assert "token 3  0 followers  since layer 0  at (-1, 0)" in told
    assert "3 at leaders, 1 on faces between leaders" in told
    assert "1 token follows several leaders for ever" in told


def test_json_equals_the_library() -> None:
    write_tokens(_TIED, "tied.npy")
    result = _simulate("tied.npy", "--limit", "--json")
    data = json.loads(result.stdout)
    limit = hm.equilibrium(_TIED)
    assert result.stderr == ""
    assert data["follows"] == limit.follows.tolist()
    assert data["decided_at"] == limit.decided_at.tolist()
    assert [leader["token"] for leader in data["leaders"]] == limit.leaders.tolist()
    assert [leader["position"] for leader in data["leaders"]] == _TIED[[0, 1, 3]].tolist()
    assert [leader["followers"] for leader in data["leaders"]] == [1, 1, 0]
    assert data["ties"] == {"2": [0, 1]}
    assert [(c["kind"], c["size"]) for c in data["clusters"]] == [("vertex", 1)] * 3 + [("face", 1)]
    assert data["assumptions"]["hold"] is True
    assert data["outcome"]["ending"] == "decided"
    assert data["layers_until_decided"] == limit.layers


def test_json_of_a_run_and_of_softmax() -> None:
    data = json.loads(_simulate("--n", "7", "--depth", "9", "--keep", "every:4", "--json").stdout)
    assert data["kept_layers"] == [0, 4, 8, 9]
    assert len(data["follows"]) == 7
    data = json.loads(_simulate("--n", "7", "--softmax", "2", "--json").stdout)
    assert data["kept_layers"] == list(range(21))
    assert "leaders" not in data


def test_every_file_that_can_be_asked_for() -> None:
    told = _simulate(
        *("--n", "9", "--depth", "2", "--keep", "0,2", "--figure", "f.png", "--animate", "f.gif", "--save", "f.nc")
    ).stdout
    assert sorted(os.listdir()) == ["f.gif", "f.nc", "f.png"]
    for name in os.listdir():
        assert name in told
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")
    assert Path("f.gif").read_bytes().startswith(b"GIF8")
    np.testing.assert_array_equal(hm.load("f.nc").layers, [0, 2])


@pytest.mark.parametrize("name", ["f.zarr", "f.zip", "f.nc"])
def test_saved_limit_is_the_limit(name: str) -> None:
    write_tokens(_TIED, "tied.parquet")
    _simulate("tied.parquet", "--limit", "--alpha", "1/3", "--save", name)
    limit = hm.load(name)
    assert isinstance(limit, hm.Equilibrium)
    assert limit.layer.alpha == Fraction(1, 3)
    np.testing.assert_array_equal(limit.positions, hm.equilibrium(_TIED, hm.HardmaxLayer(1 / 3)).positions)


@pytest.mark.parametrize("name", ["f.csv", "f.npy", "f.parquet"])
def test_last_positions_alone(name: str) -> None:
    write_tokens(_TIED, "tied.csv")
    _simulate("tied.csv", "--save", name)
    np.testing.assert_array_equal(read_tokens(name), hm.equilibrium(_TIED).positions)
    _simulate("tied.csv", "--depth", "1", "--save", name)
    np.testing.assert_array_equal(read_tokens(name), hm.simulate(_TIED, hm.HardmaxLayer(), depth=1).final)


def test_figure_and_film_of_a_limit() -> None:
    _simulate("--n", "4", "--limit", "--alpha", "20", "--figure", "f.svg", "--animate", "f.gif")
    assert sorted(os.listdir()) == ["f.gif", "f.svg"]


def test_a_run_too_large_for_memory_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardmax.cli.simulate_run._SMALL_RUN", 10)
    told = _simulate("--n", "5", "--depth", "6", "--keep", "every:3", "--save", "f.zarr").stdout
    assert "f.zarr" in told
    np.testing.assert_array_equal(hm.load("f.zarr").layers, [0, 3, 6])
    data = json.loads(_simulate("--n", "5", "--depth", "6", "--json").stdout)
    assert data["kept_layers"] == [6]


def test_matrices_by_name_and_by_file() -> None:
    Path("A.csv").write_text("2,1\n1,1\n")
    by_file = json.loads(_simulate("--n", "20", "--matrix", "A.csv", "--json").stdout)
    by_name = json.loads(_simulate("--n", "20", "--matrix", "paper", "--json").stdout)
    assert by_file["follows"] == by_name["follows"]
    turned = json.loads(_simulate("--n", "20", "--matrix", "rotation", "--depth", "5", "--json").stdout)
    assert turned["assumptions"]["positive_definite"] is False


def test_weights_move_a_tied_token() -> None:
    write_tokens(_TIED, "tied.csv")
    Path("w.txt").write_text("3\n1\n1\n1\n")
    _simulate("tied.csv", "--weights", "w.txt", "--depth", "1", "--alpha", "1", "--save", "f.csv")
    np.testing.assert_array_equal(read_tokens("f.csv")[2], [0.75, 0.25])


def test_exact_mode_and_the_theorem() -> None:
    told = _simulate("--random", "grid", "--n", "12", "--exact", "--theorem", "--alpha", "0.1").stdout
    assert "alpha = 1/10" in told
    assert "holds     vertices" in told
    data = json.loads(_simulate("--n", "12", "--theorem", "--json").stdout)
    assert data["theorem"]["holds"] is True
    assert {f["name"] for f in data["theorem"]["findings"]} >= {"nested hulls", "loyal followers", "vertices"}


def test_a_certificate_is_written_and_checked_by_another_program() -> None:
    write_tokens(_TIED, "tied.csv")
    told = _simulate("tied.csv", "--certificate", "limit.json", "--alpha", "1/3", "--exact").stdout
    assert "limit.json" in told
    assert json.loads(Path("limit.json").read_text())["alpha"] == "1/3"
    assert by_program([Path("limit.json")])[0].line.startswith("PROVED: all 4 tokens converge, to 4 limit points")
    refused = CliRunner().invoke(app, ["simulate", "tied.csv", "--certificate", "limit.json", "--depth", "3"])
    assert refused.exit_code == 2
    assert "--certificate" in refused.output


def test_seeds_make_a_difference_and_repeat() -> None:
    first, again, other = (
        json.loads(_simulate("--seed", seed, "--json").stdout)["follows"] for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_quiet_says_nothing() -> None:
    result = _simulate("--quiet", "--save", "f.csv")
    assert result.output == ""
    assert os.listdir() == ["f.csv"]


def test_zero_repeated_and_single_tokens_are_answered() -> None:
    Path("zeros.csv").write_text("0,0\n1,0\n1,0\n-1,0\n")
    told = _simulate("zeros.csv").stdout
    assert "Theorem 1.1 does not apply: some token is zero; some tokens are repeated" in told
    Path("one.csv").write_text("0.3,0.4\n")
    assert "leaders   1" in _simulate("one.csv").stdout


def test_sizes_far_from_one_are_answered() -> None:
    for size in ("1e300", "1e-300"):
        Path("t.csv").write_text(f"{size},0\n0,{size}\n")
        data = json.loads(_simulate("t.csv", "--json").stdout)
        assert [leader["token"] for leader in data["leaders"]] == [0, 1]


def test_a_run_out_of_time_has_status_1() -> None:
    result = CliRunner().invoke(app, ["simulate", "--softmax", "1", "--depth", "100000", "--seconds", "0.05"])
    assert result.exit_code == 1
    assert "out of time" in result.stdout


@pytest.mark.parametrize(
    ("text", "exact", "value"),
    [
        ("0.5", False, 0.5),
        ("1/2", False, Fraction(1, 2)),
        ("0.1", True, Fraction(1, 10)),
        (" 3 ", False, 3.0),
        ("1e-3", False, 1e-3),
    ],
)
def test_alpha_is_read_as_it_is_written(text: str, exact: bool, value: float | Fraction) -> None:
    found = read_step("--alpha", text, exact=exact)
    assert found == value
    assert type(found) is type(value)


def test_numbers_as_people_write_them() -> None:
    assert [read_whole("--n", text, 1) for text in ("7", "1e6", "1_000", "-2", None)] == [7, 10**6, 1000, -2, None]
    assert [read_number("--seconds", text, 1) for text in ("7", "1/4", "-2.5e-3", None)] == [7.0, 0.25, -0.0025, None]


@pytest.mark.parametrize(
    "text", ["", "many", "1e999999999", "1e400", "1/0", "nan", "inf", "0x10", "1,5", "9" * 500, "e5"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(hm.InputError, match=r"--n must be a whole number, got '.*: pass for example --n 7"):
        read_whole("--n", text, 7)
    with pytest.raises(hm.InputError, match=r"--seconds must be a number, got '.*: pass for example --seconds 2.5"):
        read_number("--seconds", text, 2.5)
    with pytest.raises(hm.InputError, match=r"--alpha must be a number or a fraction, got"):
        read_step("--alpha", text, exact=True)


def test_a_half_is_not_a_whole_number() -> None:
    with pytest.raises(hm.InputError, match="--n must be a whole number, got '1/2'"):
        read_whole("--n", "1/2", 7)


@pytest.mark.parametrize(
    ("flags", "layer"),
    [
        (["--causal"], hm.HardmaxLayer(0.5, causal=True)),
        (["--causal", "--depth", "3"], hm.HardmaxLayer(0.5, causal=True)),
        (["--window", "5", "--depth", "3"], hm.HardmaxLayer(0.5, window=5)),
        (["--softmax", "2", "--causal", "--depth", "3"], hm.SoftmaxLayer(0.5, beta=2.0, causal=True)),
        (["--steps", "power:2", "--depth", "3"], hm.HardmaxLayer(hm.PowerSteps(0.5, power=2.0))),
        (["--steps", "geometric:0.5"], hm.HardmaxLayer(hm.GeometricSteps(0.5, ratio=0.5))),
        (
            ["--heads", "2", "--causal", "--depth", "3"],
            hm.HardmaxLayer(heads=[hm.make_matrix("random-spd", 2, random_state=h) for h in (0, 1)], causal=True),
        ),
        (["--rule", "topk:4:2", "--depth", "3"], hm.AttentionLayer(weighting=hm.TopK(4, beta=2.0))),
        (["--rule", "sinkhorn:3", "--depth", "2"], hm.AttentionLayer(weighting=hm.DoublyStochastic(3.0))),
        (
            ["--rule", "sigmoid:2", "--depth", "3", "--causal"],
            hm.AttentionLayer(weighting=hm.Sigmoid(2.0), move=hm.ResidualStep(0.5), causal=True),
        ),
    ],
)
def test_masks_heads_rules_and_steps(flags: list[str], layer: hm.AbstractLayer) -> None:
    """The command saves what the library computes with the same layer."""
    _simulate("--n", "40", *flags, "--save", "run.zip")
    found = hm.load("run.zip")
    assert str(found.layer) == str(layer)
    tokens = hm.make_tokens("gaussian", 40, 2, random_state=0)
    if isinstance(found, hm.Equilibrium):
        assert isinstance(layer, hm.HardmaxLayer)
        assert np.array_equal(found.positions, hm.equilibrium(tokens, layer).positions)
    else:
        assert np.array_equal(found.tokens, hm.simulate(tokens, layer, depth=len(found) - 1).tokens)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rule", "topk:x", "--depth", "2"], "--rule has 'x' where a number belongs"),
        (["--rule", "best", "--depth", "2"], "--rule is not understood"),
        (["--rule", "softmax:2", "--limit"], "--rule does not go with --limit"),
        (["--steps", "linear:2"], "--steps is not understood"),
        (["--heads", "2", "--matrix", "paper"], "--matrix does not go with --heads"),
        (["--theorem", "--causal"], "--theorem does not go with --causal"),
        (["--window", "4"], "the hull of what a token sees may grow"),
        (["--window", "300", "--depth", "2"], "is wider than the 200 tokens"),
    ],
)
def test_masks_heads_rules_and_steps_that_do_not_fit(flags: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["simulate", *flags])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
