"""Training that is interrupted as it begins an epoch, as a key or a power cut would do it."""

from typing import Any

import pytest

from hardmax.text.training import loop


def interrupt_at(monkeypatch: pytest.MonkeyPatch, call: int) -> list[int]:
    """Make the epoch that is begun as the ``call``-th, over all trainings, fail; the list grows with every one."""
    usual, calls = loop.CpuTrainer.epoch, []

    def interrupted(*args: Any) -> dict[str, float]:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return usual(*args)

    monkeypatch.setattr(loop.CpuTrainer, "epoch", interrupted)
    return calls
