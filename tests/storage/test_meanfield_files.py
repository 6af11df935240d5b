"""Phases and low-temperature limits come back equal from every kind of file, and damaged ones are refused by field."""

import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import hardmax as hm
from storage.runs import assert_equal

_B, _V = np.diag([4.0, 1.0]), np.diag([1.0, 2.0])


def _found(beta: float, time: float = 4.0) -> hm.Phases:
    tokens = hm.circle_quantiles(400, lambda angle: 1 + np.sin(angle) / 2).points
    return hm.phases(hm.simulate(tokens, hm.SphereFlow(_B, _V, beta, few_tokens="ignore"), time=time, step=0.1))


_VALUES = {
    "phases": _found(100.0, 14.0),
    "phases at zero temperature": _found(math.inf),
    "limit": hm.low_temperature_limit([[0.6, 0.8], [-0.6, 0.8]], _B, _V, weights=[1.0, 2.0]),
    "limit of tensors in float32": hm.low_temperature_limit(torch.tensor([[0.6, 0.8]], dtype=torch.float32), _B, _V),
    "limit of a Jordan block": hm.low_temperature_limit([[0.6, 0.8]], None, [[1.0, 1.0], [0.0, 1.0]]),
    "limit that turns": hm.low_temperature_limit([[0.6, 0.8]], None, [[1.0, 1.0], [-1.0, 1.0]]),
    "limit without a second eigenvalue": hm.low_temperature_limit([[0.6, 0.8]]),
}


@pytest.mark.parametrize("suffix", ["zarr", "zip", "nc"])
@pytest.mark.parametrize("name", _VALUES)
def test_values_come_back_equal(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"found.{suffix}"
    hm.save(_VALUES[name], path)
    again = hm.load(path)
    assert_equal(again, _VALUES[name])
    assert str(again) == str(_VALUES[name])


def test_all_three_phases_were_there_to_be_saved() -> None:
    found = _VALUES["phases"]
    assert isinstance(found, hm.Phases)
    assert found.escape is not None
    assert found.concentration is not None
    assert found.terminal.expected is not None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("beta", None, "the field 'phases' is incomplete or wrong"),
        ("window", [1.0], "the field 'phases' is incomplete or wrong"),
        ("concentration", {"rate": 1.0}, "the field 'phases' is incomplete or wrong"),
        ("occupancy", "many", "the field 'phases' is incomplete or wrong"),
    ],
)
def test_a_damaged_field_is_named(tmp_path: Path, field: str, value: object, message: str) -> None:
    path = tmp_path / "found.nc"
    hm.save(_VALUES["phases"], path)
    with h5py.File(path, "a") as file:
        words = json.loads(file.attrs["phases"])
        words[field] = value
        file.attrs["phases"] = json.dumps(words)
    with pytest.raises(hm.FileError, match=message):
        hm.load(path)


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    path = tmp_path / "found.nc"
    hm.save(_VALUES["phases"], path)
    with h5py.File(path, "a") as file:
        del file["distances"]
    with pytest.raises(hm.FileError, match="the field 'distances' is missing"):
        hm.load(path)


@pytest.mark.parametrize("suffix", ["zip", "nc"])
def test_files_of_format_1_stay_readable(suffix: str) -> None:
    """Written once by the first version and never again; see files/README.md for how."""
    found = hm.load(Path(__file__).parent / "files" / f"phases_format_1.{suffix}")
    assert isinstance(found, hm.Phases)
    assert (found.method, found.beta, found.occupancy.tokens) == ("atoms", 10.0, 12)
    np.testing.assert_array_equal(found.times, [0.0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_array_equal(found.limit.B, _B)
    np.testing.assert_array_equal(np.abs(found.limit.positions), [[1.0, 0.0]] * 12)
    assert found.theory.wasserstein == 0.5
    assert found.distances.round(3).tolist() == [0.844, 0.744, 0.685, 0.724, 0.868]
