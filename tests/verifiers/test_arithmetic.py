"""Intervals and rounding of the checkers, against mpmath and the definition; both programs compute the same numbers."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import pytest
from mpmath import mp, mpf

from verifiers.corpus import PAGE, PROGRAM
from verifiers.test_networks import needs_node


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = spec_from_file_location("verify", PROGRAM)
    assert spec is not None
    module = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def on_page(expression: str, arguments: list[Any]) -> list[Any]:
    """Values of a JavaScript function of rationals as texts, run with the script of the page by node."""
    driver = """
const fs = require("fs"), vm = require("vm");
vm.runInThisContext(/<script id="core">([\\s\\S]*?)<\\/script>/.exec(fs.readFileSync(process.argv[1], "utf8"))[1]);
const call = vm.runInThisContext(process.argv[2]);
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map((given) => call(...given))));
"""
    node = shutil.which("node")
    assert node is not None
    done = subprocess.run(
        [node, "-e", driver, str(PAGE), expression], input=json.dumps(arguments), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def exponents() -> list[Fraction]:
    rng = random.Random(0)  # noqa: S311
    drawn = [Fraction(rng.randint(-(10**9), 10**8), rng.randint(1, 10**7)) for _ in range(60)]
    return [*drawn, Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2), Fraction(-60_000), Fraction(1, 10**30)]


@pytest.mark.parametrize("bits", [64, 256])
def test_exponentials_are_enclosed_tightly(program: ModuleType, bits: int) -> None:
    for x in exponents():
        low, high = program.exp_of(x, bits)
        with mp.workprec(2 * bits + 400):
            value = mp.exp(mpf(x.numerator) / x.denominator)
            assert mpf(low.numerator) / low.denominator <= value <= mpf(high.numerator) / high.denominator
        assert high - low <= low / 2 ** (bits - 4)
        if x:  # irrational, so the ends differ
            assert low < high


def test_an_exponential_beyond_the_bound(program: ModuleType) -> None:
    low, high = program.exp_of(Fraction(-65_537), 64)
    assert (low, high) == (0, Fraction(1, 2**65_536))
    with pytest.raises(program.UndecidedError):
        program.exp_of(Fraction(65_537), 64)


def test_operations_enclose(program: ModuleType) -> None:
    rng = random.Random(1)  # noqa: S311

    def draw() -> tuple[Any, Fraction]:
        """A number or an interval, and a point of it."""
        ends = sorted(Fraction(rng.randint(-(10**30), 10**30), rng.randint(1, 10**25)) for _ in range(2))
        if rng.random() < 0.3:
            return ends[0], ends[0]
        return tuple(ends), rng.choice((ends[0], ends[1], (ends[0] + ends[1]) / 2))

    for _ in range(300):
        (a, x), (b, y) = draw(), draw()
        for name, exact in (("plus", x + y), ("minus", x - y), ("times", x * y)):
            found = getattr(program, name)(a, b, 20)
            if isinstance(found, Fraction):
                assert found == exact
            else:
                assert found[0] <= exact <= found[1]
        down = program.round_down(x, 20)
        assert down <= x
        assert x - down <= abs(x) / 2**18
        assert abs(down.numerator).bit_length() - (down.numerator & -down.numerator).bit_length() < 21


def test_signs_of_intervals(program: ModuleType) -> None:
    half = Fraction(1, 2)
    assert program.is_positive((half, Fraction(1)))
    assert not program.is_positive((-half, Fraction(0)))
    with pytest.raises(program.UndecidedError):
        program.is_positive((-half, half))
    with pytest.raises(program.UndecidedError):
        program.is_positive((Fraction(0), half))


def floats() -> list[Fraction]:
    rng = random.Random(2)  # noqa: S311
    drawn = [Fraction(rng.randint(-(10**40), 10**40), 10 ** rng.randint(0, 380)) for _ in range(200)]
    drawn += [Fraction(rng.randint(1, 2**54)) * Fraction(2) ** rng.randint(-1130, 1000) for _ in range(200)]
    ties = [Fraction(2**53 + 1), Fraction(2**53 + 3), Fraction(2**54 + 2), Fraction(1, 2**1075), Fraction(3, 2**1075)]
    ends = [Fraction(2**1024), Fraction(2**1024) - 2**970, Fraction(2**1024) - 2**970 - 1, Fraction(1, 2**1076)]
    return [*drawn, *ties, *ends, Fraction(0), -Fraction(2**1024), -Fraction(1, 2**1080)]


def nearest(x: Fraction) -> float:
    """By definition: Python's own conversion, infinite beyond the range, never zero for a number that is not."""
    try:
        value = float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
    return value or math.copysign(5e-324, x) if x else 0.0


def test_rounding_to_floats(program: ModuleType) -> None:
    for x in floats():
        assert program.nearest_float(x) == nearest(x), x


@needs_node
def test_the_page_computes_the_same_numbers(program: ModuleType) -> None:
    rounded = on_page("(x) => nearestFloat(number(x, '')).toString()", [[str(x)] for x in floats()])
    assert [float(value.replace("Infinity", "inf")) for value in rounded] == [nearest(x) for x in floats()]
    call = "(x, bits) => { const i = expOf(number(x, ''), bits); return [textOf(i.low), textOf(i.high)]; }"
    moderate = [
        x for x in exponents() if abs(x) < 2000
    ]  # ends that Python writes in decimal digits without being asked
    assert len(moderate) > 40
    found = on_page(call, [[str(x), 64] for x in moderate])
    assert found == [[str(end) for end in program.exp_of(x, 64)] for x in moderate]


@needs_node
def test_the_page_hashes_as_hashlib_does() -> None:
    import hashlib

    texts = ["", "abc", "a" * 55, "a" * 56, "a" * 63, "a" * 64, "a" * 65, "é" * 1000]
    found = on_page("(text) => new Sha256().update(new TextEncoder().encode(text)).hex()", [[text] for text in texts])
    assert found == [hashlib.sha256(text.encode()).hexdigest() for text in texts]
