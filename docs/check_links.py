"""Checks that every link and picture of the built documentation leads to a file and an anchor that exist.

Run by ``make docs`` as ``python docs/check_links.py docs/_build/html``. Addresses on the network are only counted.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Anchors that the theme's scripts make or understand without an element.
_ALWAYS = {"", "top"}


class _Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


def broken_links(folder: Path) -> tuple[list[str], int, int]:
    """Broken links as "page: link", the number of links inside the documentation and of those to the network."""
    pages = {path.resolve(): _Page(path) for path in sorted(folder.rglob("*.html"))}
    wrong, inside, outside = [], 0, 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += parts.scheme in ("http", "https")
                continue
            inside += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else _ALWAYS
            if not target.is_file() or anchor not in known | _ALWAYS:
                wrong.append(f"{path.relative_to(folder.resolve())}: {link}")
    return wrong, inside, outside


def main() -> None:
    folder = Path(sys.argv[1])
    wrong, inside, outside = broken_links(folder)
    if not inside:
        sys.exit(f"{folder} has no pages with links: build the documentation first (make docs)")
    for line in wrong:
        print(line)
    print(f"{inside:,} links inside the documentation, {len(wrong)} broken; {outside:,} to the network, not tried")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
