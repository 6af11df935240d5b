"""What a user's type checker says: NumPy arrays in give NumPy arrays out, tensors give tensors."""

import os
import subprocess
import sys
from pathlib import Path

import hardmax

_USER = """
from fractions import Fraction

import numpy as np
import torch
from typing_extensions import assert_type

import hardmax as hm

tokens = hm.make_tokens("gaussian", 20, 2, random_state=0)
assert_type(tokens, np.ndarray)
limit = hm.equilibrium(tokens)
assert_type(limit.positions, np.ndarray)
assert_type(limit.leaders, np.ndarray)
assert_type(limit.leadership.follows, np.ndarray)
middle = limit.positions.mean(axis=0)
run = hm.simulate(tokens, hm.HardmaxLayer(Fraction(1, 2)), depth=3)
assert_type(run.tokens, np.ndarray)
assert_type(run.final, np.ndarray)
assert_type(hm.HardmaxLayer(0.5)(tokens), np.ndarray)
assert_type(hm.clusters(run).centres, np.ndarray)
assert_type(hm.leaders(limit).positions, np.ndarray)
listed = hm.equilibrium([[1.0, 0.0], [0.0, 1.0]], hm.HardmaxLayer(0.5))
print(listed.positions.mean(axis=0), middle)

tensor = torch.from_numpy(tokens)
moved = hm.SoftmaxLayer(0.5, beta=2.0)(tensor)
assert_type(moved, torch.Tensor)
along = hm.simulate(tensor, hm.HardmaxLayer(0.5), depth=3)
assert_type(along.final, torch.Tensor)
print(hm.equilibrium(tensor).positions.mean(dim=0), hm.draw_tokens(run).get_title(), hm.datasets.LAWS["ball"])


def either(values: np.ndarray | torch.Tensor) -> hm.Trajectory:
    return hm.simulate(values, hm.HardmaxLayer(0.5), depth=1)


def last(result: hm.Trajectory[np.ndarray]) -> hm.Trajectory:
    return result
"""


def test_a_strict_type_checker_knows_the_kind_of_array(tmp_path: Path) -> None:
    script = tmp_path / "kinds.py"
    script.write_text(_USER)
    every_capability = Path(__file__).parent / "installed" / "user_script.py"
    # With the settings of the repository, which are strict, and from there: what `mypy` has cached is used again.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(script), str(every_capability)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "MYPYPATH": str(Path(hardmax.__file__).parent.parent)},
    )
    assert done.stdout == "Success: no issues found in 2 source files\n", done.stdout + done.stderr
