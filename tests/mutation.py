"""Mutation testing: change the code at random places and count how many changes some test notices.

    python tests/mutation.py --sample 200 --seed 0

Mutants are made by cosmic-ray in a copy of ``src``. A place in the code is drawn uniformly, then one of the operators
that apply there. Each mutant is judged by the tests that run its line, the quickest first (coverage with a context per
test; measured once and kept in the output folder), or by all tests of its module where the line runs at import only.
Results are appended to a CSV file, so an interrupted run resumes. Exit status 1 where fewer than 90 % are killed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from queue import Queue

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("attention", "dynamics", "geometry", "interpolation")
TESTS = (*PACKAGES, "models", "contracts", "test_polytopes.py", "test_odd_inputs.py", "text/test_device_training.py")
FROZEN = "tests/test_structure.py::test_values_are_frozen"  # reads the source, so coverage does not see what it tests
KILLED_AT_LEAST = 0.90
# Mutants that cannot change any answer, each with the reason: columns package, before, after, reason.
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.csv")
# Seconds of tests per mutant: lines at the core run in every test, and the quickest of them decide. A mutant that only
# a longer selection would notice counts as one that survived.
TEST_SECONDS = 120
# A mutant that loops for ever counts as noticed: so many times the seconds that its tests take, and a start.
SLOWER, START_SECONDS = 6, 60
# Replacing an operator by one of another type (a float shifted by bits, say) only tests the interpreter.
OPERATORS = (
    "ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add", "ReplaceBinaryOperator_Mul_Div",
    "ReplaceBinaryOperator_Div_Mul", "ReplaceBinaryOperator_FloorDiv_Mul", "ReplaceBinaryOperator_Mod_Mul",
    "ReplaceBinaryOperator_Pow_Mul", "ReplaceBinaryOperator_LShift_RShift", "ReplaceBinaryOperator_RShift_LShift",
    "ReplaceBinaryOperator_BitAnd_BitOr", "ReplaceBinaryOperator_BitOr_BitAnd",
    "ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq", "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_Lt_GtE", "ReplaceComparisonOperator_LtE_Lt", "ReplaceComparisonOperator_LtE_Gt",
    "ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_Gt_LtE", "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_GtE_Lt", "ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Invert", "ReplaceUnaryOperator_Delete_Not",
    "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    line: int
    column: int
    operator: str
    occurrence: int


@dataclass(frozen=True)
class Verdict(Mutant):
    """What became of a mutant."""

    before: str
    after: str
    killed: bool
    reason: str


def mutants() -> list[Mutant]:
    """Every mutant of the packages, in a fixed order."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    found = []
    operators = {name: get_operator(f"core/{name}")() for name in OPERATORS}
    for path in sorted(file for package in PACKAGES for file in (ROOT / "src/hardmax" / package).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        ignored = _annotations(source) | _strict_flags(source) | _markers(source)
        counts = dict.fromkeys(OPERATORS, 0)
        for node in ast_nodes(get_ast(source)):
            for name, operator in operators.items():
                for (line, column), _ in operator.mutation_positions(node):
                    if (line, column) not in ignored:
                        found.append(Mutant(str(path.relative_to(ROOT)), line, column, name, counts[name]))
                    counts[name] += 1
    return found


def _annotations(source: str) -> set[tuple[int, int]]:
    """Positions inside type annotations, which are never evaluated."""
    places: set[tuple[int, int]] = set()
    for node in ast.walk(ast.parse(source)):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        for part in parts:
            if isinstance(part, ast.expr):
                lines = range(part.lineno, (part.end_lineno or part.lineno) + 1)
                for line in lines:
                    first = part.col_offset if line == part.lineno else 0
                    last = part.end_col_offset or 0 if line == part.end_lineno else 1000
                    places.update((line, column) for column in range(first, last + 1))
    return places


def _strict_flags(source: str) -> set[tuple[int, int]]:
    """Positions of the flags in ``zip(..., strict=True)``: assertions, which correct code never triggers."""
    return {
        (node.value.lineno, node.value.col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.keyword) and node.arg == "strict"
    }


def _markers(source: str) -> set[tuple[int, int]]:
    """Positions of ``*`` and ``**`` that are no operators: markers of keyword-only arguments, and unpacking."""
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
    ]
    return {
        token.start
        for before, token in itertools.pairwise(tokens)
        if token.string in ("*", "**") and before.type == tokenize.OP and before.string not in (")", "]", "}")
    }


