r"""A typical-section airfoil: pitch and plunge on springs in unsteady flow, with a cubic pitch spring.

Time is in half-chords travelled. Plunge :math:`\xi` and pitch :math:`\alpha` obey

.. math::

   \xi'' + x_\alpha \alpha'' + 2\zeta_\xi \tfrac{\bar\omega}{U}\xi' + (\tfrac{\bar\omega}{U})^2 \xi
      = -\tfrac{1}{\pi\mu} C_L, \qquad
   \tfrac{x_\alpha}{r^2}\xi'' + \alpha'' + \tfrac{2\zeta_\alpha}{U}\alpha' + \tfrac{1}{U^2}(\alpha + \beta\alpha^3)
      = \tfrac{2}{\pi\mu r^2} C_M,

with lift and moment from Wagner's function in R. T. Jones' two-exponential form, which adds two states. Past the
linear flutter speed the cubic spring holds the oscillation on a limit cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..scalars import as_count, as_positive
from .chaotic import sampled_solution
from .series import Series

_P1, _P2, _E1, _E2 = 0.165, 0.335, 0.0455, 0.3
"""Jones' approximation 1 - 0.165 exp(-0.0455 s) - 0.335 exp(-0.3 s) of Wagner's function."""


@dataclass(frozen=True)
class TypicalSection:
    """Parameters of an airfoil in plunge and pitch; the defaults are the classical ones, whose flutter speed is known.

    Parameters
    ----------
    mass_ratio
        Mass of the airfoil relative to that of the air around it.
    elastic_axis
        Place of the elastic axis behind the middle of the chord, in half-chords.
    centre_of_mass
        Distance of the centre of mass behind the elastic axis, in half-chords.
    radius_of_gyration
        Radius of gyration about the elastic axis, in half-chords.
    frequency_ratio
        Natural frequency of plunge relative to that of pitch.
    plunge_damping
        Damping ratio of plunge.
    pitch_damping
        Damping ratio of pitch.
    cubic_stiffness
        Coefficient of the cubic term of the pitch spring.

    Examples
    --------
    >>> round(TypicalSection().flutter_speed(), 3)
    6.285
    """

    mass_ratio: float = 100.0
    elastic_axis: float = -0.5
    centre_of_mass: float = 0.25
    radius_of_gyration: float = 0.5
    frequency_ratio: float = 0.2
    plunge_damping: float = 0.0
    pitch_damping: float = 0.0
    cubic_stiffness: float = 40.0

    def speed(self, state: np.ndarray, U: float) -> tuple[np.ndarray, float]:
        """Time derivative of the state, shape (6,), and the lift.

        Parameters
        ----------
        state
            Plunge, its rate, pitch, its rate, and two lags of the wake, shape (6,).
        U
            Reduced speed of the flow.

        Returns
        -------
        derivative : numpy.ndarray
            Time derivative of ``state``, shape (6,).
        lift : float
            The lift coefficient.
        """
        mu, a, x, r = self.mass_ratio, self.elastic_axis, self.centre_of_mass, self.radius_of_gyration
        plunge, d_plunge, pitch, d_pitch, lag1, lag2 = state
        downwash = pitch + d_plunge + (0.5 - a) * d_pitch
        circulation = downwash * (1 - _P1 - _P2) + _P1 * _E1 * lag1 + _P2 * _E2 * lag2
        # Added mass: the airfoil accelerates air with it.
        m11, m12 = 1 + 1 / mu, x - a / mu
        m21, m22 = (x - a / mu) / r**2, 1 + (1 / 8 + a * a) / (mu * r**2)
        spring = (self.frequency_ratio / U) ** 2 * plunge
        force = (
            -2 * self.plunge_damping * self.frequency_ratio / U * d_plunge - spring - (d_pitch + 2 * circulation) / mu
        )
        moment = (
            -2 * self.pitch_damping / U * d_pitch
            - (pitch + self.cubic_stiffness * pitch**3) / U**2
            + (2 * (0.5 + a) * circulation - (0.5 - a) * d_pitch) / (mu * r**2)
        )
        determinant = m11 * m22 - m12 * m21
        dd_plunge = (force * m22 - m12 * moment) / determinant
        dd_pitch = (m11 * moment - m21 * force) / determinant
        lift = np.pi * (dd_plunge - a * dd_pitch + d_pitch) + 2 * np.pi * circulation
        wake = (downwash - _E1 * lag1, downwash - _E2 * lag2)
        return np.array([d_plunge, dd_plunge, d_pitch, dd_pitch, *wake]), float(lift)

    def linear_growth(self, U: float) -> float:
        """Largest real part of the eigenvalues about rest: negative below the flutter speed.

        Parameters
        ----------
        U
            Reduced speed of the flow.

        Returns
        -------
        float
            The growth rate.
        """
        # About rest the cubic term vanishes, so the columns of the Jacobian are speeds of unit states without it.
        linear = TypicalSection(**{**self.__dict__, "cubic_stiffness": 0.0})
        jacobian = np.column_stack([linear.speed(unit, U)[0] for unit in np.eye(6)])
        return float(np.linalg.eigvals(jacobian).real.max())

    def flutter_speed(self, low: float = 1.0, high: float = 20.0) -> float:
        """Reduced speed at which rest first loses its stability, by bisection.

        Parameters
        ----------
        low
            A speed below it.
        high
            A speed above it.

        Returns
        -------
        float
            The flutter speed.
        """
        if not self.linear_growth(low) < 0 < self.linear_growth(high):
            raise InputError(
                "high",
                f"{low:g} to {high:g}",
                "must bracket the flutter speed: rest stable at the lower end and unstable at the upper",
                "widen the interval",
            )
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.linear_growth(middle) < 0 else (low, middle)
        return (low + high) / 2


def airfoil(
    n: int = 500,
    dt: float = 2.0,
    *,
    initial_pitch: float = 0.02,
    U: float = 7.5,
    section: TypicalSection | None = None,
) -> Series:
    """Pitch, plunge and lift of a typical section at reduced speed ``U``, released at an angle in radians.

    >>> airfoil(20).names
    ('pitch', 'plunge', 'lift')
    """
    n, dt, U = as_count("n", n, least=2), as_positive("dt", dt), as_positive("U", U)
    wing = TypicalSection() if section is None else section
    times = dt * np.arange(n)
    start = np.array([0.0, 0.0, initial_pitch, 0.0, 0.0, 0.0])
    states = sampled_solution(lambda _, state: wing.speed(state, U)[0], start, times, source="the typical section")
    lift = np.array([wing.speed(state, U)[1] for state in states])
    values = np.column_stack([states[:, 2], states[:, 0], lift])
    return Series(values, times, ("pitch", "plunge", "lift"), f"typical section at U = {U:g}", 0.0)
