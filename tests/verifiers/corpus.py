"""Networks of every construction, ways to damage their files, and the three programs that judge them."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import save as save_tensors

import hardmax as hm
from hardmax.errors import FileError
from hardmax.interpolation.export.files import read_network
from hardmax.interpolation.network import stacked
from interpolation.families import make

ROOT = Path(__file__).parents[2]
PROGRAM, PAGE = ROOT / "verify" / "verify.py", ROOT / "verify" / "verify.html"

# Every construction under every attention that it supports, and the options that change the blocks.
OPTIONS: list[dict[str, Any]] = [
    {"construction": "leaders"},
    {"construction": "fewest"},
    {"construction": "witness"},
    {"construction": "conditioned"},
    {"construction": "paper"},
    {"construction": "leaders", "attention": "softmax"},
    {"construction": "fewest", "attention": "softmax", "temperature": "1/3"},
    {"construction": "conditioned", "attention": "softmax", "temperature": 2},
    {"construction": "leaders", "flat": True},
    {"construction": "leaders", "width": 2},
    {"construction": "fewest", "width": 9},
    {"construction": "paper", "width": 1},
    {"construction": "leaders", "attention": "softmax", "temperature": "1e-300", "width": 3},
    {"construction": "leaders", "token_level": True},
    {"construction": "fewest", "token_level": True},
    {"construction": "conditioned", "token_level": True},
    {"construction": "witness", "token_level": True},
    {"construction": "leaders", "token_level": True, "attention": "softmax"},
    {"construction": "leaders", "classes": True},
    {"construction": "fewest", "classes": True, "attention": "softmax"},
]
# Families that compile in milliseconds; "many" and "huge" are left to the tests of the constructions.
NAMES = ("grid", "subsets", "symmetric", "flip", "equal_powers", "singletons", "zero_token", "tiny", "rationals",
         "shared_targets", "targets_are_inputs", "on_a_line", "windows", "chain")  # fmt: skip


def compiled(number: int, folder: Path) -> Path:
    """Folder with the files of network ``number``: the options change fastest, then the family of the data."""
    options = dict(OPTIONS[number % len(OPTIONS)])
    turn = number // len(OPTIONS)
    name = NAMES[(number + turn) % len(NAMES)]
    inputs, outputs = make(name, number, d=2 + turn % 2)
    if options.pop("classes", False):
        labels = [f"class {j % 3}" for j in range(len(inputs))]
        return hm.classify_exactly(inputs, labels, **options).save(folder)
    if options.get("token_level"):
        rng = random.Random(number)  # noqa: S311
        outputs = [[tuple(rng.randint(-4, 4) for _ in x) for x in tokens] for tokens in inputs]
    return hm.interpolate(inputs, outputs, **options).save(folder)


@dataclass(frozen=True)
class Damage:
    """A way to damage a saved network; ``repaired`` files have hashes and rounded weights that fit again."""

    name: str
    edit: Callable[[dict[str, Any], random.Random], object]
    repaired: bool = False


def _numbers(record: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Places (container, key) of all weights."""

    def walk(container: Any, key: Any) -> Iterator[tuple[Any, Any]]:
        value = container[key]
        if isinstance(value, str):
            yield container, key
        elif isinstance(value, (list, dict)):
            for inner in range(len(value)) if isinstance(value, list) else value:
                yield from walk(value, inner)

    for block in record["blocks"]:
        for field in ("eta", "U", "b", "W", "rho", "B", "V"):
            yield from walk(block, field)


def _bump(text: str, by: int) -> str:
    """The rational with its numerator changed by ``by``: one unit in the last digit."""
    top, slash, bottom = text.partition("/")
    return f"{int(top) + by}{slash}{bottom}"


def weight(record: dict[str, Any], rng: random.Random) -> None:
    container, key = rng.choice(list(_numbers(record)))
    container[key] = _bump(container[key], rng.choice((-1, 1)))


def huge_weight(record: dict[str, Any], rng: random.Random) -> None:
    container, key = rng.choice(list(_numbers(record)))
    digits = rng.randint(20, 3000)
    container[key] = f"{rng.choice(('', '-'))}1{rng.randint(0, 9)}{'0' * digits}{rng.choice(('', '/7'))}"


