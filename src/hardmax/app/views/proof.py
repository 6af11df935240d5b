"""A certificate to read: what was proved, for which data, with which margins."""

from __future__ import annotations

import html
import math

from ...interpolation.certificate import Certificate
from ..network_recipes import counted

_FAILURES_SHOWN = 5


def proof(certificate: Certificate, *, stale: bool = False) -> str:
    """The certificate as a piece of HTML; a stale one, of other data than are shown, claims nothing."""
    if stale:
        return "<p class='soft' style='font-size:20px;font-weight:650;margin:0'>Not proved for what is shown</p>"
    mark, colour = ("✓ Proved", "--hm-good") if certificate.proved else ("✗ Not proved", "--hm-warm")
    rows = [
        ("arithmetic", certificate.arithmetic),
        ("attention", certificate.attention),
        ("sequences", f"{certificate.sequences:,} with {counted(certificate.tokens, 'token')}"),
        ("smallest pre-activation", _margin(certificate.activation_margin)),
        ("smallest lead of a best score", _margin(certificate.score_margin)),
        ("largest float64 error", f"{certificate.float64_error:.3g}"),
        ("time for the proof", f"{certificate.seconds:.2g} s"),
    ]
    table = "".join(f"<tr><td class='soft'>{name}</td><td>{html.escape(value)}</td></tr>" for name, value in rows)
    # Sequences are counted from 1 here, as on the board.
    failures = [f"sequence {failure.sequence + 1}: {failure.reason}" for failure in certificate.failures]
    troubles = [*failures[:_FAILURES_SHOWN], *certificate.problems[:_FAILURES_SHOWN]]
    listed = "".join(f"<li>{html.escape(trouble)}</li>" for trouble in troubles)
    return (
        f"<p style='font-size:20px;font-weight:650;color:var({colour});margin:0'>{mark}</p>"
        f"<p class='soft' style='margin:2px 0'>SHA-256 of the data</p><code class='hash' style='overflow-wrap:anywhere;"
        f"font-size:12px'>{certificate.data_hash}</code><table style='width:100%'>{table}</table>"
        f"{f'<ul>{listed}</ul>' if listed else ''}"
    )


def _margin(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "nothing had to be decided"
