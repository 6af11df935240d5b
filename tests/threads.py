"""Processes played by threads: the same exchanges, without starting anything, so that many cases can be tried."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from hardmax.distributed import Processes


class _Table:
    def __init__(self, count: int) -> None:
        self.barrier = threading.Barrier(count, timeout=60)
        self.told: list[Any] = [None] * count


class ThreadProcesses(Processes):
    """One thread among several; what it sends is counted in bytes."""

    def __init__(self, rank: int, count: int, table: _Table) -> None:
        super().__init__(rank, count, torch.device("cpu"))
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "received", 0)

    def _all(self, own: Any) -> list[Any]:
        table = self._table  # type: ignore[attr-defined]
        table.told[self.rank] = own
        table.barrier.wait()
        told = list(table.told)
        table.barrier.wait()
        return told

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        whole = torch.cat([part.clone() for part in self._all(own)])
        object.__setattr__(self, "received", self.received + whole.numel() * whole.element_size())
        return whole

    def counts(self, own: int) -> list[int]:
        return self._all(own)

    def largest(self, value: float) -> float:
        return max(self._all(value))

    def add(self, tensor: torch.Tensor) -> None:
        total = torch.stack([part.clone() for part in self._all(tensor.clone())]).sum(dim=0)
        tensor.copy_(total)


def with_processes(count: int, work: Callable[[Processes], Any]) -> list[Any]:
    """What ``work`` gives back in each of so many threads; the first error is raised here."""
    table = _Table(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def one(rank: int) -> None:
        try:
            results[rank] = work(ThreadProcesses(rank, count, table))
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            errors.append(error)
            table.barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
