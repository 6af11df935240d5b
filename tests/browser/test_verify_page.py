"""verify/verify.html in a real browser, opened as a file: choose or drop files, read the verdict."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hardmax as hm
from explorers import until
from verifiers.corpus import KINDS, OPTIONS, PAGE, Verdict, by_program, compiled, damaged, files_of
from verifiers.test_networks import alike

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture
def checker(visitor: Any) -> Iterator[Any]:
    """The page, opened from its file; a request to anywhere, or an error on its console, fails the test."""
    opened = visitor.new_page()
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    here = (PAGE.as_uri(), "data:,")
    opened.on("request", lambda request: None if request.url.startswith(here) else trouble.append(request.url))
    opened.goto(PAGE.as_uri())
    yield opened
    opened.close()
    assert trouble == []


def choose(page: Any, *paths: Path) -> tuple[str, str]:
    """Title and sentence of the verdict on these files."""
    page.set_input_files("#files", [str(path) for path in paths])
    page.wait_for_selector(".verdict")
    page.wait_for_selector("#work", state="hidden")
    return page.inner_text(".verdict h2"), page.inner_text(".verdict p")


def asked_by_key(page: Any, key: str) -> Any:
    """The window for files that a key opens; a page may open none while another one is in front, so twice again."""
    from playwright.sync_api import TimeoutError as NoWindow

    for _ in range(2):
        try:
            with page.expect_file_chooser(timeout=5_000) as chooser:
                page.keyboard.press(key)
            return chooser.value
        except NoWindow:
            page.bring_to_front()
    with page.expect_file_chooser() as chooser:
        page.keyboard.press(key)
    return chooser.value


def swap_targets(folder: Path) -> None:
    path = folder / "network.json"
    record = json.loads(path.read_text())
    outputs = record["data"]["outputs"]
    outputs[1], outputs[3] = outputs[3], outputs[1]
    path.write_text(json.dumps(record))


def test_networks_and_certificates_are_judged(checker: Any, shoot: Callable[[Any, str], Path], tmp_path: Path) -> None:
    net = hm.interpolate([[[k, 0], [k, 1]] for k in range(6)], [[[k, k]] for k in range(6)]).save(tmp_path / "net")
    files = (net / "network.json", net / "network.safetensors")
    title, sentence = choose(checker, *files)
    assert title == "PROVED"
    assert sentence.startswith("T(X) = Y for all 6 sequences (12 tokens)")
    swap_targets(net)
    title, sentence = choose(checker, *files)
    assert title == "NOT PROVED"
    assert sentence.startswith("Sequence 1: (1, 1) is reached and is not a target")
    for scheme in ("light", "dark"):
        checker.emulate_media(color_scheme=scheme)
        shoot(checker, f"verify-{scheme}")
    certificate = hm.equilibrium_certificate(np.random.default_rng(0).normal(size=(40, 2))).save(
        tmp_path / "limit.json"
    )
    title, sentence = choose(checker, certificate)
    assert title == "PROVED"
    assert sentence.startswith("All 40 tokens converge")
    checker.set_viewport_size({"width": 380, "height": 740})
    shoot(checker, "verify-phone")
    assert checker.evaluate("document.documentElement.scrollWidth") <= 380
    title, sentence = choose(checker, net / "network.safetensors")
    assert (title, "choose network.json" in sentence) == ("REFUSED", True)


def test_a_dropped_file_and_the_keyboard(checker: Any, tmp_path: Path) -> None:
    text = json.dumps(hm.equilibrium_certificate([[2.0, 0.0], [0.5, 0.125], [-1.0, 0.25]]).to_dict())
    checker.evaluate(
        """(text) => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "limit.json"));
            const drop = new DragEvent("drop", {dataTransfer: carried, bubbles: true, cancelable: true});
            document.body.dispatchEvent(drop);
        }""",
        text,
    )
    checker.wait_for_selector(".verdict.proved")
    checker.reload()
    checker.bring_to_front()
    checker.keyboard.press("Tab")
    assert checker.evaluate("document.activeElement.id") == "files"
    (tmp_path / "limit.json").write_text(text)
    asked_by_key(checker, "Space").set_files(str(tmp_path / "limit.json"))
    checker.wait_for_selector(".verdict.proved")
    checker.keyboard.press("Tab")
    assert checker.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_a_long_proof_shows_progress_and_can_be_stopped(checker: Any, tmp_path: Path) -> None:
    tokens = np.random.default_rng(1).normal(size=(250, 3))
    path = hm.equilibrium_certificate(tokens).save(tmp_path / "limit.json")
    checker.set_input_files("#files", str(path))
    until(checker, "document.getElementById('bar').value > 0 && !document.getElementById('work').hidden")
    assert checker.inner_text("#step").startswith("layer 0 of")
    checker.click("#stop")
    checker.wait_for_selector(".verdict.refused")
    assert checker.inner_text(".verdict h2") == "STOPPED"


def test_the_browser_judges_as_the_program_does(checker: Any, tmp_path: Path) -> None:
    networks = [compiled(k, tmp_path / f"network {k}") for k in range(len(OPTIONS))]
    broken = [damaged(networks[(5 * k + 3) % len(networks)], kind, 1, tmp_path / kind) for k, kind in enumerate(KINDS)]
    paths = networks + broken

    def carried(path: Path | None) -> str | None:
        return None if path is None or not path.exists() else base64.b64encode(path.read_bytes()).decode()

    pairs = [[carried(path) for path in files_of(folder)] for folder in paths]
    found = checker.evaluate(
        """(pairs) => pairs.map((pair) => {
            const [data, tensors] = pair.map((text) =>
                text === null ? null : Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
            return verdictOf(data, tensors);
        })""",
        pairs,
    )
    verdicts = by_program(paths)
    differ = [one for one, other in zip(verdicts, found, strict=True) if not alike(one, Verdict(**other))]
    assert differ == []
    assert [verdict.status for verdict in verdicts[: len(networks)]] == [0] * len(networks)
