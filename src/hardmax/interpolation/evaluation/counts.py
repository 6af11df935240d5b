r"""Numbers of blocks and parameters with their bounds, and a summary of a network in words.

With :math:`M=\sum_j m^j` targets, :math:`N'` sequences that lose tokens, K cuts and width h, the line stage uses
at most :math:`1+M+N'` neurons (:math:`1+2M` when flat).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arithmetic.numbers import brief
from ..data import DataSet
from ..network import CompiledNetwork, stages


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(frozen=True)
class Counts:
    """Blocks and parameters of one network, with the bounds for its data."""

    blocks: int
    """Number of blocks."""
    neurons: int
    """Number of neurons of all feed-forward layers."""
    parameters: int
    """Number of weights, zeros included."""
    cuts: int
    """K: number of knots, queries or witnesses used to separate the sequences."""
    formula: int
    """Bound on the blocks for this construction, width and number of cuts (derived in the developer notes)."""
    worst_case: int
    """The same bound with the largest number of cuts that any data of this size can need, N-1."""
    published: int
    """Published bound on the blocks, for width 4."""
    necessary_blocks: int
    """Blocks that the hardest data of this shape need: 2 (unlimited width) or the rank bound where d >= M."""
    necessary_parameters: int
    """Parameters that some choice of the targets needs: M d."""

    @property
    def ratio(self) -> float:
        """Number of blocks over the published bound."""
        return self.blocks / self.published


def published_bound(data: DataSet, *, softmax: bool) -> int:
    """Number of blocks of the theorem in the paper."""
    return 2 * data.targets + (3 * len(data) if softmax else 2 * len(data) + 1)


def necessary_blocks(data: DataSet, width: int) -> int:
    r"""Lower bound on the blocks for the hardest data of this shape, over networks whose attention has rank one.

    Tokens on a line through zero have outputs in a subspace of dimension :math:`1+(h+1)L`; independent targets, which
    exist when :math:`d\ge M`, force :math:`L\ge (M-1)/(h+1)`. Two sequences and their union force two blocks at any
    width.
    """
    rank = _ceil(data.targets - 1, width + 1) if data.dimension >= data.targets else 0
    return max(rank, 2 if len(data) >= 3 else 1)


def line_bound(data: DataSet, width: int, *, flat: bool, single: bool = False) -> int:
    """Bound on the blocks of the line stage; ``single`` when every sequence is already one point."""
    if flat:
        return _ceil(2 * data.targets + 1, width)
    return _ceil(data.targets + (0 if single else data.merging) + 1, width)


def block_bound(data: DataSet, construction: str, cuts: int, width: int, *, flat: bool) -> int:
    """Bound on the number of blocks of a construction (derived in the developer notes)."""
    n = len(data)
    single = all(len(y) == 1 for y in data.outputs) and not data.token_level
    if construction == "paper":
        moves = 1 if width >= 3 else _ceil(3, width) + 1
        return (n - 1) * _ceil(4, width) + 2 * data.targets * moves + (0 if width >= 4 else 1)
    if n == 1:
        return line_bound(data, width, flat=flat)
    if construction == "fewest":
        return max(1, _ceil(cuts, width)) + line_bound(data, width, flat=flat, single=single)
    if construction == "conditioned":
        return _ceil(cuts + 2, width) + _ceil(2 * n, width) + line_bound(data, width, flat=flat)
    each = _ceil(2 if construction == "leaders" else 4, width)
    line = line_bound(data, width, flat=flat)
    if single and not flat:
        # The first line block may collapse every sequence to a point, after treating as many intervals as fit.
        line = min(line, 1 + _ceil(data.targets - (width - 1) // 2, width))
    return cuts * each + line


def count_blocks(network: CompiledNetwork) -> Counts:
    """Numbers of blocks and parameters of the network, with the bounds for its data."""
    data, report, width = network.data, network.report, network.width
    return Counts(
        blocks=len(network.blocks),
        neurons=sum(len(block.neurons) for block in network.blocks),
        parameters=sum(block.parameters() for block in network.blocks),
        cuts=report.cuts,
        formula=block_bound(data, network.construction, report.cuts, width, flat=report.flat),
        worst_case=block_bound(data, network.construction, len(data) - 1, width, flat=report.flat),
        published=published_bound(data, softmax=network.attention == "softmax"),
        necessary_blocks=necessary_blocks(data, width),
        necessary_parameters=data.targets * data.dimension,
    )


_TROUBLE = 1e12  # range/gap from which float64 cannot resolve the items
_CARE = 1e7  # range/gap from which half of the digits of float64 are lost


def summary(network: CompiledNetwork) -> str:
    """Text with counts, ratios to the published bound, conditioning and a recommendation."""
    data, counts, report = network.data, count_blocks(network), network.report
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
        f"    formula       {counts.formula} with K = {counts.cuts} cuts, {counts.worst_case} in the worst case",
        f"    published     {counts.published}; this network has {counts.ratio:.2f} of it",
        f"    necessary     {counts.necessary_blocks} for the hardest data of this shape",
        f"  parameters    {counts.parameters} (necessary for some targets: {counts.necessary_parameters})",
        f"  weights       rationals of at most {network.longest_weight} bits",
        f"  conditioning  range/gap = {report.conditioning:.3g}, smallest gap {report.gap:.3g}",
    ]
    lines += [f"  note          {note}" for note in network.notes]
    lines.append(f"  advice        {advice(network)}")
    return "\n".join(lines)


def advice(network: CompiledNetwork) -> str:
    """Recommended construction, in a sentence."""
    ratio = network.report.conditioning
    if network.construction == "paper":
        return "this construction is for comparison; 'leaders' needs a fraction of its blocks and is accurate in floats"
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
        return "construction='leaders' separates these sequences with fewer attention layers"
    return "this construction suits the data"
