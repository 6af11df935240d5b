"""Certificates of equilibria: written by the library, checked by verify.py and verify.html, and right."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hardmax as hm
from hardmax.errors import InputError
from verifiers.corpus import Verdict, by_page_in_node, by_program
from verifiers.test_networks import alike, needs_node

ALPHAS = (Fraction(1, 2), Fraction(1, 7), Fraction(3), Fraction(1, 20))
# Ties that only the argument about all later layers decides (docs/devdocs/ties.rst), joint leaders, and zero tokens.
SPECIAL = [
    (np.array([[1, 0, 1], [-1, 0, 1], [0, 1.5, 1], [0, 1.25, 1.0625], [0, -0.5, 0.5]]), np.eye(3)),
    (np.array([[2, 2, 0], [-2, 2, 0], [1, 2, 1], [-1, 2, 1], [0, 1, 0.5]]), np.eye(3)),
    (np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])),
    (np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]), np.eye(2)),
    (np.array([[3.0]]), np.eye(1)),
]


def system(seed: int) -> tuple[np.ndarray, hm.HardmaxLayer, np.ndarray | None]:
    """Tokens on a small grid (many ties) or at random, a matrix of any sign, and weights now and then."""
    if seed < len(SPECIAL):
        return SPECIAL[seed][0], hm.HardmaxLayer(Fraction(1, 2), SPECIAL[seed][1]), None
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    A = (np.eye(d), np.diag(rng.integers(1, 4, d)), rng.integers(-2, 3, (d, d)), -np.eye(d))[seed % 4].astype(float)
    tokens = rng.integers(-2, 3, (n, d)).astype(float) if seed % 3 else rng.normal(size=(n, d)).round(3)
    if seed % 5 == 0:
        tokens = np.vstack([tokens, -tokens, np.zeros((1, d))])
    weights = rng.integers(1, 4, len(tokens)).astype(float) if seed % 7 == 0 else None
    return tokens, hm.HardmaxLayer(ALPHAS[seed // 4 % 4], A), weights


def certified(seeds: range) -> dict[int, hm.EquilibriumCertificate]:
    found = {}
    for seed in seeds:
        tokens, layer, weights = system(seed)
        try:
            found[seed] = hm.equilibrium_certificate(tokens, layer, weights=weights, max_layers=12)
        except InputError as error:
            if "undecided" not in str(error):
                raise
    return found


def judged(records: list[dict[str, Any]], folder: Path) -> list[Verdict]:
    """Verdicts of verify.py, the same as those of the page where node is installed."""
    paths = []
    for k, record in enumerate(records):
        paths.append(folder / f"{k}.json")
        paths[-1].write_text(json.dumps(record))
    found = by_program(paths)
    if shutil.which("node"):
        others = by_page_in_node(paths)
        assert [pair for pair in zip(found, others, strict=True) if not alike(*pair)] == []
    return found


def test_certificates_are_proofs(tmp_path: Path) -> None:
    certificates = certified(range(45))
    assert len(certificates) > 35
    kinds = Counter(fate.kind for certificate in certificates.values() for fate in certificate.fates)
    assert min(kinds[kind] for kind in ("leader", "follower", "tie", "last", "zero")) > 0
    verdicts = judged([certificate.to_dict() for certificate in certificates.values()], tmp_path)
    assert [verdict for verdict in verdicts if verdict.status != 0] == []


def test_limits_are_those_of_the_equilibrium() -> None:
    for seed, certificate in certified(range(30)).items():
        tokens, layer, weights = system(seed)
        exact = hm.HardmaxLayer(layer.alpha, layer.A, tolerance="exact")
        limit = hm.equilibrium(tokens, exact, weights=weights, max_layers=30)
        place = {fate.token: fate for fate in certificate.fates}
        assert set(certificate.leaders) <= set(limit.leaders.tolist())
        for i, z in enumerate(tokens.tolist()):
            first = next(j for j in place if tokens[j].tolist() == z)
            assert np.allclose([float(c) for c in place[first].limit], limit.positions[i], rtol=0, atol=1e-12)
            assert place[first].decided_at == limit.decided_at[i]


def bump(text: str, rng: random.Random) -> str:
    top, slash, bottom = text.partition("/")
    return str(Fraction(f"{int(top) + rng.choice((-1, 1))}{slash}{bottom}"))


def _limit(record: dict[str, Any], rng: random.Random) -> None:
    limit = rng.choice(record["fates"])["limit"]
    k = rng.randrange(len(limit))
    limit[k] = bump(limit[k], rng)


def _margin(record: dict[str, Any], rng: random.Random) -> None:
    fate = rng.choice(record["fates"])
    fate["margin"] = "1" if fate["margin"] is None else bump(fate["margin"], rng)


def _members(record: dict[str, Any], rng: random.Random) -> None:
    fate = rng.choice(record["fates"])
    other = rng.choice(record["fates"])["token"]
    kept = [m for m in fate["attends_to"] if m != other]
    fate["attends_to"] = kept if len(kept) < len(fate["attends_to"]) else sorted([*kept, other])


def _kind(record: dict[str, Any], rng: random.Random) -> None:
    fate = rng.choice(record["fates"])
    same = ("tie", "last") if fate["kind"] == "tie" else (fate["kind"],)  # what stands may also be proved as the last
    fate["kind"] = rng.choice([k for k in ("leader", "follower", "tie", "last", "zero", "king") if k not in same])


def _layer(record: dict[str, Any], rng: random.Random) -> None:
    fate = rng.choice(record["fates"])
    fate["decided_at"] += rng.choice((-1, 1))
    record["layers"] = max(one["decided_at"] for one in record["fates"])


def _leaders(record: dict[str, Any], rng: random.Random) -> None:
    record["leaders"] = record["leaders"][1:] if record["leaders"] else [0]


def _layers(record: dict[str, Any], rng: random.Random) -> None:
    record["layers"] += rng.choice((-1, 1, 10**300))


def _token(record: dict[str, Any], rng: random.Random) -> None:
    token = rng.choice(record["tokens"])
    k = rng.randrange(len(token))
    token[k] = bump(token[k], rng)


def _matrix(record: dict[str, Any], rng: random.Random) -> None:
    row = rng.choice(record["A"])
    k = rng.randrange(len(row))
    row[k] = bump(row[k], rng)


def _alpha(record: dict[str, Any], rng: random.Random) -> None:
    record["alpha"] = bump(record["alpha"], rng)


def _weights(record: dict[str, Any], rng: random.Random) -> None:
    record["weights"] = [rng.choice(("1", "2", "5/2", "0")) for _ in record["tokens"]]


def _fate(record: dict[str, Any], rng: random.Random) -> None:
    del record["fates"][rng.randrange(len(record["fates"]))]


def _huge(record: dict[str, Any], rng: random.Random) -> None:
    rng.choice(record["tokens"])[0] = "1" + "0" * rng.randint(20, 2000)


DAMAGES = (_limit, _margin, _members, _kind, _layer, _leaders, _layers, _token, _matrix, _alpha, _weights, _fate, _huge)
# Statements that stay as they are under these damages, so that the file cannot be a proof.
ALWAYS_WRONG = (_limit, _margin, _members, _kind, _leaders, _layers, _fate)


def is_a_proof(record: dict[str, Any]) -> bool:
    """Whether the library writes this very certificate for the tokens, A, alpha and weights in it."""

    def exact(rows: list[list[str]]) -> np.ndarray:
        values = np.array([[float(Fraction(c)) for c in row] for row in rows])
        assert [[Fraction(x) for x in row] for row in values.tolist()] == [[Fraction(c) for c in row] for row in rows]
        return values

    weights = None if record["weights"] is None else exact([record["weights"]])[0]
    try:
        layer = hm.HardmaxLayer(Fraction(record["alpha"]), exact(record["A"]))
        again = hm.equilibrium_certificate(exact(record["tokens"]), layer, weights=weights, max_layers=60)
    except InputError:
        return False
    return again.to_dict() == record


def damaged(seeds: range, turns: range) -> list[tuple[Callable[..., None], dict[str, Any]]]:
    sound = [certificate.to_dict() for certificate in certified(seeds).values()]
    found = []
    for turn in turns:
        for k, damage in enumerate(DAMAGES):
            rng = random.Random(f"{damage.__name__} {turn}")  # noqa: S311
            record = json.loads(json.dumps(sound[(5 * turn + 7 * k) % len(sound)]))
            damage(record, rng)
            found.append((damage, record))
    return found


def compare(found: list[tuple[Callable[..., None], dict[str, Any]]], folder: Path) -> int:
    """Number of rejected certificates, after a comparison with the library."""
    verdicts = judged([record for _, record in found], folder)
    for (damage, record), verdict in zip(found, verdicts, strict=True):
        if damage in ALWAYS_WRONG:
            assert verdict.status > 0, (damage.__name__, record)
        elif damage not in (_huge, _layer):  # a later layer may be proved as well
            assert (verdict.status == 0) == is_a_proof(record), (damage.__name__, verdict, record)
    return sum(verdict.status > 0 for verdict in verdicts)


def test_damaged_certificates_are_rejected(tmp_path: Path) -> None:
    assert compare(damaged(range(40), range(8)), tmp_path) > 80


@pytest.mark.slow
@needs_node
def test_a_thousand_damaged_certificates_are_rejected(tmp_path: Path) -> None:
    certificates = certified(range(600))
    verdicts = judged([certificate.to_dict() for certificate in certificates.values()], tmp_path)
    assert len(verdicts) > 450
    assert all(verdict.status == 0 for verdict in verdicts)
    assert compare(damaged(range(200), range(100)), tmp_path) >= 1000


def _claimed(
    tokens: list[list[str]], A: list[list[str]], fates: list[tuple[str, list[int], str | None, list[str]]]
) -> dict:
    """A certificate with every decision at layer 0."""
    return {
        "format": 1, "kind": "equilibrium", "d": 2, "A": A, "alpha": "1/2", "tokens": tokens, "weights": None,
        "layers": 0,
        "leaders": [i for i, fate in enumerate(fates) if fate[0] == "leader"],
        "fates": [
            {"token": i, "kind": kind, "decided_at": 0, "attends_to": members, "margin": margin, "limit": limit}
            for i, (kind, members, margin, limit) in enumerate(fates)
        ],
    }  # fmt: skip


def test_false_statements_with_the_right_sets_and_margins_are_not_proved(tmp_path: Path) -> None:
    """What holds at layer 0 in each of them does not last: a tie that dissolves, a follower of a follower, zero."""
    identity = [["1", "0"], ["0", "1"]]
    tied = [["1", "2"], ["1", "-1"], ["1/2", "0"]]
    leaders = [("leader", [0], "9/2", tied[0]), ("leader", [1], "3/2", tied[1])]
    chain = [["3", "0"], ["2", "1"], ["1/4", "1"]]
    kernel = [["1", "-1/2"], ["-1", "-1/2"], ["0", "1"]]
    records = [
        _claimed(tied, identity, [*leaders, ("tie", [0, 1], "1/4", ["1", "1/2"])]),
        _claimed(tied, identity, [*leaders, ("last", [0, 1], "1/4", ["1", "1/2"])]),
        _claimed(
            chain,
            identity,
            [
                ("leader", [0], "3", chain[0]),
                ("follower", [0], "1", chain[0]),
                ("follower", [1], "7/16", chain[1]),
            ],
        ),
        _claimed(
            kernel,
            [["1", "0"], ["0", "0"]],
            [("leader", [0], "1", kernel[0]), ("leader", [1], "1", kernel[1]), ("zero", [0, 1, 2], None, ["0", "0"])],
        ),
    ]
    # At layer 1 the third token attends to the second alone, which follows the first and still moves.
    later = json.loads(json.dumps(records[2]))
    later["layers"] = later["fates"][2]["decided_at"] = 1
    later["fates"][2].update(margin="1/9", limit=["7/3", "2/3"])
    records.append(later)
    verdicts = judged(records, tmp_path)
    assert [verdict.status for verdict in verdicts] == [1, 1, 1, 1, 1]
    last, leader = "is not proved to last", "is not a leader"
    reasons = (last, last, leader, "mean of all tokens", leader)
    for reason, verdict in zip(reasons, verdicts, strict=True):
        assert "token 2, " in verdict.line
        assert reason in verdict.line


def test_duplicated_keys_are_refused(tmp_path: Path) -> None:
    text = json.dumps(certified(range(7, 8))[7].to_dict())
    (tmp_path / "twice.json").write_text(text.replace('"alpha"', '"alpha": "1/2", "alpha"'))
    (verdict,) = by_program([tmp_path / "twice.json"])
    assert verdict.status == 2
    assert "alpha' twice" in verdict.line


def test_a_token_in_the_kernel_of_a_is_not_sent_to_zero() -> None:
    """Its limit is half the sum of the leaders, -1/2, not zero: the mean of all is zero at layer 0 only."""
    tokens, A = np.array([[1.0, -0.5], [-1.0, -0.5], [0.0, 1.0]]), np.diag([1.0, 0.0])
    for tolerance in (None, "exact"):
        layer = hm.HardmaxLayer(0.5, A, tolerance=tolerance)
        limit = hm.equilibrium(tokens, layer, max_layers=100)
        assert limit.positions[2, 1] == pytest.approx(-0.5, abs=1e-6)
    with pytest.raises(InputError, match="1 token undecided"):
        hm.equilibrium_certificate(tokens, hm.HardmaxLayer(0.5, A), max_layers=20)


def test_layers_without_certificates_are_refused() -> None:
    with pytest.raises(InputError, match="one head"):
        hm.equilibrium_certificate([[1.0, 2.0]], hm.HardmaxLayer(0.5, causal=True))
    with pytest.raises(InputError, match="one head"):
        hm.equilibrium_certificate([[1.0, 2.0]], hm.SoftmaxLayer(0.5))  # type: ignore[arg-type]


def test_saved_and_printed(tmp_path: Path) -> None:
    certificate = hm.equilibrium_certificate([[2.0, 0.0], [2.0, 0.0], [0.5, 0.125], [-1.0, 0.25]])
    path = certificate.save(tmp_path / "limit.json")
    assert json.loads(path.read_text()) == certificate.to_dict()
    assert str(certificate) == "Certificate of an equilibrium: 4 tokens, 2 leaders, 2 limit points, decided by layer 0"
    assert [fate.token for fate in certificate.fates] == [0, 2, 3]
    (verdict,) = by_program([path])
    assert verdict.line == (
        "PROVED: all 4 tokens converge, to 2 limit points; 2 leaders, every set of attended tokens is constant "
        "from layer 0 on"
    )