def target(record: dict[str, Any], rng: random.Random) -> None:
    point = rng.choice(rng.choice(record["data"]["outputs"]))
    k = rng.randrange(len(point))
    point[k] = _bump(point[k], rng.choice((-1, 1)))


def token(record: dict[str, Any], rng: random.Random) -> None:
    point = rng.choice(rng.choice(record["data"]["inputs"]))
    k = rng.randrange(len(point))
    point[k] = _bump(point[k], rng.choice((-1, 1)))


def swapped_targets(record: dict[str, Any], rng: random.Random) -> None:
    outputs = record["data"]["outputs"]
    if record["data"]["token_level"]:
        outputs = rng.choice(outputs)
    j = rng.randrange(len(outputs))
    others = [k for k, y in enumerate(outputs) if y != outputs[j]]
    if not others:
        target(record, rng)
        return
    k = rng.choice(others)
    outputs[j], outputs[k] = outputs[k], outputs[j]


def dropped_sequence(record: dict[str, Any], rng: random.Random) -> None:
    j = rng.randrange(len(record["data"]["inputs"]))
    del record["data"]["inputs"][j], record["data"]["outputs"][j]


def dropped_sequence_with_its_claim(record: dict[str, Any], rng: random.Random) -> None:
    """The smaller claim is true, so the file is a proof again once its hash fits."""
    if len(record["data"]["inputs"]) < 2:
        return
    before = sum(len(y) for y in record["data"]["outputs"])
    dropped_sequence(record, rng)
    targets = before - sum(len(y) for y in record["data"]["outputs"])
    record["claims"]["published_bound"] -= 2 * targets + (3 if record["attention"] == "softmax" else 2)


def dropped_block(record: dict[str, Any], rng: random.Random) -> None:
    del record["blocks"][rng.randrange(len(record["blocks"]))]
    record["claims"]["blocks"] = len(record["blocks"])


def wrong_claim(record: dict[str, Any], rng: random.Random) -> None:
    name = rng.choice(("blocks", "parameters", "published_bound"))
    record["claims"][name] += rng.choice((-1, 1, 10 ** rng.randint(2, 400)))


def huge_claim(record: dict[str, Any], rng: random.Random) -> None:
    """Numbers that no check reads but as numbers."""
    record["claims"][rng.choice(("gap", "range_over_gap", "cuts"))] = 10 ** rng.randint(20, 1000)


def huge_size(record: dict[str, Any], rng: random.Random) -> None:
    record[rng.choice(("format", "d"))] = 10 ** rng.randint(2, 1000)


def huge_width(record: dict[str, Any], rng: random.Random) -> None:
    """A claim of at most so many neurons, which holds."""
    record["width"] = 10 ** rng.randint(2, 1000)


def bad_number(record: dict[str, Any], rng: random.Random) -> None:
    container, key = rng.choice(list(_numbers(record)))
    bad = ("1.5", " 1", "1 ", "1/0", "", "--1", "+1", "1e3", "0x1", "1_0", "1/-2", "½", "٣", "1\n", 1, 1.5, None, True)
    container[key] = rng.choice(bad)


def other_form(record: dict[str, Any], rng: random.Random) -> None:
    """The same number, not in lowest terms."""
    container, key = rng.choice(list(_numbers(record)))
    top, _, bottom = container[key].partition("/")
    container[key] = f"{int(top) * 6}/{int(bottom or 1) * 6}"


def missing_field(record: dict[str, Any], rng: random.Random) -> None:
    place = rng.choice((record, record["data"], record["claims"], rng.choice(record["blocks"])))
    place.pop(rng.choice(sorted(place)))


def wrong_type(record: dict[str, Any], rng: random.Random) -> None:
    place = rng.choice((record, record["data"], record["claims"], rng.choice(record["blocks"])))
    place[rng.choice(sorted(place))] = rng.choice((None, True, 1, 1.0, "1", [], {}, [[]], [["1"]]))


def repeated_sequence(record: dict[str, Any], rng: random.Random) -> None:
    j = rng.randrange(len(record["data"]["inputs"]))
    for side in ("inputs", "outputs"):
        record["data"][side].append(record["data"][side][j])


