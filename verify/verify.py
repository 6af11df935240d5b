"""Check a proof that hardmax wrote: a compiled network or the certificate of an equilibrium.

    python -S verify.py net/                    the folder with network.json and network.safetensors
    python -S verify.py net/network.json        the same
    python -S verify.py equilibrium.json        the certificate of an equilibrium
    python -S verify.py a/ b/ c.json            several, one line each

One file, the standard library alone, no code of hardmax. All arithmetic is on integers and fractions.Fraction; softmax
weights are intervals with rational ends that contain them. The exit status is 0 for PROVED, 1 for NOT PROVED (the first
sequence or token that fails is named), 2 for a file that is not of the format or exceeds the bounds below; the largest
of them for several paths.

The format, and what PROVED means, is docs/howto/check-a-proof.rst; the numbers (N1), (E3), ... name its paragraphs.
"""

import hashlib
import json
import os
import re
import struct
import sys
import time
from fractions import Fraction

MOST_BYTES = 4_000_000_000  # size of a file; JSON is held in memory
MOST_DIGITS = 100_000  # digits of a numerator or a denominator in a file
MOST_BITS = 20_000_000  # bits of a number during the evaluation
MOST_NUMBERS = 50_000_000  # coordinates of the data
MOST_LAYERS = 100_000  # layers of an equilibrium
MOST_AHEAD = 500  # layers that are looked at one by one to prove that a sum of powers stays negative
DEEPEST = 64  # brackets in brackets
PRECISIONS = (64, 128, 256, 512, 1024, 2048, 4096)  # bits of interval ends, raised until every sign is decided
LONGEST_EXPONENT = 65_536  # exp(-x) beyond is enclosed by [0, 2**-65536]
RATIONAL = re.compile(r"(-?[0-9]+)(?:/([0-9]+))?", re.ASCII)
SMALLEST = 5e-324  # smallest positive float64
TENSORS = ("eta", "U", "b", "W", "rho", "B_left", "B_right", "V_left", "V_right")
ZERO, ONE = Fraction(0), Fraction(1)


class UnreadableError(Exception):
    """The file is not of the format, or exceeds a bound."""


class UndecidedError(Exception):
    """The intervals are too wide to decide a sign."""


# ---------------------------------------------------------------------------------------------------- (J) JSON files


def parse_json(data):
    """(J1) Value of JSON text in UTF-8; numbers with a point or an exponent become floats, all others ints."""
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=without_duplicates,  # (J2)
            parse_constant=no_constant,  # (J3)
            parse_int=bounded_int,
        )
    except UnicodeDecodeError:
        raise UnreadableError("is not text in UTF-8") from None
    except RecursionError:
        raise UnreadableError("has brackets nested too deeply") from None
    except ValueError as error:
        raise UnreadableError(f"is not complete JSON ({error})") from None
    require_shallow(value)
    return value


def without_duplicates(pairs):
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise UnreadableError(f"has the key {twice[:40]!r} twice in one object")
    return record


def no_constant(name):
    raise UnreadableError(f"holds {name}, which is not JSON")


def bounded_int(text):
    if len(text) > MOST_DIGITS:
        raise UnreadableError(f"holds a number of more than {MOST_DIGITS} digits")
    return int(text)


def require_shallow(value):
    level = [value]
    for _ in range(DEEPEST):
        below = []
        for item in level:
            if isinstance(item, dict):
                below.extend(v for v in item.values() if isinstance(v, (dict, list)))
            elif isinstance(item, list):
                below.extend(v for v in item if isinstance(v, (dict, list)))
        if not below:
            return
        level = below
    raise UnreadableError("has brackets nested too deeply")


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def get(record, name, test, kind, where=""):
    """Field of an object, after a test of its type."""
    if not isinstance(record, dict) or name not in record:
        raise UnreadableError(f"field {where}{name} is missing")
    if not test(record[name]):
        raise UnreadableError(f"field {where}{name} must be {kind}")
    return record[name]


def get_int(record, name, where=""):
    return get(record, name, is_int, "a whole number", where)


def get_list(record, name, where=""):
    return get(record, name, lambda v: isinstance(v, list), "a list", where)


def get_text(record, name, where=""):
    return get(record, name, lambda v: isinstance(v, str), "a string", where)


def number(value, where):
    """(J4) A rational: "-3/8" or "5", as a string, digits of ASCII, the denominator not zero."""
    match = RATIONAL.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise UnreadableError(f'{where} must hold rationals as strings such as "-3/8", not {str(value)[:40]!r}')
    top, bottom = match.group(1), match.group(2) or "1"
    if max(len(top), len(bottom)) > MOST_DIGITS:
        raise UnreadableError(f"{where} holds a number of more than {MOST_DIGITS} digits")
    denominator = int(bottom)
    if denominator == 0:
        raise UnreadableError(f"{where} holds a fraction with denominator 0")
    return Fraction(int(top), denominator)


def vector(value, where, length):
    if not isinstance(value, list) or len(value) != length:
        raise UnreadableError(f"{where} must be a list of {length} rationals")
    return tuple(number(x, where) for x in value)


