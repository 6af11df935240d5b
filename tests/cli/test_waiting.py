"""A spinner appears on a terminal when work takes long, and only then."""

import io
import sys
import time

import pytest

from hardmax.cli import options


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "quiet", "patience", "shown"),
    [
        (_Terminal, False, 0.0, True),
        (_Terminal, False, 60.0, False),
        (_Terminal, True, 0.0, False),
        (io.StringIO, False, 0.0, False),
    ],
)
def test_when_it_shows(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], quiet: bool, patience: float, shown: bool
) -> None:
    errors = stream()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(options, "_PATIENCE", patience)
    with options.waiting("counting", quiet):
        patiently = time.monotonic() + 20
        while shown and "counting" not in errors.getvalue() and time.monotonic() < patiently:
            time.sleep(0.01)
    assert ("counting" in errors.getvalue()) == shown