def repeated_token(record: dict[str, Any], rng: random.Random) -> None:
    """A repetition is dropped by every reader, so nothing changes."""
    j = rng.randrange(len(record["data"]["inputs"]))
    for side in ("inputs", "outputs") if record["data"]["token_level"] else ("inputs",):
        record["data"][side][j].append(record["data"][side][j][0])


def other_hash(record: dict[str, Any], rng: random.Random) -> None:
    if rng.random() < 0.5:
        record["tensors_sha256"] = "0" * 64
    else:
        record["data"]["sha256"] = record["data"]["sha256"][::-1]


def dense(record: dict[str, Any], rng: random.Random) -> None:
    """B and V as rows in place of outer products; the numbers of parameters and the tensors differ then."""
    from fractions import Fraction

    for block in record["blocks"]:
        for name in ("B", "V"):
            rows = [[Fraction(0)] * record["d"] for _ in range(record["d"])]
            for left, right in zip(block[name]["left"], block[name]["right"], strict=True):
                for i, a in enumerate(left):
                    for j, b in enumerate(right):
                        rows[i][j] += Fraction(a) * Fraction(b)
            block[name] = [[str(x) for x in row] for row in rows]


RECORDS = [
    Damage("weight", weight),
    Damage("weight, files repaired", weight, True),
    Damage("weight, files repaired again", weight, True),
    Damage("huge weight", huge_weight),
    Damage("huge weight, files repaired", huge_weight, True),
    Damage("target", target),
    Damage("target, files repaired", target, True),
    Damage("token, files repaired", token, True),
    Damage("swapped targets", swapped_targets),
    Damage("swapped targets, files repaired", swapped_targets, True),
    Damage("dropped sequence", dropped_sequence),
    Damage("dropped sequence, files repaired", dropped_sequence, True),
    Damage("dropped sequence with its claim", dropped_sequence_with_its_claim, True),
    Damage("dropped block, files repaired", dropped_block, True),
    Damage("wrong claim", wrong_claim),
    Damage("huge claim", huge_claim),
    Damage("huge size", huge_size),
    Damage("huge width", huge_width),
    Damage("bad number", bad_number),
    Damage("other form", other_form),
    Damage("missing field", missing_field),
    Damage("wrong type", wrong_type),
    Damage("repeated sequence", repeated_sequence),
    Damage("repeated token", repeated_token),
    Damage("other hash", other_hash),
    Damage("dense matrices, files repaired", dense, True),
]


def duplicated_key(text: str, rng: random.Random) -> bytes:
    """One key twice in one object, with the same value: JSON readers that take either of them see no change."""
    record = json.loads(text)
    key = rng.choice(sorted(record))
    if rng.random() < 0.5:
        piece = json.dumps(key) + ": " + json.dumps(record[key], ensure_ascii=False)
        return (text.rstrip()[:-1] + ", " + piece + "}").encode()
    return text.replace('"eta"', '"eta": "1", "eta"', rng.choice((1, -1))).encode()


def truncated(text: str, rng: random.Random) -> bytes:
    return text[: rng.randrange(len(text) - 2)].encode()


def not_json(text: str, rng: random.Random) -> bytes:
    nested = "[" * 100_000
    return rng.choice(
        (
            b"\xef\xbb\xbf" + text.encode(),
            text.encode() + b"x",
            text.replace('"notes": [', '"notes": [NaN', 1).encode(),
            text.replace('"notes": [', '"notes": [Infinity', 1).encode(),
            text.replace('"notes": [', '"notes": [01', 1).encode(),
            text.replace('"notes": [', '"notes": ["\t"', 1).encode(),
            text.replace('"notes": [', '"notes": ["\\x"', 1).encode(),
            text.replace('"notes": [', '"notes": ["', 1).encode() + b'"',
            text.encode().replace(b'"notes": [', b'"notes": ["\xff"', 1),
            text.replace('"notes": [', f'"notes": [{nested}', 1).encode(),
            text.replace('"notes": [', '"notes": [1' + "0" * 5000 + "e", 1).encode(),
            b"",
            b"[1, 2]",
            b"null",
        )
    )


TEXTS: dict[str, Callable[[str, random.Random], bytes]] = {
    "duplicated key": duplicated_key,
    "truncated": truncated,
    "not JSON": not_json,
}