def rows(value, where, count, length):
    if not isinstance(value, list) or len(value) != count:
        raise UnreadableError(f"{where} must have {count} rows")
    return [vector(row, where, length) for row in value]


# ---------------------------------------------------------------------------------------------------- (N) networks


def sparse(row):
    """Entries that are not zero, as pairs (index, value)."""
    return tuple((k, x) for k, x in enumerate(row) if x)


class Block:
    """(N5) One block: eta, neurons (reading, bias, writing), rho, and B and V as lists of outer products."""

    def __init__(self, record, where, d, width):
        U = get_list(record, "U", where)
        h = len(U)
        if h > width:
            raise UnreadableError(f"{where}U has {h} neurons, more than the width {width}")
        self.U = rows(U, where + "U", h, d)
        self.b = vector(get_list(record, "b", where), where + "b", h)
        self.W = rows(get_list(record, "W", where), where + "W", d, h)
        self.eta = number(get_text(record, "eta", where), where + "eta")
        self.rho = number(get_text(record, "rho", where), where + "rho")
        self.B = low_rank(record, "B", where, d)
        self.V = low_rank(record, "V", where, d)
        self.d = d
        self.readings = [sparse(u) for u in self.U]
        self.queries = [sparse(right) for _, right in self.B]
        self.keys = [sparse(left) for left, _ in self.B]
        self.values = [sparse(right) for _, right in self.V]
        self.writes = [sparse(left) for left, _ in self.V]
        self.pieces = {}

    def parameters(self):
        """(N8) Number of weights, zeros included."""
        return 2 + len(self.U) * (2 * self.d + 1) + (len(self.B) + len(self.V)) * 2 * self.d

    def piece(self, active):
        """Affine map of the feed-forward layer where exactly these neurons are active: sparse rows and shifts."""
        found = self.pieces.get(active)
        if found is None:
            d = self.d
            matrix = [[self.eta if i == j else ZERO for j in range(d)] for i in range(d)]
            shift = [ZERO] * d
            for r in active:
                for i in range(d):
                    w = self.W[i][r]
                    if w:
                        shift[i] += w * self.b[r]
                        for j, u in self.readings[r]:
                            matrix[i][j] += w * u
            found = [(sparse(row), s) for row, s in zip(matrix, shift)]
            self.pieces[active] = found
        return found


def low_rank(record, name, where, d):
    """(N6) Matrix as pairs (left, right) whose outer products add up to it."""
    value = get(record, name, lambda v: isinstance(v, (list, dict)), "a matrix", where)
    where = where + name
    if isinstance(value, list):
        matrix = rows(value, where, d, d)
        return [(tuple(ONE if k == i else ZERO for k in range(d)), row) for i, row in enumerate(matrix) if any(row)]
    left = get_list(value, "left", where + ".")
    right = rows(get_list(value, "right", where + "."), where + ".right", len(left), d)
    return list(zip(rows(left, where + ".left", len(left), d), right))


