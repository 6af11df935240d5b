"""What several processes are given to do, and what each of them then knows: ``torchrun … -m split_work FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import hardmax as hm
from made_up_texts import opinions


def work(ranks: hm.Processes) -> dict[str, Any]:
    """A limit in the plane, layers in eight dimensions, a flow on the sphere and a trained model."""
    plane = hm.make_tokens("gaussian", 20_000, 2, random_state=0)
    limit = hm.equilibrium(ranks.share(plane), hm.HardmaxLayer(0.5), processes=ranks)

    many = hm.make_tokens("gaussian", 3_000, 8, random_state=0)
    layer = hm.HardmaxLayer(0.5, hm.make_matrix("random", 8, random_state=1))
    run = hm.simulate(ranks.share(many), layer, depth=6, keep="last", processes=ranks)

    sphere = hm.fibonacci_sphere(301).points
    flow = hm.SphereFlow(B=np.diag([2.0, 1.0, 0.5]), beta=8.0, few_tokens="ignore")
    flown = hm.simulate(ranks.share(sphere), flow, time=1.0, keep="last", processes=ranks)

    texts, labels = opinions(60)
    model = hm.LeaderClassifier(random_state=0, epochs=2, batch_size=16, processes=ranks).fit(texts, labels)
    return {
        "positions": limit.positions,
        "follows": limit.follows,
        "leaders": limit.leaders,
        "run": run.final,
        "run_follows": run.leadership.follows,
        "flown": flown.final,
        "odds": model.predict_proba(texts),
    }


if __name__ == "__main__":
    with hm.processes() as before:  # processes may join more than once
        everybody = before.counts(before.rank)
    with hm.processes() as processes:
        found = {**work(processes), "everybody": np.array(everybody)}
    np.savez(Path(sys.argv[1]) / f"{processes.count}-{processes.rank}.npz", **found)
