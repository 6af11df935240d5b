"""The probe against plain loops that hold every matrix, on random and on tie-rich input; files; resuming; bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hardmax as hm
from hardmax.errors import FileError, InputError
from hardmax.models import Transformer, cosine_clusters, load_report, random_transformer
from hardmax.models.probe import hypotheses, rows, states
from hardmax.models.probe.interventions import Run, parts
from hardmax.models.probe.report import COLUMNS
from hardmax.models.probe.tables import verdict
from hardmax.models.probe.texts import HEAD_SUMS, LAYER_SUMS, random_others, sinks_of, text_record

TEXTS = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], [2, 7, 1, 8, 2], [1, 6, 1, 8, 0, 3, 3, 9] * 3]


def small(family: str = "bert", scale: float = 0.7, dtype: str = "float64") -> Transformer:
    made = random_transformer(family=family, layers=3, heads=2, d=8, vocabulary=12, scale=scale, random_state=5)
    return made.to(dtype)


def without_places(model: Transformer) -> Transformer:
    """Repeated words are then equal tokens: every choice among them ties."""
    return replace(model, embedding=replace(model.embedding, places=None))


def zero_queries(model: Transformer) -> Transformer:
    """All scores of a row are equal."""
    first = model.layers[0]
    flat = replace(first, attention=replace(first.attention, query=torch.zeros_like(first.attention.query)))
    return replace(model, layers=(flat, *model.layers[1:]))


MODELS = {
    "encoder": small(),
    "encoder in float32": small(dtype="float32"),
    "causal": small("gpt2"),
    "rotary": small("llama"),
    "window": (lambda made: replace(made, layers=tuple(replace(one, window=5) for one in made.layers)))(small("gpt2")),
    "equal tokens": without_places(small()),
    "equal tokens in float32": without_places(small(dtype="float32")),
    "equal causal tokens": without_places(small("gpt2")),
    "zero queries": zero_queries(small()),
    "zero causal queries": zero_queries(small("gpt2", dtype="float32")),
    "cold": small(scale=3.0),
}


class Oracle:
    """Attention of one layer on one text by loops over rows, from full matrices."""

    def __init__(self, layer: hm.models.TransformerLayer, state: torch.Tensor) -> None:
        vectors = layer.vectors(state[None])
        self.layer, self.tokens = layer, len(state)
        self.queries, self.keys, self.values = (
            np.asarray(one[0]) for one in (vectors.queries, vectors.keys, vectors.values)
        )
        self.start = min(16, self.tokens // 2) if layer.causal else 0
        self.eps = float(np.finfo(self.queries.dtype).eps)

    def seen(self, i: int) -> list[int]:
        if not self.layer.causal:
            return [*range(self.tokens)]
        return [j for j in range(i + 1) if self.layer.window is None or j > i - self.layer.window]

    def row(self, head: int, i: int, factor: float = 1.0) -> dict[str, float]:
        seen = self.seen(i)
        query, key = self.queries[head].astype(float), self.keys[head].astype(float)
        value = self.values[head].astype(float)
        score = np.array([self.layer.attention.scale * float(query[i] @ key[j]) for j in seen])
        weight = np.exp(factor * (score - score.max()))
        weight /= weight.sum()
        tied = score >= score.max() - 64 * self.eps * np.abs(score).max()
        soft = sum(p * value[j] for p, j in zip(weight, seen, strict=True))
        hard = np.mean([value[j] for j, one in zip(seen, tied, strict=True) if one], axis=0)
        entropy = -sum(p * math.log(p) for p in weight if p > 0)
        n = len(seen)
        return {
            "tau": float(np.std(score, ddof=1)) / math.sqrt(2 * math.log(n)) if n > 1 else 0.0,
            "largest_weight": weight.max(),
            "largest_weight_chance": 1 / n,
            "attended": math.exp(entropy),
            "entropy": entropy / math.log(n) if n > 1 else 1.0,
            "error": float(np.linalg.norm(soft - hard)),
            "bound": weight[~tied].sum() * max(float(np.linalg.norm(value[j] - hard)) for j in seen),
            "size": float(np.linalg.norm(soft)),
            "target": seen[int(tied.argmax())],
        }


def end_of_chain(targets: np.ndarray, i: int) -> str:
    for _ in range(len(targets)):
        i = targets[i]
    length, at = 1, targets[i]
    while at != i:
        length, at = length + 1, targets[at]
    return {1: "ends_in_leader", 2: "ends_in_pair"}.get(length, "ends_in_cycle")


CASES = [*[(name, 2**20) for name in MODELS], ("encoder", 40), ("window", 40), ("equal causal tokens", 40)]


@pytest.mark.parametrize(("name", "at_once"), CASES)
def test_rows_agree_with_loops_over_full_matrices(name: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_MOST_AT_ONCE", at_once)  # blocks of one or two rows
    model = MODELS[name]
    text = model.tokenise(TEXTS[2])
    special = sinks_of(text)
    close = 2e-4 if model.dtype == torch.float32 else 1e-9
    for layer, state in zip(model.layers, model.states(text), strict=False):
        found, oracle = rows.layer_rows(layer, state, special), Oracle(layer, state)
        for head in range(model.heads):
            wanted = [oracle.row(head, i) for i in range(oracle.tokens)]
            targets = np.array([one["target"] for one in wanted], dtype=int)
            assert found.targets[head].tolist() == targets.tolist()
            measured = range(oracle.start, oracle.tokens)
            for key in wanted[0]:
                if key != "target":
                    total = sum(wanted[i][key] for i in measured)
                    assert found.sums[key][head] == pytest.approx(total, rel=close, abs=close), key
            counts = {
                "rows": len(measured),
                "sink_share": sum(targets[i] == 0 for i in measured),
                "special_share": sum(bool(special[targets[i]]) for i in measured),
                "self_share": sum(targets[i] == i for i in measured),
                "distinct_targets": len({int(targets[i]) for i in measured}),
                "bound_violations": 0,
            }
            for key, value in counts.items():
                assert found.sums[key][head] == value, key
            ends = [end_of_chain(targets, i) for i in measured]
            for key in ("ends_in_leader", "ends_in_pair", "ends_in_cycle"):
                assert found.sums[key][head] == ends.count(key)
            for k in (0, 7, 8, 13):
                sharp = sum(oracle.row(head, i, rows.FACTORS[k])["largest_weight"] for i in measured)
                assert found.sharpened[head, k] == pytest.approx(sharp, rel=close)
            chance = 0.0
            for j in range(oracle.tokens):
                missed = math.prod(1 - 1 / len(oracle.seen(i)) for i in measured if j in oracle.seen(i))
                chance += 1 - missed
            assert found.sums["distinct_targets_chance"][head] == pytest.approx(chance, abs=1e-9)
            received = np.zeros(oracle.tokens)
            for i in range(oracle.tokens):
                scores = oracle.layer.attention.scale * (oracle.keys[head].astype(float) @ oracle.queries[head][i])
                weight = np.exp(scores[oracle.seen(i)] - scores[oracle.seen(i)].max())
                received[oracle.seen(i)] += weight / weight.sum()
            assert found.received[head] == pytest.approx(received, abs=close)


@given(
    text=st.lists(st.integers(0, 3), min_size=2, max_size=20),
    family=st.sampled_from(["bert", "gpt2", "llama"]),
    scale=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e3]),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_the_bound_holds_at_every_scale(text: list[int], family: str, scale: float, dtype: str, seed: int) -> None:
    made = random_transformer(family=family, layers=1, heads=2, d=8, vocabulary=4, scale=scale, random_state=seed)
    model = without_places(made).to(dtype)
    found = text_record(model, model.tokenise(text), (0, seed), True, lambda: None)
    sums = dict(zip(HEAD_SUMS, np.moveaxis(found.heads[0], 1, 0), strict=True))
    count = sums["rows"]
    assert (sums["bound_violations"] == 0).all()
    assert (sums["largest_weight"] >= sums["largest_weight_chance"] - 1e-9).all()
    assert (sums["largest_weight"] <= count + 1e-9).all()
    assert (sums["entropy"] >= -1e-9).all()
    assert (sums["entropy"] <= count + 1e-9).all()
    assert sums["ends_in_leader"] + sums["ends_in_pair"] + sums["ends_in_cycle"] == pytest.approx(count)
    assert (np.diff(found.sharpened[0], axis=1) >= -1e-9).all()
    assert found.received.sum() == pytest.approx(len(text))
    if model.causal:
        assert sums["ends_in_leader"].tolist() == count.tolist()


def test_results_outside_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = rows._Rows.__init__

    def wrong(self: rows._Rows, part: hm.models.layer.ScoreBlock, values: torch.Tensor) -> None:
        made(self, part, values)
        self.soft = self.soft + 100.0  # an error in the mean of the values

    monkeypatch.setattr(rows._Rows, "__init__", wrong)
    heads = hm.probe(small(), TEXTS[:1]).heads
    assert heads["bound_violations"].tolist() == heads["rows"].tolist()
    assert "holds NOT in" in hm.probe(small(), TEXTS[:1]).summary()


def test_chances_of_chains_in_a_random_map() -> None:
    generator = np.random.default_rng(0)
    tokens, draws = 9, 2_000
    found = dict.fromkeys(("ends_in_leader", "ends_in_pair", "ends_in_cycle"), 0)
    for _ in range(draws):
        targets = generator.integers(tokens, size=tokens)
        for i in range(tokens):
            found[end_of_chain(targets, i)] += 1
    total = sum(found.values())
    leader, cycle = rows._chain_chances(tokens)
    assert leader == pytest.approx(found["ends_in_leader"] / total, abs=0.03)
    assert cycle == pytest.approx(found["ends_in_cycle"] / total, abs=0.03)


def test_the_factor_for_an_argmax_gives_a_largest_weight_of_nine_tenths() -> None:
    model = small(scale=0.7)
    report = hm.probe(model, TEXTS)
    for _, row in report.heads.iterrows():
        changed = []
        for text in TEXTS:
            for number, state in enumerate(model.states(model.tokenise(text))):
                if number == row["layer"]:
                    oracle = Oracle(model.layers[number], state)
                    head, factor = int(row["head"]), row["beta_for_argmax"]
                    changed += [oracle.row(head, i, factor)["largest_weight"] for i in range(oracle.tokens)]
        assert np.mean(changed) == pytest.approx(0.9, abs=0.02)


def test_the_factor_is_infinite_where_all_scores_tie() -> None:
    report = hm.probe(zero_queries(small()), TEXTS[:2])
    first = report.heads[report.heads["layer"] == 0]
    assert np.isinf(first["beta_for_argmax"]).all()
    assert first["entropy"].to_numpy() == pytest.approx(1.0)
    assert (first["tau"] == 0).all()
    assert (first["hardmax_error"] < 1e-12).all()


@pytest.mark.parametrize("seed", range(6))
def test_clusters_are_connected_components(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(seed)
    points = generator.integers(-2, 3, (30, 3)).astype(float) * 10.0 ** generator.integers(-150, 150, (30, 1))
    unit = np.array([one / np.abs(one).max() if one.any() else one for one in points])
    unit = np.array([one / np.linalg.norm(one) if one.any() else one for one in unit])
    labels = [*range(30)]
    for i in range(30):
        for j in range(30):
            if unit[i] @ unit[j] > 0.9 and labels[i] != labels[j]:
                labels = [labels[i] if one == labels[j] else one for one in labels]
    wanted = [sorted({labels.index(one) for one in labels}).index(labels.index(one)) for one in labels]
    assert cosine_clusters(points).tolist() == wanted
    monkeypatch.setattr(states, "_MOST_COSINES", 64)  # breadth-first search, two tokens at a time
    assert cosine_clusters(points).tolist() == wanted


def test_figures_of_the_tokens_agree_with_plain_formulas() -> None:
    points = np.random.default_rng(1).normal(size=(7, 4)) + 1.0
    found, labels = states.state_figures(torch.from_numpy(points))
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    pairs = [unit[i] @ unit[j] for i in range(7) for j in range(7) if i != j]
    rest = [unit[i] @ unit[j] for i in range(1, 7) for j in range(1, 7) if i != j]
    singular = np.linalg.svd(points, compute_uv=False)
    share = singular / singular.sum()
    norms = np.linalg.norm(points, axis=1)
    assert found["mean_cosine"] == pytest.approx(np.mean(pairs))
    assert found["mean_cosine_rest"] == pytest.approx(np.mean(rest))
    assert found["effective_rank"] == pytest.approx(math.exp(-(share * np.log(share)).sum()))
    assert found["stable_rank"] == pytest.approx((singular**2).sum() / singular[0] ** 2)
    assert found["norm_ratio"] == pytest.approx(norms.max() / np.median(norms))
    assert found["clusters"] == labels.max() + 1


@pytest.mark.parametrize("name", ["encoder", "causal", "window", "equal tokens"])
def test_moves_leaders_and_loyalty_agree_with_loops(name: str) -> None:
    model = MODELS[name]
    text = model.tokenise(TEXTS[2])
    record = text_record(model, text, (0, 0), True, lambda: None)
    targets = hm.models.attention_targets(model, TEXTS[2]).targets
    depth, heads, tokens = targets.shape
    start = rows.first_measured(model.layers[0], tokens)
    inputs = [np.asarray(one) for one in model.states(text)]
    generator = np.random.default_rng((0, 0))

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) if a.any() and b.any() else 0.0

    for layer in range(depth):
        x, y = inputs[layer], inputs[layer + 1]
        others = random_others(model.layers[layer], tokens, heads, generator)
        labels = cosine_clusters(y)
        pull = chance = same = random_same = 0.0
        followers = 0
        for head in range(heads):
            vectors = model.layers[layer].vectors(torch.from_numpy(x)[None])
            oracle = Oracle(model.layers[layer], torch.from_numpy(x))
            output = np.asarray(model.layers[layer].attention.output)[:, 4 * head : 4 * head + 4]
            own = 0.0
            for i in range(start, tokens):
                j, k = targets[layer, head, i], others[head, i]
                if j == i:
                    continue
                followers += 1
                assert k in set(oracle.seen(i)) - {i}
                pull += cosine(y[i] - x[i], x[j] - x[i])
                chance += cosine(y[i] - x[i], x[k] - x[i])
                same += labels[i] == labels[j]
                random_same += labels[i] == labels[k]
                seen = oracle.seen(i)
                score = np.array([float(oracle.queries[head][i] @ oracle.keys[head][m]) for m in seen])
                weight = np.exp((score - score.max()) * oracle.layer.attention.scale)
                mixed = (weight / weight.sum()) @ np.asarray(vectors.values[0, head])[seen]
                own += cosine(output @ mixed, x[j] - x[i])
            assert record.heads[layer, head, HEAD_SUMS.index("pull")] == pytest.approx(own, abs=1e-8)
        wanted = {"followers": followers, "pull": pull, "pull_chance": chance, "same_cluster": same}
        wanted["same_cluster_chance"] = random_same
        for key, value in wanted.items():
            assert record.layers[layer, LAYER_SUMS.index(key)] == pytest.approx(value, abs=1e-8), key
        if layer + 1 < depth:
            for head in range(heads):
                agreed = np.mean(
                    [
                        [targets[layer, head, i] == targets[layer + 1, g, i] for i in range(start, tokens)]
                        for g in range(heads)
                    ]
                )
                at = record.heads[layer, head]
                assert at[HEAD_SUMS.index("loyalty")] / (tokens - start) == pytest.approx(agreed)
    leads = [
        sum(any(targets[one, h, i] == j for i in range(tokens) if i != j) for one in range(depth) for h in range(heads))
        for j in range(tokens)
    ]
    assert record.leads.tolist() == leads
    assert record.followers.sum() == sum((targets != np.arange(tokens)).ravel())
    assert record.received.sum() == pytest.approx(tokens)


def test_hypotheses_on_weights_agree_with_full_matrices() -> None:
    model = small("llama", dtype="float32")
    shared = replace(
        model,
        layers=tuple(
            replace(
                one,
                attention=replace(one.attention, key=one.attention.key[:4], value=one.attention.value[:4], key_heads=1),
            )
            for one in model.layers
        ),
    )
    for made in (model, shared):
        found = hypotheses.weight_figures(made, 0)
        for number, layer in enumerate(made.layers):
            for head in range(made.heads):
                a, v = layer.score_matrix(head).numpy(), layer.value_matrix(head).numpy()
                eigenvalues = np.linalg.eigvals(v)
                assert found["antisymmetry"][number, head] == pytest.approx(
                    np.linalg.norm(a - a.T) / np.linalg.norm(a + a.T)
                )
                assert found["ov_positivity"][number, head] == pytest.approx(
                    eigenvalues.real.sum() / np.abs(eigenvalues).sum(), abs=1e-6
                )
    query = torch.eye(3, dtype=torch.float64)
    assert hypotheses.antisymmetry(query, query) == 0
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    assert hypotheses.antisymmetry(torch.eye(2, dtype=torch.float64), turn) == math.inf


RULES = ["hardmax", "top-2", "beta=2", "uniform", "zero", "softmax"]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_interventions_agree_with_whole_runs_of_changed_models(family: str) -> None:
    model = small(family)
    asked = [
        *RULES,
        hm.Intervention("hardmax", layers=1),
        hm.Intervention("top-2", layers=[0, 2], heads=1),
        hm.Intervention("hardmax", heads=[(0, 1), (2, 0)]),
        "every head",
        "every layer",
    ]
    table = hm.probe(model, TEXTS, interventions=asked, heads=False).interventions
    changes = [
        *[{"rule": one} for one in RULES],
        {"rule": "hardmax", "layers": 1},
        {"rule": "top-2", "layers": [0, 2], "heads": 1},
        None,
        *[{"rule": "hardmax", "layers": one, "heads": head} for one in range(3) for head in range(2)],
        *[{"rule": "hardmax", "layers": one} for one in range(3)],
    ]
    assert len(table) == len(changes)

    def value(changed: Transformer) -> float:
        found = [changed.tokenise(one) for one in TEXTS]
        if model.causal:
            return math.exp(changed.negative_log_likelihood(found))
        before, after = model.embed(TEXTS), changed.embed(TEXTS)
        lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        return float(np.mean((before * after).sum(axis=1) / lengths))

    pair = model.with_attention("hardmax", 0, 1).with_attention("hardmax", 2, 0)
    nothing = model.with_attention("zero", 0, 1).with_attention("zero", 2, 0)
    for change, (_, row) in zip(changes, table.iterrows(), strict=True):
        changed = pair if change is None else model.with_attention(**change)
        control = nothing if change is None else model.with_attention(**{**change, "rule": "zero"})
        assert row["value"] == pytest.approx(value(changed), rel=1e-9)
        assert row["zero"] == pytest.approx(value(control), rel=1e-9)
        assert row["baseline"] == pytest.approx(value(model), rel=1e-9)
        effect = row["value"] / row["baseline"] - 1 if model.causal else 1 - row["value"]
        assert row["effect"] == pytest.approx(effect, abs=1e-12)
    assert table["measure"].unique().tolist() == ["perplexity" if model.causal else "cosine"]
    assert table["where"].tolist()[5:9] == ["model", "layer 1", "2 heads", "2 heads"]
    assert table.loc[5, "effect"] == pytest.approx(0, abs=1e-12)


def test_batches_hold_every_text_once() -> None:
    model = small()
    texts = [model.tokenise([1] * (2 + 37 * k % 500)) for k in range(60)]
    found = parts(texts)
    assert sorted(k for batch in found for k in batch) == [*range(60)]
    assert len(found) > 1
    assert all(len(batch) * max(len(texts[k]) for k in batch) <= 8192 for batch in found)


@pytest.mark.parametrize(
    ("hard", "zero", "share", "wanted"),
    [
        (1e-6, 1e-3, 0.9, "hard"),
        (0.004, 0.02, 0.0, "hard"),
        (0.004, 0.0119, 0.9, "sink"),
        (0.006, 1.0, 0.1, "soft"),
        (0.001, 0.002, 0.9, "idle"),
        (0.3, 0.004, 0.9, "idle"),
        (0.0, 1e-9, 0.9, "idle"),
        (0.3, 0.2, 0.51, "sink"),
        (-0.004, 0.004, 0.0, "idle"),
        (math.nan, 0.1, 0.9, "untested"),
    ],
)
def test_verdicts_come_in_their_order(hard: float, zero: float, share: float, wanted: str) -> None:
    assert verdict(hard, zero, share, noise=1e-5) == wanted


def test_a_saved_report_is_loaded_equal(tmp_path: Path) -> None:
    report = hm.probe(zero_queries(small()), TEXTS, interventions=["hardmax", "every head"])
    assert np.isinf(report.heads["beta_for_argmax"]).any()
    assert report.save(tmp_path / "out") == tmp_path / "out"
    for loaded in (load_report(tmp_path / "out"), load_report(tmp_path / "out" / "report.json")):
        for name, table in report.tables().items():
            pd.testing.assert_frame_equal(getattr(loaded, name), table, check_exact=True)
            assert list(table.columns) == list(COLUMNS[name])
        assert loaded.summary() == report.summary()
        assert (loaded.model, loaded.texts, loaded.tokens) == (report.model, 3, 41)
    heads = pd.read_parquet(tmp_path / "out" / "heads.parquet")
    pd.testing.assert_frame_equal(heads, report.heads, check_dtype=False)


def test_without_pyarrow_the_report_is_json_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hardmax.errors import MissingExtraError
    from hardmax.models.probe import report as module

    def missing(purpose: str) -> None:
        raise MissingExtraError("pyarrow", "store", purpose)

    monkeypatch.setattr(module, "import_pyarrow", missing)
    report = hm.probe(small(), TEXTS[:1])
    with pytest.warns(UserWarning, match="no Parquet files were written.*pip install"):
        report.save(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["report.json"]
    pd.testing.assert_frame_equal(load_report(tmp_path).heads, report.heads)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.pop("kind"),
        lambda content: content.update(format=99),
        lambda content: content.update(texts="three"),
        lambda content: content.pop("tables"),
        lambda content: content["tables"].pop("heads"),
        lambda content: content["tables"]["heads"].pop("tau"),
        lambda content: content["tables"]["heads"]["tau"].pop(),
        lambda content: content["tables"]["heads"].update(tau=3),
        lambda content: content["tables"]["heads"]["tau"].__setitem__(0, "cold"),
        lambda content: content["tables"]["heads"]["layer"].__setitem__(0, 0.5),
        lambda content: content["tables"]["leaders"]["is_sink"].__setitem__(0, 1),
        lambda content: content["tables"]["heads"]["layer"].__setitem__(0, 10**30),
    ],
)
def test_damaged_reports_are_refused(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = hm.probe(small(), TEXTS[:1]).save(tmp_path) / "report.json"
    content = json.loads(file.read_text())
    damage(content)
    file.write_text(json.dumps(content))
    with pytest.raises(FileError):
        load_report(tmp_path)


def test_files_that_are_no_report_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no such report"):
        load_report(tmp_path / "nothing")
    for text in ("", "[", "[1]", '{"kind": 1}', "[" * 100_000):
        (tmp_path / "report.json").write_text(text)
        with pytest.raises(FileError):
            load_report(tmp_path)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("stop_after", [1, 5, 14, 20])
def test_a_stopped_run_continues_with_an_equal_result(stop_after: int, tmp_path: Path) -> None:
    model = small(dtype="float32")
    asked = ["hardmax", "every head"]
    whole = hm.probe(model, TEXTS, interventions=asked)

    def stop(stage: str, done: float, total: float | None) -> None:
        if done >= stop_after:
            raise StoppedError

    with pytest.raises(StoppedError):
        hm.probe(model, TEXTS, interventions=asked, checkpoint=tmp_path, progress=stop)
    told: list[tuple[float, float | None]] = []
    resumed = hm.probe(
        model,
        TEXTS,
        interventions=asked,
        checkpoint=tmp_path,
        progress=lambda stage, done, total: told.append((done, total)),
    )
    for name, table in whole.tables().items():
        pd.testing.assert_frame_equal(getattr(resumed, name), table, check_exact=True)
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize("change", ["texts", "model", "seed", "interventions", "heads"])
def test_a_checkpoint_of_other_work_is_refused(change: str, tmp_path: Path) -> None:
    model, arguments = small(), {"interventions": ["hardmax"], "random_state": 0, "heads": True}
    hm.probe(model, TEXTS, checkpoint=tmp_path, **arguments)  # type: ignore[arg-type]
    texts = TEXTS
    if change == "texts":
        texts = [*TEXTS[:2], TEXTS[2][:-1]]
    elif change == "model":
        weights = model.layers[2].attention
        other = replace(model.layers[2], attention=replace(weights, value=weights.value + 1e-9))
        model = replace(model, layers=(*model.layers[:2], other))
    else:
        arguments |= {"seed": {"random_state": 1}, "interventions": {"interventions": ["zero"]}}.get(
            change, {"heads": False}
        )
    with pytest.raises(FileError, match="belongs to another model"):
        hm.probe(model, texts, checkpoint=tmp_path, **arguments)  # type: ignore[arg-type]


def test_results_do_not_depend_on_other_texts_and_repeat_with_the_seed() -> None:
    model = small()
    one, three = hm.probe(model, TEXTS[:1]), hm.probe(model, TEXTS)
    assert one.by_text.equals(three.by_text[three.by_text["text"] == 0])
    again, other = hm.probe(model, TEXTS, random_state=0), hm.probe(model, TEXTS, random_state=1)
    pd.testing.assert_frame_equal(three.heads, again.heads, check_exact=True)
    assert not np.allclose(three.heads["pull_chance"], other.heads["pull_chance"])
    drawn = hm.probe(model, TEXTS, random_state=np.random.default_rng(3))
    pd.testing.assert_frame_equal(hm.probe(model, TEXTS, random_state=drawn.random_state).heads, drawn.heads)


def test_without_heads_attention_is_not_measured() -> None:
    report = hm.probe(small(), TEXTS, heads=False, interventions=["hardmax"])
    assert len(report.heads) == len(report.leaders) == 0
    assert report.layers["tau"].isna().all()
    assert report.layers["mean_cosine"].notna().all()
    assert set(report.weights["ov_seen"]) == {"not measured"}
    assert "hardmax (model): cosine" in str(report)


def test_sentences_come_first() -> None:
    report = hm.probe(small(), TEXTS, interventions=["hardmax", "every head"])
    lines = report.summary().splitlines()
    assert lines[1] == "Measured on 3 texts with 41 tokens."
    assert any("heads are hard" in line or "heads is hard" in line for line in lines)
    assert "holds in all" in report.summary()
    assert report._repr_html_().startswith("<p>Transformer")
    assert repr(report) == "ProbeReport of 'random weights': 3 texts, 41 tokens"


def test_random_weights_are_soft() -> None:
    """Figure 9: with Gaussian weights of standard deviation 0.02 attention is uniform, and no head is hard.

    Tokens have d squared length, so that scores have a deviation of 0.02² d: tau depends on the length of texts alone.
    """
    model = random_transformer(layers=2, random_state=0)
    texts = [np.random.default_rng(k).integers(1000, size=64).tolist() for k in range(2)]
    heads = hm.probe(model, texts).heads
    assert heads["tau"].max() < 0.06
    assert heads["tau"].mean() == pytest.approx(0.02**2 * 384 / math.sqrt(2 * math.log(64)), rel=0.03)
    assert heads["entropy"].min() > 0.99
    report = hm.probe(model, [text[:24] for text in texts], interventions=["every head"])
    assert set(report.heads["verdict"]) <= {"idle", "sink", "soft"}
    assert report.heads["bound_violations"].sum() == 0


BAD = {
    "no texts": ({"texts": []}, "texts must have at least one text"),
    "a number": ({"texts": 3}, "texts must be a list of texts"),
    "one token": ({"texts": [[1, 2], [3]]}, r"texts\[1\] must have at least two tokens"),
    "an empty text": ({"texts": [[]]}, r"texts\[0\] has no token"),
    "a text without a tokeniser": ({"texts": ["word"]}, r"texts\[0\] cannot be tokenised"),
    "a token that is not there": ({"texts": [[1, 99]]}, r"texts\[0\] is not in the embedding"),
    "too long": ({"texts": [[1] * 600]}, r"texts\[0\] is longer than the 512 tokens"),
    "an unknown rule": ({"interventions": ["argmin"]}, "interventions is no attention rule"),
    "no list": ({"interventions": 3}, "interventions must be a list"),
    "a bad seed": ({"random_state": -1}, "random_state must be"),
    "no transformer": ({"model": "minilm"}, "model must be a transformer"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    change, message = BAD[name]
    arguments = {"model": small(), "texts": TEXTS, **change}
    with pytest.raises(InputError, match=message):
        hm.probe(arguments.pop("model"), arguments.pop("texts"), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": 3}, "layers must be numbers from 0 to 2"),
        ({"heads": [0, 2]}, "heads must be numbers from 0 to 1"),
        ({"heads": -1}, "heads must be numbers from 0 to 1"),
        ({"heads": True}, "heads must be numbers"),
        ({"heads": [(3, 0)]}, "layers must be numbers from 0 to 2"),
        ({"heads": [(0, 1)], "layers": 0}, "heads must be numbers, or pairs"),
        ({"heads": [(0, 1, 2)]}, "heads must be numbers, or pairs"),
        ({"heads": []}, "heads must be a number or a list"),
        ({"layers": "all"}, "layers must be a number or a list"),
        ({"each": "text"}, 'each must be "head" or "layer"'),
        ({"rule": "argmin"}, "rule is no attention rule"),
    ],
)
def test_bad_interventions_are_named(arguments: dict[str, object], message: str) -> None:
    def run() -> None:
        made = hm.Intervention(**{"rule": "hardmax", **arguments})  # type: ignore[arg-type]
        hm.probe(small(), TEXTS, interventions=[made])

    with pytest.raises(InputError, match=message):
        run()


def test_depth_continues_for_tied_models_alone() -> None:
    model = small()
    tied = replace(model, layers=(model.layers[0],) * 3)
    run = hm.continue_depth(tied, TEXTS[0], 5)
    assert run.tokens.shape == (6, 12, 8)
    assert run.tokens.dtype == np.float64
    assert run.tokens[3] == pytest.approx(tied(TEXTS[0]), abs=1e-12)
    alone = hm.continue_depth(tied, TEXTS[0], 2, feed_forward=False)
    assert alone.tokens[1] == pytest.approx(
        np.asarray(model.layers[0].without_feed_forward()(torch.from_numpy(run.tokens[0]))), abs=1e-12
    )
    assert len(hm.continue_depth(tied, TEXTS[0], 100, keep="last").tokens) <= 2
    with pytest.raises(InputError, match="different weights in its layers"):
        hm.continue_depth(model, TEXTS[0], 5)
    with pytest.raises(InputError, match="depth must be a whole number"):
        hm.continue_depth(tied, TEXTS[0], 0)
    with pytest.raises(InputError, match="model must be a transformer"):
        hm.continue_depth("minilm", TEXTS[0], 5)  # type: ignore[arg-type]


def test_tied_models_are_loyal_by_head() -> None:
    model = small()
    tied = replace(model, layers=(model.layers[0],) * 3)
    report = hm.probe(tied, TEXTS[2:])
    targets = hm.models.attention_targets(tied, TEXTS[2]).targets
    first = report.heads[(report.heads["layer"] == 0)]
    assert first["loyalty"].tolist() == pytest.approx((targets[0] == targets[1]).mean(axis=1).tolist())
    assert report.heads[report.heads["layer"] == 2]["loyalty"].isna().all()


def test_runs_name_their_heads() -> None:
    model = small()
    assert Run("hardmax", ((1, 0),)).where(model) == "head 1.0"
    assert Run("hardmax", ((1, 0), (1, 1))).where(model) == "layer 1"
    assert Run("hardmax", ((0, 0), (0, 1), (1, 0), (1, 1))).where(model) == "layers 0, 1"


@pytest.mark.parametrize("name", ["encoder", "causal", "window"])
def test_tables_pool_the_rows_of_all_texts(name: str) -> None:
    model, texts = MODELS[name], TEXTS
    report = hm.probe(model, texts)
    records = [text_record(model, model.tokenise(one), (0, k), True, lambda: None) for k, one in enumerate(texts)]
    sums = np.sum([one.heads for one in records], axis=0)
    over = {"loyalty": "loyal_rows", "loyalty_chance": "loyal_rows", "pull": "followers", "pull_chance": "followers"}
    for key in ("tau", "largest_weight", "special_share", "ends_in_cycle", *over):
        wanted = sums[..., HEAD_SUMS.index(key)] / sums[..., HEAD_SUMS.index(over.get(key, "rows"))]
        assert report.heads[key].to_numpy() == pytest.approx(wanted.ravel(), nan_ok=True), key
        if key not in ("pull", "pull_chance", "ends_in_cycle"):
            assert report.layers[key][:3].to_numpy() == pytest.approx(wanted.mean(axis=1), nan_ok=True), key
    by_layer = np.stack([one.layers for one in records])
    followers = by_layer[:, :3, LAYER_SUMS.index("followers")].sum(axis=0)
    for key in ("pull", "pull_chance", "same_cluster", "same_cluster_chance"):
        wanted = by_layer[:, :3, LAYER_SUMS.index(key)].sum(axis=0) / followers
        assert report.layers[key][:3].to_numpy() == pytest.approx(wanted), key
    assert report.layers["mean_cosine"].to_numpy() == pytest.approx(by_layer[:, :, 1].mean(axis=0))
    assert report.layers["tokens"].tolist() == [41] * 4
    # Chance levels of leaders, by loops: every row draws one of the tokens that it sees.
    for _, row in report.leaders.iterrows():
        tokens, j = int(row["tokens"]), int(row["place"])
        oracle = Oracle(model.layers[0], torch.zeros(tokens, 8, dtype=torch.float64))
        received = sum(1 / len(oracle.seen(i)) for i in range(tokens) if j in oracle.seen(i))
        others = sum(1 / len(oracle.seen(i)) for i in range(tokens) if i != j and j in oracle.seen(i))
        assert row["attention_received_chance"] == pytest.approx(received)
        assert row["followers_chance"] == pytest.approx(6 * others)
        assert row["leads_of"] == 6


def test_chance_of_loyalty_is_that_of_shuffled_rows() -> None:
    record = text_record(MODELS["encoder"], MODELS["encoder"].tokenise(TEXTS[0]), (0, 0), True, lambda: None)
    targets = hm.models.attention_targets(MODELS["encoder"], TEXTS[0]).targets
    tokens = targets.shape[2]
    for head in range(2):
        agreed = [
            targets[0, head, i] == targets[1, other, j]
            for other in range(2)
            for i in range(tokens)
            for j in range(tokens)
        ]
        assert record.heads[0, head, HEAD_SUMS.index("loyalty_chance")] == pytest.approx(tokens * np.mean(agreed))