class Network:
    """The fields of network.json that a proof needs; every other field of the format is checked for its type."""

    def __init__(self, record):
        if get_int(record, "format") != 1:  # (N1)
            raise UnreadableError(f"has format {record['format']}, this program checks format 1")
        self.d = d = get_int(record, "d")
        width = get_int(record, "width")
        if d < 2 or width < 1:
            raise UnreadableError("field d must be at least 2 and width at least 1")
        self.attention = get_text(record, "attention")  # (N2)
        if self.attention not in ("hardmax", "softmax"):
            raise UnreadableError("field attention must be hardmax or softmax")
        self.tau = None
        self.level = 0  # position in PRECISIONS
        if self.attention == "softmax":
            self.tau = number(get_text(record, "tau"), "field tau")
            if self.tau <= 0:
                raise UnreadableError("field tau must be positive")
        self.read_data(get(record, "data", lambda v: isinstance(v, dict), "an object"))
        blocks = get_list(record, "blocks")
        if not blocks:
            raise UnreadableError("field blocks is empty")
        self.blocks = [Block(block, f"blocks[{k}].", d, width) for k, block in enumerate(blocks)]
        self.read_claims(record)

    def read_data(self, record):
        """(N3) Pairs of sets, or of lists with ``token_level``: repetitions dropped, inputs different as sets."""
        self.token_level = get(record, "token_level", lambda v: isinstance(v, bool), "true or false", "data.")
        sides = []
        for side in ("inputs", "outputs"):
            sequences = get_list(record, side, "data.")
            if not sequences or not all(isinstance(points, list) and points for points in sequences):
                raise UnreadableError(f"field data.{side} must be a list of lists of points, none of them empty")
            if sum(map(len, sequences)) * self.d > MOST_NUMBERS:
                raise UnreadableError(f"field data.{side} has more than {MOST_NUMBERS} numbers")
            sides.append([[vector(x, f"data.{side}[{j}]", self.d) for x in seq] for j, seq in enumerate(sequences)])
        if len(sides[0]) != len(sides[1]):
            raise UnreadableError("field data must have one output per input")
        self.pairs = [self.without_repetitions(j, x, y) for j, (x, y) in enumerate(zip(*sides))]
        if len({frozenset(x) for x, _ in self.pairs}) != len(self.pairs):
            raise UnreadableError("field data has the same input twice")
        self.claimed_hash = get_text(record, "sha256", "data.")

    def without_repetitions(self, j, x, y):
        if not self.token_level:
            x, y = tuple(dict.fromkeys(x)), tuple(dict.fromkeys(y))
            if len(y) > len(x):
                raise UnreadableError(f"data.outputs[{j}] has more points than the input has tokens")
            return x, y
        if len(x) != len(y):
            raise UnreadableError(f"data.outputs[{j}] must have one point per token")
        image = {}
        for token, target in zip(x, y):
            if image.setdefault(token, target) != target:
                raise UnreadableError(f"data.outputs[{j}] gives a repeated token two images")
        return tuple(image), tuple(image.values())

    def read_claims(self, record):
        """(N4) Claims that are checked later, and the types of all other fields."""
        claims = get(record, "claims", lambda v: isinstance(v, dict), "an object")
        self.claims = {name: get_int(claims, name, "claims.") for name in ("blocks", "parameters", "published_bound")}
        get_int(claims, "cuts", "claims.")
        for name in ("range_over_gap", "gap"):
            get(claims, name, is_number, "a number", "claims.")
        get(claims, "flat", lambda v: isinstance(v, bool), "true or false", "claims.")
        if claims.get("gain") is not None:
            number(claims["gain"], "claims.gain")
        self.tensors_hash = get_text(record, "tensors_sha256")
        get_text(record, "construction")
        get(record, "classes", lambda v: v is None or isinstance(v, list), "null or a list")
        for target in get_list(record, "class_targets"):
            vector(target, "class_targets", self.d)
        get_list(record, "notes")

    def data_hash(self):
        """(N7) SHA-256 of the data, one point per line."""
        sha = hashlib.sha256(b"tokens\n" if self.token_level else b"sets\n")
        for pair in self.pairs:
            for name, points in zip(("input", "output"), pair):
                lines = [name] + [" ".join(map(str, point)) for point in points]
                sha.update(("\n".join(lines) + "\n").encode())
        return sha.hexdigest()

    def wrong_claims(self, tensors):
        """(N8) Claims of the file that do not hold, in words."""
        problems = []
        if self.claimed_hash != self.data_hash():
            problems.append("the data are not those the file was made for (their hash differs)")
        targets, count = sum(len(y) for _, y in self.pairs), len(self.pairs)
        actual = {
            "blocks": len(self.blocks),
            "parameters": sum(block.parameters() for block in self.blocks),
            "published_bound": 2 * targets + (3 * count if self.tau is not None else 2 * count + 1),
        }
        for name, value in actual.items():
            if self.claims[name] != value:
                problems.append(f"the file claims {name} = {str(self.claims[name])[:40]}, it is {value}")
        return problems + wrong_tensors(self, tensors)


# ------------------------------------------------------------------------------------- (T) the file of float64 weights


def nearest_float(x):
    """(T3) The float64 nearest to a rational, ties to even; infinite beyond the range, and never zero for x != 0."""
    try:
        nearest = x.numerator / x.denominator  # division of ints is rounded correctly
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")
    if nearest == 0.0 and x:
        return SMALLEST if x > 0 else -SMALLEST
    return nearest


def read_tensors(data):
    """(T1) Tensors by name, each (shape, offset into the data, dtype), of a safetensors file."""
    if len(data) < 8:
        raise UnreadableError("is shorter than its header")
    (size,) = struct.unpack_from("<Q", data)
    if size > 100_000_000 or 8 + size > len(data):
        raise UnreadableError("is shorter than its header")
    header = parse_json(bytes(data[8 : 8 + size]))
    if not isinstance(header, dict):
        raise UnreadableError("has a header that is not an object")
    header.pop("__metadata__", None)
    tensors, spans = {}, []
    for name, entry in header.items():
        shape, offsets = get_list(entry, "shape"), get_list(entry, "data_offsets")
        dtype = get_text(entry, "dtype")
        if not all(is_int(n) and n >= 0 for n in shape + offsets) or len(offsets) != 2:
            raise UnreadableError(f"describes {name[:40]} wrongly")
        spans.append(tuple(offsets))
        if dtype == "F64":
            items = 1
            for n in shape:
                items *= n
            if offsets[1] - offsets[0] != 8 * items:
                raise UnreadableError(f"describes {name[:40]} wrongly")
        tensors[name] = (tuple(shape), 8 + size + offsets[0], dtype)
    end = 0
    for start, stop in sorted(spans):
        if start != end or stop < start:
            raise UnreadableError("has gaps or overlaps")
        end = stop
    if 8 + size + end != len(data):
        raise UnreadableError("has the wrong length")
    return tensors


