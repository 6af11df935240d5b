"""Mean of several trainings from one start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rich.progress
import torch

from hardmax.errors import InputError
from hardmax.text import LeaderClassifier
from hardmax.text.model.network import Network
from hardmax.text.recipes import Recipe
from hardmax.text.training import network_training
from interrupted_training import interrupt_at
from made_up_texts import opinions

TEXTS, LABELS = opinions(120)
TEXTS = [" ".join([text] * 4) for text in TEXTS]
ONE = Recipe(epochs=3, batch_size=16, learn_alpha=True)
THREE = replace(ONE, averaged=3)


def test_parameters_are_the_mean_of_single_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, starts, ends, seeds = network_training.train_network, [], [], []

    def watched(network: Network, *args: Any, **options: Any) -> Any:
        starts.append({name: part.clone() for name, part in network.parameters().items()})
        state = usual(network, *args, **options)
        ends.append({name: part.clone() for name, part in network.parameters().items()})
        seeds.append(options["seed"])
        return state

    monkeypatch.setattr(network_training, "train_network", watched)
    fitted = LeaderClassifier(recipe=THREE, random_state=0, validation_fraction=0).fit(TEXTS, LABELS)
    single = LeaderClassifier(recipe=ONE, random_state=0, validation_fraction=0).fit(TEXTS, LABELS)
    assert len(set(seeds[:3])) == 3
    assert seeds[0] == seeds[3] == fitted.seed_
    for name, part in fitted.network_.parameters().items():
        for start in starts:
            assert torch.equal(start[name], starts[0][name])
        torch.testing.assert_close(part, sum(end[name] for end in ends[:3]) / 3)
        torch.testing.assert_close(single.network_.parameters()[name], ends[0][name])
    assert not torch.equal(ends[0]["embedding"], ends[1]["embedding"])
    assert [record["run"] for record in fitted.history_] == [1] * 3 + [2] * 3 + [3] * 3
    assert fitted.n_iter_ == 9
    assert "run" not in single.history_[0]


def test_progress_covers_all_trainings() -> None:
    told: list[tuple[float, float | None]] = []

    def tell(stage: str, done: float, total: float | None) -> None:
        if stage.startswith("loss"):
            told.append((done, total))

    LeaderClassifier(recipe=THREE, random_state=0, progress=tell).fit(TEXTS, LABELS)
    done = [part for part, _ in told]
    assert done == sorted(done)
    assert {total for _, total in told} == {done[-1]}
    assert done[-1] == 3 * 3 * 8


def test_all_trainings_share_one_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[Any] = []
    seen: list[float] = []

    class Watched(rich.progress.Progress):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            bars.append(self)

        def update(self, task_id: Any, **options: Any) -> None:
            super().update(task_id, **options)
            seen.append(self.tasks[0].percentage)

    monkeypatch.setattr(rich.progress, "Progress", Watched)
    LeaderClassifier(recipe=THREE, random_state=0, progress=True).fit(TEXTS, LABELS)
    assert len(bars) == 1
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == 100
    LeaderClassifier(recipe=ONE, random_state=0, progress=True).fit(TEXTS, LABELS)
    assert len(bars) == 2


@pytest.mark.parametrize("before", [1, 4, 8])
def test_an_interrupted_training_resumes(before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LeaderClassifier(recipe=THREE, random_state=0, validation_fraction=0).fit(TEXTS, LABELS)
    settings: dict[str, Any] = {"recipe": THREE, "random_state": 0, "validation_fraction": 0}
    settings["checkpoint"] = tmp_path / "training.safetensors"
    calls = interrupt_at(monkeypatch, before + 1)
    with pytest.raises(KeyboardInterrupt):
        LeaderClassifier(**settings).fit(TEXTS, LABELS)
    resumed = LeaderClassifier(**settings).fit(TEXTS, LABELS)
    assert len(calls) == 9 + 1
    np.testing.assert_array_equal(resumed.decision_function(TEXTS), whole.decision_function(TEXTS))
    assert resumed.history_ == whole.history_
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "training-2.safetensors",
        "training-3.safetensors",
        "training.safetensors",
    ]


def test_zero_trainings_are_refused() -> None:
    with pytest.raises(InputError, match="averaged must be a positive whole number"):
        Recipe(averaged=0)
