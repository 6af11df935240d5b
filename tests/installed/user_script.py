"""A user's script: one small job per capability, in the words of the documentation; checked by mypy and pyright."""

from pathlib import Path

import numpy as np
import torch

import hardmax as hm


def main(folder: Path) -> dict[str, float]:
    tokens = hm.make_tokens("gaussian", 60, 2, random_state=0)
    layer = hm.HardmaxLayer(alpha=0.5)
    run = hm.simulate(tokens, layer, depth=20)
    limit = hm.equilibrium(tokens, layer)
    leaders, clusters = hm.leaders(limit), hm.clusters(run)
    theorem = hm.check_theorem(limit)
    proof = hm.equilibrium_certificate(np.array([[1, 0], [0, 2], [1, 1]]))
    causal = hm.AttentionLayer(weighting=hm.TopK(3, beta=2.0), move=hm.ResidualStep(0.1), causal=True)
    moved = causal(tokens)
    torch_layer = hm.from_torch(torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval())
    index = hm.LeaderIndex(2)
    index.append(tokens)
    best = index.best(np.array([1.0, 0.0]))
    net = hm.interpolate([[[0, 0], [1, 0]], [[0, 1], [2, 2]]], [[[1, 0]], [[0, 1]]])
    net.save(folder / "network")
    certificate = hm.verify(folder / "network")
    circle = hm.circle_quantiles(100)
    flow = hm.SphereFlow(np.diag([4.0, 1.0]), np.diag([1.0, 2.0]), beta=5.0, few_tokens="ignore")
    phases = hm.phases(hm.simulate(circle.points, flow, time=2.0, step=0.1))
    kuramoto = hm.zoo.kuramoto(coupling=2.0).run(n=8, time=1.0, random_state=0)
    diagram = hm.phase_diagram("noisy", x=("coupling", [1.0, 4.0]), y=("beta", [1.0, 2.0]), seeds=1, time=0.5)
    texts, labels = ["good film", "fine and good", "bad film", "dull and bad"] * 10, [1, 1, 0, 0] * 10
    reader = hm.LeaderClassifier(4, epochs=2, random_state=0).fit(texts, labels)
    why = reader.explain("a good film")
    series = np.sin(0.3 * np.arange(300.0))[:, None]
    forecast = hm.TimeDelayedTransformer(seconds=1.0, random_state=0).fit(series).forecast(10)
    low, high = forecast.interval(0.9)
    rows = hm.sweep(lambda n: {"size": 2 * n}, {"n": [1, 2]})
    hm.save_figure(hm.draw_tokens(limit), folder / "limit.png")
    return {
        "leaders": float(len(leaders)),
        "clusters": float(len(clusters.centres)),
        "theorem": float(theorem.holds),
        "decided": float(len(proof.fates)),
        "moved": float(np.abs(moved - tokens).max()),
        "parameters": float(torch_layer(np.zeros((3, 4))).shape[1]),
        "best": float(best.first),
        "proved": float(certificate.proved),
        "approach": phases.approach_distance,
        "kuramoto": float(np.abs(kuramoto.final).max()),
        "order": float(diagram.mean[0, 1]),
        "probability": float(why.probabilities.max()),
        "width": float((high - low).max()),
        "sizes": float(rows["size"].sum()),
    }


if __name__ == "__main__":
    print(main(Path.cwd()))
