r"""Convex polytopes: the hull of points in any dimension, also when it is a point, a segment or flat.

The hull is computed inside the affine subspace that the points span, found with a tolerance relative to the size of
the coordinates, after scaling by powers of two, so that coordinates from 1e-300 to 1e300 are treated alike. In up to
four dimensions Qhull finds the vertices. In more dimensions, where the number of facets grows too fast, vertices are
found one by one without facets (Clarkson, 1994): a point outside of the hull of the known vertices gives a direction
that separates it, and the farthest point in that direction is a new vertex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from .errors import HardmaxError, InputError

_EPS = float(np.finfo(np.float64).eps)
# Points closer to a subspace than this, relative to the largest coordinate, lie in it.
_FLATNESS = 64 * _EPS
# Frames thinner than this are rotated and rescaled before they are passed to Qhull.
_THIN = 2.0**-12
# Without facets, a vertex has to stand out of the hull of the others by this much, relative to its size.
_MARGIN = 1e-12
# Up to this dimension Qhull is fast for any number of points; above, only when few facets are possible.
_EASY_DIMENSION = 4
# Polytopes that may have more facets have no faces, normals or volume: a limit on time and memory.
_MOST_FACETS = 200_000
# Scores per block of rows: 32 MiB of float64.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class _Frame:
    """Coordinates y near 1 inside the affine hull: ``x = 2**exponent * (origin + basis @ (extents * y))``."""

    exponent: int
    origin: np.ndarray
    basis: np.ndarray
    extents: np.ndarray

    def scaled(self, points: np.ndarray) -> np.ndarray:
        # Whatever lies outside of [-4, 4] is far outside of the polytope, which lies in [-1, 1].
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(np.ldexp(points, -self.exponent), -4.0, 4.0))

    def inside(self, scaled: np.ndarray) -> np.ndarray:
        return np.asarray(((scaled - self.origin) @ self.basis) / self.extents)


def _power_above(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.ldexp(1.0, np.frexp(values)[1]))


def _frame_of(points: np.ndarray) -> _Frame:
    exponent = math.frexp(float(np.abs(points).max()))[1]
    scaled = np.ldexp(points, -exponent)
    middle = (scaled.max(axis=0) + scaled.min(axis=0)) / 2
    origin = scaled[int(np.argmax(((scaled - middle) ** 2).sum(axis=1)))]
    offsets = scaled - origin
    # The point farthest from the subspace so far spans the next direction, however many points there are.
    pivots: list[int] = []
    basis = np.zeros((points.shape[1], 0))
    heights: list[float] = []
    while basis.shape[1] < points.shape[1]:
        outside = offsets - (offsets @ basis) @ basis.T
        distance = np.sqrt((outside**2).sum(axis=1))
        farthest = int(np.argmax(distance))
        if distance[farthest] <= _FLATNESS:
            break
        pivots.append(farthest)
        heights.append(float(distance[farthest]))
        basis = np.linalg.qr(offsets[pivots].T)[0]
    if len(pivots) == points.shape[1] and heights[-1] >= _THIN * heights[0]:
        basis = np.eye(points.shape[1])  # no rotation, no rounding
    inside = np.abs(offsets @ basis)
    extents = _power_above(inside.max(axis=0)) if basis.shape[1] else np.ones(0)
    return _Frame(exponent, origin, basis, extents)


def _separation(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """A direction in which ``point`` lies beyond every corner, near zero if it lies inside their hull.

    Non-negative least squares for the weights of a convex combination: by its optimality conditions the
    residual separates.
    """
    system = np.vstack([corners.T, np.ones(len(corners))])
    target = np.append(point, 1.0)
    try:
        weights, _ = nnls(system, target, maxiter=50 * len(corners))
    except RuntimeError as error:
        raise HardmaxError(
            f"whether a point lies in the hull of {len(corners)} points in {len(point)} dimensions could "
            f"not be decided ({error}): round the points to fewer digits"
        ) from None
    return np.asarray((target - system @ weights)[:-1])


def _certain_vertices(y: np.ndarray) -> np.ndarray:
    """Points that win strictly in the direction from the mean to themselves, in whitened coordinates."""
    centred = y - y.mean(axis=0)
    spread, directions = np.linalg.eigh(centred.T @ centred / len(y))
    white = (centred @ directions) / np.sqrt(np.maximum(spread, _EPS * spread[-1]))
    lengths = np.sqrt((white**2).sum(axis=1))
    certain = np.zeros(len(y), dtype=bool)
    step = max(1, _BLOCK // len(y))
    for start in range(0, len(y), step):
        block = slice(start, start + step)
        scores = white[block] @ white.T
        own = lengths[block] ** 2
        scores[np.arange(len(own)), np.arange(start, start + len(own))] = -np.inf
        certain[block] = own > scores.max(axis=1) + _MARGIN * lengths[block] * lengths.max()
    return np.flatnonzero(certain)


def _vertices_without_facets(y: np.ndarray) -> np.ndarray:
    found = set(_certain_vertices(y).tolist()) | {int(np.argmax(y[:, 0])), int(np.argmin(y[:, 0]))}
    middle = y.mean(axis=0)
    for p in np.argsort(-((y - middle) ** 2).sum(axis=1), kind="stable").tolist():
        while p not in found:
            corners = sorted(found)
            direction = _separation(y[corners], y[p])
            if math.sqrt(float(direction @ direction)) <= _MARGIN:
                break
            reach = y @ direction
            # Where several are equally far, the farthest of them along a second direction is a vertex.
            level = np.flatnonzero(reach >= reach.max() - _MARGIN * math.sqrt(float(direction @ direction)))
            found.add(int(level[np.argmax(((y[level] - middle) ** 2).sum(axis=1))]))
    return np.array(sorted(found), dtype=np.int64)


def _vertex_rows(y: np.ndarray) -> np.ndarray:
    dimension = y.shape[1]
    if dimension == 0:
        return np.zeros(1, dtype=np.int64)
    if dimension == 1:
        return np.unique([int(np.argmin(y[:, 0])), int(np.argmax(y[:, 0]))])
    if dimension <= _EASY_DIMENSION:
        return np.sort(ConvexHull(y).vertices.astype(np.int64))
    return _vertices_without_facets(y)


def _most_facets(vertices: int, dimension: int) -> int:
    """McMullen's upper bound: no polytope with so many vertices has more facets."""
    return math.comb(vertices - (dimension + 1) // 2, vertices - dimension) + math.comb(
        vertices - (dimension + 2) // 2, vertices - dimension
    )


