"""A page of plain words about a network: counts, margins, conditioning, and which construction suits the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .network import stages
from .numbers import brief

if TYPE_CHECKING:
    from .network import ExactTransformer

_TROUBLE = 1e12
_CARE = 1e7


def summary(network: ExactTransformer) -> str:
    """Counts, ratios to the published bound, conditioning and a recommendation."""
    data, counts, report = network.data, network.counts, network.report
    heat = "" if network.temperature is None else f" at temperature {brief(network.temperature)}"
    kind = (
        "token-level interpolation"
        if data.token_level
        else (f"classification into {len(network.classes)} classes" if network.classes else "interpolation of sets")
    )
    runs = ", ".join(f"{name or 'blocks'} x {end - start}" for name, start, end in stages(network.blocks))
    lines = [
        f"ExactTransformer: {kind}, construction {network.construction!r}, {network.attention}{heat}",
        f"  data          N = {len(data)} sequences in dimension {network.dimension}, {data.tokens} tokens, "
        f"M = {data.targets} targets, N' = {data.merging}",
        f"  blocks        {counts.blocks} of width {network.width} ({runs})",
        f"    our formula   {counts.formula} with K = {counts.cuts} cuts, {counts.worst_case} in the worst case",
        f"    published     {counts.published}; we use {counts.ratio:.2f} of it",
        f"    necessary     {counts.necessary_blocks} for the hardest data of this shape",
        f"  parameters    {counts.parameters} (necessary for some targets: {counts.necessary_parameters})",
        f"  weights       rationals of at most {network.longest_weight} bits",
        f"  conditioning  range/gap = {report.conditioning:.3g}, smallest gap {report.gap:.3g}",
    ]
    lines += [f"  note          {note}" for note in network.notes]
    lines.append(f"  advice        {advice(network)}")
    return "\n".join(lines)


def advice(network: ExactTransformer) -> str:
    """Which construction to take, in a sentence."""
    ratio = network.report.conditioning
    if network.construction == "paper":
        return "this route is for comparison; 'leaders' needs a fraction of its blocks and keeps float accuracy"
    if ratio > _TROUBLE:
        return (
            "float64 cannot resolve these tokens on a line; the exact network is right: call net(sequence), not its "
            "PyTorch module (tokens are very close together compared with their spread)"
        )
    if network.construction != "conditioned" and (ratio > _CARE and not network.report.flat):
        return "use construction='conditioned' if the network is to be run in floating point"
    if network.construction == "conditioned" and ratio < 1e4:
        return "well conditioned: construction='fewest' would use fewer blocks and still be accurate in float64"
    if network.construction == "witness" and network.report.cuts > 8:
        return "construction='leaders' tells these sequences apart with fewer attention layers"
    return "this construction suits the data"
