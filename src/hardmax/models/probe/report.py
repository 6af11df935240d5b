"""The result of a probe: sentences, tables, and files."""

from __future__ import annotations

import html
import json
import math
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...errors import FileError, MissingExtraError, how_to_install
from ...files import PathLike, make_folder, replacing, write_text
from ...outcomes import counted
from ...tables.files import import_pyarrow

_KIND = "hardmax probe report"
# Raised when columns change their meaning.
_FORMAT = 1
_NAME = "report.json"
# A report of ten thousand texts takes some 100 MB; a larger file is not read.
_MOST_BYTES = 2**30

COLUMNS: dict[str, dict[str, str]] = {
    "heads": {
        "layer": "int", "head": "int", "texts": "int", "rows": "int", "tau": "float", "largest_weight": "float",
        "largest_weight_chance": "float", "attended": "float", "entropy": "float", "beta_for_argmax": "float",
        "effective_beta": "float", "hardmax_error": "float", "hardmax_bound": "float", "bound_violations": "int",
        "sink_share": "float", "special_share": "float", "self_share": "float", "ends_in_leader": "float",
        "ends_in_leader_chance": "float", "ends_in_pair": "float", "ends_in_cycle": "float",
        "ends_in_cycle_chance": "float", "distinct_targets": "float", "distinct_targets_chance": "float",
        "loyalty": "float", "loyalty_chance": "float", "followers": "int", "pull": "float", "pull_chance": "float",
        "hardmax_effect": "float", "zero_effect": "float", "verdict": "str",
    },
    "layers": {
        "layer": "int", "texts": "int", "tokens": "int", "rows": "int", "mean_cosine": "float",
        "mean_cosine_rest": "float", "effective_rank": "float", "stable_rank": "float", "clusters": "float",
        "norm_ratio": "float", "tau": "float", "largest_weight": "float", "largest_weight_chance": "float",
        "attended": "float", "sink_share": "float", "special_share": "float", "distinct_targets": "float",
        "distinct_targets_chance": "float", "loyalty": "float", "loyalty_chance": "float", "followers": "int",
        "pull": "float", "pull_chance": "float", "same_cluster": "float", "same_cluster_chance": "float",
    },
    "leaders": {
        "text": "int", "place": "int", "word": "str", "tokens": "int", "leads": "int", "leads_of": "int",
        "followers": "int", "followers_chance": "float", "attention_received": "float",
        "attention_received_chance": "float", "is_sink": "bool",
    },
    "weights": {
        "layer": "int", "head": "int", "antisymmetry": "float", "antisymmetry_random": "float",
        "ov_positivity": "float", "ov_positivity_random": "float", "qk_prediction": "str", "qk_seen": "str",
        "ov_prediction": "str", "ov_seen": "str",
    },
    "interventions": {
        "rule": "str", "where": "str", "layer": "int?", "head": "int?", "heads": "int", "texts": "int",
        "tokens": "int", "measure": "str", "value": "float", "baseline": "float", "zero": "float", "effect": "float",
        "zero_effect": "float",
    },
    "by_text": {
        "text": "int", "layer": "int", "tokens": "int", "mean_cosine": "float", "mean_cosine_rest": "float",
        "effective_rank": "float", "stable_rank": "float", "clusters": "float", "norm_ratio": "float", "tau": "float",
        "largest_weight": "float", "sink_share": "float",
    },
}  # fmt: skip
"""Columns of every table, with their types; ``int?`` may be missing."""

_DTYPES = {"int": "int64", "float": "float64", "bool": "bool", "int?": "Int64", "str": "object"}


