"""A button that saves a file made by a callback."""

from __future__ import annotations

from typing import Any

import panel as pn


class Download(pn.widgets.FileDownload):  # type: ignore[misc]
    """A button that saves what its callback returns, or nothing where that is None: an error was then shown."""

    def _sync_data(self, fileobj: Any) -> None:
        if fileobj is not None:  # for which Panel would write a traceback in the terminal
            super()._sync_data(fileobj)