def _points(argument: str, value: object, dimension: int | None = None) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            argument, repr(value)[:60], "must be an array of real numbers", f"pass rows of numbers ({error})"
        ) from None
    if array.ndim != 2 or array.size == 0 or (dimension is not None and array.shape[1] != dimension):
        wanted = "coordinate" if dimension is None else str(dimension)
        raise InputError(
            argument,
            f"shape {array.shape}",
            f"must have shape (point, {wanted}) and not be empty",
            "one point x is x[None, :]",
        )
    if not np.isfinite(array).all():
        raise InputError(argument, "NaN or infinity", "must be finite", "remove the points that are not finite")
    return array


@dataclass(frozen=True, eq=False)
class Polytope:
    """Convex hull of finitely many points; build one with :meth:`of`.

    Examples
    --------
    >>> square = Polytope.of([[0, 0], [2, 0], [2, 2], [0, 2], [1, 1]])
    >>> square.vertex_indices.tolist(), square.dimension, square.volume
    ([0, 1, 2, 3], 2, 4.0)
    >>> square.contains([[1, 2], [1, 3]]).tolist()
    [True, False]
    """

    vertices: np.ndarray
    """Vertices, shape (vertices, d), in the order of the points."""
    vertex_indices: np.ndarray
    """Index of the point at each vertex (the lowest where points are repeated), ascending, shape (vertices,)."""
    dimension: int
    """Dimension of the affine hull: 0 for a point, 1 for a segment, 2 for a polygon, whatever d."""
    _frame: _Frame

    @classmethod
    def of(cls, points: object) -> Polytope:
        """Convex hull of points.

        Parameters
        ----------
        points
            Finite numbers, shape (points, d), at least one point.

        Returns
        -------
        Polytope
            The hull; it may be a point, a segment or flat.
        """
        array = _points("points", points)
        frame = _frame_of(array)
        # Of equal points the first gives the index.
        y = frame.inside(frame.scaled(array))
        _, first = np.unique(y, axis=0, return_index=True)
        first = np.sort(first)
        indices = first[_vertex_rows(y[first])]
        return cls(array[indices], indices, int(frame.basis.shape[1]), frame)

    def __repr__(self) -> str:
        return f"<Polytope: {self}>"

    def __str__(self) -> str:
        space = self.vertices.shape[1]
        if self.dimension == 0:
            return f"a point in {space} coordinates"
        kind = {1: "a segment", 2: "a polygon"}.get(self.dimension, f"a {self.dimension}-dimensional polytope")
        return f"{kind} with {len(self.vertices)} vertices in {space} coordinates"

    @property
    def faces(self) -> np.ndarray:
        """Simplices of the boundary inside the affine hull, as rows of indices into ``vertices``.

        Edges of a polygon, triangles of a solid (in three coordinates ordered so that the normal by the right-hand rule
        points outwards), the two ends of a segment; a point has none.
        """
        return self._facets[0]

    @property
    def normals(self) -> np.ndarray:
        """Unit outward normals of ``faces``, inside the affine hull, shape (faces, d)."""
        return self.equations[:, :-1]

    @cached_property
    def equations(self) -> np.ndarray:
        """One row ``(normal, offset)`` per face, shape (faces, d + 1): ``normal @ x + offset <= 0`` inside."""
        normals, reach = self._facets[1:]
        return np.column_stack([normals, -np.ldexp(reach, self._frame.exponent)])

    @property
    def outline(self) -> np.ndarray:
        """Indices into ``vertices`` of a polygon, in their order along the boundary.

        Counter-clockwise in two coordinates. For a segment its two ends, for a point the point itself.
        """
        if self.dimension > 2:
            raise HardmaxError(f"only a polygon has an outline, this is {self}: use faces")
        if self.dimension < 2:
            return np.arange(len(self.vertices))
        y = self._inside[:, :2] - self._inside.mean(axis=0)
        return np.argsort(np.arctan2(y[:, 1], y[:, 0]), kind="stable")

    @cached_property
    def _measure(self) -> tuple[float, int]:
        """Volume m 2**e as ``(m, e)``, which cannot overflow."""
        if self.dimension == 0:
            return 1.0, 0
        if self.dimension == 1:
            inside = float(np.ptp(self._inside[:, 0]))
        else:
            self._require_few_facets()
            inside = float(ConvexHull(self._inside).volume)
        # The basis is orthonormal: only the extents, powers of two, and the common power change the measure.
        return inside, self.dimension * self._frame.exponent + int(np.log2(self._frame.extents).sum())

    @property
    def log_volume(self) -> float:
        """Natural logarithm of :attr:`volume`, also where the volume exceeds the range of float64."""
        size, power = self._measure
        return math.log(size) + power * math.log(2.0)

    @property
    def volume(self) -> float:
        """Volume inside the affine hull: area of a polygon, length of a segment, 1 for a point."""
        if not -708.0 < self.log_volume < 709.0:
            raise HardmaxError(
                f"the volume, exp({self.log_volume:.6g}), is no float64: use log_volume or rescale the points"
            )
        return math.ldexp(*self._measure)

    def excess(self, points: object) -> np.ndarray:
        """Lower bound on the distance of each point to the polytope, relative to its largest coordinate.

        The distance to the affine hull or to the plane of the farthest violated face, whichever is larger: zero exactly
        for points of the polytope (up to rounding), and never more than the distance to it.

        Parameters
        ----------
        points
            Shape (points, d).

        Returns
        -------
        array
            Shape (points,), zero inside.
        """
        frame = self._frame
        scaled = frame.scaled(_points("points", points, self.vertices.shape[1]))
        offsets = scaled - frame.origin
        along = offsets @ frame.basis
        gap = np.sqrt(((offsets - along @ frame.basis.T) ** 2).sum(axis=1))
        if self.dimension > 0 and not self._has_few_facets:
            corners = self._inside * frame.extents
            beyond = np.array([_separation(corners, point) for point in along])
            gap = np.maximum(gap, np.sqrt((beyond**2).sum(axis=1)))
        elif self.dimension > 0:
            _, normals, reach = self._facets
            step = max(1, _BLOCK // len(normals))
            for start in range(0, len(scaled), step):
                block = slice(start, start + step)
                gap[block] = np.maximum(gap[block], (scaled[block] @ normals.T - reach).max(axis=1))
        size = float(np.abs(frame.scaled(self.vertices)).max())
        return np.asarray(gap / size if size > 0 else gap)

    def contains(self, points: object, tolerance: float = 1e-12) -> np.ndarray:
        """Whether each point lies in the polytope, its boundary included; booleans of shape (points,).

        Parameters
        ----------
        points
            Shape (points, d).
        tolerance
            Points outside by at most this much, relative to the largest coordinate, count as inside.

        Returns
        -------
        array
            Booleans of shape (points,).
        """
        if not 0 <= tolerance < 1:
            raise InputError("tolerance", tolerance, "must lie in [0, 1)", "pass for example tolerance=1e-12")
        return np.asarray(self.excess(points) <= tolerance)

    def support(self, directions: object) -> np.ndarray:
        r"""Support function :math:`h(u) = \max_{y \in K} \langle u, y\rangle`, shape (directions,).

        Parameters
        ----------
        directions
            Directions u, shape (directions, d), of any length.

        Returns
        -------
        array
            h(u) of each direction.
        """
        array = _points("directions", directions, self.vertices.shape[1])
        power = math.frexp(float(np.abs(array).max()))[1]
        scaled = np.ldexp(array, -power)
        corners = self._frame.scaled(self.vertices)
        values = np.empty(len(array))
        step = max(1, _BLOCK // len(corners))
        for start in range(0, len(array), step):
            values[start : start + step] = (scaled[start : start + step] @ corners.T).max(axis=1)
        with np.errstate(over="ignore"):
            values = np.ldexp(values, power + self._frame.exponent)
        if not np.isfinite(values).all():
            raise InputError(
                "directions",
                f"largest size {float(np.abs(array).max()):.3g}",
                "must keep <u, y> within float64",
                "pass shorter directions: h(c u) = c h(u) for c > 0",
            )
        return values

    @cached_property
    def _inside(self) -> np.ndarray:
        return self._frame.inside(self._frame.scaled(self.vertices))

    @property
    def _has_few_facets(self) -> bool:
        return self.dimension <= _EASY_DIMENSION or _most_facets(len(self.vertices), self.dimension) <= _MOST_FACETS

    def _require_few_facets(self) -> None:
        if not self._has_few_facets:
            raise HardmaxError(
                f"{self} can have {_most_facets(len(self.vertices), self.dimension):.3g} facets, more than "
                "can be listed, so it has no faces, normals or volume: use vertices, contains and support, "
                "or project the points to fewer dimensions"
            )

    @cached_property
    def _facets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Faces, their unit normals and ``max <normal, x>``, the last in units of ``2**exponent``."""
        frame, coordinates = self._frame, self.vertices.shape[1]
        if self.dimension == 0:
            return np.zeros((0, 0), dtype=np.int64), np.zeros((0, coordinates)), np.zeros(0)
        if self.dimension == 1:
            faces = np.array([[np.argmin(self._inside[:, 0])], [np.argmax(self._inside[:, 0])]], dtype=np.int64)
            normals = np.stack([-frame.basis[:, 0], frame.basis[:, 0]])
        else:
            self._require_few_facets()
            hull = ConvexHull(self._inside)
            faces = hull.simplices.astype(np.int64)
            normals = (hull.equations[:, :-1] / frame.extents) @ frame.basis.T
            normals /= np.sqrt((normals**2).sum(axis=1, keepdims=True))
        corners = frame.scaled(self.vertices)
        reach = (normals[:, None, :] * corners[faces]).sum(axis=2).max(axis=1)
        if self.dimension == coordinates == 3:
            a, b, c = (corners[faces[:, k]] for k in range(3))
            backwards = (np.cross(b - a, c - a) * normals).sum(axis=1) < 0
            faces[backwards] = faces[backwards][:, [0, 2, 1]]
        return faces, normals, reach
