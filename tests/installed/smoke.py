"""Tries an installed hardmax outside its repository: every capability once, commands, and what is said without extras.

Run by ``make release`` as ``python -I smoke.py`` in an empty folder, with nothing installed but the wheel and what it
requires.
"""

import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import hardmax as hm

HERE = Path(__file__).parent
COMMANDS = (
    ["--help"],
    ["doctor"],
    ["simulate", "--n", "50", "--limit", "--figure", "limit.png"],
    ["meanfield", "--beta", "5,10", "--n", "100"],
    ["sentiment", "explain", "a wonderful film"],
    ["verify", "network"],
    ["reproduce", "all", "--help"],
)


def main() -> None:
    installed = Path(hm.__file__).resolve()
    assert HERE.parents[1] not in installed.parents, f"{installed} is the repository, not the wheel"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = runpy.run_path(str(HERE / "user_script.py"))["main"](folder)
        assert found["theorem"] == found["proved"] == 1.0, found
        for words in COMMANDS:
            command = [sys.executable, "-I", "-m", "hardmax", *words]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        told = ""
        try:
            hm.save(hm.simulate([[1.0, 0.0], [0.0, 1.0]], hm.HardmaxLayer(), depth=1), folder / "run.zarr")
        except hm.MissingExtraError as error:
            told = str(error)
        assert "needs the package zarr" in told, f"a file that needs an extra: {told!r}"
    jobs = len(found) + len(COMMANDS)
    print(f"hardmax {hm.__version__} on Python {sys.version.split()[0]}: {jobs} jobs passed, {installed.parent}")


if __name__ == "__main__":
    main()
