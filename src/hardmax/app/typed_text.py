"""What people typed, as the address of a page keeps it: by the name of an example, or itself where it is short."""

from __future__ import annotations

from collections.abc import Mapping

LONGEST = 3_000
"""The longest text that an address holds."""

Examples = Mapping[str, tuple[str, str]]
"""Title and text by the name in an address."""


def example_of(text: str, examples: Examples) -> str | None:
    """The name of the example that has this text."""
    return next((name for name, (_, example) in examples.items() if example == text), None)


def kept_text(key: str, text: str, examples: Examples) -> dict[str, str]:
    """The part of a page's state that brings the text back, by ``key`` where it is no example; empty for a long one."""
    example = example_of(text, examples)
    if example is not None:
        return {"example": example}
    return {key: text} if len(text) <= LONGEST else {}
