"""An explanation to read on the page: the verdict, the text with its words marked, the leaders, the sum."""

from __future__ import annotations

import html

from ...text.explanation import Explanation
from ...text.rendering import marked_words
from .class_colours import class_colours, key_to_directions, raising_and_lowering, translucent

_FOLLOWERS_SHOWN = 6
_LEADERS_SHOWN = 12


def percent(share: float, digits: int = 0) -> str:
    """A probability in percent; what is not certain does not read 0 % or 100 %.

    >>> percent(0.934), percent(0.999), percent(0.99996), percent(0.0004, 1)
    ('93%', '99.9%', '&gt; 99.9%', '&lt; 0.1%')
    """
    for places in range(digits, 2):
        shown = f"{share:.{places}%}"
        if float(shown[:-1]) not in (0.0, 100.0) or share in (0.0, 1.0):
            return shown
    return "&gt; 99.9%" if share > 0.5 else "&lt; 0.1%"


def verdict(explanation: Explanation) -> str:
    """The class in large letters, its probability, and every class with a bar."""
    rows = []
    colours = class_colours(len(explanation.classes))
    for label, chance, colour in zip(explanation.classes, explanation.probabilities, colours, strict=True):
        name = html.escape(str(label))
        rows.append(
            f"<tr><td>{name}</td><td style='width:60%'><div class='chance' style='height:9px;border-radius:5px;"
            f"background:{colour};width:{100 * chance:.1f}%;min-width:2px'></div></td>"
            f"<td style='text-align:right'>{percent(chance, 1)}</td></tr>"
        )
    name = html.escape(str(explanation.prediction))
    chance = float(explanation.probabilities.max())
    head = (
        f"<p style='font-size:26px;font-weight:650;line-height:1.2;margin:0 0 6px'>{name} "
        f"<span class='soft' style='font-weight:400'>{percent(chance)}</span></p>"
    )
    note = "" if explanation.known else "<p class='soft'>No word of this text is known, so this is the prior alone.</p>"
    return f"{head}{note}<table style='width:100%'>{''.join(rows)}</table>"


def marked_text(explanation: Explanation) -> str:
    """The text; words that push towards a class are shaded in its colour, leaders are underlined."""
    raising, lowering = raising_and_lowering(explanation)

    def marked(word: str, weight: float, strength: float, leads: bool) -> str:
        shade = translucent(raising if weight > 0 else lowering, 0.10 + 0.5 * strength)
        style = f"background:{shade};color:inherit;border-radius:4px;padding:1px 2px"
        if leads:
            style += (
                ";font-weight:700;text-decoration:underline;text-decoration-thickness:2px;text-underline-offset:3px"
            )
        kind = "leader" if leads else "follower"
        return f"<mark class='{kind}' style='{style}' title='{weight:+.3f}'>{word}</mark>"

    words = marked_words(explanation, marked)
    return f"<div class='marked' style='line-height:2;white-space:pre-wrap;font-size:15px'>{words}</div>"


def key_to_marks(explanation: Explanation) -> str:
    """What the colours of the marked text mean."""
    return (
        f"<p class='soft' style='font-size:13px'>{key_to_directions(explanation)} · "
        "<b style='text-decoration:underline'>leader</b> · every shaded word follows one</p>"
    )


def leader_list(explanation: Explanation) -> str:
    """Each leader with its share of the text and its heaviest followers."""
    rows = []
    for leader in explanation.leaders[:_LEADERS_SHOWN]:
        named = ", ".join(html.escape(explanation.words[k]) for k in leader.followers[:_FOLLOWERS_SHOWN])
        more = len(leader.followers) - _FOLLOWERS_SHOWN
        tail = f" and {more} more" if more > 0 else ""
        rows.append(
            f"<tr><td><b>★ {html.escape(leader.word)}</b></td><td>{leader.share:.0%}</td>"
            f"<td>{leader.emerged_at}</td><td class='soft'>{named + tail if named else 'nobody'}</td></tr>"
        )
    hidden = len(explanation.leaders) - _LEADERS_SHOWN
    rest = f"<p class='soft'>and {hidden} smaller leaders</p>" if hidden > 0 else ""
    head = "<tr><th>leader</th><th>gathers</th><th>since layer</th><th>followed by</th></tr>"
    return f"<table style='width:100%'><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>{rest}"


def sum_in_words(explanation: Explanation) -> str:
    """The contributions as a sum that the reader can check, with what it means."""
    out = explanation.output
    shown = explanation.leaders[:4]
    rest = [float(leader.contribution[out]) for leader in explanation.leaders[4:]]
    terms = [f"{_signed(leader.contribution[out])} <i>{html.escape(leader.word)}</i>" for leader in shown]
    if rest:
        terms.append(f"{_signed(sum(rest))} <i>{len(rest)} more</i>")
    terms.append(f"{_signed(explanation.bias[out])} <i>bias</i>")
    chance = float(explanation.probabilities[1 if len(explanation.classes) == 2 else int(explanation.logits.argmax())])
    label = explanation.classes[1] if len(explanation.classes) == 2 else explanation.prediction
    return (
        f"<p class='sum'>{' '.join(terms)} = <b>{_signed(explanation.logits[out])}</b>, "
        f"so {html.escape(str(label))} has probability {percent(chance, 1)}</p>"
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