def sample(everything: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """Mutants at places drawn uniformly; one operator a place."""
    by_place: dict[tuple[str, int, int], list[Mutant]] = {}
    for mutant in everything:
        by_place.setdefault((mutant.path, mutant.line, mutant.column), []).append(mutant)
    generator = random.Random(seed)  # noqa: S311
    chosen = generator.sample(sorted(by_place), min(size, len(by_place)))
    return [generator.choice(by_place[place]) for place in chosen]


class Timer:
    """A pytest plugin that remembers how long each test took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


class Selection:
    """The tests that run a line of code, from the coverage that was measured in ``folder``."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self._data = coverage.CoverageData(str(folder / "coverage"))
        self._data.read()
        self._seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text())

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Node identifiers of tests, the quickest first."""
        by_line = self._data.contexts_by_lineno(str(ROOT / mutant.path))
        contexts = {context for context in by_line.get(mutant.line, []) if context}
        if not contexts:
            contexts = {context for line in by_line.values() for context in line if context} | {FROZEN}
        if "kernels" in mutant.path:  # Triton's interpreter runs a rewritten copy that coverage does not see
            contexts |= {test for test in self._seconds if "test_kernels" in test}
        tests = {context.split("|")[0] for context in contexts}
        known = sorted(tests & {*self._seconds, FROZEN}, key=self.seconds_of)
        total = itertools.accumulate(map(self.seconds_of, known))
        return [test for test, seconds in zip(known, total, strict=True) if seconds <= TEST_SECONDS] or known[:1]

    def seconds_of(self, test: str) -> float:
        """How long a test took."""
        return self._seconds.get(test, 0.0)


def measure(folder: Path) -> None:
    """Run all tests once, with coverage by test."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["COVERAGE_FILE"] = str(folder / "coverage")
    timer = Timer()
    sources = [f"--cov=hardmax.{package}" for package in PACKAGES]
    status = pytest.main(
        [*(f"tests/{name}" for name in TESTS), *sources, "--cov-context=test", "--cov-report=", *_OPTIONS],
        plugins=[timer],
    )
    if status != 0:
        sys.exit("the tests must pass before the code is changed")
    (folder / "seconds.json").write_text(json.dumps(timer.seconds))


_OPTIONS = ["-q", "-x", "-m", "not slow", "--hypothesis-profile=repeatable", "-p", "no:cacheprovider"]


