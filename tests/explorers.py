"""An explorer in a process of its own, for tests with a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

# Plays from the beginning until a token was seen at five places between two moments.
_GLIDE = """async (stage) => {
  const { parts } = hardmaxStages.stages.get(stage), player = hardmaxPlayer.latest, seen = new Set();
  player.go(0);
  player.toggle();
  while (seen.size < 5 && player.playing) {
    await new Promise((next) => requestAnimationFrame(next));
    if (player.t % 1 > 0) { seen.add(Array.from(parts[0].data.x).join(" ")); }
  }
  player.toggle();
  return seen.size;
}"""


def until(page: Any, condition: str) -> None:
    """Wait until a JavaScript expression holds; while it cannot be evaluated, as of a plot to come, it does not."""
    page.wait_for_function(f"(() => {{ try {{ return ({condition}); }} catch {{ return false; }} }})()")


def glides(page: Any, stage: str) -> bool:
    """Whether the tokens of a plot move between the moments of the player, drawn by the browser."""
    until(page, f"hardmaxStages.stages.has('{stage}') && Bokeh.documents[0].is_idle")
    return bool(page.evaluate(_GLIDE, stage) == 5)


class Explorer:
    """A running explorer; port 0 takes a free one. ``address`` has no slash at the end."""

    def __init__(self, log: Path, port: int = 0) -> None:
        self._log = log
        command = [sys.executable, "-m", "hardmax", "explore", "--port", str(port), "--no-browser"]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        environment["XDG_CACHE_HOME"] = str(log.parent / "cache")  # where uploads are kept
        with log.open("w") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=environment)
        self.address = self._wait()
        self.port = int(self.address.rpartition(":")[2])

    def _wait(self) -> str:
        for _ in range(1800):  # importing everything takes a minute on a busy machine
            found = re.search(r"http://localhost:\d+", self._log.read_text())
            if found:
                return found.group()
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.1)
        self.kill()
        raise TimeoutError(f"the explorer did not start: {self._log.read_text()}")

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self._process.terminate()
        self._process.wait(timeout=60)

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        self._process.kill()
        self._process.wait(timeout=20)

    @property
    def processor_seconds(self) -> float:
        """Time that it has computed so far, whatever else the machine does; 0 where the system has no ``/proc``."""
        try:
            numbers = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return 0.0
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")  # of the program and of the system

    @property
    def errors(self) -> list[str]:
        """The errors that tracebacks in its log end with; a browser that left before its answer came is none."""
        found = re.findall(r"^Traceback .*\n((?:[ \t].*\n|\n)*)(\S.*)$", self._log.read_text(), flags=re.MULTILINE)
        # Bokeh asserts that a connection still has its session, and it has none after the browser has left.
        left = "assert self._session is not None"
        return [
            end
            for lines, end in found
            if left not in lines and not re.match(r"tornado\.(websocket|iostream)\.\w*ClosedError", end)
        ]
