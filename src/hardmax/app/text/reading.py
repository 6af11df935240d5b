"""One text on the page: its verdict, the reasons in a sentence, the marked words, and the contributions as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...text.explaining.explanation import Explanation
from ..layout import plot_pane, wide_html
from .reasons import Words, because, signed, without_struck
from .view import Staircase, key_to_marks, leader_list, marked_text, sum_in_words, verdict

if TYPE_CHECKING:
    from ..session import Session


class Reading:
    """The panes of one text; only those of the first text are ``linked`` to the other pictures."""

    def __init__(self, session: Session, *, linked: bool = True) -> None:
        self._linked = linked
        self.verdict, self.because = wide_html("verdict"), wide_html()
        self.marked, self.struck = wide_html(), wide_html()
        self.sum, self.leaders = wide_html(), wide_html()
        self.staircase = Staircase(session, linked=linked)
        self.bars = plot_pane(self.staircase.plot)
        self.words: Words | None = None

    @property
    def answer(self) -> list[Any]:
        """The verdict and its reasons in a sentence."""
        return [self.verdict, self.because]

    @property
    def sentence(self) -> list[Any]:
        """The marked text, and what changes without the words that are struck out."""
        return [self.marked, self.struck]

    @property
    def reasons(self) -> list[Any]:
        """The contributions of the leaders as bars, as a sum and as a table."""
        return [self.bars, self.sum, self.leaders]

    def show(self, why: Explanation, struck: Sequence[str] = ()) -> None:
        """Show another text."""
        words = self.words = Words.of(why, struck)
        self.verdict.object = verdict(why)
        self.because.object = because(words)
        self._mark(words)
        if why.known:
            self.staircase.show(why)
            self.sum.object = sum_in_words(why)
            self.leaders.object = leader_list(why)

    def strike(self, struck: Sequence[str]) -> None:
        """Strike out other words of the same text."""
        if self.words is not None:
            self.words = Words.of(self.words.why, struck)
            self._mark(self.words)

    def _mark(self, words: Words) -> None:
        known = words.why.known
        self.marked.object = marked_text(words, strike=self._linked) + (key_to_marks(words.why) if known else "")
        self.struck.object = without_struck(words) if known and self._linked else ""


def difference(first: Explanation, second: Explanation) -> str:
    """The two logits and the difference between them as a sentence."""
    before, after = float(first.logits[first.output]), float(second.logits[second.output])
    if len(first.classes) > 2 and first.output != second.output:
        return f"The first text is called {first.prediction}, the second {second.prediction}."
    label = first.classes[1] if len(first.classes) == 2 else first.prediction
    return (
        f"Logit of {label}: {signed(before)} in the first text, {signed(after)} in the second, a difference of "
        f"{signed(after - before)}."
    )
