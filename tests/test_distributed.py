"""Real processes: the same answers in one, two and four; a death, a missing process or a mismatch ends all of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import hardmax as hm
from hardmax.distributed import launched
from made_up_texts import opinions
from split_work import work
from threads import with_processes

_LOOP = """
import sys
import numpy as np
import hardmax as hm
import hardmax.distributed

hardmax.distributed._JOIN_SECONDS = float(sys.argv[1])
try:
    with hm.processes() as ranks:
        tokens = ranks.share(np.random.default_rng(0).normal(size=(400, 2)))
        print("together", flush=True)
        hm.simulate(tokens, hm.SoftmaxLayer(), depth=10**7, keep="last", processes=ranks)
except hm.HardmaxError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def _environment(**more: str) -> dict[str, str]:
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *sys.path])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def _torchrun(count: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=_environment(), timeout=240)


def _start(port: int, rank: int, count: int, join: float = 30.0, *arguments: str) -> subprocess.Popen[str]:
    """Start one of the processes by itself, which is quicker than torchrun: the loop above, or other arguments."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(count)}
    return subprocess.Popen(
        [sys.executable, *(arguments or ("-c", _LOOP, str(join)))],
        env=_environment(**place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_several_processes_give_what_one_gives(count: int, tmp_path: Path) -> None:
    done = _torchrun(count, "-m", "split_work", str(tmp_path))
    assert done.returncode == 0, done.stderr
    with hm.processes() as alone:
        whole = work(alone)
    for rank in range(count):
        with np.load(tmp_path / f"{count}-{rank}.npz") as found:
            assert found["everybody"].tolist() == list(range(count))
            for name in ("positions", "follows", "leaders", "run", "run_follows"):
                np.testing.assert_array_equal(found[name], whole[name], err_msg=name)
            np.testing.assert_allclose(found["flown"], whole["flown"], rtol=0, atol=1e-12)
            np.testing.assert_allclose(found["odds"], whole["odds"], rtol=0, atol=1e-5)


def test_the_command_prints_and_writes_once(tmp_path: Path) -> None:
    options = ["--random", "ball", "--number", "20000", "--dim", "3", "--save", str(tmp_path / "limit.npy")]
    port = _free_port()
    both = [_start(port, rank, 2, 30.0, "-m", "hardmax", "simulate", *options) for rank in (0, 1)]
    said = [one.communicate(timeout=240) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert said[0][0].count("outcome ") == 1
    assert "in 2 processes" in said[0][0]
    assert said[1][0] == ""
    whole = hm.equilibrium(hm.make_tokens("ball", 20_000, 3, random_state=0))
    np.testing.assert_array_equal(np.load(tmp_path / "limit.npy"), whole.positions)


def test_a_killed_process_ends_the_others() -> None:
    port = _free_port()
    both = [_start(port, rank, 2) for rank in (0, 1)]
    try:
        for one in both:
            assert one.stdout is not None
            assert one.stdout.readline() == "together\n"
        time.sleep(0.5)
        os.kill(both[1].pid, signal.SIGKILL)
        _, said = both[0].communicate(timeout=30)
    finally:
        for one in both:
            one.kill()
            one.communicate()
    assert both[0].returncode == 1
    assert "ProcessError: process 0 of 2 lost its connection to the others" in said
    assert "one of them stopped: its own message says why; start all of them again" in said


def test_mismatched_world_sizes() -> None:
    port = _free_port()
    both = [_start(port, 0, 2), _start(port, 1, 3)]
    said = "".join(one.communicate(timeout=60)[1] for one in both)
    assert [one.returncode for one in both] == [1, 1]
    assert "InputError: WORLD_SIZE must be the same in every process, got" in said
    assert "3 in process 1" in said


def test_a_process_that_never_comes() -> None:
    alone = _start(_free_port(), 0, 2, join=1.0)
    _, said = alone.communicate(timeout=60)
    assert alone.returncode == 1
    assert "ProcessError: the 2 processes did not all join" in said
    assert "start as many processes as WORLD_SIZE says" in said


def test_bad_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not launched()
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "RANK": "2", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert launched()
    with pytest.raises(hm.InputError, match="RANK must lie below WORLD_SIZE = 2, got 2"), hm.processes():
        pass
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(hm.InputError, match="WORLD_SIZE must be a whole number, got 'two'"), hm.processes():
        pass
    with pytest.raises(hm.InputError, match="timeout must be positive"), hm.processes(timeout=0):
        pass


def test_training_is_shared(tmp_path: Path) -> None:
    texts, labels = opinions(101)
    settings = {"epochs": 3, "batch_size": 25, "dropout": 0.3, "random_state": 1}
    whole = hm.LeaderClassifier(**settings).fit(texts, labels)
    kept = tmp_path / "training.safetensors"
    for split in with_processes(
        3, lambda r: hm.LeaderClassifier(**settings, processes=r, checkpoint=kept).fit(texts, labels)
    ):
        np.testing.assert_allclose(split.predict_proba(texts), whole.predict_proba(texts), atol=1e-5)
        assert split.history_[-1]["accuracy"] == pytest.approx(whole.history_[-1]["accuracy"])
        assert split.history_[-1]["leaders"] == pytest.approx(whole.history_[-1]["leaders"])
    assert kept.is_file()
    drawn = with_processes(2, lambda r: hm.LeaderClassifier(epochs=1, processes=r).fit(texts, labels).seed_)
    assert drawn[0] == drawn[1]
