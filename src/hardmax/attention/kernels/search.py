r"""Triton kernels for hardmax: points of the largest score, without storing the matrix of scores.

1. *prepare* rounds queries and points to half precision (one piece, or two pieces side by side) and measures the
   loss by rounding;
2. *screen* multiplies on the tensor cores and stores, per block of points and row, only the largest score, from which
   *summarise* finds the largest of each row;
3. *decide* looks again at the blocks that come within the proven error of a row's best, and scores the points that
   matter in float64 and in the order of operations of :func:`hardmax.attention.choice.score`, so that the result has
   the same bits as on a CPU.

With pieces :math:`p = p_1 + p_2 + r` and :math:`y = y_1 + y_2 + t` a score errs by at most
:math:`|r||y| + |p||t| + |p_2||y_2|` for the omitted products, and by the rounding of a sum of K products.
"""

# Triton compiles the source of these functions, in which Python types have no meaning.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def pair_scores(LEFT, RIGHT, OUT, rows, D, ROWS: tl.constexpr):
    """Scores of paired rows in the canonical order of operations."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    left, right = LEFT + row.to(tl.int64) * D, RIGHT + row.to(tl.int64) * D
    total = tl.load(left, mask=inside, other=0.0).to(tl.float64) * tl.load(right, mask=inside, other=0.0).to(tl.float64)
    for k in range(1, D):
        x = tl.load(left + k, mask=inside, other=0.0).to(tl.float64)
        total = total + x * tl.load(right + k, mask=inside, other=0.0).to(tl.float64)
    tl.store(OUT + row, total, mask=inside)


@triton.jit
def prepare(
    X, SQUARE, UNIT, HALVES, MISSING, LOW, SCALE, rows,
    D: tl.constexpr, WIDE: tl.constexpr, K: tl.constexpr, PIECES: tl.constexpr, IS_QUERY: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Half-precision pieces of the rows of X; what fills up the last tile repeats the last row.

    Queries are scaled to length one, by the factors SCALE; points by UNIT, a power of two that makes the longest, of
    which SQUARE is the squared length, at most one. MISSING is the length of what the pieces lack, LOW that of the
    second piece.
    """
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row = tl.minimum(at, rows - 1)
    k = tl.arange(0, WIDE)
    x = tl.load(X + row.to(tl.int64)[:, None] * D + k[None, :], mask=(k < D)[None, :], other=0.0).to(tl.float64)
    if IS_QUERY:
        size = tl.sqrt(tl.sum(x * x, 1))
        scale = (1.0 / tl.where(size > 0, size, 1.0)).to(tl.float32).to(tl.float64)
        tl.store(SCALE + at, scale, mask=at < rows)
    else:
        unit = tl.exp2(-1.0 - tl.ceil(0.5 * tl.log2(tl.load(SQUARE))))
        tl.store(UNIT, unit)
        scale = tl.zeros((ROWS,), tl.float64) + unit
    x = x * scale[:, None]
    high = x.to(tl.float16)
    rest = x - high.to(tl.float64)
    low = rest.to(tl.float16)
    out = HALVES + at.to(tl.int64)[:, None] * K + k[None, :]
    if PIECES == 1:
        tl.store(out, high)
        left = tl.sum(rest * rest, 1)
        second = left * 0.0
    else:
        inside = (k < D)[None, :]
        every = tl.arange(0, K)
        tl.store(
            HALVES + at.to(tl.int64)[:, None] * K + every[None, :],
            tl.zeros((ROWS, K), tl.float16),
            mask=(every >= 3 * D)[None, :],
        )
        tl.store(out, high, mask=inside)
        tl.store(out + D, high if IS_QUERY else low, mask=inside)
        tl.store(out + 2 * D, low if IS_QUERY else high, mask=inside)
        rest = rest - low.to(tl.float64)
        left = tl.sum(rest * rest, 1)
        second = tl.sum(low.to(tl.float64) * low.to(tl.float64), 1)
    tl.store(MISSING + at, (tl.sqrt(left) * 1.0001).to(tl.float32), mask=at < rows)
    tl.store(LOW + at, (tl.sqrt(second) * 1.0001).to(tl.float32), mask=at < rows)


