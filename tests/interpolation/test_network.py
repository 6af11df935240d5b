"""Methods of a network: PyTorch and ONNX, classification, summary, parallel certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch

from hardmax.errors import InputError
from hardmax.interpolation import classify_exactly, interpolate
from hardmax.interpolation.arithmetic.numbers import to_floats
from interpolation.families import make


@pytest.fixture(scope="module")
def net():
    inputs, outputs = make("chain", 2, d=3)
    return interpolate(inputs, outputs, construction="conditioned")


def _targets(net, j: int) -> np.ndarray:
    return to_floats(net.data.outputs[j], net.dimension)


def _hausdorff(a: np.ndarray, b: np.ndarray) -> float:
    distance = np.abs(a[:, None] - b[None]).max(-1)
    return float(max(distance.min(0).max(), distance.min(1).max()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_torch_lists_and_padded_batches_agree(net, dtype: torch.dtype) -> None:
    module = net.to_torch(dtype)
    sequences = [torch.from_numpy(to_floats(x, net.dimension)).to(dtype) for x in net.data.inputs]
    outputs = module(sequences)
    assert len({len(x) for x in sequences}) > 1
    longest = max(map(len, sequences))
    padded = torch.full((len(sequences), longest, net.dimension), 7.0, dtype=dtype)
    mask = torch.zeros(len(sequences), longest, dtype=torch.bool)
    for j, x in enumerate(sequences):
        padded[j, : len(x)], mask[j, : len(x)] = x, True
    batch = module(padded, mask)
    for j, y in enumerate(outputs):
        assert y.dtype == dtype
        assert torch.equal(batch[j][mask[j]], y)
        assert _hausdorff(y.detach().double().numpy(), _targets(net, j)) < (1e-10 if dtype == torch.float64 else 1e-3)


def test_torch_module_can_be_trained(net) -> None:
    module = net.to_torch().train()
    sequences = [torch.from_numpy(to_floats(x, net.dimension)) for x in net.data.inputs]
    loss = sum((y**2).sum() for y in module(sequences))
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters() if p.numel())
    evaluated = net.to_torch().eval()(sequences)
    for a, b in zip(module(sequences), evaluated, strict=True):
        assert torch.allclose(a, b, atol=1e-9)


def test_torch_refuses_other_shapes(net) -> None:
    with pytest.raises(InputError, match="must have shape"):
        net.to_torch()(torch.zeros(3, 2))
    with pytest.raises(InputError, match="float32 or float64"):
        net.to_torch(torch.float16)


@pytest.mark.parametrize(
    "options",
    [{}, {"construction": "leaders"}, {"attention": "softmax", "temperature": "1/3"}, {"construction": "paper"}],
)
def test_onnx_runs_like_torch(options: dict, tmp_path) -> None:
    inputs, outputs = make("grid", 1, d=2)
    net = interpolate(inputs, outputs, **options)
    path = net.to_onnx(tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    module = net.to_torch()
    for j, x in enumerate(net.data.inputs):
        tokens = to_floats(x, 2)
        padded = np.concatenate([tokens, np.full((2, 2), 3.0)])[None]
        mask = np.array([[True] * len(tokens) + [False] * 2])
        moved = session.run(None, {"tokens": padded, "mask": mask})[0][0, : len(tokens)]
        expected = module([torch.from_numpy(tokens)])[0].detach().numpy()
        assert np.allclose(moved, expected, atol=1e-9 if net.construction != "paper" else 1e-6)
        assert _hausdorff(moved, _targets(net, j)) < 1e-6


def test_classification() -> None:
    inputs, _ = make("windows", 0, d=3)
    labels = [("red", "green", "blue")[j % 3] for j in range(len(inputs))]
    net = classify_exactly(inputs, labels)
    assert net.classes == ("blue", "green", "red")
    assert net.certify().proved
    assert net.predict(inputs) == labels
    with pytest.raises(InputError, match="has no classes"):
        interpolate(inputs, [[[0, 0, 0]]] * len(inputs)).predict(inputs)
    with pytest.raises(InputError, match="tokens of 3 coordinates"):
        net.predict([[[0, 0]]])


def test_summary_says_what_matters(net) -> None:
    text = net.summary()
    for word in ("published", "necessary", "range/gap", "advice", "formula", "index"):
        assert word in text


def test_advice_follows_the_conditioning() -> None:
    inputs, outputs = make("tiny", 2, d=2)
    net = interpolate(inputs, outputs)
    assert "float64 cannot resolve" in replace(net, report=replace(net.report, conditioning=1e15)).summary()
    assert "conditioned" in replace(net, report=replace(net.report, conditioning=1e9)).summary()


def test_certify_in_parallel_names_the_same_sequences(net) -> None:
    outputs = list(net.data.outputs)
    outputs[3] = tuple((c + 1, *rest) for c, *rest in outputs[3])
    broken = replace(net, data=replace(net.data, outputs=tuple(outputs)))
    assert [f.sequence for f in broken.certify(workers=2).failures] == [3]
    assert [f.sequence for f in broken.certify().failures] == [3]


def test_certificate_as_words_and_as_data(net) -> None:
    certificate = net.certify()
    assert str(certificate).startswith("PROVED in exact rationals")
    record = certificate.to_dict()
    assert record["proved"] is True
    assert record["blocks"] == len(net.blocks)
    assert record["data_hash"] == net.data.digest()
    assert 0 < certificate.activation_margin < np.inf
