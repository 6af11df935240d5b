"""An explanation to read: on a page, with the text's words marked, and in a terminal."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .explanation import Explanation

_FOLLOWERS_SHOWN = 8
_FOR, _AGAINST = (0, 114, 178), (213, 94, 0)
"""Blue and vermilion, which everybody can tell apart."""


def word_weights(explanation: Explanation) -> list[tuple[int, int, float, bool]]:
    """Where each known word stands in the text, its contribution and whether it is (part of) a leader.

    The contribution of an n-gram is shared by its words and by all places where it occurs.
    """
    if explanation.text is None or explanation.tokeniser is None:
        return []
    spans = explanation.tokeniser.spans(explanation.text)
    worth = dict(zip(explanation.words, explanation.contributions[:, explanation.output], strict=True))
    leading = {leader.word for leader in explanation.leaders}
    longest = max((word.count(" ") + 1 for word in worth), default=0)
    places: dict[str, list[range]] = {}
    for begin in range(len(spans)):
        for length in range(1, min(longest, len(spans) - begin) + 1):
            gram = " ".join(span[2] for span in spans[begin : begin + length])
            if gram in worth:
                places.setdefault(gram, []).append(range(begin, begin + length))
    value, led = np.zeros(len(spans)), np.zeros(len(spans), dtype=bool)
    for gram, found in places.items():
        for place in found:
            value[place.start : place.stop] += worth[gram] / len(found) / len(place)
            led[place.start : place.stop] |= gram in leading
    return [
        (start, end, float(weight), bool(leads))
        for (start, end, _), weight, leads in zip(spans, value, led, strict=True)
    ]


def page(explanation: Explanation) -> str:
    """HTML: the sentence, the marked text and a table of leaders."""
    parts = [f"<p><strong>{html.escape(explanation.sentence())}</strong></p>"]
    if explanation.text is not None:
        parts.append(f'<p style="line-height:1.9;white-space:pre-wrap">{_marked(explanation)}</p>')
    if explanation.known:
        parts.append(_leader_table(explanation))
    return '<div class="hardmax-explanation" style="font-family:sans-serif">' + "\n".join(parts) + "</div>"


def _marked(explanation: Explanation) -> str:
    def marked(word: str, weight: float, strength: float, leads: bool) -> str:
        red, green, blue = _FOR if weight > 0 else _AGAINST
        style = f"background:rgba({red},{green},{blue},{0.08 + 0.5 * strength:.2f});border-radius:3px"
        style += ";font-weight:bold;text-decoration:underline" if leads else ""
        return f'<span style="{style}" title="{weight:+.4f}">{word}</span>'

    return marked_words(explanation, marked)


def marked_words(explanation: Explanation, mark: Callable[[str, float, float, bool], str]) -> str:
    """The text as HTML; words that push towards a class or lead are given to ``mark``.

    It is told the word, already safe as HTML, its weight, the weight's size as a share of the strongest, and whether it
    leads.
    """
    text = explanation.text or ""
    weights = word_weights(explanation)
    strongest = max((abs(weight) for _, _, weight, _ in weights), default=0.0) or 1.0
    pieces, last = [], 0
    for start, end, weight, leads in weights:
        pieces.append(html.escape(text[last:start]))
        word, last = html.escape(text[start:end]), end
        pieces.append(word if weight == 0 and not leads else mark(word, weight, abs(weight) / strongest, leads))
    pieces.append(html.escape(text[last:]))
    return "".join(pieces)


def _leader_table(explanation: Explanation) -> str:
    out = explanation.output
    rows = []
    for leader in explanation.leaders:
        named = ", ".join(html.escape(explanation.words[k]) for k in leader.followers[:_FOLLOWERS_SHOWN])
        more = len(leader.followers) - _FOLLOWERS_SHOWN
        rows.append(
            f"<tr><td><strong>{html.escape(leader.word)}</strong></td><td>{leader.share:.1%}</td>"
            f"<td>{leader.contribution[out]:+.4f}</td><td>{named}{f' and {more} more' if more > 0 else ''}</td></tr>"
        )
    rows.append(f"<tr><td>bias</td><td></td><td>{explanation.bias[out]:+.4f}</td><td></td></tr>")
    rows.append(f"<tr><td>logit</td><td></td><td><strong>{explanation.logits[out]:+.4f}</strong></td><td></td></tr>")
    head = "<tr><th>leader</th><th>share of mass</th><th>contribution</th><th>heaviest followers</th></tr>"
    return f'<table style="text-align:left"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def plain(explanation: Explanation) -> str:
    """Lines for a terminal."""
    lines = [explanation.sentence()]
    if not explanation.known:
        return lines[0]
    out = explanation.output
    width = max(5, *(len(leader.word) for leader in explanation.leaders))
    for leader in explanation.leaders:
        named = ", ".join(explanation.words[k] for k in leader.followers[:_FOLLOWERS_SHOWN])
        more = len(leader.followers) - _FOLLOWERS_SHOWN
        tail = f"  <- {named}{f' and {more} more' if more > 0 else ''}" if named else ""
        lines.append(f"  {leader.word:<{width}}  {leader.contribution[out]:+9.4f}  {leader.share:6.1%}{tail}")
    lines.append(f"  {'bias':<{width}}  {explanation.bias[out]:+9.4f}")
    lines.append(f"  {'logit':<{width}}  {explanation.logits[out]:+9.4f}")
    return "\n".join(lines)
