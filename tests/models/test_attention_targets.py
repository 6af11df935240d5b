"""The token that each token attends to most, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import hardmax as hm
from hardmax.errors import InputError
from hardmax.models import Tokenised, attention_targets, layer, random_transformer

IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def _weights(scores: list[float], rule: str) -> list[float]:
    """Weights of one row, from the definitions."""
    top = max(scores)
    if rule == "zero":
        return [0.0] * len(scores)
    if rule == "hardmax":
        ties = [math.isclose(one, top, rel_tol=1e-9) for one in scores]
        return [tie / sum(ties) for tie in ties]
    beta = float(rule.removeprefix("beta="))
    powers = [math.exp(beta * (one - top)) for one in scores]
    return [one / sum(powers) for one in powers]


@pytest.mark.parametrize("rule", ["beta=1", "beta=40", "hardmax", "zero"])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_targets_weights_and_numbers_are_those_of_plain_loops(family: str, rule: str) -> None:
    model = random_transformer(family=family, layers=2, heads=3, d=12, scale=0.6, random_state=1).to("float64")
    model = model.with_attention(rule)
    found = attention_targets(model, IDS)
    tokenised = model.tokenise(IDS)
    for k, (one, state) in enumerate(zip(model.layers, model.states(tokenised), strict=False)):
        own = one.attention
        inputs = (one.attention_norm(state) if one.pre_norm else state).numpy()
        queries, keys = inputs @ own.query.numpy().T, inputs @ own.key.numpy().T
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            received = np.zeros(len(IDS))
            for i in range(len(IDS)):
                seen = i + 1 if model.causal else len(IDS)
                row = _weights([0.5 * float(queries[i, part] @ keys[j, part]) for j in range(seen)], rule)
                received[:seen] += row
                assert found.targets[k, head, i] == (-1 if rule == "zero" else row.index(max(row)))
                assert found.weights[k, head, i] == pytest.approx(max(row), rel=1e-9)
                entropy = -sum(one * math.log(one) for one in row if one > 0)
                assert found.attended[k, head, i] == pytest.approx(math.exp(entropy), rel=1e-9)
            np.testing.assert_allclose(found.received[k, head], received, rtol=1e-9, atol=1e-12)


def test_rows_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_transformer(layers=2, heads=2, d=8, scale=0.5, random_state=0)
    whole = attention_targets(model, IDS)
    monkeypatch.setattr(layer, "_MOST_SCORES", 40)  # two rows per block
    parts = attention_targets(model, IDS)
    np.testing.assert_array_equal(parts.targets, whole.targets)
    np.testing.assert_allclose(parts.received, whole.received, rtol=1e-6)


def test_the_table_of_a_layer_counts_sinks_and_targets() -> None:
    found = hm.models.AttentionTargets(
        words=("[CLS]", "a", "b", "[SEP]"),
        sinks=np.array([True, False, False, True]),
        targets=np.array([[[0, 3, 1, 1], [-1, -1, -1, -1]]]),
        weights=np.array([[[1.0, 0.5, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]]]),
        attended=np.ones((1, 2, 4)),
        received=np.ones((1, 2, 4)),
    )
    table = found.heads(0)
    assert table["special_share"].tolist() == [0.5, 0.0]
    assert table["distinct_targets"].tolist() == [3, 0]
    assert table["largest_weight"].tolist() == [0.75, 0.0]
    for wrong in (1, -1, True, "0"):
        with pytest.raises(InputError, match="must be a layer from 0 to 0"):
            found.heads(wrong)  # type: ignore[arg-type]


class _Marked(hm.models.AbstractTokeniser):
    """Letters, with a special token at the end."""

    def tokenise(self, text: str) -> Tokenised:
        ids = (*(ord(letter) - 97 for letter in text), 26)
        return Tokenised(ids, (*text, "[END]"), (*[False] * len(text), True))

    def word(self, token: int) -> str:
        return chr(97 + token)

    @property
    def size(self) -> int:
        return 27


def test_the_first_and_special_tokens_are_sinks() -> None:
    from dataclasses import replace

    model = replace(random_transformer(layers=1, heads=2, d=8, vocabulary=30, random_state=0), tokeniser=_Marked())
    found = attention_targets(model, "abca")
    assert found.words == ("a", "b", "c", "a", "[END]")
    assert found.sinks.tolist() == [True, False, False, False, True]
    with pytest.raises(InputError, match="must be a transformer"):
        attention_targets(torch.nn.Linear(2, 2), "abca")  # type: ignore[arg-type]


def test_the_leading_head_has_several_leaders() -> None:
    """Head 0 rests on the first token, head 1 on one word, head 2 on two words with less weight, head 3 on itself."""
    places = np.arange(6)
    targets = np.stack([0 * places, 0 * places + 2, np.where(places < 3, 4, 2), places])[None]
    weights = np.stack([np.full(6, one) for one in (0.99, 0.9, 0.5, 1.0)])[None]
    sinks = places == 0
    found = hm.models.AttentionTargets(tuple("abcdef"), sinks, targets, weights, weights, weights)
    assert found.leading_head() == (0, 2)


@pytest.mark.parametrize("heads", [2, 1.5, "0", [0, -1], [True], np.array([0.0])])
def test_numbers_of_heads_are_checked_everywhere_alike(heads: object) -> None:
    model = random_transformer(layers=1, heads=2, d=8, vocabulary=9, random_state=0)
    for change in (
        lambda: model.layers[0].with_rule("zero", heads),
        lambda: model.with_attention("zero", 0, heads),
        lambda: hm.Intervention("zero", heads=heads).scopes(model),
    ):
        with pytest.raises(hm.InputError, match="heads must be "):
            change()
    several = model.with_attention("zero", 0, np.array([1]))
    assert [rule is not None for rule in several.layers[0].rules] == [False, True]