@triton.jit
def sight(START, STOP, LOW, HIGH, TILES, ENDS, rows, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The interval of each row, the last repeated to fill up its tile, and the blocks that a tile of rows sees.

    One launch in place of twenty small ones, which would take longer than the screen saves by the mask.
    """
    tile = tl.program_id(0)
    at = tile * ROWS + tl.arange(0, ROWS)
    row = tl.minimum(at, rows - 1)
    low, high = tl.load(START + row).to(tl.int32), tl.load(STOP + row).to(tl.int32)
    tl.store(LOW + at, low)
    tl.store(HIGH + at, high)
    inner = (tl.max(low, 0) + BLOCK - 1) // BLOCK
    tl.store(TILES + 3 * tile, tl.min(low, 0) // BLOCK)
    tl.store(TILES + 3 * tile + 1, inner)
    tl.store(TILES + 3 * tile + 2, tl.maximum(inner, tl.min(high, 0) // BLOCK))
    tl.store(ENDS + tile, (tl.max(high, 0) + BLOCK - 1) // BLOCK)


@triton.jit
def screen(
    P, Y, MAXIMA, ENDS, TILES, LOW, HIGH, start, rows,
    K: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The largest score of each row in each block from ``start`` up to the end that the program is given.

    Rows and blocks are padded, so nothing needs a mask. With MASKED a row sees the points from LOW to HIGH; the blocks
    that a program visits begin at TILES[tile, 0], and from TILES[tile, 1] to TILES[tile, 2] its rows see all points.
    """
    tile = tl.program_id(0)
    if MASKED:  # the longest first: under a causal mask those of the last rows
        tile = tl.num_programs(0) - 1 - tile
    row = tile * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, K)
    p = tl.load(P + row.to(tl.int64)[:, None] * K + k[None, :])
    if MASKED:
        begin, inner, outer = tl.load(TILES + 3 * tile), tl.load(TILES + 3 * tile + 1), tl.load(TILES + 3 * tile + 2)
        low, high = tl.load(LOW + row), tl.load(HIGH + row)
        first = begin.to(tl.int64)
    else:
        first = tile.to(tl.int64) * 0 + start
    points = Y + first * (BLOCK * K) + tl.arange(0, BLOCK)[:, None] * K + k[None, :]
    out = MAXIMA + first * rows + row
    if MASKED:
        for block in range(begin, inner):
            place = block * BLOCK + tl.arange(0, BLOCK)
            seen = (place[None, :] >= low[:, None]) & (place[None, :] < high[:, None])
            tl.store(out, tl.max(tl.where(seen, tl.dot(p, tl.trans(tl.load(points))), -float("inf")), 1))
            points += BLOCK * K
            out += rows
        for _ in tl.range(inner, outer, num_stages=STAGES):
            tl.store(out, tl.max(tl.dot(p, tl.trans(tl.load(points))), 1))
            points += BLOCK * K
            out += rows
        for block in range(outer, tl.load(ENDS + tile)):
            place = block * BLOCK + tl.arange(0, BLOCK)
            seen = (place[None, :] >= low[:, None]) & (place[None, :] < high[:, None])
            tl.store(out, tl.max(tl.where(seen, tl.dot(p, tl.trans(tl.load(points))), -float("inf")), 1))
            points += BLOCK * K
            out += rows
    else:
        for _ in tl.range(start, tl.load(ENDS + tile), num_stages=STAGES):
            tl.store(out, tl.max(tl.dot(p, tl.trans(tl.load(points))), 1))
            points += BLOCK * K
            out += rows


