"""The code for devices, run on the CPU, against that for sparse rows; and on a GPU if there is one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hardmax.errors import InputError
from hardmax.text import LeaderClassifier
from hardmax.text.model import device_forward, prediction
from hardmax.text.model.device_batches import DeviceDocuments, FlatBatch, step_batches
from hardmax.text.model.device_forward import attended_words, by_kernel
from hardmax.text.model.hardmax_forward import attention_path
from hardmax.text.model.network import Network
from hardmax.text.model.prediction import cpu_logits, device_logits
from hardmax.text.training import device, fitting
from hardmax.text.training.adam import Adam, RowAdam
from hardmax.text.training.capturable_adam import CapturableAdam, CapturableRowAdam, Schedule
from hardmax.text.words.counts import batch
from made_up_texts import opinions, topics


def _long(texts: list[str], labels: Any) -> list[str]:
    """Four texts of the same label in one, so that there is something to drop."""
    rng = np.random.default_rng(0)
    return [
        " ".join([text, *rng.choice(np.array(texts)[np.asarray(labels) == label], 3)])
        for text, label in zip(texts, labels, strict=True)
    ]


TEXTS, LABELS = opinions(200)
TEXTS = _long(TEXTS, LABELS)
THREE, NAMES = topics(150)
THREE = _long(THREE, NAMES)


@pytest.fixture
def cpu_as_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """``device="cpu"`` runs the code for other devices."""
    monkeypatch.setattr(prediction, "is_accelerator", lambda device: device is not None)


def _table(rng: np.random.Generator, documents: int, words: int) -> sparse.csr_matrix:
    """Documents of very different lengths, some without a word."""
    sizes = np.minimum(rng.geometric(0.15, size=documents) - 1, words)
    columns = np.concatenate([rng.choice(words, size, replace=False) for size in sizes]).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return sparse.csr_matrix((rng.uniform(0.5, 3, len(columns)), columns, starts), shape=(documents, words))


def _points(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    return rng.integers(-2, 3, size=(n, d)).astype(float) if kind == "lattice" else rng.normal(size=(n, d))


def _flat_batch(table: sparse.csr_matrix, spare: int = 0, place: str = "cpu") -> FlatBatch:
    """All documents of a table, and some places without a word behind them."""
    starts = torch.from_numpy(np.append(table.indptr, table.indptr[-1])).int().to(place)
    owner = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    document = torch.from_numpy(np.append(owner, np.full(spare, table.shape[0]))).to(place)
    columns = torch.from_numpy(np.append(table.indices, [0] * spare)).long().to(place)
    weights = torch.from_numpy(np.append(table.data, [0.0] * spare)).to(place)
    return FlatBatch(columns, weights, document, starts[document], starts[document + 1], table.shape[0])


def _by_loops(points: np.ndarray, starts: np.ndarray, depth: int) -> list[list[int]]:
    """Attended word of each word at every layer by loops: the first of the best; a leader is never left."""
    now, choices = points.copy(), []
    for _ in range(depth):
        choice = []
        for begin, end in itertools.pairwise(starts):
            for word in range(begin, end):
                before = choices[-1][word] if choices else -1
                if choices and choices[-1][before] == before:
                    choice.append(before)
                    continue
                query = now[word] if points.shape[1] > 1 else np.array([1.0 if now[word] >= 0 else -1.0])
                scores = [float(query @ now[other]) for other in range(begin, end)]
                choice.append(int(begin + scores.index(max(scores))))
        choices.append(choice)
        now = (now + now[choice]) / 2
    return choices


@pytest.mark.parametrize("way", ["pairs", "kernel"])
@pytest.mark.parametrize("kind", ["gaussian", "lattice"])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_attended_words_agree_with_loops_at_every_layer(
    d: int, kind: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "cpu"
    if way == "kernel":  # by Triton's interpreter where there is no GPU
        pytest.importorskip("triton")
        place = "cuda" if torch.cuda.is_available() else "cpu"
        monkeypatch.setattr(device_forward, "usable", lambda _: True)
    else:
        monkeypatch.setattr(device_forward, "_PAIRS_AT_ONCE", 200)
        monkeypatch.setattr(device_forward, "_LARGE", 20)
    rng = np.random.default_rng(d)
    table = _table(rng, 12, 60)
    points = _points(rng, 60, d, kind)[table.indices]
    choices = _by_loops(points, table.indptr, 8)
    if kind == "gaussian":
        path = attention_path(points, table.indptr.astype(np.int64), alpha=1.0, depth=8)
        for found, expected in zip(path.choices, choices, strict=False):
            np.testing.assert_array_equal(found, expected)
    now, documents = (
        torch.from_numpy(np.vstack([points, points[:3]])).to(place),
        _flat_batch(table, spare=3, place=place),
    )
    before = None
    for expected in choices:
        before = attended_words(now, documents, before)
        np.testing.assert_array_equal(before[: len(points)].cpu().numpy(), expected)
        assert before[len(points) :].tolist() == [len(points), len(points) + 1, len(points) + 2]
        now = (now + now[before]) / 2


def test_the_kernel_accepts_no_words() -> None:
    pytest.importorskip("triton")
    none = torch.empty(0, 2)
    empty = _flat_batch(sparse.csr_matrix((2, 4)))
    assert len(by_kernel(none, none, empty)) == 0


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 3]), st.booleans(), st.booleans(), st.sampled_from([1, 3]))
def test_logits_and_leaders_agree_with_sparse_rows(seed: int, d: int, norms: bool, matrix: bool, outputs: int) -> None:
    rng = np.random.default_rng(seed)
    table = _table(rng, 15, 40)
    # Ties between points of a lattice, with steps of a half, so that nothing is rounded. In the plane sparse rows are
    # searched along a turned axis, where a tie may go to either.
    ties = seed % 2 == 1 and d != 2
    network = Network(
        torch.from_numpy(_points(rng, 40, d, "lattice" if ties else "gaussian")),
        torch.from_numpy(rng.normal(size=(outputs, d))),
        torch.from_numpy(rng.normal(size=outputs)),
        torch.tensor(0.0 if ties else rng.normal()),
        least_alpha=0.0 if ties else 0.1,
        depth=int(rng.integers(1, 7)),
        norm_masses=norms,
        resting_mass=0.5,
        raw_factor=torch.from_numpy(0.5 * rng.normal(size=(d, d))) if matrix and not ties else None,
    ).to(torch.float64)
    found, leaders = device_logits(network, table)
    expected, their_leaders = cpu_logits(network, table)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_array_equal(leaders, their_leaders)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.booleans())
def test_steps_hold_the_documents_of_their_batches(seed: int, dropping: bool) -> None:
    rng = np.random.default_rng(seed)
    table = _table(rng, 30, 50)
    labels, weights = rng.integers(3, size=30), rng.uniform(size=30)
    rows = DeviceDocuments.of(table, labels, weights, torch.device("cpu"), torch.float64)
    order, rates = rng.permutation(30)[:22], rng.uniform(0, 1, size=30).astype(np.float32)
    draws = rng.random(int(np.diff(table.indptr)[order].sum()), dtype=np.float32) if dropping else None
    found = step_batches(rows, order, 5, draws, torch.from_numpy(rates), steps=8, multiple=16)
    assert found.columns.shape[1] % 16 == 0
    assert found.documents.tolist() == [5, 5, 5, 5, 2, 0, 0, 0]
    keep = None if draws is None else draws >= np.repeat(rates[order], np.diff(table.indptr)[order])
    whole = batch(table[order], keep=keep)
    for step in range(5):
        some = order[5 * step : 5 * step + 5]
        expected = whole.take(slice(5 * step, 5 * step + len(some)))
        documents, words = found.at(torch.tensor([step])), len(expected.columns)
        np.testing.assert_array_equal(documents.columns[:words], expected.columns)
        np.testing.assert_array_equal(documents.term_weights[:words], expected.term_weights)
        np.testing.assert_array_equal(documents.document[:words], expected.document)
        np.testing.assert_array_equal(documents.begin[:words], expected.starts[expected.document])
        np.testing.assert_array_equal(documents.end[:words], expected.starts[expected.document + 1])
        assert not documents.term_weights[words:].any()
        assert set(documents.document[words:].tolist()) <= {5}
        assert torch.equal(documents.begin[words:], documents.end[words:])
        if words:
            assert set(documents.columns[words:].tolist()) <= {int(expected.columns[-1])}
        np.testing.assert_array_equal(found.labels[step, : len(some)], labels[some])
        np.testing.assert_array_equal(found.weights[step, : len(some)], weights[some])
        assert not found.weights[step, len(some) :].any()


def test_capturable_adam_agrees_with_adam() -> None:
    rng = np.random.default_rng(0)
    start, table = torch.from_numpy(rng.normal(size=(4, 2))), torch.from_numpy(rng.normal(size=(6, 2)))
    ours, theirs = {"a": start.clone()}, {"a": start.clone()}
    rows, their_rows = table.clone(), table.clone()
    capturable, plain = (
        CapturableAdam(ours, moments := Adam.zero_moments(ours)),
        Adam(theirs, Adam.zero_moments(theirs), 2),
    )
    capturable_rows = CapturableRowAdam(rows, RowAdam.zero_moments(rows))
    plain_rows = RowAdam(their_rows, RowAdam.zero_moments(their_rows), 2)
    rates = [0.1, 0.05, 0.2]
    schedule = Schedule.of(rates, 2, start)
    for k, rate in enumerate(rates):
        gradient, some = torch.from_numpy(rng.normal(size=(4, 2))), torch.tensor([k, 3, k, 5])
        theirs["a"].grad = gradient.clone()
        plain.step(rate)
        plain_rows.step(rate, some, gradient)
        numbers = schedule.at(torch.tensor([k]))
        capturable_rows.step(some, gradient, numbers)
        capturable.step({"a": gradient.clone()}, numbers)
        torch.testing.assert_close(ours["a"], theirs["a"], rtol=1e-13, atol=0)
        torch.testing.assert_close(rows, their_rows, rtol=1e-13, atol=0)
    assert moments["square.a"].any()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learn_alpha": True, "batch_size": 37},
        {"learn_matrix": True, "cone": np.inf},
        {"dim": 1},
        {"dim": 4, "masses": "count", "dropout": 0.0},
        {"recipe": "paper", "temperature": 0.0},
        {"recipe": "accurate"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("cpu_as_a_device")
@pytest.mark.parametrize("texts", ["opinions", "topics"])
def test_training_agrees_with_sparse_rows(texts: str, options: dict[str, Any]) -> None:
    documents, labels = (TEXTS[:60], LABELS[:60]) if texts == "opinions" else (THREE[:60], NAMES[:60])
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(labels))
    # Two batches an epoch, the second smaller.
    options = {"epochs": 3, "batch_size": 32, "random_state": 0, "validation_fraction": 0.2, **options}
    on_rows = LeaderClassifier(**options).fit(documents, labels, weights)
    on_device = LeaderClassifier(**options, device="cpu").fit(documents, labels, weights)
    for name, part in on_rows.network_.parameters().items():
        torch.testing.assert_close(on_device.network_.parameters()[name], part, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(on_device.history_, on_rows.history_, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-9)
    np.testing.assert_allclose(on_device.predict_proba(documents), on_rows.predict_proba(documents), atol=1e-9)
    np.testing.assert_array_equal(on_device.count_leaders(documents), on_rows.count_leaders(documents))


@pytest.mark.usefixtures("cpu_as_a_device")
def test_results_do_not_depend_on_the_batches_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"epochs": 2, "random_state": 0, "batch_size": 16, "device": "cpu"}
    whole = LeaderClassifier(**settings).fit(TEXTS, LABELS)
    monkeypatch.setattr(device, "_WORDS_AT_ONCE", 3000)
    monkeypatch.setattr(prediction, "_WORDS_AT_ONCE", 500)
    parts = LeaderClassifier(**settings).fit(TEXTS, LABELS)
    np.testing.assert_allclose(parts.decision_function(TEXTS), whole.decision_function(TEXTS), atol=1e-9)


@pytest.mark.usefixtures("cpu_as_a_device")
def test_single_precision_differs_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_SMALL", 0)
    settings: dict[str, Any] = {"epochs": 2, "random_state": 0}
    on_rows = LeaderClassifier(**settings).fit(TEXTS, LABELS)
    on_device = LeaderClassifier(**settings, device="cpu").fit(TEXTS, LABELS)
    np.testing.assert_allclose(on_device.predict_proba(TEXTS), on_rows.predict_proba(TEXTS), atol=1e-3)


@pytest.mark.usefixtures("cpu_as_a_device")
def test_training_resumes_on_cpu_or_gpu(tmp_path: Path) -> None:
    file = tmp_path / "training.safetensors"
    settings: dict[str, Any] = {"epochs": 3, "random_state": 0, "checkpoint": file}

    def stop_after_one(stage: str, done: float, total: float | None) -> None:
        if total is not None and done > total / 3 + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LeaderClassifier(**settings, batch_size=16, progress=stop_after_one).fit(TEXTS, LABELS)
    resumed = LeaderClassifier(**settings, batch_size=16, device="cpu").fit(TEXTS, LABELS)
    whole = LeaderClassifier(epochs=3, random_state=0, batch_size=16).fit(TEXTS, LABELS)
    assert resumed.n_iter_ == 3
    np.testing.assert_allclose(resumed.decision_function(TEXTS), whole.decision_function(TEXTS), atol=1e-9)


def test_a_missing_device_is_refused() -> None:
    with pytest.raises(InputError, match="device cannot be used here.*got 'abacus'.*leave it out"):
        LeaderClassifier(device="abacus").fit(TEXTS, LABELS)
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="device cannot be used here.*got 'cuda'.*leave it out"):
            LeaderClassifier(device="cuda").fit(TEXTS, LABELS)
        fitted = LeaderClassifier(epochs=1, random_state=0).fit(TEXTS, LABELS)
        with pytest.raises(InputError, match="device"):
            fitted.set_params(device="cuda").predict(TEXTS)


@pytest.mark.usefixtures("cpu_as_a_device")
def test_a_device_short_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(DeviceDocuments, "of", full)
    with pytest.raises(InputError, match="device has too little memory.*GB.*got 'cpu'.*leave it out"):
        LeaderClassifier(device="cpu").fit(TEXTS, LABELS)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("texts", ["opinions", "topics"])
@pytest.mark.parametrize("options", [{}, {"learn_matrix": True}, {"recipe": "paper", "temperature": 0.0}], ids=str)
def test_on_a_gpu(texts: str, options: dict[str, Any]) -> None:
    documents, labels = (TEXTS, LABELS) if texts == "opinions" else (THREE, NAMES)
    # Enough steps that most of them are replays of a recording.
    options = {"epochs": 6, "random_state": 0, "batch_size": 16, **options}
    on_rows = LeaderClassifier(**options).fit(documents, labels)
    on_gpu = LeaderClassifier(**options, device="cuda").fit(documents, labels)
    np.testing.assert_allclose(on_gpu.predict_proba(documents), on_rows.predict_proba(documents), atol=1e-6)
    assert on_gpu.history_[-1] == pytest.approx(on_rows.history_[-1], abs=1e-6)
