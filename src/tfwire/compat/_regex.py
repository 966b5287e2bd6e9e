"""Regular expressions of RE2, TensorFlow's engine, run by Python's ``re`` over text.

Strings are decoded as UTF-8. A byte that is not UTF-8 becomes a surrogate, which only a pattern's
own literals could match: ``.`` and negated sets leave it alone, as RE2 does.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

from tfwire._interface.messages import InvalidArgumentError

_NO_TEXT = "\udc80-\udcff"
_BEYOND_ASCII = "\x80-\ud7ff\ue000-\U0010ffff"
_ASCII = frozenset(map(chr, range(128)))
_LETTERS = frozenset(string.ascii_letters)
_DIGITS = frozenset(string.digits)
_SETS = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": _ASCII,
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, [*range(32), 127])),
    "digit": _DIGITS,
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation),
    "space": frozenset("\t\n\v\f\r "),
    "upper": frozenset(string.ascii_uppercase),
    "word": _LETTERS | _DIGITS | {"_"},
    "xdigit": frozenset(string.hexdigits),
}
_ESCAPED = {"d": _SETS["digit"], "w": _SETS["word"], "s": frozenset("\t\n\f\r ")}

_ESCAPES = r"\\x\{(?P<code>[0-9a-fA-F]+)\}|\\(?P<escape>.)"
_ITEM = re.compile(rf"\[:(?P<not>\^?)(?P<name>\w+):\]|{_ESCAPES}|(?P<other>.)", re.DOTALL)
_TOKEN = re.compile(
    rf"\\Q(?P<quoted>.*?)(?:\\E|\Z)|{_ESCAPES}"
    r"|\[(?P<not>\^?)(?P<set>\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*)\]"
    r"|(?P<other>.)",
    re.DOTALL,
)


def decoded(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


def encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


@lru_cache
def compile_pattern(pattern: bytes) -> re.Pattern[str]:
    """The pattern for Python's ``re``, over text that was decoded by :func:`decoded`.

    Raises:
        InvalidArgumentError: Not a regular expression, or not UTF-8.
    """
    try:
        text = pattern.decode()
        flags = re.match(r"\(\?([a-zA-Z]*)\)", text)
        names = flags[1] if flags else ""
        special = {
            ".": f"[^{_NO_TEXT}]" if "s" in names else f"[^\n{_NO_TEXT}]",
            "^": "(?:^)",  # RE2 repeats anchors too
            "$": "(?:$)"
            if "m" in names
            else r"(?:\Z)",  # Python's $ also matches before a last newline
        }
        translated = _TOKEN.sub(lambda token: _translated(token, special), text)
        return re.compile(translated.replace("{,", r"\{,"))  # no repetition in RE2
    except (re.error, UnicodeDecodeError, OverflowError) as error:
        raise InvalidArgumentError(f"not a regular expression: {error}") from None


def _translated(token: re.Match[str], special: dict[str, str]) -> str:
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["set"] is not None:
        negated, items = token["not"], _ITEM.sub(_item, token["set"])
        return f"[^{items}{_NO_TEXT}]" if negated else f"[{items}]"
    if token["code"]:
        return re.escape(chr(int(token["code"], 16)))
    escape = token["escape"]
    if escape is None:
        return special.get(token["other"], token["other"])
    if escape in "bB":
        return rf"(?a:\{escape})"
    if escape in "Az":
        return rf"(?:\{escape.upper()})"
    return f"[{_listed(escape)}]" if escape.lower() in _ESCAPED else token[0]


def _item(item: re.Match[str]) -> str:
    """An item of a set, as it stands in a set of Python's ``re``."""
    if item["name"]:
        if item["name"] not in _SETS:
            raise re.error(f"invalid character class {item[0]}")
        return _characters(_SETS[item["name"]], bool(item["not"]))
    if item["code"]:
        return re.escape(chr(int(item["code"], 16)))
    if item["escape"]:
        return _listed(item["escape"]) if item["escape"].lower() in _ESCAPED else item[0]
    return rf"\{item['other']}" if item["other"] in "[&~|" else item["other"]


def _listed(escape: str) -> str:
    return _characters(_ESCAPED[escape.lower()], escape.isupper())


def _characters(characters: frozenset[str], negated: bool) -> str:
    listed = "".join(map(re.escape, sorted(_ASCII - characters if negated else characters)))
    return listed + _BEYOND_ASCII if negated else listed


class Rewriter:
    r"""Replaces matches; ``\1`` in the rewrite is the first group, ``\0`` the match.

    Args:
        expression: The compiled pattern.
        rewrite: What matches are replaced with.

    Raises:
        InvalidArgumentError: The rewrite names a group that does not exist, or a backslash is
            followed by neither a digit nor a backslash.
    """

    def __init__(self, expression: re.Pattern[str], rewrite: bytes) -> None:
        self._expression = expression
        self._parts = re.split(r"\\(\d|\\)", decoded(rewrite))
        if any("\\" in part for part in self._parts[::2]):
            raise InvalidArgumentError("in the rewrite, a digit or \\ must follow a \\")
        groups = [int(part) for part in self._parts[1::2] if part != "\\"]
        if max(groups, default=0) > expression.groups:
            raise InvalidArgumentError(
                f"the rewrite names group {max(groups)}, which does not exist"
            )

    def replace(self, string: bytes, once: bool) -> bytes:
        """The string with all matches replaced, or only the first."""
        text = decoded(string)
        parts, place, last = [], 0, -1
        while place <= len(text) and (match := self._expression.search(text, place)):
            parts.append(text[place : match.start()])
            place = match.end()
            if match.start() == match.end() == last:  # nothing empty right after a match
                parts.append(text[place : place + 1])
                place += 1
                continue
            parts.append(self._expand(match))
            last = place
            if once:
                break
        return encoded("".join([*parts, text[place:]]))

    def _expand(self, match: re.Match[str]) -> str:
        return "".join(
            part if i % 2 == 0 or part == "\\" else match[int(part)] or ""
            for i, part in enumerate(self._parts)
        )
