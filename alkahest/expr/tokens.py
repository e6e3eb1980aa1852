"""Spelling of names and numbers, in both directions: the level below grammar.

The parser reads with :func:`tokenise`; the printer writes with :func:`name_text`,
:func:`integer_text` and :func:`float_text`. Whatever these write, :func:`tokenise` reads back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from math import inf, isfinite
from typing import Final, NamedTuple

from alkahest.errors import ParseError

RESERVED = ("pi", "E", "I", "oo", "nan", "zoo", "True", "False")
"""Names that mean a constant, or nothing (zoo), unless a symbol of that name is declared."""

WORD_OPERATORS = ("and", "or", "not")
"""Names that are always operators."""


class TokenKind:
    """What a token is, in words; an Enum would take longer to look at than to match a token."""

    INTEGER: Final = "an integer"
    FLOAT: Final = "a decimal number"
    NAME: Final = "a name"
    QUOTED: Final = "a quoted name"
    OPERATOR: Final = "an operator"
    END: Final = "the end of the text"


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: one of :class:`TokenKind`; word operators are OPERATOR.
        text: the characters as written, except that a QUOTED name comes without its quotes.
        start, end: half-open character offsets.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> tuple[int, int]:
        """Half-open character offsets, as errors carry them."""
        return self.start, self.end


_DIGITS = r"[0-9](?:_?[0-9])*"
_EXPONENT = rf"[eE][+-]?{_DIGITS}"
_TOKEN = re.compile(
    rf"""[\ \t\r\n\f]*(?:
      (?P<FLOAT>(?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS})(?:{_EXPONENT})?|{_DIGITS}{_EXPONENT})
    | (?P<INTEGER>{_DIGITS})
    | (?P<NAME>[^\W\d]\w*)
    | (?P<QUOTED>`(?:[^`]|``)*`)
    | (?P<OPERATOR>\*\*|//|<=|>=|==|!=|:=|[-+*/%^&|~<>(),])
    | (?P<END>\Z)
    )""",
    re.VERBOSE,
)
_KINDS = {i: getattr(TokenKind, name) for name, i in _TOKEN.groupindex.items()}
_SPACE = re.compile(r"[ \t\r\n\f]*")
_PLAIN_ASCII = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LEADING_ZERO = re.compile(r"0[0_]*[1-9]")

_HINTS = {
    "'": "Texts are not part of the language.",
    '"': "Texts are not part of the language.",
    ".": "Attributes are not part of the language.",
    "[": "Indexing is not part of the language; name columns x_0, x_1, ...",
    "]": "Indexing is not part of the language; name columns x_0, x_1, ...",
    "=": "Compare with == or Eq(a, b).",
    "!": "Negate a condition with ~ or not; factorial(n) is a function.",
    "`": "Close the quoted name with another backquote; inside it, write a backquote twice.",
}
_ALLOWED = "Allowed are numbers, names, + - * / // % ** ^, comparisons, & | ~, commas and brackets."
_LOOK_ALIKE = (
    "Names are letters, digits 0-9 and underscores in their NFKC normal form; put any other name "
    "between backquotes."
)


def tokenise(text: str) -> Iterator[Token]:
    """Split ``text`` into tokens, ending with one of kind END.

    Raises:
        ParseError: E-PARSE-001 for a character, name or number outside the language; only when
            the iteration gets there.
    """
    end, kind = 0, TokenKind.OPERATOR
    while kind != TokenKind.END:
        match = _TOKEN.match(text, end)
        if match is None:
            raise _bad_character(text, end)
        group = match.lastindex or 0
        kind, written, (start, end) = _KINDS[group], match[group], match.span(group)
        if kind == TokenKind.NAME:
            if written in WORD_OPERATORS:
                kind = TokenKind.OPERATOR
            elif not _is_identifier(written):
                message = f"the name {shown(written)} has characters that need quoting"
                raise _syntax(message, start, end, _LOOK_ALIKE)
        elif kind == TokenKind.QUOTED:
            written = written[1:-1].replace("``", "`")
            if not written:
                raise _syntax("a quoted name is empty", start, end, "Use a non-empty text.")
        yield Token(kind, written, start, end)


