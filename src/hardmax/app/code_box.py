"""Python code as HTML: highlighted by the tokens of the language, with a button that copies it."""

from __future__ import annotations

import html
import io
import keyword
import token
import tokenize

_KINDS = {"STRING": "string", "NUMBER": "number", "COMMENT": "comment"}


def code_box(text: str) -> str:
    """The code in a box that can be scrolled, with a button for the clipboard (static/page.html)."""
    return (
        '<div class="code-box"><button type="button" class="copy" data-copy="yes">Copy code</button>'
        f'<pre class="code" tabindex="0" role="region" aria-label="Python code">{highlighted(text)}</pre></div>'
    )


def highlighted(text: str) -> str:
    """The code as HTML with a class per kind of token; as it is where it cannot be read.

    >>> highlighted("import re  # note")
    '<span class="keyword">import</span> re  <span class="comment"># note</span>'
    """
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    pieces, last = [], 0
    try:
        for found in tokenize.generate_tokens(io.StringIO(text).readline):
            # Parts of formatted strings have names of their own from Python 3.12 on.
            kind = _KINDS.get(token.tok_name[found.type].removeprefix("F").partition("_")[0])
            if found.type == token.NAME and keyword.iskeyword(found.string):
                kind = "keyword"
            if kind is None:
                continue
            start, end = (starts[row - 1] + column for row, column in (found.start, found.end))
            pieces += [html.escape(text[last:start]), f'<span class="{kind}">{html.escape(text[start:end])}</span>']
            last = end
    except (tokenize.TokenError, SyntaxError):  # a page may show a fragment
        return html.escape(text)
    return "".join([*pieces, html.escape(text[last:])])
