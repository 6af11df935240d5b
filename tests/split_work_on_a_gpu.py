"""What processes on a GPU are given to do: ``torchrun … -m split_work_on_a_gpu FOLDER BACKEND``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import hardmax as hm


def work(ranks: hm.Processes, device: torch.device) -> dict[str, np.ndarray]:
    """A limit in the plane, layers in eight dimensions, and a flow on the sphere, with tokens on a device."""

    def mine(tokens: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(ranks.share(tokens)).to(device)

    plane = mine(hm.make_tokens("gaussian", 20_000, 2, random_state=0))
    limit = hm.equilibrium(plane, hm.HardmaxLayer(0.5), processes=ranks)

    many = mine(hm.make_tokens("gaussian", 3_000, 8, random_state=0))
    layer = hm.HardmaxLayer(0.5, hm.make_matrix("random", 8, random_state=1))
    run = hm.simulate(many, layer, depth=6, keep="last", processes=ranks)

    flow = hm.SphereFlow(B=np.diag([2.0, 1.0, 0.5]), beta=8.0, few_tokens="ignore")
    flown = hm.simulate(mine(hm.fibonacci_sphere(301).points), flow, time=1.0, keep="last", processes=ranks)
    found = {
        "leaders": limit.leaders,
        "follows": limit.follows,
        "run_follows": run.leadership.follows,
        "positions": limit.positions,
        "run": run.final,
        "flown": flown.final,
    }
    return {name: torch.as_tensor(values).cpu().numpy() for name, values in found.items()}


def exchanged(device: torch.device) -> list[float]:
    """What the exchanges of a split run give, for tensors of a device; a process alone never asks for them."""
    own = torch.arange(3.0, dtype=torch.float64, device=device)
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own)
    names = torch.full((2,), 7, dtype=torch.int64, device=device)
    dist.broadcast(names, src=0)
    flags = torch.ones(2, dtype=torch.uint8, device=device)
    dist.all_reduce(flags)
    return [*torch.cat(parts).tolist(), *names.tolist(), *flags.tolist()]


if __name__ == "__main__":
    folder, backend = sys.argv[1:]
    if backend == "gloo":  # takes several processes on one GPU, where nccl wants one GPU each
        dist.init_process_group("gloo")
    with hm.processes() as processes:
        used = dist.get_backend()
        told = {str(device): exchanged(torch.device(device)) for device in ("cpu", processes.device)}
        found = work(processes, processes.device)
    np.savez(Path(folder) / f"{processes.rank}.npz", device=str(processes.device), used=used, **told, **found)
    if dist.is_initialized():
        dist.destroy_process_group()
