"""Files and texts that visitors upload: bounded in size and kind, read as data.

The browser checks the size before it sends anything; here everything is checked again, because a browser can be made
to send anything. Contents stay in memory; what needs a file gets one in the session's folder, and what a link keeps is
stored by :mod:`hardmax.app.kept`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import param
from panel.reactive import ReactiveHTML

from ..errors import FileError
from ..tables.delimited import Limits, read_cells, read_numbers
from ..tables.dialect import is_number
from ..tables.files import decoded


@contextmanager
def as_file(path: Path, data: bytes, name: str) -> Iterator[Path]:
    """``path``, a file with ``data`` during the block; errors about it name ``name``."""
    path.write_bytes(data)
    try:
        yield path
    except FileError as error:
        raise FileError(name, error.problem, error.remedy) from None
    finally:
        path.unlink(missing_ok=True)


MOST_BYTES = 5 * 2**20
"""The largest upload."""
_LIMITS = Limits(columns=500, rows=200_000)
# What files begin with that are no text, whatever they are called.
_MAGIC = {
    b"PK\x03\x04": "a ZIP archive (or an office document)",
    b"PK\x05\x06": "a ZIP archive",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"Rar!": "a RAR archive",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x93NUMPY": "a NumPy file",
    b"PAR1": "a Parquet file",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"\x80\x04\x95": "a pickle, which is code and not data",
}


@dataclass(frozen=True)
class Upload:
    """A file as it came."""

    name: str
    data: bytes

    @property
    def suffix(self) -> str:
        """The end of its name, in lower case."""
        return Path(self.name).suffix.lower()


def checked(name: str, data: bytes, accept: tuple[str, ...], most_bytes: int = MOST_BYTES) -> Upload:
    """An upload whose name and size are allowed."""
    shown = _short(Path(name).name or "the upload")
    if Path(shown).suffix.lower() not in accept:
        raise FileError(shown, "is not a file of a kind that is read here", f"upload one of {', '.join(accept)}")
    if len(data) > most_bytes:
        problem = f"has {len(data) / 2**20:.1f} MB and at most {most_bytes / 2**20:.0f} MB are read here"
        raise FileError(shown, problem, "upload a part of it, or use the library for all of it")
    if not data:
        raise FileError(shown, "is empty", "upload a file with something in it")
    return Upload(shown, data)


def text_of(upload: Upload) -> str:
    """The contents as text; archives, programs and pictures are refused whatever their name."""
    for start, kind in _MAGIC.items():
        if upload.data.startswith(start):
            raise FileError(upload.name, f"is {kind} and not text", "upload the text itself, in UTF-8")
    text = decoded(upload.data, upload.name)
    if "\0" in text:
        raise FileError(upload.name, "holds zero bytes, so it is no text", "upload the text itself, in UTF-8")
    return text


def numbers_of(upload: Upload) -> tuple[np.ndarray, list[str]]:
    """A table of finite numbers, shape (row, column), and the names of its columns (x1, x2 … without a header)."""
    text = text_of(upload)
    within_bounds(upload.name, text)
    table = read_numbers(text, upload.name)
    values = table.numbers("save one line of numbers per row")
    return values, list(table.cells.columns) if table.named else [f"x{k + 1}" for k in range(values.shape[1])]


def rows_of(upload: Upload) -> pandas.DataFrame:
    """A table with a header whose cells stay text: nothing is computed, whatever a cell begins with."""
    text = text_of(upload)
    within_bounds(upload.name, text)
    table = read_cells(text, upload.name, comments=False)
    if len(set(table.dialect.first)) != len(table.dialect.first):
        raise FileError(upload.name, "has two columns of the same name", "give every column a name of its own")
    return table.cells


def within_bounds(name: str, text: str) -> None:
    """Refuse a table that is too wide or too long, before it is read."""
    _LIMITS.check(text, name)


def for_a_sheet(cell: str) -> str:
    """A cell of text that spreadsheets do not take for a formula in a CSV file."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not is_number(cell) else cell


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:30] + "…" + name[-25:]


class FilePicker(ReactiveHTML):  # type: ignore[misc]
    """A button that sends one small file; the browser itself refuses a large one."""

    label = param.String(default="Upload a file")
    accept = param.String(default=".csv")
    most_bytes = param.Integer(default=MOST_BYTES)
    filename = param.String(default="")
    contents = param.String(default="")
    """Base64, emptied as soon as it was taken."""

    _template = """
    <div class="upload">
      <label for="file">${label}</label>
      <input id="file" type="file" accept="${accept}" onchange="${script('pick')}"></input>
      <span id="words" class="problem" role="alert"></span>
    </div>
    """
    _scripts = {  # noqa: RUF012 - the name and kind that Panel reads
        # Panel renames ids, so a label's "for" would point nowhere.
        "render": "file.setAttribute('aria-label', data.label);",
        "pick": """
        const chosen = file.files[0];
        if (!chosen) { return; }
        if (chosen.size > data.most_bytes) {
          const size = (chosen.size / 1048576).toFixed(1), most = (data.most_bytes / 1048576).toFixed(0);
          words.textContent = chosen.name + " has " + size + " MB and at most " + most + " MB are read here.";
          file.value = "";
          return;
        }
        const reader = new FileReader();
        reader.onload = () => {
          words.textContent = "";
          data.filename = chosen.name;
          const text = String(reader.result);
          data.contents = text.slice(text.indexOf(",") + 1) || "=";
          file.value = "";
        };
        reader.readAsDataURL(chosen);
        """,
    }

    def on_file(
        self, accept: tuple[str, ...], take: Callable[[Upload], None], refuse: Callable[[Exception], None]
    ) -> None:
        """Call ``take`` with every file that passes the checks, ``refuse`` with the error of one that does not."""
        self.accept = ",".join(accept)

        def arrived(event: Any) -> None:
            if not event.new:
                return
            name, sent = self.filename, event.new
            self.contents = ""
            try:
                most = 4 * (self.most_bytes // 3 + 2)
                data = b"" if sent == "=" else base64.b64decode(sent[: most + 4], validate=True)
                take(checked(name, data, accept, self.most_bytes))
            except binascii.Error:
                refuse(FileError(_short(name), "did not arrive whole", "upload it again"))
            except Exception as error:
                refuse(error)

        self.param.watch(arrived, "contents")
