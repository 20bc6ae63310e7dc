"""Text for a registry, which shows it as Markdown with LaTeX: words are to stay words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skdpsurv.report.text import shown

__all__ = ["bullets", "code", "plain", "word"]

#: What begins markup, or a tag of HTML, or a formula.
MARKUP = re.compile(r"[<>&`*\[\]$|]")


def plain(text: object) -> str:
    r"""Return text that is shown as it is.

    Examples
    --------
    >>> print(plain("a <b> costs $1 \\ 2"))
    a &lt;b&gt; costs &#36;1 \u005c 2
    """
    named = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return MARKUP.sub(lambda one: named.get(one.group(), f"&#{ord(one.group())};"), _seen(text))


def code(name: object) -> str:
    """Return a name as code.

    Examples
    --------
    >>> code("n_records"), code("a`b")
    ('`n_records`', "`a'b`")
    """
    return f"`{_seen(name).replace('`', chr(39))}`"


def word(text: str) -> str:
    """Return a value as it is if nothing in it is markup, else as code.

    Examples
    --------
    >>> word("0.5"), word("[0, 2], [1]")
    ('0.5', '`[0, 2], [1]`')
    """
    return text if plain(text) == text else code(text)


def bullets(lines: Iterable[str]) -> str:
    """Return a list, a line for each."""
    return "\n".join(f"- {line}" for line in lines)


def _seen(text: object) -> str:
    """Return text in which every character can be seen, and no backslash begins a formula."""
    return "\\u005c".join(map(shown, str(text).split("\\")))
