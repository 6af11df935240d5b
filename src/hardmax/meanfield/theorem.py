r"""The theorem of concentration at low temperature, with constants that are computed, and a verdict on a run.

For a law :math:`\mu_0` with ball masses :math:`m(r) = \inf_y \mu_0(B(y, r)) > 0`, a regular B and a leading eigenvalue
of :math:`M = VB` that is real and semisimple [derived, see the developer notes],

.. math:: W_2(\mu_t, \Phi_\#\mu_0) \le \underbrace{|V|\,\frac{e^{L't}-1}{L'}\,\varepsilon_0(\beta, t)}_{\text{distance
          to the zero-temperature flow}} + D(t), \qquad L' = |V|(2 + |B||B^{-1}|),

with :math:`\varepsilon_0^2 = \min_\eta \eta^2 + 2\log(1/m(\eta e^{-Lt}))/\kappa`, :math:`\kappa = \beta/|B^{-1}|`,
:math:`L = L' - |V|`, and D(t) the distance of the zero-temperature flow to its limit :math:`\Phi`. The first part is of
the form :math:`C\sqrt{\log(\beta+1)/\beta}\,e^{\Lambda t}`, the second falls like :math:`e^{-ct}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from scipy.linalg import schur

from ..attention.layer import HardmaxLayer
from ..dynamics.equilibrium import Equilibrium
from ..dynamics.trajectory import Trajectory
from ..errors import InputError
from ..geometry.findings import TheoremReport
from ..geometry.theorem import check_theorem as check_layer
from ..inputs import as_number, as_tokens, as_weights, plain
from ..shapes import ArrayLike
from ..threads import one_thread
from .energy import flow_of, states_of, weights_of
from .exact import zero_temperature_solution
from .flow import SphereFlow
from .laplace import BallMasses, CapMasses, ball_masses
from .limit import LowTemperatureLimit, low_temperature_limit
from .spectrum import NoLimitError
from .transport import wasserstein

_SLACK = 1e-9  # rounding of a run and of distances, relative to the sphere
# The factor sqrt(1 + 2Lt) of the bound is at most sqrt(1/share) exp((share - 1)/2) exp(share L t), for any share < 1.
_SHARE = 1 / 8
_DIAMETER = 2.0  # of the unit sphere: no distance is larger


@dataclass(frozen=True)
class FlowAssumptions:
    """Assumptions of the theorem of concentration, each with what was found."""

    regular_scores: bool
    """B is regular, so that every token has a query."""
    real_leading: bool
    """The leading eigenvalue of V B is real."""
    semisimple: bool
    """The leading eigenvalue has as many eigenvectors as its multiplicity."""
    every_direction: bool
    """The initial law has mass in every ball, of a radius that is resolved."""
    no_mass_in_kernel: bool
    """No mass starts in the kernel of the projector onto the leading eigenspace."""
    sentences: tuple[str, ...]
    """What was found, a sentence per assumption."""

    @property
    def hold(self) -> bool:
        """Whether all assumptions hold."""
        return all(
            (self.regular_scores, self.real_leading, self.semisimple, self.every_direction, self.no_mass_in_kernel)
        )

    def rows(self) -> list[tuple[str, bool, str]]:
        """Table of the assumptions.

        Returns
        -------
        list of tuple
            Name, whether it holds, and what was found, per row.
        """
        names = (
            "regular B",
            "real leading eigenvalue",
            "semisimple",
            "mass in every direction",
            "no mass in the kernel",
        )
        values = (self.regular_scores, self.real_leading, self.semisimple, self.every_direction, self.no_mass_in_kernel)
        return [*zip(names, values, self.sentences, strict=True)]

    def __str__(self) -> str:
        if self.hold:
            return "the theorem applies"
        failing = "; ".join(sentence for _, holds, sentence in self.rows() if not holds)
        return f"the theorem does not apply: {failing}"


@dataclass(frozen=True, eq=False)
class FlowVerdict:
    """The theorem held against one run."""

    outcome: str
    """``"holds"``, ``"violated"`` or ``"not applicable"``."""
    table: tuple[dict[str, float | bool], ...]
    """One row per compared state, see :meth:`rows`."""
    looseness: float | None
    """Least quotient of bound and measured W_2 over the states with a bound below 2; None where there is none."""
    sentence: str
    """The verdict in words."""

    def rows(self) -> list[dict[str, float | bool]]:
        """Tidy table of the verdict.

        Returns
        -------
        list of dict
            Per compared state: time, measured W_2 to the limit, its bound, largest distance of a token to the
            zero-temperature flow, its bound, and whether both hold.
        """
        return [dict(row) for row in self.table]

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"<FlowVerdict: {self.sentence}>"


@dataclass(frozen=True, eq=False)
class FlowTheorem:
    """The theorem of concentration for one pair of matrices and one initial law, with its constants."""

    assumptions: FlowAssumptions
    """Which assumptions hold."""
    limit: LowTemperatureLimit | None
    """Limit of each token; None where there is none."""
    masses: BallMasses
    """Lower bounds on the mass of balls under the initial law."""
    weights: np.ndarray
    """Weight per token, shape (tokens,), summing to one."""
    lipschitz: float
    r""":math:`L = |V|\,(1 + |B||B^{-1}|)`, a Lipschitz constant of the zero-temperature field."""
    growth: float
    r"""Exponent :math:`\Lambda = 9L/8 + |V|` of the first part of the bound."""
    rate: float
    """Rate c, the gap over the norm of B, at which tokens outside the kernel approach their limits at beta = inf."""
    value_norm: float
    """Spectral norm of V."""
    shortest: float
    """Least singular value of B: queries are at least this long."""
    ratios: np.ndarray
    r"""Per token :math:`|(I - \Pi)x_0|/|\Pi x_0|`, shape (tokens,)."""
    departure: float
    """Departure from normality of V B on the other eigenspaces, in Schur form."""
    longest: float
    """Largest singular value of B."""

    @property
    def constant(self) -> float:
        r"""C in :math:`C\,(\sqrt{\log(\beta+1)/\beta}\,e^{\Lambda t} + e^{-ct})`, for beta with
        :math:`\beta/|B^{-1}| \ge q` (q the power of the ball masses) and beta >= 1.

        Infinite where the law has no mass in small balls, as finitely many tokens, or where V B is not normal on the
        other eigenspaces.
        """
        power = self.masses.power
        if power is None or not self.assumptions.hold or self.departure > 0:
            return math.inf
        q, c_0 = power
        rest = max(0.0, q + 2 * math.log(1 / c_0) + q * math.log(self.shortest / q))
        spread = math.sqrt(1 / _SHARE) * math.exp((_SHARE - 1) / 2)
        first = spread * math.sqrt((q + rest / math.log(2)) / self.shortest)
        first *= self.value_norm / (self.lipschitz + self.value_norm)
        second = math.sqrt(2 * max(1.0, float((self.weights * self.ratios**2).sum())) * 2)
        return max(first, second)

    def flow_bound(self, beta: float, t: float) -> float:
        """Upper bound on the distance of every token to the zero-temperature flow from the same start.

        Parameters
        ----------
        beta
            Inverse temperature, positive.
        t
            Time, not negative.

        Returns
        -------
        float
            At most 2, the diameter of the sphere.
        """
        beta, t = _beta(beta), _time(t)
        if t == 0 or self.value_norm == 0:
            return 0.0
        if not self.assumptions.regular_scores:
            return _DIAMETER
        above = self.lipschitz + self.value_norm
        if above * t > 700:  # the exponential is no float
            return _DIAMETER
        error = self.masses.laplace(beta * self.shortest, shrink=math.exp(-self.lipschitz * t))
        return min(_DIAMETER, self.value_norm * math.expm1(above * t) / above * error)

    def limit_bound(self, t: float) -> float:
        """Upper bound on W_2 between the zero-temperature flow and its limit.

        Parameters
        ----------
        t
            Time, not negative.

        Returns
        -------
        float
            At most 2, the diameter of the sphere.
        """
        t = _time(t)
        if self.limit is None:
            return _DIAMETER
        if not math.isfinite(self.rate):
            return 0.0
        s = t / self.longest
        gap = self.limit.leading.gap
        size = len(self.limit.B) - self.limit.dimension
        # Norm of e^{s'(M - lambda_1)} beside the leading eigenspace (Van Loan), for every s' >= s: term by term.
        decay = 0.0
        for k in range(size if self.departure > 0 else 1):
            at = max(s, k / gap)
            decay += (
                math.exp(k * math.log(self.departure * at) - math.lgamma(k + 1) - gap * at)
                if k
                else math.exp(-gap * at)
            )
        away = self.ratios * decay
        # Of two vectors a and a + r with |r| < |a| the directions are at most sqrt(2)|r|/|a| apart.
        each = np.where(away < 1, math.sqrt(2) * away, _DIAMETER)
        return min(_DIAMETER, math.sqrt(float((self.weights * each**2).sum())))

    def bound(self, beta: float, t: float) -> float:
        """Upper bound on W_2 between the law of the flow and the low-temperature limit.

        Parameters
        ----------
        beta
            Inverse temperature, positive.
        t
            Time, not negative.

        Returns
        -------
        float
            At most 2, the diameter of the sphere, which every distance obeys.
        """
        return min(_DIAMETER, self.flow_bound(beta, t) + self.limit_bound(t))

    def t_star(self, beta: float) -> float:
        r"""Time at which both parts of the theorem's bound have the same size, proportional to log beta:
        :math:`\log(\beta/\log(\beta+1))/(2(\Lambda + c))`.

        Parameters
        ----------
        beta
            Inverse temperature, positive.

        Returns
        -------
        float
            Zero where beta is too small for any concentration; NaN where the theorem does not apply.
        """
        beta = _beta(beta)
        if not self.assumptions.hold:
            return math.nan
        if not math.isfinite(self.rate):
            return 0.0
        return max(0.0, math.log(beta) - math.log(math.log1p(beta))) / (2 * (self.growth + self.rate))

    @one_thread()
    def verdict(self, run: Trajectory) -> FlowVerdict:
        """Verdict of the theorem on a run from the same law: every stored state against the bound.

        Parameters
        ----------
        run
            Trajectory of a :class:`SphereFlow` at finite beta that starts at the tokens of this theorem.

        Returns
        -------
        FlowVerdict
            Holds, violated or not applicable, in words and as a table.
        """
        flow = flow_of(run)
        states, mass = states_of(run).numpy(), weights_of(run).numpy()
        if not self.assumptions.hold or self.limit is None:
            return FlowVerdict("not applicable", (), None, f"not applicable: {self.assumptions}")
        if not 0 < flow.beta < math.inf:
            return FlowVerdict(
                "not applicable", (), None, f"not applicable: beta = {flow.beta:g} is not finite and positive"
            )
        positions = plain(self.limit.positions).astype(np.float64)
        if states.shape[1:] != positions.shape or int(run.layers[0]) != 0:
            remedy = "pass a run that stored its start, from the tokens of this theorem"
            raise InputError(
                "run", f"states of shape {states.shape[1:]}", "must start at the tokens of the theorem", remedy
            )
        again = low_temperature_limit(states[0], self.limit.B, self.limit.V)
        if np.abs(plain(again.positions) - positions).max() > 1e-6:
            remedy = "pass check_theorem(run.tokens[0], flow).verdict(run)"
            raise InputError("run", "another start", "must start at the tokens of the theorem", remedy)
        times = np.asarray(run.times, dtype=np.float64)
        cold = plain(zero_temperature_solution(states[0], self.limit.B, self.limit.V, time=times, normalise=True))
        rows = []
        for t, state, zero in zip(times, states, cold, strict=True):
            found = float(wasserstein(state, positions, first_weights=mass, second_weights=mass))
            apart = float(np.linalg.norm(state - zero, axis=1).max())
            limits = self.bound(flow.beta, float(t)), self.flow_bound(flow.beta, float(t))
            good = found <= limits[0] * (1 + _SLACK) + _SLACK and apart <= limits[1] * (1 + _SLACK) + _SLACK
            rows.append(
                {
                    "time": float(t),
                    "W2": found,
                    "bound": limits[0],
                    "distance to zero temperature": apart,
                    "bound of the distance": limits[1],
                    "holds": bool(good),
                }
            )
        return _verdict(tuple(rows))


def _verdict(rows: tuple[dict[str, float | bool], ...]) -> FlowVerdict:
    bad = [row for row in rows if not row["holds"]]
    telling = [row for row in rows if row["bound"] < _DIAMETER and row["W2"] > 0]
    loose = min((row["bound"] / row["W2"] for row in telling), default=None)
    if bad:
        first = bad[0]
        sentence = (
            f"violated at {len(bad)} of {len(rows)} states, the first at t = {first['time']:g}: W2 = {first['W2']:.4g} "
            f"and bound {first['bound']:.4g}, distance to zero temperature {first['distance to zero temperature']:.4g} "
            f"and bound {first['bound of the distance']:.4g}"
        )
        return FlowVerdict("violated", rows, loose, sentence)
    told = f"; the bound is below 2 at {len(telling)} of them"
    told += f", there at least {loose:.3g} times the measured W2" if loose is not None else ", so it says nothing here"
    return FlowVerdict("holds", rows, loose, f"holds at {len(rows)} states{told}")


@overload
def check_theorem(
    subject: Equilibrium,
    layer: None = None,
    *,
    require_assumptions: bool = False,
    tolerance: float | None = None,
) -> TheoremReport: ...
@overload
def check_theorem(
    subject: ArrayLike,
    layer: HardmaxLayer,
    *,
    require_assumptions: bool = False,
    tolerance: float | None = None,
) -> TheoremReport: ...
@overload
def check_theorem(
    subject: ArrayLike,
    layer: SphereFlow,
    *,
    weights: ArrayLike | None = None,
    density_floor: float | None = None,
    require_assumptions: bool = False,
) -> FlowTheorem: ...
@overload
def check_theorem(
    subject: object,
    layer: object | None = None,
    *,
    weights: ArrayLike | None = None,
    density_floor: float | None = None,
    require_assumptions: bool = False,
    tolerance: float | None = None,
) -> TheoremReport | FlowTheorem: ...
@one_thread()
def check_theorem(
    subject: object,
    layer: object | None = None,
    *,
    weights: ArrayLike | None = None,
    density_floor: float | None = None,
    require_assumptions: bool = False,
    tolerance: float | None = None,
) -> TheoremReport | FlowTheorem:
    """Report on the theorem for hardmax layers, or the theorem of concentration for a flow on the sphere.

    Parameters
    ----------
    subject
        A :class:`Trajectory`, an :class:`Equilibrium`, or tokens of shape (tokens, d). For a hardmax layer tokens are
        run until every token is decided; for a flow they are the initial law.
    layer
        :class:`HardmaxLayer` or :class:`SphereFlow`, when tokens are given (or pass the pair ``(tokens, layer)``).
    weights
        For a flow: positive weight per token, shape (tokens,); all equal when left out.
    density_floor
        For a flow: a positive lower bound of the density of the initial law with respect to the uniform law, where
        tokens only sample it. When left out, masses of balls are those of the tokens themselves.
    require_assumptions
        Raise an error where the theorem does not apply. Otherwise the report names the assumptions that fail.
    tolerance
        For layers: largest relative violation that counts as rounding; by default 1024 rounding errors of the dtype, or
        16 times the tolerance of the layer where that is larger.

    Returns
    -------
    TheoremReport or FlowTheorem
        For layers assumptions and findings; ``report.holds`` is true where nothing is violated. For flows assumptions,
        constants, ``bound(beta, t)``, ``t_star(beta)`` and ``verdict(run)``.

    Examples
    --------
    >>> import hardmax as hm
    >>> report = check_theorem([[2.0, 0.0], [0.5, 0.1], [-1.0, 0.2]], hm.HardmaxLayer(alpha=0.5))
    >>> report.holds, report["leaders exist"].sentence
    (True, '2 leaders found')
    >>> theorem = check_theorem(hm.circle_quantiles(1000).points, hm.SphereFlow(V=[[1.0, 0.0], [0.0, 0.5]]))
    >>> print(theorem.assumptions)
    the theorem applies
    >>> theorem.rate, theorem.lipschitz
    (0.5, 2.0)
    """
    if isinstance(subject, tuple) and len(subject) == 2 and isinstance(subject[1], SphereFlow) and layer is None:
        subject, layer = subject
    if isinstance(layer, SphereFlow):
        found = _of_flow(subject, layer, weights, density_floor)
    elif isinstance(subject, Trajectory) and layer is None and not _follows_layers(subject):
        flow = flow_of(subject)
        states, mass = states_of(subject), weights_of(subject)
        if int(subject.layers[0]) != 0:
            remedy = 'keep the start, for example with keep="all"'
            raise InputError("subject", "a run without its start", "must have stored its start", remedy)
        found = _of_flow(states[0].numpy(), flow, mass.numpy(), density_floor)
    else:
        for name, value in (("weights", weights), ("density_floor", density_floor)):
            if value is not None:
                raise InputError(name, "given", "belongs to flows on the sphere", f"leave out {name}")
        return check_layer(
            subject,
            layer,  # type: ignore[arg-type]
            require_assumptions=require_assumptions,
            tolerance=tolerance,
        )
    if tolerance is not None:
        raise InputError("tolerance", tolerance, "belongs to layers", "leave out tolerance")
    if require_assumptions and not found.assumptions.hold:
        raise InputError(
            "layer", str(found.assumptions), "must satisfy the assumptions", "leave out require_assumptions"
        )
    return found


def _follows_layers(run: Trajectory) -> bool:
    return run.times is None


def _of_flow(tokens: object, flow: SphereFlow, weights: object, floor: float | None) -> FlowTheorem:
    if flow.causal:
        raise InputError("layer", str(flow), "must not be causal: there is no mean field", "leave out causal=True")
    tensor, kind = as_tokens(tokens)
    points = flow.on_sphere(tensor.detach().to(torch.float64), kind.dtype).cpu().numpy()
    n, d = points.shape
    mass = as_weights(weights, n, torch.device("cpu")).numpy()
    mass = mass / mass.sum()
    B, V = (matrix.detach().cpu().numpy() for matrix in (flow.score_matrix(d), flow.value_matrix(d)))
    if floor is None:
        masses: BallMasses = ball_masses(points, mass)
    else:
        masses = CapMasses(d, as_number("density_floor", floor, lambda x: 0 < x <= 1, "must lie in (0, 1]", _FLOOR))
    stretch = np.linalg.svd(B, compute_uv=False)
    shortest, longest = float(stretch[-1]), float(stretch[0])
    value_norm = float(np.linalg.norm(V, 2))
    limit, reason = None, ""
    try:
        limit = low_temperature_limit(points, B, V)
    except NoLimitError as error:
        reason = error.reason.name
        sentence = error.sentence
    regular = reason != "SINGULAR_B"
    covered = masses.resolved
    kernel = 1.0 if reason == "IN_KERNEL" else 0.0 if limit is None else float(mass[limit.elsewhere].sum())
    real = limit is None or not limit.leading.turning
    semisimple = limit is None or limit.leading.semisimple
    sentences = (
        f"the least singular value of B is {shortest:.4g}" if regular else sentence,
        "the leading eigenvalue of V B is real" if real else "the leading eigenvalues of V B are a complex pair",
        "the leading eigenvalue of V B is semisimple" if semisimple else "the leading eigenvalue of V B is defective",
        str(masses),
        f"a share {kernel:.3g} of the mass starts in the kernel" if kernel else "no token starts in the kernel",
    )
    assumptions = FlowAssumptions(regular, real, semisimple, covered, regular and kernel == 0, sentences)
    if not assumptions.hold:
        limit = None
    ratios, departure, rate = _spread(points, limit, longest)
    lipschitz = value_norm * (1 + longest / shortest) if shortest > 0 else math.inf
    return FlowTheorem(
        assumptions=assumptions,
        limit=limit,
        masses=masses,
        weights=mass,
        lipschitz=lipschitz,
        growth=(1 + _SHARE) * lipschitz + value_norm,
        rate=rate,
        value_norm=value_norm,
        shortest=shortest,
        ratios=ratios,
        departure=departure,
        longest=longest,
    )


_FLOOR = "pass the least value of the density relative to the uniform one, for example density_floor=0.5"


def _spread(points: np.ndarray, limit: LowTemperatureLimit | None, longest: float) -> tuple[np.ndarray, float, float]:
    """Ratios of parts beside and inside the leading eigenspace, departure from normality, and rate."""
    if limit is None:
        return np.full(len(points), math.inf), math.inf, math.nan
    onto = limit.leading.projector
    inside = points @ onto.T
    ratios = np.linalg.norm(points - inside, axis=1) / np.linalg.norm(inside, axis=1)
    if limit.leading.second is None:
        return np.zeros(len(points)), 0.0, math.inf
    size = len(onto) - limit.dimension
    basis = np.linalg.svd(np.eye(len(onto)) - onto)[0][:, :size]
    triangle = schur(basis.T @ (limit.V @ limit.B) @ basis, output="complex")[0]
    departure = float(np.linalg.norm(triangle - np.diag(np.diag(triangle)), 2))
    # Rounding of a normal matrix is no departure.
    departure = 0.0 if departure <= 1e-13 * float(np.linalg.norm(triangle, 2)) else departure
    return ratios, departure, limit.leading.gap / longest


def _beta(beta: float) -> float:
    return as_number("beta", beta, lambda x: x > 0, "must be positive and finite", "pass for example beta=100.0")


def _time(t: float) -> float:
    return as_number("t", t, lambda x: x >= 0, "must be finite and not negative", "pass for example t=1.0")
