"""Saved networks: read back equal, checked from the file alone, and refused when anything was touched."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from hardmax.errors import FileError
from hardmax.interpolation import ExactTransformer, classify_exactly, interpolate, verify
from interpolation.families import make


@pytest.fixture
def saved(tmp_path: Path) -> tuple[ExactTransformer, Path]:
    inputs, outputs = make("grid", 2, d=2)
    net = interpolate(inputs, outputs)
    return net, net.save(tmp_path / "net")


def change(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "network.json"
    record = json.loads(path.read_text())
    edit(record)
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    "options",
    [{}, {"construction": "paper"}, {"construction": "conditioned"}, {"attention": "softmax", "temperature": "1/3"}],
)
def test_round_trip(options: dict, tmp_path: Path) -> None:
    inputs, outputs = make("rationals", 2, d=3)
    net = interpolate(inputs, outputs, **options)
    net.save(tmp_path / "net")
    assert sorted(p.name for p in (tmp_path / "net").iterdir()) == ["network.json", "network.safetensors"]
    again = ExactTransformer.load(tmp_path / "net")
    assert again == net
    assert verify(tmp_path / "net").proved
    assert verify(tmp_path / "net" / "network.json").proved


def test_classes_survive(tmp_path: Path) -> None:
    inputs, _ = make("windows", 0, d=2)
    net = classify_exactly(inputs, [j % 2 for j in range(len(inputs))])
    net.save(tmp_path)
    assert ExactTransformer.load(tmp_path).predict(inputs) == net.predict(inputs)
    odd = classify_exactly(inputs, [(j % 2,) for j in range(len(inputs))])
    with pytest.raises(FileError, match="cannot be stored"):
        odd.save(tmp_path / "odd")


def test_every_number_is_a_rational_as_a_string(saved: tuple[ExactTransformer, Path]) -> None:
    record = json.loads((saved[1] / "network.json").read_text())
    block = record["blocks"][0]
    assert isinstance(block["eta"], str)
    assert all(isinstance(c, str) for row in block["U"] + block["W"] + block["B"]["left"] for c in row)
    assert len(block["W"]) == record["d"]


def test_dense_matrices_are_read_too(saved: tuple[ExactTransformer, Path]) -> None:
    _net, folder = saved

    def densify(record: dict[str, Any]) -> None:
        for block in record["blocks"]:
            for name in ("B", "V"):
                left, right = block[name]["left"], block[name]["right"]
                if left:
                    assert len(left) == 1
                    assert {len(left[0]), len(right[0])} == {2}
                    from fractions import Fraction

                    block[name] = [[str(Fraction(a) * Fraction(b)) for b in right[0]] for a in left[0]]

    change(folder, densify)
    again = ExactTransformer.load(folder)
    assert again.certify().proved


def test_a_corrupted_weight_is_found(saved: tuple[ExactTransformer, Path]) -> None:
    _, folder = saved

    def corrupt(record: dict[str, Any]) -> None:
        record["blocks"][-1]["b"][0] = "22/7"

    change(folder, corrupt)
    certificate = verify(folder)
    assert not certificate.proved
    assert certificate.failures
    assert any("block" in problem and "rounded" in problem for problem in certificate.problems)


def test_swapped_outputs_are_found_and_named(tmp_path: Path) -> None:
    inputs = [[[k, 0], [k, 1]] for k in range(6)]
    interpolate(inputs, [[[k, k]] for k in range(6)]).save(tmp_path)

    def swap(record: dict[str, Any]) -> None:
        outputs = record["data"]["outputs"]
        outputs[1], outputs[4] = outputs[4], outputs[1]

    change(tmp_path, swap)
    certificate = verify(tmp_path)
    assert not certificate.proved
    assert [failure.sequence for failure in certificate.failures] == [1, 4]
    assert "hash" in certificate.problems[0]
    assert "sequence 1: " in str(certificate)


def test_wrong_claims_are_found(saved: tuple[ExactTransformer, Path]) -> None:
    change(saved[1], lambda record: record["claims"].update(blocks=1))
    certificate = verify(saved[1])
    assert not certificate.proved
    assert not certificate.failures
    assert "claims blocks = 1" in certificate.problems[0]


def test_a_touched_tensor_is_found(saved: tuple[ExactTransformer, Path]) -> None:
    path = saved[1] / "network.safetensors"
    tensors = load_file(path)
    tensors["b"] = np.array(tensors["b"])
    tensors["b"][0, 0] += 1e-9
    save_file(tensors, path)
    assert "b of block 0" in verify(saved[1]).problems[0]
    path.write_bytes(path.read_bytes()[:40])
    assert "cannot be read" in verify(saved[1]).problems[0]
    path.unlink()
    assert "is missing" in verify(saved[1]).problems[0]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r.update(format=99), "format 99"),
        (lambda r: r.pop("blocks"), "field blocks is missing"),
        (lambda r: r["blocks"][0].pop("U"), r"field blocks\[0\].U is missing"),
        (lambda r: r["blocks"][0].update(eta="one"), r"blocks\[0\].eta holds 'one'"),
        (lambda r: r["blocks"][0].update(eta="1/0"), r"blocks\[0\].eta holds '1/0'"),
        (lambda r: r["blocks"][0].update(eta=1.0), r"blocks\[0\].eta has the wrong type float"),
        (lambda r: r["blocks"][0]["b"].append("1"), r"blocks\[0\].b must be a list of"),
        (lambda r: r.update(width=1), r"more than the width 1"),
        (lambda r: r.update(attention="linear"), "attention must be hardmax or softmax"),
        (lambda r: r.update(d=True), "field d has the wrong type"),
        (lambda r: r["data"]["inputs"].append([]), "field data.inputs"),
        (lambda r: r["data"]["inputs"].append(r["data"]["inputs"][0]), "field data is not a data set"),
        (lambda r: r.update(blocks=[]), "field blocks is empty"),
    ],
)
def test_a_bad_file_is_refused_by_name_and_field(
    saved: tuple[ExactTransformer, Path], edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    change(saved[1], edit)
    with pytest.raises(FileError, match=message) as caught:
        verify(saved[1])
    assert "network.json" in str(caught.value)


def test_a_truncated_file_is_refused(saved: tuple[ExactTransformer, Path]) -> None:
    path = saved[1] / "network.json"
    path.write_text(path.read_text()[:-100])
    with pytest.raises(FileError, match="truncated or damaged"):
        verify(saved[1])
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="not text in UTF-8"):
        verify(saved[1])
    path.write_text("[1, 2]")
    with pytest.raises(FileError, match="is not a network"):
        verify(saved[1])


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        verify(tmp_path / "nowhere")


def test_saving_over_a_network_replaces_it(saved: tuple[ExactTransformer, Path]) -> None:
    inputs, outputs = make("windows", 1, d=2)
    other = interpolate(inputs, outputs)
    other.save(saved[1])
    assert ExactTransformer.load(saved[1]) == other
    assert verify(saved[1]).proved


def test_the_checker_in_the_docs_checks(saved: tuple[ExactTransformer, Path]) -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "network-files.rst"
    code = page.read_text(encoding="utf-8").split(".. code-block:: python\n")[1]
    script = textwrap.dedent(code)
    where = saved[1].parent
    run = lambda: subprocess.run([sys.executable, "-c", script], cwd=where, capture_output=True, text=True)  # noqa: E731
    good = run()
    assert good.returncode == 0, good.stderr

    def corrupt(record: dict[str, Any]) -> None:
        record["blocks"][-1]["b"][0] = "22/7"

    change(saved[1], corrupt)
    assert "AssertionError" in run().stderr


@pytest.mark.parametrize("tau", ["0", "-1/3"])
def test_a_temperature_that_is_not_positive_is_refused(tau: str, tmp_path: Path) -> None:
    inputs, outputs = make("grid", 2, d=2)
    folder = interpolate(inputs, outputs, attention="softmax", temperature="1/3").save(tmp_path / "net")
    change(folder, lambda record: record.update(tau=tau))
    with pytest.raises(FileError, match="tau must be positive"):
        ExactTransformer.load(folder)


def test_a_key_that_appears_twice_is_refused(saved: tuple[ExactTransformer, Path]) -> None:
    path = saved[1] / "network.json"
    path.write_text(path.read_text().replace('"eta"', '"eta": "1", "eta"', 1))
    with pytest.raises(FileError, match="a key appears twice in one object: 'eta'"):
        verify(saved[1])


def test_numbers_too_large_for_floats_are_no_failure(saved: tuple[ExactTransformer, Path]) -> None:
    def enlarge(record: dict[str, Any]) -> None:
        record["claims"]["gap"] = 10**400
        record["blocks"][-1]["b"][0] = "1" + "0" * 400

    change(saved[1], enlarge)
    assert ExactTransformer.load(saved[1]).report.gap == np.inf
    assert not verify(saved[1]).proved
    path = saved[1] / "network.json"
    path.write_text(path.read_text().replace('"width": 4', '"width": 4' + "0" * 5000, 1))
    with pytest.raises(FileError, match="not complete JSON"):  # more digits than Python converts
        verify(saved[1])


def test_an_infinite_gap_is_saved_as_json(tmp_path: Path) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    with np.errstate(all="ignore"):
        net = interpolate([[["1e900", "0"]], [["0", "1"]]], [[["1", "1"]], [["2", "2"]]])
    assert net.report.gap == np.inf
    net.save(tmp_path / "net")
    json.loads((tmp_path / "net" / "network.json").read_text(), parse_constant=refuse)
    assert ExactTransformer.load(tmp_path / "net") == net


def test_the_hash_of_the_tensors_is_checked(saved: tuple[ExactTransformer, Path]) -> None:
    change(saved[1], lambda record: record.update(tensors_sha256="0" * 64))
    certificate = verify(saved[1])
    assert certificate.problems == ("network.safetensors is not the file that network.json names (its hash differs)",)
    assert not certificate.proved