def integer_value(token: Token) -> int:
    """Exact value of an INTEGER token of any length.

    Raises:
        ParseError: E-PARSE-001 for leading zeros, which Python refuses as well.
    """
    if _LEADING_ZERO.match(token.text):
        message = f"the integer {shown(token.text)} starts with a zero"
        raise _syntax(message, token.start, token.end, "Write it without leading zeros.")
    return _exact(token.text.replace("_", ""))


def float_value(token: Token) -> float:
    """The float64 nearest to a FLOAT token.

    Raises:
        ParseError: E-PARSE-001 when that would be an infinity.
    """
    value = float(token.text)
    if not isfinite(value):
        message = f"the number {shown(token.text)} lies outside the range of float64"
        raise _syntax(message, token.start, token.end, "Write oo for infinity, 10**400 for exact.")
    return value


def name_text(name: str) -> str:
    """Spelling of the symbol ``name``: itself, or in backquotes where it would not read back.

    A backquote inside the name is doubled; every other character stays as it is.
    """
    if _is_identifier(name) and name not in WORD_OPERATORS and name not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def integer_text(value: int) -> str:
    """Decimal digits of an integer of any size; Python's limit on digits does not apply."""
    if abs(value) < _CHUNK_VALUE:
        return str(value)
    return ("-" if value < 0 else "") + _digits(abs(value))


def float_text(value: float) -> str:
    """Shortest decimal that reads back to the same float64; ``oo``, ``-oo`` and ``nan``."""
    if isfinite(value):
        return repr(value)
    return "oo" if value == inf else "-oo" if value == -inf else "nan"


def shown(text: str) -> str:
    """``text`` in quotes as messages show it, cut where it is long."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _is_identifier(name: str) -> bool:
    """Whether the tokeniser reads ``name`` as one name.

    Letters outside ASCII count when they are their own NFKC form, so that a full-width or
    mathematical twin of ``x`` is refused instead of being taken for ``x`` or looking like it.
    """
    if _PLAIN_ASCII.fullmatch(name):
        return True
    return (
        name[:1] not in "0123456789"
        and all(c.isalpha() or c in "_0123456789" for c in name)
        and unicodedata.is_normalized("NFKC", name)
    )


# Python refuses to convert between int and decimal text beyond sys.get_int_max_str_digits(),
# which may be as low as 640 and is not ours to change: convert in halves of fewer digits.
_CHUNK = 600
_CHUNK_VALUE = 10**_CHUNK


def _exact(digits: str) -> int:
    """Value of decimal digits; the recursion is as deep as their number has bits."""
    if len(digits) <= _CHUNK:
        return int(digits)
    low = len(digits) // 2
    shift: int = 10**low
    return _exact(digits[:-low]) * shift + _exact(digits[-low:])


def _digits(value: int) -> str:
    """Decimal digits of a non-negative integer; the recursion is as deep as in _exact."""
    if value < _CHUNK_VALUE:
        return str(value)
    low = max(_CHUNK // 2, value.bit_length() * 3 // 20)  # about half of the decimal digits
    head, tail = divmod(value, 10**low)
    return _digits(head) + _digits(tail).rjust(low, "0")


def _syntax(message: str, start: int, end: int, remedy: str | None = None) -> ParseError:
    return ParseError("E-PARSE-001", message, remediation=remedy, span=(start, end))


def _bad_character(text: str, position: int) -> ParseError:
    space = _SPACE.match(text, position)
    start = space.end() if space else position
    character = text[start]
    end = len(text) if character == "`" else start + 1
    what = "a quoted name is not closed" if character == "`" else f"unexpected {character!r}"
    return _syntax(what, start, end, _HINTS.get(character, _ALLOWED))
