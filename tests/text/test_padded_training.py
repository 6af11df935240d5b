"""Padded batches, against plain loops over single tokens and against sparse rows."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from hardmax.errors import FileError, InputError
from hardmax.text.classifier import LeaderClassifier
from hardmax.text.model.device_batches import DeviceDocuments, PaddedBatch
from hardmax.text.model.network import Network
from hardmax.text.recipes import RECIPES
from hardmax.text.training.checkpoints import TrainingState
from hardmax.text.training.padded import _with_dropout, evaluate_padded, padded_logits, softmax_layers, train_padded
from hardmax.text.words.counts import batch
from made_up_texts import opinions

TEXTS, LABELS = opinions(120, seed=3)
LONG = [" ".join([text] * 10) for text in TEXTS]


def token_by_token(tokens: np.ndarray, alpha: float, depth: int, temperature: float) -> np.ndarray:
    """The published layer, written out for every token of one document; repeated words are repeated tokens."""
    for _ in range(depth):
        moved = []
        for token in tokens:
            scores = tokens @ token
            if temperature > 0:
                weights = np.exp((scores - scores.max()) / temperature)
            else:
                weights = np.zeros(len(tokens))
                weights[np.flatnonzero(scores == scores.max())[0]] = 1.0
            moved.append((token + alpha * (weights @ tokens) / weights.sum()) / (1 + alpha))
        tokens = np.array(moved)
    return tokens


def documents(rng: np.random.Generator, count: int, words: int) -> sparse.csr_matrix:
    table = sparse.random(count, words, density=0.4, random_state=7, format="csr")
    table.data = rng.integers(1, 4, size=table.nnz).astype(float)
    return table


@pytest.mark.parametrize("temperature", [0.0, 1e-3, 0.5])
def test_words_with_counts_are_repeated_tokens(temperature: float) -> None:
    rng = np.random.default_rng(0)
    points, counts = rng.normal(size=(5, 3)), np.array([1, 3, 2, 1, 4])
    expected = token_by_token(np.repeat(points, counts, axis=0), 0.7, 4, temperature)
    # A place without a word beside them must change nothing.
    words = torch.from_numpy(np.vstack([points, 100 * np.ones((1, 3))]))[None]
    laid = torch.tensor([[*counts.tolist(), 0]], dtype=torch.float64)
    found = softmax_layers(words, laid, torch.tensor(0.7, dtype=torch.float64), depth=4, temperature=temperature)[0, :5]
    np.testing.assert_allclose(np.repeat(found.numpy(), counts, axis=0), expected, atol=1e-12)


def test_a_padded_batch_holds_the_rows_asked_for() -> None:
    table = documents(np.random.default_rng(1), 9, 12)
    table = sparse.vstack([table, sparse.csr_matrix((1, 12))], format="csr")  # one document without a word
    rows = np.array([4, 9, 0])
    laid = _rows(table, np.zeros(10, dtype=int)).padded_to_longest(rows)
    assert laid.columns.shape[1] == np.diff(table.indptr)[rows].max()
    for k, row in enumerate(rows):
        again = np.zeros(12)
        np.add.at(again, laid.columns[k].numpy(), laid.term_weights[k].numpy())
        np.testing.assert_array_equal(again, table[row].toarray()[0])


@pytest.mark.parametrize(("norm_masses", "resting"), [(False, 0.0), (True, 2.0)])
def test_padded_and_sparse_hardmax_agree(norm_masses: bool, resting: float) -> None:
    rng = np.random.default_rng(2)
    table = documents(rng, 20, 30)
    network = Network(
        torch.from_numpy(rng.normal(size=(30, 2))),
        torch.from_numpy(rng.normal(size=(1, 2))),
        torch.zeros(1, dtype=torch.float64),
        torch.tensor(0.0, dtype=torch.float64),
        least_alpha=0.0,
        depth=8,
        norm_masses=norm_masses,
        resting_mass=resting,
    )
    laid = _rows(table, np.zeros(20, dtype=int)).padded_to_longest(np.arange(20))
    dense = padded_logits(network, PaddedBatch(laid.columns, laid.term_weights.double()), 0.0)
    np.testing.assert_allclose(dense.numpy(), network.forward(batch(table))[0].numpy(), atol=1e-12)


def test_softmax_at_a_low_temperature_is_nearly_hardmax() -> None:
    rng = np.random.default_rng(3)
    words, counts = torch.from_numpy(rng.normal(size=(4, 10, 2))), torch.ones(4, 10, dtype=torch.float64)
    alpha = torch.tensor(1.0, dtype=torch.float64)
    hard = softmax_layers(words, counts, alpha, depth=3, temperature=0.0)
    gaps = [
        float((softmax_layers(words, counts, alpha, depth=3, temperature=t) - hard).abs().mean())
        for t in (1e-1, 1e-2, 1e-3)
    ]
    assert gaps[2] < gaps[1] < gaps[0]
    assert gaps[2] < 0.01


def _rows(table: sparse.csr_matrix, labels: np.ndarray) -> DeviceDocuments:
    return DeviceDocuments.of(table, labels, np.ones(len(labels)), torch.device("cpu"), torch.float32)


def test_training_resumes_exactly() -> None:
    rng = np.random.default_rng(4)
    rows = _rows(documents(rng, 100, 30), rng.integers(2, size=100))
    start = Network(
        embedding=torch.from_numpy(rng.normal(size=(30, 2))).float(),
        decoder=torch.ones(1, 2),
        bias=torch.zeros(1),
        raw_alpha=torch.tensor(0.0),
        least_alpha=RECIPES["paper"].least_alpha,
        depth=RECIPES["paper"].depth,
        norm_masses=False,
    )
    saved: dict[int, tuple[dict[str, torch.Tensor], TrainingState]] = {}

    def run(epochs: int, resume: int | None) -> Network:
        network = start.to(torch.float32)

        def take_up(tensors: dict[str, torch.Tensor]) -> TrainingState:
            if resume is None:
                return TrainingState()
            for name, part in saved[resume][0].items():
                tensors[name].copy_(part)
            return saved[resume][1]

        def save(tensors: dict[str, torch.Tensor], state: TrainingState) -> None:
            copied = TrainingState(state.epoch, dict(state.best), state.best_score, state.waited, list(state.history))
            saved[state.epoch] = ({name: part.clone() for name, part in tensors.items()}, copied)

        train_padded(network, rows, rows, RECIPES["paper"], epochs=epochs, seed=5, resume=take_up, save=save)
        return network

    whole = run(4, None)
    again = run(4, 2)
    for name, part in whole.parameters().items():
        torch.testing.assert_close(part, again.parameters()[name], rtol=0, atol=0)
    assert evaluate_padded(whole, rows, 1e-3)[1] > 0.5


def test_dropout_spares_short_documents() -> None:
    counts = torch.ones(2, 400)
    counts[1, 20:] = 0
    whole = PaddedBatch(torch.zeros(2, 400, dtype=torch.long), counts)
    thinned = _with_dropout(whole, 0.5, torch.Generator().manual_seed(0))
    assert 150 < int(thinned.term_weights[0].sum()) < 250
    assert int(thinned.term_weights[1].sum()) == 20


def test_epochs_are_evaluated_on_given_documents() -> None:
    model = LeaderClassifier(recipe="paper", epochs=3, random_state=0)
    model.fit(LONG[:80], LABELS[:80], validation=(LONG[80:], LABELS[80:]))
    last = model.history_[-1]
    assert {"held_out_loss", "held_out_accuracy", "held_out_hardmax_accuracy", "alpha"} <= last.keys()
    best = max(record["held_out_hardmax_accuracy"] for record in model.history_)
    assert model.score(LONG[80:], LABELS[80:]) == pytest.approx(best)
    sparse_rows = LeaderClassifier(epochs=2, random_state=0).fit(TEXTS, LABELS, validation=(TEXTS, LABELS))
    assert sparse_rows.history_[-1]["held_out_accuracy"] > 0.5
    with pytest.raises(InputError, match="validation"):
        model.fit(TEXTS, LABELS, validation=(TEXTS[:3], LABELS[:2]))
    with pytest.raises(InputError, match="validation"):
        model.fit(TEXTS, LABELS, validation=(TEXTS[:2], [0, 7]))


def test_a_chosen_device_and_a_missing_one() -> None:
    same = {"recipe": "paper", "temperature": 0.0, "epochs": 4, "random_state": 0}
    on_device = LeaderClassifier(**same, device="cpu").fit(TEXTS, LABELS)
    on_rows = LeaderClassifier(**same).fit(TEXTS, LABELS)
    # The same steps in another order of additions.
    np.testing.assert_allclose(on_device.network_.embedding, on_rows.network_.embedding, atol=1e-5)
    default = LeaderClassifier(random_state=0, epochs=4, device="cpu").fit(TEXTS, LABELS)
    assert default.score(TEXTS, LABELS) > 0.9
    along = default.network_.embedding @ default.network_.decoder[0] / default.network_.decoder[0].norm()
    lengths = default.network_.embedding.norm(dim=1)
    assert bool((along.abs() >= lengths / np.sqrt(1 + default.recipe_.cone**2) - 1e-5).all())
    with pytest.raises(InputError, match="device"):
        LeaderClassifier(device="abacus").fit(TEXTS, LABELS)


def test_a_checkpoint_of_the_published_training(tmp_path: Path) -> None:
    file = tmp_path / "training.safetensors"
    first = LeaderClassifier(recipe="paper", epochs=2, random_state=0, checkpoint=file).fit(LONG, LABELS)
    again = LeaderClassifier(recipe="paper", epochs=2, random_state=0, checkpoint=file).fit(LONG, LABELS)
    assert again.history_ == first.history_
    torch.testing.assert_close(again.network_.embedding, first.network_.embedding, rtol=0, atol=0)
    with pytest.raises(FileError, match="other documents, labels or settings"):
        LeaderClassifier(recipe="paper", epochs=3, random_state=0, checkpoint=file).fit(LONG, LABELS)


def test_the_published_words() -> None:
    model = LeaderClassifier(recipe="paper", epochs=1, random_state=0).fit(
        ["The film wasn't GOOD, not at all"] * 4 + ["Wonderful, it's a joy"] * 4, [0] * 4 + [1] * 4
    )
    assert model.words() == ["The", "film", "GOOD", "Wonderful", "joy", "‹padding›"]
    own = LeaderClassifier(recipe="paper", epochs=1, lowercase=True, stop_words=["film"], random_state=0).fit(
        ["The film wasn't GOOD"] * 2 + ["a joy"] * 2, [0, 0, 1, 1]
    )
    assert own.words() == ["the", "wasn", "t", "good", "a", "joy", "‹padding›"]


def test_the_published_training_as_a_command(tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv.xz"
    with lzma.open(data, "wt", encoding="utf-8") as file:
        file.write("text,label\n" + "".join(f'"{t}",{y}\n' for t, y in zip(LONG, LABELS, strict=True)))
    command = [sys.executable, "-m", "benchmarks._published_sentiment", "--data", str(data), "--output", str(tmp_path)]
    subprocess.run([*command, "--dims", "2", "--epochs", "2"], check=True, capture_output=True)
    found = json.loads((tmp_path / "d2-seed0-T0.001-alpha1.json").read_text())
    assert [record["epoch"] for record in found["history"]] == [1, 2]
    assert found["best"] == max(record["held_out_accuracy"] for record in found["history"])
    assert found["history"][0]["hardmax_loss"] == pytest.approx(found["history"][0]["loss"], abs=0.1)
