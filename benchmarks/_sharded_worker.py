"""One of several processes of a timed run: ``torchrun … -m benchmarks._sharded_worker CASE n d repeats``."""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable

import numpy as np
import torch

import hardmax as hm
from hardmax.distributed import Processes
from hardmax.dynamics.distributed import SplitProcess, start_split


class Counting(Processes):
    """Processes that note how many bytes each was sent."""

    received = 0

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        whole = super().gather(own)
        if self.count > 1 and own.dtype != torch.bool:  # which is gathered as bytes, and counted then
            Counting.received += (len(whole) - len(own)) * whole[:1].numel() * whole.element_size()
        return whole


def work(case: str, n: int, d: int) -> Callable[[Processes], np.ndarray]:
    """The work of a case; it gives back numbers that must be the same for any number of processes."""
    tokens = np.random.default_rng(0).normal(size=(n, d))
    if case == "equilibrium":
        return lambda ranks: np.asarray(hm.equilibrium(ranks.share(tokens), processes=ranks).follows)
    if case == "softmax layer":
        layer = hm.SoftmaxLayer(beta=1.0)
        return lambda ranks: hm.simulate(ranks.share(tokens), layer, depth=1, keep="last", processes=ranks).final.round(
            9
        )
    sphere = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    flow = hm.SphereFlow(B=np.diag(np.linspace(2, 1, d)) + 0.1 * np.eye(d, k=1), beta=4.0, few_tokens="ignore")
    return lambda ranks: hm.simulate(
        ranks.share(sphere), flow, time=0.1, step=0.05, integrator="heun", keep="last", processes=ranks
    ).final.round(9)


def replicated_share(ranks: Processes, n: int, d: int) -> float | None:
    """Share of the tokens that are replicated on every process; None where all are."""
    own = torch.from_numpy(ranks.share(np.random.default_rng(0).normal(size=(n, d))))
    started = start_split(ranks, own, torch.ones(len(own), dtype=torch.float64), hm.HardmaxLayer(0.5))
    return len(started.names) / n if isinstance(started, SplitProcess) else None


def main() -> None:
    """Time the case and print what was found, once."""
    case, n, d, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    with hm.processes() as joined:
        ranks = Counting(joined.rank, joined.count, joined.device)
        work(case, 2000, d)(ranks)
        task = work(case, n, d)
        least, busy, answer = float("inf"), float("inf"), np.zeros(0)
        for _ in range(repeats):
            ranks.counts(0)  # start together
            Counting.received = 0
            began, began_busy = time.perf_counter(), time.process_time()
            answer = task(ranks)
            least = min(least, ranks.largest(time.perf_counter() - began))
            busy = min(busy, ranks.largest(time.process_time() - began_busy))
        received = Counting.received
        share = replicated_share(ranks, n, d) if case == "equilibrium" and ranks.count > 1 and d in (2, 3) else None
    if joined.first:
        found = {"seconds": least, "busy": busy, "received": received, "court": share}
        print(json.dumps({**found, "answer": zlib.crc32(np.ascontiguousarray(answer).tobytes())}))


if __name__ == "__main__":
    main()
