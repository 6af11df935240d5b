"""A user's script that covers every capability: it runs, and type checkers accept it."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import hardmax

_SCRIPT = Path(__file__).parent / "user_script.py"
_SOURCE = Path(hardmax.__file__).parent.parent
# A mistake that a checker must see: the limit of NumPy tokens is an array, not a tensor.
_MISTAKE = "import hardmax as hm\nhm.equilibrium(hm.make_tokens('ball', 9, 2, 0)).positions.backward()\n"


def test_the_script_runs(tmp_path: Path) -> None:
    found = runpy.run_path(str(_SCRIPT))["main"](tmp_path)
    assert found["theorem"] == found["proved"] == 1.0
    assert found["leaders"] == found["clusters"] == 8.0  # both from the same tokens
    assert found["decided"] == 3.0
    assert found["sizes"] == 6.0
    assert (tmp_path / "limit.png").stat().st_size > 1000


def _pyright() -> list[str]:
    command = [sys.executable, "-m", "pyright"]
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("pyright did not start; it fetches itself from the registry of npm at its first run")
    if done.returncode:
        pytest.skip(f"pyright cannot be run here: {(done.stderr or done.stdout)[-200:]}")
    return command


def test_pyright_accepts_it_and_sees_a_mistake(tmp_path: Path) -> None:
    command = _pyright()
    (tmp_path / "user.py").write_text(_SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mistake.py").write_text(_MISTAKE, encoding="utf-8")
    settings = {"include": ["."], "extraPaths": [str(_SOURCE)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [*command, "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )
    told = json.loads(done.stdout)["generalDiagnostics"]
    assert [(Path(one["file"]).name, one["rule"]) for one in told] == [("mistake.py", "reportAttributeAccessIssue")]
