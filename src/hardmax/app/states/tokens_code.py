"""The Python that reproduces the Tokens page."""

from __future__ import annotations

import numpy as np

from .tokens import CONFIGURATIONS, DEPTH, MOST_IN_ADDRESS, TokensState

_MOST_MOVED = 50


def _rows(array: np.ndarray) -> str:
    rows = [f"[{', '.join(f'{value:.12g}' for value in row)}]" for row in array.tolist()]
    lines, line = [], ""
    for row in rows:
        if len(line) + len(row) > 100:
            lines.append(line.rstrip())
            line = ""
        line += f"{row}, "
    lines.append(line.rstrip())
    return "[\n    " + "\n    ".join(lines) + "\n]"


def _moved(state: TokensState) -> list[int] | None:
    """Which tokens of a large random start were moved; None where it is better to write all of them down."""
    if state.edited is None:
        return []
    made = state.made
    if state.edited.shape != made.shape or len(made) <= MOST_IN_ADDRESS:
        return None
    changed = np.flatnonzero((state.edited != made).any(axis=1))
    return changed.tolist() if len(changed) <= _MOST_MOVED else None


def code_of(state: TokensState) -> str:
    """A script that draws what is on the page."""
    s = state.settings
    lines = ["import hardmax as hm", ""]
    moved = _moved(state)
    if state.edited is not None and moved is None:
        lines = ["import hardmax as hm", "import numpy as np", "", f"tokens = np.array({_rows(state.edited)})"]
        if len(state.edited) > MOST_IN_ADDRESS:
            lines = ["import hardmax as hm", "from hardmax.storage.tables import read_tokens", ""]
            lines.append('tokens = read_tokens("points.csv")  # your file')
    elif s.start in CONFIGURATIONS:
        lines.insert(1, "from hardmax.datasets.clustering import four_configurations")
        name = list(CONFIGURATIONS).index(s.start)
        lines.append(f"tokens = four_configurations()[{name}].tokens  # {s.start}")
    else:
        d = 3 if s.space else 2
        digits = ".round(3)" if s.n <= MOST_IN_ADDRESS else ""
        lines.append(f'tokens = hm.make_tokens("{s.start}", {s.n}, {d}, random_state={s.seed}){digits}')
    lines += [f"tokens[{k}] = {state.tokens[k].tolist()}" for k in moved or ()]
    matrix = state.matrix
    if matrix is not None:
        lines.append(f"A = {[[float(f'{value:.12g}') for value in row] for row in matrix.tolist()]}")
    given = ", A" if matrix is not None else ""
    if s.attention == "hardmax":
        lines.append(f"layer = hm.HardmaxLayer({s.alpha:g}{given})")
    else:
        lines.append(f"layer = hm.SoftmaxLayer({s.alpha:g}{given}, beta={s.beta:g})")
    if s.limit:
        lines += ["limit = hm.equilibrium(tokens, layer)  # infinite depth", "print(limit)", "print(hm.leaders(limit))"]
        lines.append("figure = hm.draw_tokens(limit, start=tokens).figure")
    else:
        lines += [f"run = hm.simulate(tokens, layer, depth={DEPTH})", "print(run)"]
        if s.attention == "hardmax":
            lines.append("print(hm.leaders(hm.equilibrium(tokens, layer)))  # who leads in the end")
        lines.append(f"figure = hm.draw_tokens(run, layer={s.layer}).figure")
    if s.selected >= 0 and not s.space and not s.limit and s.attention == "hardmax":
        lines.append(f"hm.draw_attention_geometry(run.tokens[{s.layer}], layer, token={s.selected})")
    lines.append('hm.save_figure(figure, "tokens.png")')
    return "\n".join(lines) + "\n"
