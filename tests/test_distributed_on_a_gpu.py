"""Processes whose tokens are on a GPU: the same answers as on the CPU. More than one GPU has not been tried."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from hardmax.distributed import ALONE
from split_work_on_a_gpu import work


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize(("count", "backend"), [(1, "nccl"), (2, "gloo")])
def test_processes_on_one_gpu_give_what_the_cpu_gives(count: int, backend: str, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count)]
    done = subprocess.run(
        [*command, "-m", "split_work_on_a_gpu", str(tmp_path), backend],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    whole = work(ALONE, torch.device("cpu"))
    for rank in range(count):
        with np.load(tmp_path / f"{rank}.npz") as found:
            assert str(found["device"]) == "cuda:0"
            assert backend in str(found["used"])
            for device in ("cpu", "cuda:0"):
                assert found[device].tolist() == [0.0, 1.0, 2.0] * count + [7.0, 7.0] + [float(count)] * 2
            for name in ("leaders", "follows", "run_follows"):
                np.testing.assert_array_equal(found[name], whole[name], err_msg=name)
            for name in ("positions", "run", "flown"):
                np.testing.assert_allclose(found[name], whole[name], rtol=0, atol=1e-12, err_msg=name)
