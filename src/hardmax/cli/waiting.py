"""A sign of life on the error stream for work that cannot say how far it is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 2.0


@contextmanager
def waiting(what: str, quiet: bool = False) -> Iterator[None]:
    """Show ``what`` and a spinner if the block takes longer than two seconds, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{what} …")
    timer = threading.Timer(_PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
