"""An explanation to read: on a page, with the text's words marked, and in a terminal."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..words.document_endings import AT_THE_END

if TYPE_CHECKING:
    from .explanation import Explanation, Leader

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
    longest = max((word.removesuffix(AT_THE_END).count(" ") + 1 for word in worth), default=0)
    end = len(spans) - (explanation.endings or 0)
    places: dict[str, list[range]] = {}
    for begin in range(len(spans)):
        for length in range(1, min(longest, len(spans) - begin) + 1):
            gram = " ".join(span[2] for span in spans[begin : begin + length])
            for name in (gram, gram + AT_THE_END) if begin >= end else (gram,):
                if name in worth:
                    places.setdefault(name, []).append(range(begin, begin + length))
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
        parts += [_key(explanation), _leader_table(explanation)]
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


def _key(explanation: Explanation) -> str:
    """What the colours and signs mean: they are about one class, which the sentence above need not have chosen."""
    spoken_for = html.escape(str(explanation.classes[1 if len(explanation.classes) == 2 else explanation.output]))
    return (
        f'<p style="font-size:small">Blue words and positive numbers speak for {spoken_for}, orange words and negative '
        "numbers against it; underlined words lead.</p>"
    )


def _leader_table(explanation: Explanation) -> str:
    out = explanation.output
    rows = []
    for leader in explanation.leaders:
        cells = (html.escape(leader.word), f"{leader.share:.1%}", f"{leader.contribution[out]:+.4f}")
        rows.append((f"<strong>{cells[0]}</strong>", *cells[1:], html.escape(_followers(explanation, leader))))
    rows.append(("bias", "", f"{explanation.bias[out]:+.4f}", ""))
    rows.append(("logit", "", f"<strong>{explanation.logits[out]:+.4f}</strong>", ""))
    head = _row("th", ("leader", "share of mass", "contribution", "heaviest followers"))
    body = "".join(_row("td", cells) for cells in rows)
    return f'<table style="border-collapse:collapse"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _row(tag: str, cells: tuple[str, ...]) -> str:
    sides = ("left", "right", "right", "left")
    return (
        "<tr>"
        + "".join(
            f'<{tag} style="text-align:{side};padding:2px 12px 2px 0">{cell}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        + "</tr>"
    )


def _followers(explanation: Explanation, leader: Leader) -> str:
    named = ", ".join(explanation.words[k] for k in leader.followers[:_FOLLOWERS_SHOWN])
    more = len(leader.followers) - _FOLLOWERS_SHOWN
    return named + (f" and {more} more" if more > 0 else "")


def plain(explanation: Explanation) -> str:
    """Lines for a terminal."""
    lines = [explanation.sentence()]
    if not explanation.known:
        return lines[0]
    out = explanation.output
    width = max(6, *(len(leader.word) for leader in explanation.leaders))
    lines.append(f"  {'leader':<{width}}  {'gives':>9}  {'share':>6}  heaviest followers")
    for leader in explanation.leaders:
        named = _followers(explanation, leader)
        tail = f"  <- {named}" if named else ""
        lines.append(f"  {leader.word:<{width}}  {leader.contribution[out]:+9.4f}  {leader.share:6.1%}{tail}")
    lines.append(f"  {'bias':<{width}}  {explanation.bias[out]:+9.4f}")
    lines.append(f"  {'logit':<{width}}  {explanation.logits[out]:+9.4f}")
    return "\n".join(lines)
