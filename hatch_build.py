"""Metadata of the built package: project addresses, and a long description whose links work outside the repository.

The address of the repository stands in one place, `home` under `[tool.hatch.metadata.hooks.custom]` of pyproject.toml.
While it is empty, the package has no addresses, and pictures and links to files are left out of its long description.
"""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def addresses(home: str, version: str) -> dict[str, str]:
    """Address of each project page; none without the address of the repository."""
    if not home:
        return {}
    return {
        "Homepage": home,
        "Documentation": f"{home}/tree/v{version}/docs",
        "Source": home,
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/v{version}/CHANGELOG.md",
    }


def with_absolute_links(readme: str, home: str, version: str) -> str:
    """The README with the address of each picture and file in full; without a home, they are left out."""
    if not home:
        readme = re.sub(rf"\[{_IMAGE.pattern}\]\([^)\s]+\)", "", readme)
        return _LINK.sub(r"\1", _IMAGE.sub("", readme))
    readme = _IMAGE.sub(rf"![\1]({home}/raw/v{version}/\2)", readme)
    readme = re.sub(r"(<img[^>]*\bsrc=\")(?!https?:)", rf"\1{home}/raw/v{version}/", readme)
    return re.sub(
        r"\]\((?!https?:|#)([^)\s]+)\)",
        lambda found: f"]({home}/blob/v{version}/{found[1]})",
        readme,
    )


class CustomMetadataHook(MetadataHookInterface):
    """Sets `readme` and `urls` of the package."""

    def update(self, metadata: dict[str, object]) -> None:
        """Fill in the two dynamic fields."""
        home, version = str(self.config.get("home", "")).rstrip("/"), str(metadata["version"])
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(text, home, version)}
        metadata["urls"] = addresses(home, version)
