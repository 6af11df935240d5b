"""Texts in addresses: an example by its name, a short text as it is, a longer one packed, the longest on this machine.

An address of 7,000 characters has room for one packed text, or for two of half the length.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from urllib.parse import quote_plus

from ..errors import FileError
from .kept import Item, Kept
from .uploads import Upload, text_of

Examples = Mapping[str, tuple[str, str]]
"""Title and text by the name in an address."""
ROOM = 5_500
"""Characters of texts in an address; the rest of its 7,000 is for the settings."""
_LONGEST_PLAIN = 3_000
"""Characters of a text that is not packed; packed, a longer one makes a shorter address."""
_ACCEPT = (".txt",)
_MOST_BYTES = 2**20
"""Bytes of a stored text: 200,000 characters of at most four bytes, and a margin."""


def example_of(text: str, examples: Examples) -> str | None:
    """The name of the example that has this text."""
    return next((name for name, (_, example) in examples.items() if example == text), None)


class AddressTexts:
    """The texts of a page in its address, of at most ``most_characters`` each; long ones go to ``store``."""

    def __init__(self, examples: Examples, most_characters: int, store: Kept) -> None:
        self._examples, self._most, self._store = examples, most_characters, store

    def query(self, text: str, key: str, example: str = "example", room: int = ROOM) -> dict[str, str]:
        """The part of an address that brings a text back; an empty text under ``key`` where nothing can.

        ``example`` is the name of the value for examples, ``room`` the number of characters that the text may take.
        """
        known = example_of(text, self._examples)
        if known is not None:
            return {example: known}
        if len(text) <= _LONGEST_PLAIN and len(quote_plus(text, errors="replace")) <= room:
            return {key: text}
        packed = base64.urlsafe_b64encode(zlib.compress(text.encode(errors="replace"), 9)).decode().rstrip("=")
        if len(packed) <= room:
            return {f"{key}-packed": packed}
        name = self._stored(text, key)
        return {key: ""} if name is None else {f"{key}-kept": name}

    def read(self, query: Mapping[str, str], key: str, example: str = "example") -> str | None:
        """The text that :meth:`query` wrote into an address; None where there is none that can be read."""
        known = query.get(example, "")
        if known in self._examples:
            return self._examples[known][1]
        if key in query:
            return query[key][: self._most]
        if f"{key}-packed" in query:
            return self._unpacked(query[f"{key}-packed"])
        return self._read_stored(query.get(f"{key}-kept", ""))

    def said(self, text: str, key: str, item: Item, room: int = ROOM) -> str:
        """Whether a text that an address cannot hold is stored, in a sentence; empty for other texts."""
        query = self.query(text, key, room=room)
        return item.kept if f"{key}-kept" in query else item.not_kept if text and query == {key: ""} else ""

    def missing(self, query: Mapping[str, str], key: str) -> bool:
        """Whether an address names a stored text that cannot be read."""
        return f"{key}-kept" in query and self.read(query, key, "") is None

    def _stored(self, text: str, key: str) -> str | None:
        upload = Upload(f"{key}.txt", text.encode(errors="replace"))
        try:
            # A text that looks like an archive is refused when it is read, and so not stored.
            return self._store.keep(upload) if text_of(upload) == text else None
        except FileError:
            return None

    def _read_stored(self, name: str) -> str | None:
        upload = self._store.read(name, _ACCEPT, _MOST_BYTES)
        try:
            return None if upload is None else text_of(upload)[: self._most]
        except FileError:
            return None

    def _unpacked(self, packed: str) -> str | None:
        try:
            data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
            # Letters take at most four bytes; whatever else the data would unpack to is not unpacked.
            return zlib.decompressobj().decompress(data, 4 * self._most).decode()[: self._most]
        except (ValueError, zlib.error):
            return None
