"""Shell completion, in a real bash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``hardmax`` is this package's command and the home folder is empty."""
    command = tmp_path / "bin" / "hardmax"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hardmax "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "HOME": str(tmp_path), "PATH": f"{command.parent}:{os.environ['PATH']}"}


def _bash(script: str, environment: dict[str, str]) -> str:
    done = subprocess.run(["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_bash_completes_commands_and_flags(shell: dict[str, str]) -> None:
    script = (
        # It writes for the shell that runs it, which is this bash.
        'eval "$(hardmax --show-completion)"\n'
        'complete_for() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hardmax_completion hardmax; '
        'echo "${COMPREPLY[@]}"; }\n'
        "complete_for hardmax sim\ncomplete_for hardmax simulate --alp\ncomplete_for hardmax reproduce clu\n"
    )
    assert _bash(script, shell).split() == ["simulate", "--alpha", "clustering"]


def test_it_installs_itself(shell: dict[str, str], tmp_path: Path) -> None:
    # With a command after it bash does not give way to hardmax, which looks for the shell that runs it.
    told = _bash("hardmax --install-completion && true", shell)
    assert "bash completion installed" in told
    (script,) = list(tmp_path.rglob("*hardmax*.sh"))
    assert "_HARDMAX_COMPLETE=complete_bash" in script.read_text()