def expected_tensors(network):
    """(T2) Name, shape and entries (by flat index, zeros left out) of every tensor."""
    blocks, d = network.blocks, network.d
    count, h = len(blocks), max(len(block.U) for block in blocks)
    yield "eta", (count,), {k: block.eta for k, block in enumerate(blocks)}
    yield "rho", (count,), {k: block.rho for k, block in enumerate(blocks)}
    entries = {"U": {}, "b": {}, "W": {}}
    for k, block in enumerate(blocks):
        for r in range(len(block.U)):
            entries["b"][k * h + r] = block.b[r]
            for i in range(d):
                entries["U"][(k * h + r) * d + i] = block.U[r][i]
                entries["W"][(k * d + i) * h + r] = block.W[i][r]
    yield "U", (count, h, d), entries["U"]
    yield "b", (count, h), entries["b"]
    yield "W", (count, d, h), entries["W"]
    for name in ("B", "V"):
        rank = max(len(getattr(block, name)) for block in blocks)
        for side, part in enumerate(("left", "right")):
            table = {}
            for k, block in enumerate(blocks):
                for r, term in enumerate(getattr(block, name)):
                    for i in range(d):
                        table[(k * rank + r) * d + i] = term[side][i]
            yield f"{name}_{part}", (count, rank, d), table


def wrong_tensors(network, data):
    """Differences between network.safetensors and the rounded weights, in words."""
    if data is None:
        return ["network.safetensors is missing"]
    problems = []
    try:
        tensors = read_tensors(data)
    except UnreadableError as error:
        return [f"network.safetensors {error}"]
    for name, shape, entries in expected_tensors(network):
        found = tensors.get(name)
        if found is None or found[0] != shape or found[2] != "F64":
            problems.append(f"network.safetensors: {name} is missing or has another shape")
            continue
        items = 1
        for n in shape:
            items *= n
        values = struct.unpack_from(f"<{items}d", data, found[1])
        if any(value != nearest_float(entries.get(k, ZERO)) for k, value in enumerate(values)):
            problems.append(f"network.safetensors: {name} is not the rounded exact weights")
    if hashlib.sha256(data).hexdigest() != network.tensors_hash:  # (T4)
        problems.append("network.safetensors is not the file that network.json names (its hash differs)")
    return problems


# --------------------------------------------------------------------- (I) intervals: pairs (low, high) of Fractions


def rounded(low, high, bits):
    """(I1) The interval with ends of at most ``bits`` significant bits that contains [low, high]."""
    return round_down(low, bits), -round_down(-high, bits)


