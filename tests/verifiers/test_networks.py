"""verify.py, verify.html and ``hardmax verify`` give the same verdict on networks, sound and damaged."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from verifiers.corpus import (
    KINDS,
    OPTIONS,
    PAGE,
    PROGRAM,
    ROOT,
    Verdict,
    by_library,
    by_page_in_node,
    by_program,
    compiled,
    damaged,
)

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node runs the script of the page")
# A float64 network of the damaged weights may overflow; certificates report that as an infinite error.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def alike(one: Verdict, other: Verdict) -> bool:
    """The same status and, for proofs that could be read, the same sentence; parsers word their errors differently."""
    if one.status == other.status == 2:
        return True
    header = re.compile(r"network\.safetensors (?!is missing|is not the file)[^;]*")
    return one.status == other.status and header.sub("header", one.line) == header.sub("header", other.line)


def size_of(folder: Path) -> int:
    return (folder / "network.json").stat().st_size


def judge(paths: list[Path], kinds: list[str]) -> Counter[tuple[str, int]]:
    """Count of the verdicts by kind, after a comparison of the three programs on every file."""
    library, program, page = [by_library(path) for path in paths], by_program(paths), by_page_in_node(paths)
    different = [
        (kind, path.name, own, one, other)
        for kind, path, own, one, other in zip(kinds, paths, library, program, page, strict=True)
        if own != one.status or not alike(one, other)
    ]
    assert different == []
    return Counter(zip(kinds, library, strict=True))


@needs_node
def test_every_construction_is_accepted_and_every_kind_of_damage_judged_alike(tmp_path: Path) -> None:
    networks = [compiled(k, tmp_path / f"network {k}") for k in range(len(OPTIONS))]
    assert judge(networks, ["sound"] * len(networks)) == {("sound", 0): len(OPTIONS)}
    broken = [damaged(networks[(7 * k + 2) % len(networks)], kind, 0, tmp_path / kind) for k, kind in enumerate(KINDS)]
    count = judge(broken, KINDS)
    must_fail = ("weight", "huge weight", "target", "target, files repaired", "swapped targets", "dropped sequence",
                 "wrong claim", "other hash", "no tensors", "flipped bit")  # fmt: skip
    must_be_refused = ("duplicated key", "truncated", "not JSON", "huge size", "bad number", "repeated sequence")
    for kind in must_fail:
        assert count[kind, 1] == 1, kind
    for kind in must_be_refused:
        assert count[kind, 2] == 1, kind
    for kind in ("huge claim", "huge width", "other form", "repeated token", "dense matrices, files repaired"):
        assert count[kind, 0] == 1, kind


@pytest.mark.slow
@needs_node
def test_at_least_300_networks_are_accepted_and_2000_damaged_ones_rejected(tmp_path: Path) -> None:
    networks = [compiled(k, tmp_path / f"network {k}") for k in range(320)]
    assert judge(networks, ["sound"] * len(networks)) == {("sound", 0): 320}
    rejected = accepted = 0
    # The smallest networks of each construction: many damages in little time.
    groups = [sorted(networks[k :: len(OPTIONS)], key=size_of) for k in range(len(OPTIONS))]
    small = [network for turn in zip(*groups, strict=True) for network in turn][:60]
    for seed in range(85):
        broken = [
            damaged(small[(7 * seed + 11 * k) % 60], kind, seed, tmp_path / f"{seed} {kind}")
            for k, kind in enumerate(KINDS)
        ]
        count = judge(broken, KINDS)
        rejected += sum(number for (_, status), number in count.items() if status > 0)
        accepted += count.total()
        for path in broken:
            shutil.rmtree(path)
    accepted -= rejected
    sys.stdout.write(
        f"\n320 networks accepted; damaged: {rejected} rejected, {accepted} still proofs; no disagreement\n"
    )
    assert rejected >= 2000


def test_the_first_sequence_that_fails_is_named(tmp_path: Path) -> None:
    import json

    import hardmax as hm

    net = hm.interpolate([[[k, 0], [k, 1]] for k in range(6)], [[[k, k]] for k in range(6)]).save(tmp_path / "net")
    record = json.loads((net / "network.json").read_text())
    outputs = record["data"]["outputs"]
    outputs[2], outputs[4] = outputs[4], outputs[2]
    (net / "network.json").write_text(json.dumps(record))
    (verdict,) = by_program([net / "network.json"])
    assert verdict.line.startswith(
        "NOT PROVED: sequence 2: (2, 2) is reached and is not a target; the data are not those"
    )


def test_bounds_are_enforced(tmp_path: Path) -> None:
    source = compiled(0, tmp_path / "net")
    text = (source / "network.json").read_text()
    cases = {
        "many digits": text.replace('"rho": "1"', f'"rho": "{"1" * 100_001}"', 1),
        "a long integer": text.replace('"width": 4', f'"width": {"1" * 100_001}', 1),
        "deep": text.replace('"notes": [', '"notes": [' + "[" * 63 + "]" * 63, 1),
    }
    paths = []
    for name, content in cases.items():
        folder = tmp_path / name
        shutil.copytree(source, folder)
        (folder / "network.json").write_text(content)
        paths.append(folder)
    found = by_program(paths)
    assert [verdict.status for verdict in found] == [2, 2, 2]
    assert ["digits" in found[0].line, "digits" in found[1].line, "nested" in found[2].line] == [True] * 3
    if shutil.which("node"):
        assert [verdict.status for verdict in by_page_in_node(paths)] == [2, 2, 2]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert [verdict.status for verdict in by_program([tmp_path, tmp_path / "no.json"])] == [2, 2]


def test_both_programs_implement_every_paragraph_of_the_format() -> None:
    page = (ROOT / "docs" / "howto" / "check-a-proof.rst").read_text(encoding="utf-8")
    defined = set(re.findall(r"^\(([JNITE][0-9])\)$", page, re.MULTILINE))
    assert len(defined) == 4 + 9 + 2 + 4 + 8
    for program in (PROGRAM, PAGE):
        assert set(re.findall(r"\(([JNITE][0-9])\)", program.read_text(encoding="utf-8"))) == defined, program.name


def test_the_program_imports_the_standard_library_alone() -> None:
    names = set()
    for node in ast.walk(ast.parse(PROGRAM.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    assert names <= sys.stdlib_module_names
    assert "eval(" not in PROGRAM.read_text(encoding="utf-8")


def test_the_page_loads_nothing() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    for word in ("http:", "https:", 'src="', "fetch(", "XMLHttpRequest", "import ", "eval(", "innerHTML"):
        assert word not in page, word