@dataclass(frozen=True, eq=False)
class ProbeReport:
    """Result of :func:`hardmax.probe`: measurements of a model on texts, beside chance levels and controls.

    ``print(report)`` shows sentences; the tables are pandas data frames. Layers and heads are counted from 0. Columns
    whose name ends in ``_chance`` or ``_random`` are the level of the column without this ending for random choices or
    random weights. Formulas are on the page :doc:`/devdocs/probe`.
    """

    model: str
    """Name of the model."""
    description: str
    """Architecture and size of the model, in words."""
    causal: bool
    """Whether each token sees only those before it."""
    texts: int
    """Number of texts."""
    tokens: int
    """Number of tokens of all texts."""
    random_state: int
    """Seed of all random choices."""
    heads: pd.DataFrame
    """One row per head. ``layer, head, texts, rows``; ``tau`` (1: freezing of random scores), ``largest_weight``,
    ``largest_weight_chance``, ``attended`` (effective number of tokens, exp of the entropy), ``entropy`` (1: uniform),
    ``beta_for_argmax`` (factor on beta for a largest weight of 90 %), ``effective_beta`` (on the sphere);
    ``hardmax_error, hardmax_bound`` (relative), ``bound_violations`` (must be 0); ``sink_share`` (argmax is the first
    token), ``special_share`` (first or special token), ``self_share``; ``ends_in_leader, ends_in_pair, ends_in_cycle``
    (where chains of argmaxes end); ``distinct_targets``; ``loyalty``; ``followers, pull``; ``hardmax_effect,
    zero_effect`` and ``verdict`` (hard, idle, sink, soft, or untested)."""
    layers: pd.DataFrame
    """One row per depth, the last one after the last layer. ``layer, texts, tokens, rows``; of the tokens before the
    layer: ``mean_cosine, mean_cosine_rest`` (without the first token), ``effective_rank, stable_rank, clusters``
    (cosine > 0.9), ``norm_ratio`` (largest over median); of its attention: ``tau, largest_weight, attended,
    sink_share, special_share, distinct_targets, loyalty, followers``; of what it does: ``pull, same_cluster``."""
    leaders: pd.DataFrame
    """One row per token that is the argmax of another one. ``text, place, word, tokens`` (of the text), ``leads``
    (pairs of layer and head in which it leads, of ``leads_of``), ``followers``, ``followers_chance``,
    ``attention_received`` (1: fair share), ``is_sink`` (first or special token)."""
    weights: pd.DataFrame
    """One row per head. ``layer, head, antisymmetry, antisymmetry_random, ov_positivity, ov_positivity_random``, what
    failed hypotheses predict (``qk_prediction, ov_prediction``) and whether it is seen (``qk_seen, ov_seen``)."""
    interventions: pd.DataFrame
    """One row per intervention. ``rule, where, layer, head, heads`` (number of changed heads), ``texts, tokens,
    measure`` (cosine or perplexity), ``value, baseline, zero`` (the same heads without attention), ``effect,
    zero_effect`` (1 - cosine, or relative increase of the perplexity)."""
    by_text: pd.DataFrame
    """One row per text and depth, with columns of ``layers``."""

    def summary(self) -> str:
        """The findings in sentences, one per line.

        Returns
        -------
        str
            Plain English.
        """
        lines = [f"{self.description}.", f"Measured on {counted(self.texts, 'text')} with {self.tokens:,} tokens."]
        lines += self._temperature() + self._sinks() + self._verdicts() + self._rules() + self._tokens()
        return "\n".join([*lines, *self._hypotheses()])

    def _temperature(self) -> list[str]:
        if self.heads.empty:
            return []
        mean = _row_means(self.heads, ("tau", "largest_weight", "largest_weight_chance", "attended"))
        coldest = self.heads.iloc[int(self.heads["largest_weight"].to_numpy().argmax())]
        rows, violations = int(self.heads["rows"].sum()), int(self.heads["bound_violations"].sum())
        held = (
            f"in all {rows:,} rows" if violations == 0 else f"NOT in {violations:,} of {rows:,} rows: please report it"
        )
        return [
            f"Temperature: tau is {mean['tau']:.2f} on average (1: random scores freeze). The largest weight is "
            f"{mean['largest_weight']:.2f} (uniform attention: {mean['largest_weight_chance']:.3f}); a token attends "
            f"to {mean['attended']:.1f} tokens (exponential of the entropy).",
            f"The most concentrated head is {_head(coldest)}: its largest weight is {coldest['largest_weight']:.3f}.",
            f"The proved bound on the error of hardmax holds {held}.",
        ]

    def _sinks(self) -> list[str]:
        if self.heads.empty:
            return []
        mean = _row_means(self.heads, ("sink_share", "special_share", "largest_weight_chance"))
        words = (
            f"Sinks: the first token is the argmax in {mean['sink_share']:.0%} of rows "
            f"(chance: {mean['largest_weight_chance']:.1%}); with the special tokens, {mean['special_share']:.0%}."
        )
        real = self.leaders[~self.leaders["is_sink"]].sort_values("followers", ascending=False).drop_duplicates("word")
        if real.empty:
            return [words]
        return [words, f"Leaders apart from sinks: {', '.join(real['word'].head(8))}."]

    def _verdicts(self) -> list[str]:
        found = self.heads[self.heads["verdict"] != "untested"]
        if found.empty:
            return []
        lines, total = [], len(found)
        meanings = {
            "hard": "hardmax changes little, and zero at least three times as much",
            "idle": "zero changes little, so that hardmax proves nothing",
            "sink": "attention rests on the first or a special token in most rows",
            "soft": "neither hardmax nor zero can replace them",
        }
        for verdict, meaning in meanings.items():
            group = found[found["verdict"] == verdict]
            names = ", ".join(_head(row) for _, row in group.iterrows()) if 0 < len(group) <= 12 else ""
            name = ("a sink" if len(group) == 1 else "sinks") if verdict == "sink" else verdict
            verb = "is" if len(group) == 1 else "are"
            lines.append(
                f"{len(group)} of {counted(total, 'head')} {verb} {name}{': ' + names if names else ''} ({meaning})."
            )
        replaceable = int((found["hardmax_effect"].abs() <= LITTLE).sum())
        lines.append(f"Without the zero control {replaceable} heads would be called replaceable by hardmax.")
        return lines

    def _rules(self) -> list[str]:
        wide = self.interventions[self.interventions["heads"] > 1]
        return [
            f"{row['rule']} ({row['where']}): {row['measure']} {row['value']:.4g} (unchanged: {row['baseline']:.4g}, "
            f"zero: {row['zero']:.4g})."
            for _, row in wide.head(12).iterrows()
        ]

    def _tokens(self) -> list[str]:
        first, last = self.layers.iloc[0], self.layers.iloc[-1]
        lines = [
            f"Tokens: the mean cosine goes from {first['mean_cosine']:.2f} to {last['mean_cosine']:.2f}, clusters "
            f"(cosine > 0.9) from {first['clusters']:.1f} to {last['clusters']:.1f}, with "
            f"{last['tokens'] / self.texts:.0f} tokens per text."
        ]
        followed = self.layers[self.layers["followers"] > 0]
        if not followed.empty:
            weights = followed["followers"]
            mean = {name: np.average(followed[name], weights=weights) for name in _FOLLOWED}
            gather = "gather" if mean["same_cluster"] > mean["same_cluster_chance"] + _CLEARLY else "do not gather"
            lines.append(
                f"Tokens {gather} around the tokens that they attend to: {mean['same_cluster']:.0%} share a cluster "
                f"with their argmax, {mean['same_cluster_chance']:.0%} with a random token; the pull towards it is "
                f"{mean['pull']:+.3f} (random token: {mean['pull_chance']:+.3f})."
            )
        return lines

    def _hypotheses(self) -> list[str]:
        anti, positive = self.weights["antisymmetry"], self.weights["ov_positivity"]
        return [
            f"Hypotheses: the antisymmetric part of the scores is {anti.mean():.2f} times the symmetric one (random "
            f"weights: {self.weights['antisymmetry_random'].mean():.2f}), above 0.3 in {int((anti > 0.3).sum())} of "
            f"{len(anti)} heads; values are positive ({positive.mean():+.2f} on average) in "
            f"{int((positive > 0).sum())}."
        ]

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"ProbeReport of {self.model!r}: {counted(self.texts, 'text')}, {self.tokens:,} tokens"

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{html.escape(line)}</p>" for line in self.summary().splitlines())
        return sentences + str(self.heads.to_html(index=False, max_rows=12)) + str(self.layers.to_html(index=False))

    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name.

        Returns
        -------
        dict
            Data frames.
        """
        return {name: getattr(self, name) for name in COLUMNS}

    def save(self, folder: PathLike) -> Path:
        """Write the report: ``report.json`` with everything, and each table as Parquet where pyarrow is installed.

        Parameters
        ----------
        folder
            Folder; it is created where it does not exist. Files of an older report are replaced.

        Returns
        -------
        Path
            The folder. :func:`hardmax.models.load_report` reads it back.
        """
        where = make_folder(folder)
        try:
            pyarrow, parquet = import_pyarrow("writing tables as Parquet")
        except MissingExtraError:
            remedy = how_to_install("pyarrow", "store")
            warnings.warn(f"no Parquet files were written, report.json has all tables: {remedy}", stacklevel=2)
        else:
            for name, table in self.tables().items():
                with replacing(where / f"{name}.parquet") as draft:
                    parquet.write_table(pyarrow.Table.from_pandas(table, preserve_index=False), draft)
        about = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in COLUMNS}
        tables = {name: {key: _plain(table[key]) for key in table} for name, table in self.tables().items()}
        content = {"kind": _KIND, "format": _FORMAT, **about, "summary": self.summary().splitlines(), "tables": tables}
        write_text(where / _NAME, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
        return where


LITTLE = 0.005
"""Largest effect that counts as little: a cosine of 0.995, or a perplexity that is 0.5 % larger."""
# Shares of tokens that differ by less are called equal.
_CLEARLY = 0.02
_FOLLOWED = ("pull", "pull_chance", "same_cluster", "same_cluster_chance")


def load_report(path: PathLike) -> ProbeReport:
    """Report written by :meth:`ProbeReport.save`.

    Parameters
    ----------
    path
        The folder, or its ``report.json``.

    Returns
    -------
    ProbeReport
        With equal tables.
    """
    file = Path(path).expanduser()
    file = file / _NAME if file.is_dir() else file
    try:
        size = file.stat().st_size
        if size > _MOST_BYTES:
            raise FileError(file, f"has {size:,} bytes, more than a report", "check the path")
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(file, "there is no such report", "pass the folder of report.save(folder)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(file, f"cannot be read as JSON ({error})", "save the report again") from error
    if not isinstance(content, dict) or content.get("kind") != _KIND or content.get("format") != _FORMAT:
        raise FileError(file, f"is no report of format {_FORMAT}", "pass the folder of report.save(folder)")
    kinds: dict[str, type] = {
        "model": str, "description": str, "causal": bool, "texts": int, "tokens": int, "random_state": int,
    }  # fmt: skip
    for name, kind in kinds.items():
        if type(content.get(name)) is not kind:
            raise FileError(file, f"{name} is missing or no {kind.__name__}", "save the report again")
    tables = content.get("tables")
    if not isinstance(tables, dict):
        raise FileError(file, "has no tables", "save the report again")
    frames: dict[str, Any] = {name: _frame(file, name, tables.get(name)) for name in COLUMNS}
    about: dict[str, Any] = {name: content[name] for name in kinds}
    return ProbeReport(**about, **frames)


def as_frame(name: str, columns: dict[str, Any]) -> pd.DataFrame:
    """Table of a report from its columns, in the order and with the types of :data:`COLUMNS`."""
    return pd.DataFrame({key: pd.Series(columns[key], dtype=_DTYPES[kind]) for key, kind in COLUMNS[name].items()})


def empty(name: str) -> dict[str, list[Any]]:
    """Columns of a table without rows."""
    return {key: [] for key in COLUMNS[name]}


def _frame(file: Path, name: str, columns: object) -> pd.DataFrame:
    wanted = COLUMNS[name]
    if not isinstance(columns, dict) or set(columns) != set(wanted):
        raise FileError(file, f"the table {name} is missing or has other columns", "save the report again")
    lengths = {len(one) if isinstance(one, list) else -1 for one in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        raise FileError(file, f"columns of the table {name} differ in length", "save the report again")
    try:
        return as_frame(name, {key: [_value(one, wanted[key]) for one in columns[key]] for key in wanted})
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(file, f"the table {name} is damaged ({error})", "save the report again") from error


def _value(entry: object, kind: str) -> object:
    """An entry of a table, checked: missing numbers are null and infinite ones words."""
    if kind == "float":
        if entry is None:
            return math.nan
        if entry in ("inf", "-inf"):
            return float(str(entry))
        if isinstance(entry, bool) or not isinstance(entry, (int, float)):
            raise ValueError(f"{entry!r} is no number")
        return float(entry)
    if kind == "int?" and entry is None:
        return None
    expected = {"int": int, "int?": int, "bool": bool, "str": str}[kind]
    if type(entry) is not expected:
        raise ValueError(f"{entry!r} is no {expected.__name__}")
    return entry


def _plain(column: pd.Series) -> list[Any]:
    found = column.astype(object).where(column.notna(), None).tolist()
    return [str(one) if isinstance(one, float) and math.isinf(one) else one for one in found]


def _row_means(table: pd.DataFrame, names: tuple[str, ...]) -> dict[str, float]:
    return {name: float(np.average(table[name], weights=table["rows"])) for name in names}


def _head(row: pd.Series) -> str:
    return f"{int(row['layer'])}.{int(row['head'])}"
