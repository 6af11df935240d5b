"""What a check of the theory found: each statement with the numbers, a verdict and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from ..dynamics.assumptions import Assumptions


@dataclass(frozen=True)
class Finding:
    """One statement of the theory, held against one run."""

    name: str
    statement: str
    holds: bool | None
    """None where what was given does not allow to tell."""
    worst: float
    """The largest violation measured (0 where there is none), in the units that the sentence names."""
    tolerance: float
    """The largest violation that counts as rounding."""
    sentence: str

    def __str__(self) -> str:
        verdict = {True: "holds", False: "VIOLATED", None: "not known"}[self.holds]
        return f"{verdict:9} {self.name}: {self.sentence}"


def measured(name: str, statement: str, worst: float, tolerance: float, sentence: str) -> Finding:
    """A finding whose verdict is whether the worst violation is within the tolerance."""
    return Finding(name, statement, bool(worst <= tolerance), worst, tolerance, sentence)


def unknown(name: str, statement: str, why: str) -> Finding:
    """A finding about which nothing can be said."""
    return Finding(name, statement, None, 0.0, 0.0, why)


@dataclass(frozen=True)
class TheoremReport:
    """Theorem 1.1 and the facts around it, checked on one run or limit."""

    assumptions: Assumptions
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing that could be checked was violated."""
        return not self.violations

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The statements that do not hold."""
        return tuple(finding for finding in self.findings if finding.holds is False)

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"no finding is called {name!r}: {', '.join(f.name for f in self.findings)}")

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join([str(self.assumptions), *(str(finding) for finding in self.findings)])