def flipped_bit(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(8, len(content))
    return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]


def repair(folder: Path) -> None:
    """Make the hashes and the rounded weights fit the record; files that cannot be read stay as they are."""
    path = folder / "network.json"
    record = json.loads(path.read_text())
    try:
        network, _ = read_network(path)
    except FileError:
        return
    tensors = save_tensors(stacked(network.blocks, network.dimension))
    (folder / "network.safetensors").write_bytes(tensors)
    record["tensors_sha256"] = hashlib.sha256(tensors).hexdigest()
    record["data"]["sha256"] = network.data.digest()
    record["claims"]["parameters"] = sum(block.parameters() for block in network.blocks)
    path.write_text(json.dumps(record, ensure_ascii=False))


KINDS = [damage.name for damage in RECORDS] + list(TEXTS) + ["flipped bit", "flipped bit, hash repaired", "no tensors"]


def damaged(source: Path, kind: str, seed: int, folder: Path) -> Path:
    """Copy of a saved network with one damage."""
    rng = random.Random(f"{kind} {seed}")  # noqa: S311
    shutil.copytree(source, folder)
    path, tensors = folder / "network.json", folder / "network.safetensors"
    if kind in TEXTS:
        path.write_bytes(TEXTS[kind](path.read_text(encoding="utf-8"), rng))
    elif kind == "no tensors":
        tensors.unlink()
    elif kind.startswith("flipped bit"):
        content = flipped_bit(tensors.read_bytes(), rng)
        tensors.write_bytes(content)
        if "repaired" in kind:
            record = json.loads(path.read_text(encoding="utf-8"))
            record["tensors_sha256"] = hashlib.sha256(content).hexdigest()
            path.write_text(json.dumps(record))
    else:
        damage = next(one for one in RECORDS if one.name == kind)
        record = json.loads(path.read_text(encoding="utf-8"))
        damage.edit(record, rng)
        path.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
        if damage.repaired:
            repair(folder)
    return folder


@dataclass(frozen=True)
class Verdict:
    """0 for proved, 1 for not proved, 2 for refused, and the line that a program prints."""

    status: int
    line: str


def by_library(path: Path) -> int:
    """Exit status of ``hardmax verify``."""
    try:
        return 0 if hm.verify(path, progress=False).proved else 1
    except FileError:
        return 2


def by_program(paths: Sequence[Path]) -> list[Verdict]:
    """Verdicts of verify.py, run without site-packages."""
    done = subprocess.run(
        [sys.executable, "-S", "-I", str(PROGRAM), *map(str, paths)], capture_output=True, text=True, encoding="utf-8"
    )
    status = {"PROVED": 0, "NOT PROVED": 1, "REFUSED": 2}
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths), done.stderr
    found = [Verdict(status[line.partition(":")[0]], line) for line in lines]
    assert done.returncode == max(verdict.status for verdict in found)
    return found


# Runs the first script of the page, which holds all of the checking, on pairs of files.
_DRIVER = """
const fs = require("fs"), vm = require("vm");
const core = /<script id="core">([\\s\\S]*?)<\\/script>/.exec(fs.readFileSync(process.argv[1], "utf8"))[1];
vm.runInThisContext(core);
const read = (path) => (path !== null && fs.existsSync(path) ? new Uint8Array(fs.readFileSync(path)) : null);
for (const [data, tensors] of JSON.parse(fs.readFileSync(0, "utf8"))) {
  console.log(JSON.stringify(verdictOf(read(data), read(tensors))));
}
"""


def files_of(path: Path) -> tuple[Path, Path | None]:
    """JSON file and tensors of a network, or a certificate alone."""
    if path.is_dir():
        return path / "network.json", path / "network.safetensors"
    return path, None


def by_page_in_node(paths: Sequence[Path]) -> list[Verdict]:
    """Verdicts of the script of verify.html, run by node."""
    node = shutil.which("node")
    assert node is not None
    pairs = [[str(data), None if tensors is None else str(tensors)] for data, tensors in map(files_of, paths)]
    done = subprocess.run(
        [node, "-e", _DRIVER, str(PAGE)], input=json.dumps(pairs), capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return [Verdict(**json.loads(line)) for line in done.stdout.splitlines()]
