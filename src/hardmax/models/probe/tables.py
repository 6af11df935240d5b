"""Tables of a probe from the records of all texts, and the verdict on each head."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from ..tokenisers import Tokenised
from ..transformer import Transformer
from .hypotheses import OV_PREDICTION, QK_PREDICTION, ov_seen, qk_seen, weight_figures
from .report import COLUMNS, LITTLE, as_frame, empty
from .rows import factor_for, in_sight
from .states import STATE_FIGURES
from .texts import HEAD_SUMS, LAYER_SUMS, TextRecord, sinks_of

# A head is hard where zero changes the result at least this many times as much as hardmax.
_TIMES_WORSE = 3.0
# Effects below so many rounding errors are noise, and no evidence for a hard head.
_NOISE_UNITS = 100.0
# A sink is attended to most in more than this share of the rows.
_SINK_SHARE = 0.5


def verdict(hardmax_effect: float, zero_effect: float, special_share: float, noise: float) -> str:
    """Verdict on a head: ``"hard"``, ``"idle"``, ``"sink"`` or ``"soft"``, in this order.

    Parameters
    ----------
    hardmax_effect, zero_effect
        Effects of hardmax and of zero in this head alone; 1 - cosine, or relative increase of the perplexity.
    special_share
        Share of rows whose argmax is the first or a special token.
    noise
        Effects up to this size are rounding.

    Returns
    -------
    str
        The verdict; ``"untested"`` where an effect is missing.
    """
    # A perplexity may fall, so the size of the change counts.
    hardmax_effect, zero_effect = abs(hardmax_effect), abs(zero_effect)
    if np.isnan(hardmax_effect) or np.isnan(zero_effect):
        return "untested"
    if hardmax_effect <= LITTLE and zero_effect > noise and zero_effect >= _TIMES_WORSE * hardmax_effect:
        return "hard"
    if zero_effect <= LITTLE:
        return "idle"
    return "sink" if special_share > _SINK_SHARE else "soft"


class Tables:
    """Tables from the records of all texts."""

    def __init__(self, model: Transformer, texts: list[Tokenised], records: list[TextRecord]) -> None:
        self._model, self._texts, self._records = model, texts, records
        self._heads = np.sum([one.heads for one in records], axis=0)
        self._sharpened = np.sum([one.sharpened for one in records], axis=0)

    def _sum(self, name: str) -> np.ndarray:
        found: np.ndarray = self._heads[..., HEAD_SUMS.index(name)]
        return found

    def _mean(self, name: str, over: str = "rows") -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            found: np.ndarray = self._sum(name) / self._sum(over)
            return found

    def heads(self, effects: pd.DataFrame) -> pd.DataFrame:
        """One row per head."""
        depth, count = self._heads.shape[:2]
        columns: dict[str, np.ndarray | list[object]] = {
            "layer": np.repeat(np.arange(depth), count),
            "head": np.tile(np.arange(count), depth),
            "texts": np.full(depth * count, len(self._texts)),
            "rows": self._sum("rows").ravel(),
            "followers": self._sum("followers").ravel(),
            "bound_violations": self._sum("bound_violations").ravel(),
            "hardmax_error": self._mean("error", "size").ravel(),
            "hardmax_bound": self._mean("bound", "size").ravel(),
        }
        for name in ("loyalty", "loyalty_chance"):
            columns[name] = self._mean(name, "loyal_rows").ravel()
        for name in ("pull", "pull_chance"):
            columns[name] = self._mean(name, "followers").ravel()
        for name in ("distinct_targets", "distinct_targets_chance"):
            columns[name] = (self._sum(name) / len(self._texts)).ravel()
        for name in COLUMNS["heads"]:
            if name not in columns and name in HEAD_SUMS:
                columns[name] = self._mean(name).ravel()
        columns["beta_for_argmax"] = np.concatenate(
            [factor_for(self._sharpened[layer], self._sum("rows")[layer]) for layer in range(depth)]
        )
        return self._judged(columns, effects)

    def _judged(self, columns: dict[str, np.ndarray | list[object]], effects: pd.DataFrame) -> pd.DataFrame:
        alone = effects[(effects["rule"] == "hardmax") & effects["head"].notna()]
        by_head = {
            (int(row["layer"]), int(row["head"])): (float(row["effect"]), float(row["zero_effect"]))
            for _, row in alone.iterrows()
        }
        missing = (float("nan"), float("nan"))
        found = [by_head.get(pair, missing) for pair in zip(columns["layer"], columns["head"], strict=True)]
        columns["hardmax_effect"], columns["zero_effect"] = [one[0] for one in found], [one[1] for one in found]
        noise = _NOISE_UNITS * torch.finfo(self._model.dtype).eps
        columns["verdict"] = [
            verdict(hard, zero, share, noise)
            for (hard, zero), share in zip(found, columns["special_share"], strict=True)
        ]
        return as_frame("heads", columns)

    def layers(self) -> pd.DataFrame:
        """One row per depth."""
        records = np.stack([one.layers for one in self._records])
        depth = records.shape[1]
        columns: dict[str, np.ndarray] = {
            "layer": np.arange(depth),
            "texts": np.full(depth, len(self._texts)),
            "tokens": records[:, :, LAYER_SUMS.index("tokens")].sum(axis=0),
            "followers": np.nan_to_num(records[:, :, LAYER_SUMS.index("followers")].sum(axis=0)),
        }
        for name in STATE_FIGURES:
            if name != "tokens":
                columns[name] = records[:, :, LAYER_SUMS.index(name)].mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            for name in ("pull", "pull_chance", "same_cluster", "same_cluster_chance"):
                columns[name] = records[:, :, LAYER_SUMS.index(name)].sum(axis=0) / columns["followers"]
        after = [np.nan]
        columns["rows"] = np.append(np.nan_to_num(self._sum("rows")[:, 0]), 0)
        for name in COLUMNS["layers"]:
            if name not in columns:
                over = "loyal_rows" if name.startswith("loyalty") else "rows"
                mean = self._mean(name, over).mean(axis=1)
                if name.startswith("distinct"):
                    mean = self._sum(name).mean(axis=1) / len(self._texts)
                columns[name] = np.append(mean, after)
        return as_frame("layers", columns)

    def by_text(self) -> pd.DataFrame:
        """One row per text and depth."""
        depth = len(self._model.layers) + 1
        columns: dict[str, np.ndarray] = {
            "text": np.repeat(np.arange(len(self._texts)), depth),
            "layer": np.tile(np.arange(depth), len(self._texts)),
        }
        for name in STATE_FIGURES:
            columns[name] = np.concatenate([one.layers[:, LAYER_SUMS.index(name)] for one in self._records])
        for name in ("tau", "largest_weight", "sink_share"):
            at, rows = HEAD_SUMS.index(name), HEAD_SUMS.index("rows")
            means = [(one.heads[..., at] / one.heads[..., rows]).mean(axis=1) for one in self._records]
            columns[name] = np.concatenate([np.append(one, np.nan) for one in means])
        return as_frame("by_text", columns)

    def leaders(self) -> pd.DataFrame:
        """One row per token that others attend to most, by text and number of followers."""
        columns: dict[str, list[object]] = empty("leaders")
        pairs = len(self._model.layers) * self._model.heads
        for k, (text, record) in enumerate(zip(self._texts, self._records, strict=True)):
            special, tokens = sinks_of(text), len(text)
            order = np.lexsort((np.arange(tokens), -record.followers))
            chances = _received_chances(self._model, tokens)
            for place in order[record.leads[order] > 0]:
                columns["text"].append(k)
                columns["place"].append(int(place))
                columns["word"].append(text.words[place])
                columns["tokens"].append(tokens)
                columns["leads"].append(int(record.leads[place]))
                columns["leads_of"].append(pairs)
                columns["followers"].append(int(record.followers[place]))
                columns["followers_chance"].append(pairs * float(chances[1][place]))
                columns["attention_received"].append(float(record.received[place]))
                columns["attention_received_chance"].append(float(chances[0][place]))
                columns["is_sink"].append(bool(special[place]))
        return as_frame("leaders", columns)


def _received_chances(model: Transformer, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Weight and number of other rows that each token receives on average where attention is uniform."""
    first, last = in_sight(model.layers[0], tokens)
    share = 1.0 / (last - first + 1)
    # Differences of sums from the left: row i adds its share to the tokens from first[i] to last[i].
    steps = np.zeros(tokens + 1)
    np.add.at(steps, first, share)
    np.add.at(steps, last + 1, -share)
    received = np.cumsum(steps)[:-1]
    return received, received - share


def weights_table(model: Transformer, heads: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Table of hypotheses on the weights."""
    figures = weight_figures(model, seed)
    depth, count = figures["antisymmetry"].shape
    layer, head = np.repeat(np.arange(depth), count), np.tile(np.arange(count), depth)
    missing = np.full(depth * count, np.nan)
    cycles = missing if heads.empty else heads["ends_in_cycle"].to_numpy()
    pull = missing if heads.empty else heads["pull"].to_numpy()
    chance = missing if heads.empty else heads["pull_chance"].to_numpy()
    return as_frame(
        "weights",
        {
            "layer": layer,
            "head": head,
            **{name: values.ravel() for name, values in figures.items()},
            "qk_prediction": [QK_PREDICTION if one > 0 else "" for one in figures["antisymmetry"].ravel()],
            "qk_seen": [qk_seen(model.causal, one) for one in cycles],
            "ov_prediction": [OV_PREDICTION if one < 0 else "" for one in figures["ov_positivity"].ravel()],
            "ov_seen": [ov_seen(one, two) for one, two in zip(pull, chance, strict=True)],
        },
    )