def judge(mutant: Mutant, copy: Path, selection: Selection) -> Verdict:
    """Apply the mutant to the copy, run its tests, and restore the copy."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    target = copy / mutant.path
    source = target.read_text(encoding="utf-8")
    changed = mutate_code(source, get_operator(f"core/{mutant.operator}")(), mutant.occurrence)
    before, after = _lines_that_differ(source, changed)
    tests = selection.tests_of(mutant)
    if not tests:
        return Verdict(**asdict(mutant), before=before, after=after, killed=False, reason="no test runs this line")
    target.write_text(changed, encoding="utf-8")
    try:
        killed, reason = _run(tests, copy, START_SECONDS + SLOWER * sum(map(selection.seconds_of, tests)))
    finally:
        target.write_text(source, encoding="utf-8")
    return Verdict(**asdict(mutant), before=before, after=after, killed=killed, reason=reason)


def _lines_that_differ(source: str, changed: str) -> tuple[str, str]:
    for old, new in zip(source.splitlines(), changed.splitlines(), strict=False):
        if old != new:
            return old.strip(), new.strip()
    return "", ""


def _run(tests: list[str], copy: Path, seconds: float) -> tuple[bool, str]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as arguments:
        arguments.write("\n".join(tests))
        arguments.flush()
        environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", *_OPTIONS, "-p", "no:randomly", f"@{arguments.name}"]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return True, f"no end within {seconds:.0f} s"
    if done.returncode == 0:
        return False, f"{len(tests)} tests pass"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return True, failed[0].split(" - ")[0] if failed else f"exit status {done.returncode}"


@contextmanager
def copies(number: int) -> Iterator[Queue[Path]]:
    """Copies of ``src``, one a worker."""
    with tempfile.TemporaryDirectory() as folder:
        queue: Queue[Path] = Queue()
        for k in range(number):
            copy = Path(folder) / str(k)
            shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
            queue.put(copy)
        yield queue


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants (200)")
    parser.add_argument("--seed", type=int, default=0, help="which sample (0)")
    parser.add_argument("--workers", type=int, default=2, help="mutants judged at a time (2)")
    parser.add_argument("--output", type=Path, default=ROOT / "out/mutation", help="folder of coverage and results")
    asked = parser.parse_args()
    os.chdir(ROOT)
    if not (asked.output / "seconds.json").exists():
        print("Measuring which test runs which line: a few minutes.", flush=True)
        measure(asked.output)
    results = asked.output / f"mutants-{asked.seed}.csv"
    chosen = sample(mutants(), asked.sample, asked.seed)
    done = _read(results)
    todo = [mutant for mutant in chosen if _key(mutant) not in done]
    selection = Selection(asked.output)
    with copies(asked.workers) as free, ThreadPoolExecutor(asked.workers) as pool:

        def work(mutant: Mutant) -> Verdict:
            copy = free.get()
            try:
                return judge(mutant, copy, selection)
            finally:
                free.put(copy)

        for verdict in pool.map(work, todo):
            done[_key(verdict)] = verdict
            _append(results, verdict)
            word = "killed" if verdict.killed else "SURVIVED"
            print(f"{len(done)}/{len(chosen)} {word} {verdict.path}:{verdict.line} {verdict.after}", flush=True)
    _summarise([done[_key(mutant)] for mutant in chosen])


def _key(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.path, mutant.operator, str(mutant.occurrence)


def _read(path: Path) -> dict[tuple[str, str, str], Verdict]:
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            Verdict(**{**row, "line": int(row["line"]), "killed": row["killed"] == "True"})
            for row in csv.DictReader(file)
        ]
    return {_key(row): row for row in rows}


def _append(path: Path, verdict: Verdict) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Verdict)])
        if new:
            writer.writeheader()
        writer.writerow(asdict(verdict))


def equivalents() -> dict[tuple[str, str, str], str]:
    """Reasons why a mutant changes no answer, by package and by the line before and after the change."""
    with EQUIVALENT.open(newline="", encoding="utf-8") as file:
        return {(row["package"], row["before"], row["after"]): row["reason"] for row in csv.DictReader(file)}


def _summarise(verdicts: list[Verdict]) -> None:
    reasons = equivalents()
    survived = [verdict for verdict in verdicts if not verdict.killed]
    same = [verdict for verdict in survived if _identity(verdict) in reasons]
    killed, judged = len(verdicts) - len(survived), len(verdicts) - len(same)
    for verdict in survived:
        why = reasons.get(_identity(verdict))
        print(f"{'equivalent' if why else 'SURVIVED'}: {verdict.path}:{verdict.line} ({why or verdict.reason})")
        print(f"  - {verdict.before}\n  + {verdict.after}")
    print(
        f"\n{len(verdicts)} mutants: {killed} killed, {len(same)} equivalent to the code, "
        f"{len(survived) - len(same)} survived; killed of those that can be: {killed / judged:.1%}"
    )
    sys.exit(killed < KILLED_AT_LEAST * judged)


def _identity(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.path.split("/")[2], verdict.before, verdict.after


if __name__ == "__main__":
    main()
