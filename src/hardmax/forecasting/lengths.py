"""Trajectories that are long enough to learn from."""

from __future__ import annotations

from ..errors import InputError
from .protocol import FloatArray
from .series import Record

_FEWEST_SAMPLES = 12


def long_enough(
    record: Record, inputs: list[FloatArray] | None, delays: int | None
) -> tuple[Record, list[FloatArray] | None, list[str]]:
    """Trajectories and inputs without those that are too short for so many delays, and a note on what was left out."""
    needed = _FEWEST_SAMPLES if delays is None else delays + _FEWEST_SAMPLES
    lengths = [len(z) for z in record.trajectories]
    keep = [i for i, length in enumerate(lengths) if length >= needed]
    if not keep:
        raise InputError(
            "series",
            f"{max(lengths, default=0)} samples",
            f"has too few samples: at least {needed} are needed" + ("" if delays is None else f" for delays={delays}"),
            "record more, or lower delays",
        )
    notes = []
    if len(keep) < len(lengths):
        notes.append(
            f"{len(lengths) - len(keep)} of {len(lengths)} trajectories have fewer than {needed} samples and "
            "were left out."
        )
    kept = Record([record.trajectories[i] for i in keep], record.dt, record.last_time, record.notes)
    return kept, None if inputs is None else [inputs[i] for i in keep], notes