def round_down(x, bits):
    n, q = x.numerator, x.denominator
    if n == 0:
        return x
    shift = bits - n.bit_length() + q.bit_length()
    if shift >= 0:
        return Fraction((n << shift) // q, 1 << shift)
    return Fraction((n // (q << -shift)) << -shift)


def plus(a, b, bits):
    """Sum of two numbers, each a Fraction or an interval."""
    if isinstance(a, Fraction):
        if isinstance(b, Fraction):
            return a + b
        a, b = b, a
    if isinstance(b, Fraction):
        b = (b, b)
    return rounded(a[0] + b[0], a[1] + b[1], bits)


def times(a, b, bits):
    """Product of two numbers, each a Fraction or an interval."""
    if isinstance(a, Fraction):
        if isinstance(b, Fraction):
            return a * b
        a, b = b, a
    if isinstance(b, Fraction):
        b = (b, b)
    ends = [x * y for x in a for y in b]
    return rounded(min(ends), max(ends), bits)


def minus(a, b, bits):
    return plus(a, -b if isinstance(b, Fraction) else (-b[1], -b[0]), bits)


def exp_of(x, bits):
    """(I2) Interval that contains exp(x) for the rational x."""
    if x > LONGEST_EXPONENT:
        raise UndecidedError
    if x < -LONGEST_EXPONENT:
        return ZERO, Fraction(1, 1 << LONGEST_EXPONENT)
    size = abs(x)
    halvings = (size.numerator // size.denominator).bit_length() + 1  # size / 2**halvings <= 1/2
    point = bits + 2 * halvings + 32
    scaled = size * (1 << point) / (1 << halvings)
    low_y, high_y = scaled.numerator // scaled.denominator, -(-scaled.numerator // scaled.denominator)
    low = high = low_term = high_term = 1 << point
    k = 0
    while high_term > 1:
        k += 1
        low_term = (low_term * low_y) // (k << point)
        high_term = -(-(high_term * high_y) // (k << point))
        low, high = low + low_term, high + high_term
    high += high_term  # the rest of the series is at most its last term, since y <= 1/2
    for _ in range(halvings):
        low, high = (low * low) >> point, -(-(high * high) >> point)
    one = 1 << point
    if x < 0:
        return rounded(Fraction(one, high), Fraction(one, low), bits)
    return rounded(Fraction(low, one), Fraction(high, one), bits)


def exp_interval(a, bits):
    if isinstance(a, Fraction):
        return exp_of(a, bits)
    return exp_of(a[0], bits)[0], exp_of(a[1], bits)[1]


def linear(row, x, shift, bits):
    """shift + sum of m * x[j] over the pairs (j, m): a Fraction where every x[j] is one."""
    total, balls = shift, None
    for j, m in row:
        term = x[j]
        if isinstance(term, Fraction):
            total += m * term
        else:
            term = times(m, term, bits)
            balls = term if balls is None else plus(balls, term, bits)
    return total if balls is None else plus(total, balls, bits)


# ------------------------------------------------------------------------------------------- (N5) the map of a block


def is_positive(value):
    if isinstance(value, Fraction):
        return value > 0
    if value[0] > 0:
        return True
    if value[1] <= 0:
        return False
    raise UndecidedError


def feed_forward(block, x, bits):
    """eta x + W relu(U x + b) as the affine map of the active neurons, so that coefficients cancel exactly."""
    active = tuple(r for r, reading in enumerate(block.readings) if is_positive(linear(reading, x, block.b[r], bits)))
    if not active and block.eta == 1:
        return x
    return [linear(row, x, shift, bits) for row, shift in block.piece(active)]


def attention(block, tokens, tau, bits):
    """rho y_i + V mean{y_l}, over the tokens of the largest score, or with softmax weights."""
    kept = [[times(block.rho, c, bits) for c in x] for x in tokens] if block.rho != 1 else [list(x) for x in tokens]
    if not block.V:
        return kept
    values = [[linear(row, x, ZERO, bits) for x in tokens] for row in block.values]
    if not block.B:
        means = [[average(v, bits)] * len(tokens) for v in values]
    elif tau is None:
        means = hard_means(block, tokens, values)
    else:
        means = soft_means(block, tokens, values, tau, bits)
    for row, mean in zip(block.writes, means):
        for i, x in enumerate(kept):
            for k, a in row:
                x[k] = plus(x[k], times(a, mean[i], bits), bits)
    return kept


def average(numbers, bits):
    total = ZERO
    for value in numbers:
        total = plus(total, value, bits)
    return times(Fraction(1, len(numbers)), total, bits)


def hard_means(block, tokens, values):
    queries = [[linear(row, x, ZERO, 0) for row in block.queries] for x in tokens]
    keys = [[linear(row, x, ZERO, 0) for row in block.keys] for x in tokens]
    means = [[] for _ in values]
    for query in queries:
        scores = [sum((q * k for q, k in zip(query, key)), ZERO) for key in keys]
        best = max(scores)
        chosen = [m for m, score in enumerate(scores) if score == best]  # ties by equality of rationals
        for v, out in zip(values, means):
            out.append(sum((v[m] for m in chosen), ZERO) / len(chosen))
    return means


def soft_means(block, tokens, values, tau, bits):
    queries = [[linear(row, x, ZERO, bits) for row in block.queries] for x in tokens]
    keys = [[linear(row, x, ZERO, bits) for row in block.keys] for x in tokens]
    means = [[] for _ in values]
    for query in queries:
        scores = []
        for key in keys:
            score = ZERO
            for q, k in zip(query, key):
                score = plus(score, times(q, k, bits), bits)
            scores.append(times(1 / tau, score, bits))
        middles = [s if isinstance(s, Fraction) else (s[0] + s[1]) / 2 for s in scores]
        top = middles.index(max(middles))
        weights = [
            ONE if m == top else exp_interval(minus(score, scores[top], bits), bits) for m, score in enumerate(scores)
        ]
        total = ZERO
        for weight in weights:
            total = plus(total, weight, bits)
        for v, out in zip(values, means):
            if all(isinstance(c, Fraction) and c == v[top] for c in v):  # a mean of equal values
                out.append(v[top])
                continue
            low, high = total if isinstance(total, tuple) else (total, total)  # at least 1: the weight of the top token
            mean = v[top]
            for m, weight in enumerate(weights):
                if m != top:
                    share = rounded(weight[0] / high, weight[1] / low, bits)
                    mean = plus(mean, times(share, minus(v[m], v[top], bits), bits), bits)
            out.append(mean)
    return means


def evaluate(network, tokens, bits):
    """Tokens after all blocks."""
    state = [list(x) for x in tokens]
    for block in network.blocks:
        state = attention(block, [feed_forward(block, x, bits) for x in state], network.tau, bits)
        require_short(state)
    return state


def require_short(points):
    for point in points:
        for c in point:
            if isinstance(c, Fraction) and max(c.numerator.bit_length(), c.denominator.bit_length()) > MOST_BITS:
                raise UnreadableError(f"needs numbers of more than {MOST_BITS} bits")


# --------------------------------------------------------------------------------------------- (N9) proof of a network


def show(point):
    text = "(" + ", ".join(map(str, point)) + ")"
    return text if len(text) <= 80 else text[:60] + " ..."


def failure(network, tokens, targets):
    """Why a sequence does not go to its targets, or the empty text."""
    for level in range(network.level, len(PRECISIONS)):
        try:
            reached = evaluate(network, tokens, PRECISIONS[level])
        except UndecidedError:
            continue
        network.level = level  # the next sequence most likely needs as many bits
        break
    else:
        return f"is undecided with intervals of {PRECISIONS[-1]} bits"
    for i, x in enumerate(reached):
        if not all(isinstance(c, Fraction) for c in x):
            return f"token {i} is known only up to an interval"
    points = [tuple(x) for x in reached]
    if network.token_level:
        for i, (point, target) in enumerate(zip(points, targets)):
            if point != target:
                return f"token {i} goes to {show(point)} instead of {show(target)}"
        return ""
    wanted, found = set(targets), set(points)
    for point in points:
        if point not in wanted:
            return f"{show(point)} is reached and is not a target"
    for point in targets:
        if point not in found:
            return f"the target {show(point)} is not reached"
    return ""


def check_network(record, tensors, tell):
    """Verdict and sentence on a network."""
    network = Network(record)
    problems = network.wrong_claims(tensors)
    count = len(network.pairs)
    for j, (tokens, targets) in enumerate(network.pairs):
        tell(f"sequence {j + 1} of {count}")
        reason = failure(network, tokens, targets)
        if reason:
            problems.insert(0, f"sequence {j}: {reason}")
            break
    if problems:
        return False, "; ".join(problems)
    tokens = sum(len(x) for x, _ in network.pairs)
    size = f"{len(network.blocks)} blocks of {network.attention} attention"
    return True, f"T(X) = Y for all {count} sequences ({tokens} tokens), {size}; data sha256 {network.data_hash()}"


# ------------------------------------------------------------------------------------------- (E) equilibria


KINDS = ("leader", "follower", "tie", "last", "zero")


def dot(u, v):
    return sum((a * b for a, b in zip(u, v)), ZERO)


class Fate:
    """What the certificate states of one point, and what the checker finds out about its path."""

    def __init__(self, record, where, d, index):
        self.token = get_int(record, "token", where)
        self.kind = get_text(record, "kind", where)
        if self.kind not in KINDS:
            raise UnreadableError(f"field {where}kind must be one of {', '.join(KINDS)}")
        self.decided_at = get_int(record, "decided_at", where)
        if not 0 <= self.decided_at <= MOST_LAYERS:
            raise UnreadableError(f"field {where}decided_at must be from 0 to {MOST_LAYERS}")
        self.limit = vector(get_list(record, "limit", where), where + "limit", d)
        members = get_list(record, "attends_to", where)
        if not all(is_int(m) and m in index for m in members):
            raise UnreadableError(f"field {where}attends_to must hold first occurrences of tokens")
        self.members = [index[m] for m in members]
        margin = get(record, "margin", lambda v: v is None or isinstance(v, str), "null or a rational", where)
        self.margin = None if margin is None else number(margin, where + "margin")
        self.slow = self.resonant = (ZERO,) * d  # (E5) what the path has besides limit + r^m (start - limit)
        self.rate = ZERO

    @property
    def straight(self):
        return not any(self.slow) and not any(self.resonant)


class FailedError(Exception):
    """A statement of the certificate does not hold."""


class Equilibrium:
    """(E1) Tokens, A, alpha and weights of a certificate, and the points at the present layer."""

    def __init__(self, record):
        if get_int(record, "format") != 1:
            raise UnreadableError(f"has format {record['format']}, this program checks format 1")
        self.d = d = get_int(record, "d")
        if d < 1:
            raise UnreadableError("field d must be at least 1")
        self.A = rows(get_list(record, "A"), "field A", d, d)
        self.alpha = number(get_text(record, "alpha"), "field alpha")
        if self.alpha <= 0:
            raise UnreadableError("field alpha must be positive")
        self.r = 1 / (1 + self.alpha)
        tokens = get_list(record, "tokens")
        if not tokens or len(tokens) * d > MOST_NUMBERS:
            raise UnreadableError("field tokens must have at least one token, and not too many")
        tokens = rows(tokens, "field tokens", len(tokens), d)
        weights = get(record, "weights", lambda v: v is None or isinstance(v, list), "null or a list")
        weights = (ONE,) * len(tokens) if weights is None else vector(weights, "field weights", len(tokens))
        if min(weights) <= 0:
            raise UnreadableError("field weights must be positive")
        self.count = len(tokens)
        first = {}  # (E2) repeated tokens are one point, named by the first, with the sum of the weights
        for i, token in enumerate(tokens):
            first.setdefault(token, [i, ZERO])[1] += weights[i]
        self.z = list(first)
        self.names = [i for i, _ in first.values()]
        self.w = [weight for _, weight in first.values()]
        index = {name: p for p, name in enumerate(self.names)}
        fates = get_list(record, "fates")
        self.fates = [Fate(fate, f"fates[{k}].", d, index) for k, fate in enumerate(fates)]
        if [fate.token for fate in self.fates] != self.names:
            raise UnreadableError("field fates must have one entry per distinct token, in their order")
        self.layers = get_int(record, "layers")
        self.leaders = get_list(record, "leaders")
        if not all(map(is_int, self.leaders)):
            raise UnreadableError("field leaders must hold whole numbers")

    def query(self, z):
        return [dot(row, z) for row in self.A]

    def mean(self, members, points):
        total = sum((self.w[j] for j in members), ZERO)
        return tuple(sum((self.w[j] * points[j][k] for j in members), ZERO) / total for k in range(self.d))

    def attended(self, p):
        """(E3) Points of the largest score for point p, and their lead over the next score (None without a next)."""
        query = self.query(self.z[p])
        scores = [dot(query, z) for z in self.z]
        best = max(scores)
        rest = [s for s in scores if s != best]
        return [j for j, s in enumerate(scores) if s == best], (best - max(rest) if rest else None)

    def check(self, tell):
        """Raise a FailedError at the first statement that does not hold."""
        last = max(fate.decided_at for fate in self.fates)
        if self.layers != last:
            raise FailedError(f"the file claims {self.layers} layers, the last decision is at layer {last}")
        leaders = [fate.token for fate in self.fates if fate.kind == "leader"]
        if self.leaders != leaders:
            raise FailedError("the list of leaders is not that of the fates of kind leader")
        decided = [False] * len(self.z)
        for layer in range(last + 1):
            tell(f"layer {layer} of {last}")
            chosen = {}
            for p, fate in enumerate(self.fates):
                if decided[p]:
                    chosen[p] = fate.members
                    continue
                chosen[p], margin = self.attended(p)
                if fate.decided_at == layer and (fate.members != chosen[p] or fate.margin != margin):
                    self.fail(p, "does not attend to these tokens with this margin at this layer")
            self.decide(layer, chosen, decided)
            self.z = [
                tuple((a + self.alpha * m) * self.r for a, m in zip(z, self.mean(chosen[p], self.z)))
                for p, z in enumerate(self.z)
            ]
            require_short(self.z)
            for fate in self.fates:
                fate.slow = tuple(fate.rate * c for c in fate.slow)
                fate.resonant = tuple(self.r * c for c in fate.resonant)

    def fail(self, p, reason):
        fate = self.fates[p]
        raise FailedError(f"token {fate.token}, {fate.kind} at layer {fate.decided_at}: {reason}")

    def decide(self, layer, chosen, decided):
        """Check the statements about all points that are decided at this layer, in the order of the format."""
        now = [p for p, fate in enumerate(self.fates) if fate.decided_at == layer]
        of = {kind: [p for p in now if self.fates[p].kind == kind] for kind in KINDS}
        for p in of["leader"]:  # (E4)
            if chosen[p] != [p] or self.fates[p].limit != self.z[p]:
                self.fail(p, "does not attend to itself alone, or its limit is not its position")
            decided[p] = True
        for p in of["follower"]:  # (E4)
            if len(chosen[p]) != 1 or chosen[p] == [p]:
                self.fail(p, "does not attend to one other token alone")
            target = chosen[p][0]
            if not decided[target] or not self.rests(target) or self.fates[p].limit != self.z[target]:
                self.fail(p, "attends to a token that is not a leader, or its limit is not that leader")
        for p in of["follower"]:
            decided[p] = True
        for p in of["tie"] + of["last"]:
            self.check_path_of_tie(p, chosen, decided)
        for p in of["tie"]:
            self.check_standing(p, chosen, decided)
        if of["last"]:
            self.check_last(of["last"], of["tie"] + of["last"], decided)
        for p in of["tie"] + of["last"]:
            decided[p] = True
        if of["zero"]:
            self.check_zero(of["zero"], decided)
        for p in of["zero"]:
            decided[p] = True

    def rests(self, p):
        """Whether a decided point never moves again and is among those that it attends to."""
        fate = self.fates[p]
        return fate.straight and fate.limit == self.z[p] and p in fate.members

    def split(self, p, chosen, decided):
        return [j for j in chosen[p] if decided[j]], [j for j in chosen[p] if not decided[j]]

    def means_of(self, D, U):
        """Means d and d_inf of the decided members now and in the limit; of the others where none is decided."""
        goals = [fate.limit if j in D else z for j, (fate, z) in enumerate(zip(self.fates, self.z))]
        return self.mean(D or U, self.z), self.mean(D or U, goals)

    def check_path_of_tie(self, p, chosen, decided):
        """(E5) What a tied point attends to moves as the closed form needs; its limit and the bends of its path."""
        fate = self.fates[p]
        D, U = self.split(p, chosen, decided)
        if len(chosen[p]) < 2 or not any(self.query(self.z[p])):
            self.fail(p, "is not tied")
        if not all(chosen[j] == chosen[p] and any(self.query(self.z[j])) for j in U):
            self.fail(p, "is tied with an undecided token that attends to other tokens")
        if not all(self.fates[j].straight for j in D):
            self.fail(p, "is tied with a token that does not go straight to its limit")
        start, goal = self.means_of(D, U)
        if fate.limit != goal:
            self.fail(p, "has another limit")
        gap = [a - b for a, b in zip(start, goal)]
        if U:
            weight = sum((self.w[j] for j in U), ZERO)
            share = weight / sum((self.w[j] for j in chosen[p]), ZERO)
            middle = self.mean(U, self.z)
            fate.slow = tuple(u - t + (1 - share) / share * e for u, t, e in zip(middle, goal, gap))
            fate.rate = (1 + self.alpha * share) * self.r
        else:
            fate.resonant = tuple(self.alpha * e for e in gap)

    def check_standing(self, p, chosen, decided):
        """(E6) Members and targets attain the largest score for p, the undecided members, d and d_inf."""
        D, U = self.split(p, chosen, decided)
        face = [self.z[j] for j in chosen[p]] + [self.fates[j].limit for j in D]
        for asker in [self.z[p], *(self.z[j] for j in U), *self.means_of(D, U)]:
            query = self.query(asker)
            best = max(dot(query, z) for z in self.z)
            if any(dot(query, place) != best for place in face):
                self.fail(p, "is in a tie that is not proved to last")

    def check_last(self, points, tied, decided):
        """(E7) All other points are decided and straight; the lead over outsiders stays positive at all layers."""
        for p, fate in enumerate(self.fates):
            if (not decided[p] and p not in tied) or any(fate.slow) or (decided[p] and not fate.straight):
                self.fail(points[0], "needs every token to be decided or tied, on straight or resonant paths")
        goals = [fate.limit for fate in self.fates]
        steps = [tuple(a - b for a, b in zip(z, t)) for z, t in zip(self.z, goals)]
        drifts = [fate.resonant for fate in self.fates]
        for p in points:
            member = self.fates[p].members[0]
            still, moving, drifting = (self.query(part[p]) for part in (goals, steps, drifts))
            for j in range(len(self.z)):
                t, e, g = (tuple(a - b for a, b in zip(part[j], part[member])) for part in (goals, steps, drifts))
                terms = [
                    dot(still, t),
                    dot(still, g) + dot(drifting, t),
                    dot(still, e) + dot(moving, t),
                    dot(drifting, g),
                    dot(moving, g) + dot(drifting, e),
                    dot(moving, e),
                ]
                lasts = not any(terms) if j in self.fates[p].members else stays_negative(terms, self.r)
                if not lasts:
                    self.fail(p, "is in a tie that is not proved to last")

    def check_zero(self, points, decided):
        """(E8) A z = 0, every other point is decided, and the mean of all points is zero at all later layers."""
        everybody = range(len(self.z))
        for p in points:
            if len(self.z) < 2 or any(self.query(self.z[p])) or any(self.fates[p].limit):
                self.fail(p, "has a score that is not zero, or its limit is not zero")
        bends = {}
        for p, fate in enumerate(self.fates):
            if not decided[p] and p not in points:
                self.fail(points[0], "needs every other token to be decided")
            if any(fate.slow):
                total = bends.setdefault(fate.rate, [ZERO] * self.d)
                bends[fate.rate] = [a + self.w[p] * c for a, c in zip(total, fate.slow)]
        sums = [self.mean(everybody, part) for part in (self.z, [f.limit for f in self.fates])]
        sums.append(self.mean(everybody, [fate.resonant for fate in self.fates]))
        if any(any(s) for s in sums) or any(any(s) for s in bends.values()):
            self.fail(points[0], "the mean of all tokens is not zero at all layers")


def stays_negative(terms, s):
    """(E7) Whether the sum of terms times (1, m s^m, s^m, m^2 s^2m, m s^2m, s^2m) is negative for m = 1, 2, ..."""
    lead = next((k for k, term in enumerate(terms) if term), None)
    if lead is None or terms[lead] > 0:
        return False
    for m in range(1, MOST_AHEAD):
        power = s**m
        weights = (ONE, m * power, power, m * m * power**2, m * power**2, power**2)
        if dot(terms, weights) >= 0:
            return False
        later = sum((abs(a) * w for a, w in zip(terms[lead + 1 :], weights[lead + 1 :])), ZERO)
        # From this m on the ratio of every later weight to the leading one falls.
        if (m + 1) ** 2 * s <= m * m and later < -terms[lead] * weights[lead]:
            return True
    return False


def check_equilibrium(record, tell):
    """Verdict and sentence on the certificate of an equilibrium."""
    system = Equilibrium(record)
    try:
        system.check(tell)
    except FailedError as error:
        return False, str(error)
    limits = len({fate.limit for fate in system.fates})
    return True, (
        f"all {system.count} tokens converge, to {limits} limit points; {len(system.leaders)} leaders, "
        f"every set of attended tokens is constant from layer {system.layers} on"
    )


# ---------------------------------------------------------------------------------------------------- the command


def check(data, tensors, tell=lambda text: None):
    """(proved, sentence) for the bytes of a JSON file and of network.safetensors (None where there is none)."""
    record = parse_json(data)
    if not isinstance(record, dict):
        raise UnreadableError("is neither a network nor a certificate")
    if "kind" in record:
        if record["kind"] != "equilibrium":
            raise UnreadableError("field kind must be equilibrium")
        return check_equilibrium(record, tell)
    return check_network(record, tensors, tell)


def read(path):
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise UnreadableError(f"is larger than {MOST_BYTES} bytes")
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error.strerror})") from None


def teller():
    """Function that shows progress on a terminal, at most ten times per second."""
    if not sys.stderr.isatty():
        return lambda text: None
    shown = [0.0]

    def tell(text):
        if time.monotonic() > shown[0] + 0.1:
            shown[0] = time.monotonic()
            print(f"\r{text}    ", end="", file=sys.stderr, flush=True)

    return tell


def verdict(path, tell=lambda text: None):
    """Exit status and line for a path."""
    path = os.path.join(path, "network.json") if os.path.isdir(path) else path
    beside = os.path.join(os.path.dirname(path), "network.safetensors")
    try:
        tensors = read(beside) if os.path.exists(beside) else None
        proved, sentence = check(read(path), tensors, tell)
    except UnreadableError as error:
        return 2, f"REFUSED: {path} {error}"
    return (0, f"PROVED: {sentence}") if proved else (1, f"NOT PROVED: {sentence}")


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)  # lengths are bounded by MOST_DIGITS
    worst, tell = 0, teller()
    for path in arguments:
        status, line = verdict(path, tell)
        print(line, flush=True)
        worst = max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
