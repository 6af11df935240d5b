"""Layers streamed to disk equal the layers stored in memory, and an interrupted run leaves no file."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import hardmax as hm
from storage.runs import assert_equal

_POINTS = np.random.default_rng(3).normal(size=(30, 3))
_LAYERS = {
    "hardmax": hm.HardmaxLayer(0.3),
    "softmax": hm.SoftmaxLayer(0.3, beta=2.0),
}


@pytest.mark.parametrize("suffix", ["zarr", "zip"])
@pytest.mark.parametrize("every", [1, 4, 100])
@pytest.mark.parametrize("layer", _LAYERS)
def test_disk_equals_memory(tmp_path: Path, layer: str, every: int, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    kept = hm.simulate(_POINTS, _LAYERS[layer], depth=10, keep=hm.Every(every))
    run = hm.simulate(_POINTS, _LAYERS[layer], depth=10, keep=hm.ToDisk(path, every=every))
    assert_equal(hm.load(path), kept)
    np.testing.assert_array_equal(run.layers, [10])
    np.testing.assert_array_equal(run.final, kept.final)
    assert run.outcome == kept.outcome
    assert os.listdir(tmp_path) == [path.name]


def test_tensors_weights_and_precision_come_back(tmp_path: Path) -> None:
    points, weights = torch.tensor(_POINTS, dtype=torch.float32), torch.linspace(1, 2, 30)
    options = {"depth": 3, "weights": weights}
    kept = hm.simulate(points, _LAYERS["hardmax"], **options)
    run = hm.simulate(points, _LAYERS["hardmax"], keep=hm.ToDisk(tmp_path / "run.zarr"), **options)
    assert_equal(hm.load(tmp_path / "run.zarr"), kept)
    assert_equal(run.tokens, kept.tokens[-1:])


def test_one_rule_serves_again(tmp_path: Path) -> None:
    rule = hm.ToDisk(tmp_path / "run.zarr")
    for depth in (5, 2):
        hm.simulate(_POINTS, _LAYERS["hardmax"], depth=depth, keep=rule)
        np.testing.assert_array_equal(hm.load(tmp_path / "run.zarr").layers, np.arange(depth + 1))


def test_large_states_are_cut_into_pieces(tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(700_000, 2))
    layer = hm.FeedForwardLayer([[1.0, 0.0]], [0.0], [[0.1], [0.1]])
    hm.simulate(points, layer, depth=1, keep=hm.ToDisk(tmp_path / "run.zarr"))
    assert len(list((tmp_path / "run.zarr/tokens/c/0").iterdir())) == 2
    np.testing.assert_array_equal(hm.load(tmp_path / "run.zarr").tokens[0], points)


def test_a_run_that_diverges_is_kept(tmp_path: Path) -> None:
    growing = hm.HardmaxLayer(1.0, V=np.eye(3) * 1e200)
    run = hm.simulate(_POINTS, growing, depth=10, keep=hm.ToDisk(tmp_path / "run.zarr"))
    assert run.outcome.ending is hm.Ending.DIVERGED
    assert hm.load(tmp_path / "run.zarr").outcome == run.outcome


class _Interrupt:
    """Stands for a key press at layer 3."""

    def reason(self, moment: object) -> str | None:
        if moment.layer == 3:  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return None


@pytest.mark.parametrize("suffix", ["zarr", "zip"])
def test_interruption_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    hm.simulate(_POINTS, _LAYERS["hardmax"], depth=2, keep=hm.ToDisk(path))
    with pytest.raises(KeyboardInterrupt):
        hm.simulate(_POINTS, _LAYERS["hardmax"], depth=9, keep=hm.ToDisk(path), stop=_Interrupt())
    np.testing.assert_array_equal(hm.load(path).layers, [0, 1, 2])
    assert os.listdir(tmp_path) == [path.name]


def test_names_and_steps_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(hm.FileError, match=r"run\.nc: layers can only be streamed to zarr: .*\.zarr or \.zip"):
        hm.ToDisk(tmp_path / "run.nc")
    with pytest.raises(hm.InputError, match=r"every must be a whole number, at least 1, got 0"):
        hm.ToDisk(tmp_path / "run.zarr", every=0)
    with pytest.raises(hm.FileError, match=r"missing does not exist: create it"):
        hm.simulate(_POINTS, _LAYERS["hardmax"], depth=2, keep=hm.ToDisk(tmp_path / "missing/run.zarr"))
    assert os.listdir(tmp_path) == []


def test_a_flow_keeps_its_times(tmp_path):
    points = hm.sphere_sample(40, 3, random_state=0).points
    flow = hm.SphereFlow(beta=2.0)
    whole = hm.simulate(points, flow, time=1.0, step=0.1)
    last = hm.simulate(points, flow, time=1.0, step=0.1, keep=hm.ToDisk(tmp_path / "flow.zarr", every=4))
    loaded = hm.load(tmp_path / "flow.zarr")
    assert loaded.layers.tolist() == [0, 4, 8, 10]
    np.testing.assert_allclose(loaded.times, [0.0, 0.4, 0.8, 1.0])
    np.testing.assert_array_equal(loaded.tokens, whole.tokens[[0, 4, 8, 10]])
    assert last.times == pytest.approx([1.0])
