"""Softmax rows on a GPU in float32, against torch's own attention."""

from __future__ import annotations

import torch

from benchmarks._table import Check, Report
from benchmarks.gpu._timing import machine, milliseconds
from hardmax.attention.softmax_rows import softmax_means

_BETA = 10.0


def run(quick: bool = False) -> Report:
    """Unit tokens at beta = 10, every token asking every token."""
    n = 16_384 if quick else 131_072
    columns = ["d", "SDPA float32 ms", "SDPA bfloat16 ms", "ours ms", "ratio to float32", "our error", "bfloat16 error"]
    report = Report(f"Softmax rows on a GPU, n = {n}", columns)
    generator = torch.Generator(device="cuda").manual_seed(0)
    for d in (2, 3, 16):
        tokens = torch.nn.functional.normalize(torch.randn(n, d, generator=generator, device="cuda"), dim=1)
        some = tokens[:4096].double()
        truth = torch.softmax(_BETA * some @ tokens.double().T, dim=1) @ tokens.double()
        full = milliseconds(lambda z=tokens: _sdpa(z, torch.float32, 8), repeat=3)
        short = milliseconds(lambda z=tokens: _sdpa(z, torch.bfloat16, 16))
        ours = milliseconds(lambda z=tokens: softmax_means(_BETA * z, z))
        error = _error(softmax_means(_BETA * tokens, tokens)[:4096], truth)
        coarse = _error(_sdpa(tokens, torch.bfloat16, 16)[:4096], truth)
        report.rows.append([d, full, short, ours, full / ours, error, coarse])
        report.checks += [
            Check(f"d = {d}", ours, 8.0, at_least=False, unit="ms"),
            Check(f"d = {d}, error", error, 1e-5, at_least=False, unit=""),
        ]
    report.notes.append(machine())
    report.notes.append("errors: largest relative error of a row against float64, over 4,096 rows")
    return report


def _error(found: torch.Tensor, truth: torch.Tensor) -> float:
    return float(((found.double() - truth).norm(dim=1) / truth.norm(dim=1)).max())


def _sdpa(tokens: torch.Tensor, dtype: torch.dtype, multiple: int) -> torch.Tensor:
    d = tokens.shape[1]
    padded = torch.nn.functional.pad(tokens, (0, -d % multiple)).to(dtype)[None, None]
    return torch.nn.functional.scaled_dot_product_attention(padded, padded, padded, scale=_BETA)[0, 0, :, :d]