@triton.jit
def summarise(
    MAXIMA, ENDS, TILES, TOP, BEST_BLOCK, SECOND, start, rows,
    TILE: tl.constexpr, ROWS: tl.constexpr, AT_ONCE: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """For each row its largest score, the block that has it, and the largest score in any other block.

    Unless ``start`` is zero, the stored results of earlier blocks are updated.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    second = top
    best_block = tl.zeros((ROWS,), tl.int32)
    if MASKED:
        start = tl.load(TILES + 3 * (tl.program_id(0) * ROWS // TILE))
    elif start > 0:
        top, second, best_block = tl.load(TOP + row), tl.load(SECOND + row), tl.load(BEST_BLOCK + row)
    end = tl.load(ENDS + tl.program_id(0) * ROWS // TILE)
    place = MAXIMA + (row.to(tl.int64) * 0 + start) * rows + row
    for begin in range(start, end, AT_ONCE):
        for i in tl.static_range(AT_ONCE):
            there = row * 0 + begin + i < end
            largest = tl.load(place, mask=there, other=-float("inf"))
            second = tl.maximum(second, tl.minimum(top, largest))
            best_block = tl.where(largest > top, begin + i, best_block)
            top = tl.maximum(top, largest)
            place += rows
    tl.store(TOP + row, top)
    tl.store(SECOND + row, second)
    tl.store(BEST_BLOCK + row, best_block)


@triton.jit
def _canonical(q_row, row, near, D: tl.constexpr, UNROLL: tl.constexpr):
    """Scores of the points in ``row`` where ``near``, product by product in the order of the coordinates."""
    total = tl.load(q_row).to(tl.float64) * tl.load(row, mask=near, other=0.0).to(tl.float64)
    if UNROLL:
        for k in tl.static_range(1, D):
            z = tl.load(row + k, mask=near, other=0.0).to(tl.float64)
            total = total + tl.load(q_row + k).to(tl.float64) * z
    else:
        for k in range(1, D):
            z = tl.load(row + k, mask=near, other=0.0).to(tl.float64)
            total = total + tl.load(q_row + k).to(tl.float64) * z
    return total


@triton.jit
def _near_in_block(
    p_row, Y, block, least, low, high, K: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """The points of a block, and which of them may matter: points below ``high``, with MASKED from ``low`` on."""
    point = block * BLOCK + tl.arange(0, BLOCK)
    rough = tl.zeros((BLOCK,), tl.float32)
    for k0 in tl.static_range(0, K, WIDTH):
        k = k0 + tl.arange(0, WIDTH)
        y = tl.load(Y + point.to(tl.int64)[:, None] * K + k[None, :]).to(tl.float32)
        rough += tl.sum(y * tl.load(p_row + k).to(tl.float32)[None, :], 1)
    may = (rough >= least) & (point < high)
    if MASKED:
        may = may & (point >= low)
    return point, may


@triton.jit
def _visit(
    p_row, Y, q_row, Z, block, least, low, high, best, first, near, slack,
    D: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr, UNROLL: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """The best so far, its point and how many may come within the slack of it, after looking into one more block."""
    point, may = _near_in_block(p_row, Y, block, least, low, high, K, BLOCK, WIDTH, MASKED)
    number = tl.sum(may.to(tl.int32), 0)
    if number == 1:  # most often, and then there is no need to keep a warp busy with masked points
        here = tl.sum(tl.where(may, point, 0), 0)
        score = _canonical(q_row, Z + here.to(tl.int64) * D, True, D, UNROLL)
        tied = (score >= tl.maximum(best, score) - slack).to(tl.int32)
    else:
        scores = tl.where(may, _canonical(q_row, Z + point.to(tl.int64) * D, may, D, UNROLL), -float("inf"))
        score = tl.max(scores, 0)
        here = block * BLOCK + tl.argmax(scores, 0)
        tied = tl.sum((scores >= tl.maximum(best, score) - slack).to(tl.int32), 0)
    first = tl.where(score > best, here, first)
    better = tl.maximum(best, score)
    near = tl.where(best >= better - slack, near, 0) + tied
    return better, first, near


@triton.jit
def decide(
    MAXIMA, TOP, BEST_BLOCK, SECOND, ENDS, TILES, LOW, HIGH, P, Y, Q, Z, ERROR, NEEDED, SLACK, FACTOR, OFFSET,
    FIRST, BEST, NEAR, rows, count, cap,
    D: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
    WIDTH: tl.constexpr, UNROLL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """For each row the point of the largest canonical score, that score, and how many points may come within the slack.

    NEAR is an upper bound: where it is one, the point is the only member. Where it is zero, more than ``cap`` blocks
    would have to be evaluated.
    """
    row = tl.program_id(0)
    needed, second = tl.load(NEEDED + row), tl.load(SECOND + row)
    slack, factor, offset = tl.load(SLACK + row), tl.load(FACTOR + row), tl.load(OFFSET + row)
    p_row, q_row = P + row.to(tl.int64) * K, Q + row.to(tl.int64) * D
    best_block = tl.load(BEST_BLOCK + row)
    low, high = 0, count
    if MASKED:
        low, high = tl.load(LOW + row), tl.load(HIGH + row)
    least = tl.load(TOP + row) - needed - tl.load(ERROR + row)
    best, first, near = _visit(
        p_row, Y, q_row, Z, best_block, least, low, high, slack * 0.0 - float("inf"), best_block * 0, best_block * 0,
        slack, D, K, BLOCK, WIDTH, UNROLL, MASKED,
    )  # fmt: skip
    least = tl.maximum(least, ((best - offset) * factor).to(tl.float32) - needed)
    work = best_block * 0
    if second >= least:
        visited = tl.load(ENDS + row // ROWS)
        unseen = 0
        if MASKED:
            unseen = tl.load(TILES + 3 * (row // ROWS))
        for start in range(unseen, visited, CHUNK):
            place = start + tl.arange(0, CHUNK)
            others = (place < visited) & (place != best_block)
            maxima = tl.load(MAXIMA + place.to(tl.int64) * rows + row, mask=others, other=-float("inf"))
            largest = tl.max(maxima, 0)
            while (largest >= least) & (work < cap):
                block = start + tl.argmax(maxima, 0)
                best, first, near = _visit(
                    p_row, Y, q_row, Z, block, least, low, high, best, first, near, slack,
                    D, K, BLOCK, WIDTH, UNROLL, MASKED,
                )  # fmt: skip
                least = tl.maximum(least, ((best - offset) * factor).to(tl.float32) - needed)
                maxima = tl.where(place == block, -float("inf"), maxima)
                largest = tl.max(maxima, 0)
                work += 1
    tl.store(FIRST + row, first)
    tl.store(BEST + row, best)
    tl.store(NEAR + row, tl.where(work < cap, near, 0))


@triton.jit
def members(
    CHOSEN, MAXIMA, ENDS, TILES, LOW, HIGH, P, Y, Q, Z, NEEDED, SLACK, FACTOR, OFFSET, BEST, PLACES, FOUND, rows, count,
    D: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
    WIDTH: tl.constexpr, UNROLL: tl.constexpr, MASKED: tl.constexpr, WRITE: tl.constexpr,
):  # fmt: skip
    """The points within the slack of the best for the rows in CHOSEN: their number, or themselves from PLACES on."""
    which = tl.program_id(0)
    row = tl.load(CHOSEN + which)
    best = tl.load(BEST + row)
    tie = best - tl.load(SLACK + row)
    least = ((best - tl.load(OFFSET + row)) * tl.load(FACTOR + row)).to(tl.float32) - tl.load(NEEDED + row)
    visited = tl.load(ENDS + row // ROWS)
    p_row, q_row = P + row * K, Q + row * D
    found = row * 0
    if WRITE:
        found = tl.load(PLACES + which)
    unseen, low, high = 0, 0, count
    if MASKED:
        unseen, low, high = tl.load(TILES + 3 * (row // ROWS)), tl.load(LOW + row), tl.load(HIGH + row)
    for start in range(unseen, visited, CHUNK):
        place = start + tl.arange(0, CHUNK)
        maxima = tl.load(MAXIMA + place.to(tl.int64) * rows + row, mask=place < visited, other=-float("inf"))
        largest = tl.max(maxima, 0)
        while largest >= least:
            block = start + tl.argmax(maxima, 0)
            point, may = _near_in_block(p_row, Y, block, least, low, high, K, BLOCK, WIDTH, MASKED)
            tied = may & (_canonical(q_row, Z + point.to(tl.int64) * D, may, D, UNROLL) >= tie)
            if WRITE:
                tl.store(FOUND + found + tl.cumsum(tied.to(tl.int32), 0) - 1, point, mask=tied)
            found += tl.sum(tied.to(tl.int32), 0)
            maxima = tl.where(place == block, -float("inf"), maxima)
            largest = tl.max(maxima, 0)
    if not WRITE:
        tl.store(PLACES + which, found)


@triton.jit
def best_in_segment(
    Q, Z, BEGIN, END, PREVIOUS, CHOICE, n, d,
    FIRST: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The first place j in [BEGIN_i, END_i) with the largest <q_i, z_j>, for every row i of Q (n, d).

    Unless FIRST, rows that by PREVIOUS attend to a leader still attend to it. A row whose range is empty attends to
    itself. Rows of neighbouring systems share a program, which searches the union of their ranges.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = row < n
    begin = tl.load(BEGIN + row, mask=there, other=0)
    end = tl.load(END + row, mask=there, other=0)
    chosen = row.to(tl.int64)
    if not FIRST:
        chosen = tl.load(PREVIOUS + row, mask=there, other=0)
        decided = tl.load(PREVIOUS + chosen, mask=there, other=0) == chosen
        end = tl.where(decided, 0, end)
    begin = tl.where(begin < end, begin, n)
    end = tl.where(begin < end, end, 0)
    best = tl.full((ROWS,), float("-inf"), Z.dtype.element_ty)
    for start in range(tl.min(begin, axis=0), tl.max(end, axis=0), COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        total = tl.zeros((ROWS, COLUMNS), Z.dtype.element_ty)
        for k in range(d):
            q = tl.load(Q + row * d + k, mask=there, other=0.0)
            z = tl.load(Z + column * d + k, mask=column < n, other=0.0)
            total += q[:, None] * z[None, :]
        own = (column[None, :] >= begin[:, None]) & (column[None, :] < end[:, None])
        total = tl.where(own, total, float("-inf"))
        top = tl.max(total, axis=1)
        place = tl.min(tl.where(total == top[:, None], column[None, :], n), axis=1)
        better = top > best
        chosen = tl.where(better, place.to(tl.int64), chosen)
        best = tl.where(better, top, best)
    tl.store(CHOICE + row, chosen, mask=there)
