"""LIKE, ILIKE and regular expressions with a constant pattern.

Owns: the part of Java's regular expressions that Python's `re` matches alike, written anew for it:
characters, `.`, classes, `\\d \\w \\s`, groups, `|`, quantifiers (greedy and lazy), `^` and `$`. Both search
from the left and try alternatives in order, so they find the same. Must never: take more of the syntax
(look-around, back-references, flags, possessive quantifiers, class arithmetic, and `\\b`, which goes by
Unicode in Java).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import BOOLEAN, INT, STRING
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel, Value
from headwater.expression.signature import by_row, constant, taken
from headwater.expression.table import call, called, operation

STRINGS = pa.list_(pa.field("element", STRING))
LONGEST_PATTERN = 500
_ENDS = "\\n\\r\\u0085\\u2028\\u2029"
_ANY = f"[^{_ENDS}]"
_END = "(?=\\r\\n\\Z|(?<!\\r)\\n\\Z|[\\r\\u0085\\u2028\\u2029]\\Z|\\Z)"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??")
_PUNCTUATION = frozenset(".[]{}()*+-?^$|\\/\"'#&~@%!,;:<>=_ ")
_CLASSES = {"d": "0-9", "w": "a-zA-Z_0-9", "s": " \\t\\n\\x0b\\f\\r"}
_CONTROLS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f"}


class _Unknown(Exception):
    """The pattern has something that is not known to be alike."""


@dataclass(frozen=True)
class _Part:
    """A piece of a pattern for Python, whether it can match nothing, and whether it captures."""

    text: str
    empty: bool
    captures: bool = False


class _Translator:
    """Java's pattern → Python's, or _Unknown."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.place, self.groups = pattern, 0, 0

    def whole(self) -> _Part:
        found = self._alternatives()
        if self.place < len(self.pattern):
            raise _Unknown
        return found

    def _peek(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def _take(self) -> str:
        taken_, self.place = self._peek(), self.place + 1
        if not taken_:
            raise _Unknown
        return taken_

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._take()
            parts.append(self._sequence())
        empty, captures = any(p.empty for p in parts), any(p.captures for p in parts)
        return _Part("|".join(p.text for p in parts), empty, captures)

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified())
        empty, captures = all(p.empty for p in parts), any(p.captures for p in parts)
        return _Part("".join(p.text for p in parts), empty, captures)

    def _quantified(self) -> _Part:
        atom = self._atom()
        found = _QUANTIFIER.match(self.pattern, self.place)
        if found is None:
            return atom
        self.place = found.end()
        if atom.empty or atom.captures or self._peek() in ("*", "+", "?", "{"):
            raise _Unknown  # a repeated nothing, a group of which the last counts, or possessive
        bounds = re.findall(r"\d+", found[0])
        if len(bounds) == 2 and int(bounds[0]) > int(bounds[1]):
            raise _Unknown
        empty = found[0][0] in "*?" or (found[0][0] == "{" and int(bounds[0]) == 0)
        return _Part(atom.text + found[0], empty)

    def _atom(self) -> _Part:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return _Part(self._class(), False)
        if character == ".":
            return _Part(_ANY, False)
        if character == "^":
            return _Part("\\A", True)
        if character == "$":
            return _Part(_END, True)
        if character == "\\":
            return _Part(self._escape(), False)
        if character in "*+?{}]" or ord(character) < 32:
            raise _Unknown
        return _Part(re.escape(character), False)

    def _group(self) -> _Part:
        captures = True
        if self._peek() == "?":
            if self.pattern[self.place : self.place + 2] != "?:":
                raise _Unknown
            self.place += 2
            captures = False
        self.groups += captures
        inner = self._alternatives()
        if self._take() != ")":
            raise _Unknown
        opening = "(" if captures else "(?:"
        return _Part(f"{opening}{inner.text})", inner.empty, captures or inner.captures)

    def _escape(self) -> str:
        character = self._take()
        if character in _CLASSES:
            return f"[{_CLASSES[character]}]"
        if character.lower() in _CLASSES:
            return f"[^{_CLASSES[character.lower()]}]"
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character not in _PUNCTUATION:
            raise _Unknown
        return re.escape(character)

    def _class(self) -> str:
        text = "^" if self._peek() == "^" else ""
        self.place += len(text)
        first = True
        while first or self._peek() != "]":
            text += self._range()
            first = False
        self._take()
        return f"[{text}]"

    def _range(self) -> str:
        low, single = self._member()
        follows = self.pattern[self.place : self.place + 2]
        if len(follows) < 2 or follows[0] != "-" or follows[1] == "]":
            return low
        self._take()
        high, other = self._member()
        if single is None or other is None or single > other:
            raise _Unknown
        return f"{low}-{high}"

    def _member(self) -> tuple[str, str | None]:
        """A member of a class for Python, and the character if it is a single one."""
        character = self._take()
        if character == "\\":
            character = self._take()
            if character in _CLASSES:
                return _CLASSES[character], None
            if character in _CONTROLS:
                return _CONTROLS[character], None
            if character not in _PUNCTUATION:
                raise _Unknown
            return re.escape(character), character
        if character in "[]&^" or ord(character) < 32:
            raise _Unknown
        return re.escape(character), character


def translated(pattern: str) -> tuple[re.Pattern[str], bool] | None:
    """Java's pattern for Python, and whether it can match nothing; None if it is not known to be alike."""
    if len(pattern) > LONGEST_PATTERN:
        return None
    try:
        whole = _Translator(pattern).whole()
        return re.compile(whole.text), whole.empty
    except (_Unknown, re.error, RecursionError):
        return None


def _pattern(arguments: tuple[Bound, ...], empty: bool) -> re.Pattern[str] | None:
    """The constant pattern that stands second; `empty`: it may match nothing."""
    if len(arguments) < 2 or any(argument.type != STRING for argument in arguments[:2]):
        return None
    text = constant(arguments[1])
    found = None if text is None else translated(text)
    return None if found is None or (found[1] and not empty) else found[0]


def _compiled(call: BoundCall) -> re.Pattern[str]:
    found = translated(constant(call.arguments[1]))
    assert found is not None  # the type rule has seen it
    return found[0]


def _rlike(*arguments: Bound) -> Bound | None:
    """`text RLIKE pattern`: somewhere in the text."""
    fine = len(arguments) == 2 and _pattern(arguments, empty=True) is not None
    return called("rlike", arguments, BOOLEAN) if fine else None


def _rlike_kernel(call: BoundCall) -> Kernel:
    search = _compiled(call).search
    return by_row(lambda text, _: search(text) is not None)(call)


operation("rlike", _rlike, _rlike_kernel)


def _replace(*arguments: Bound) -> Bound | None:
    """REGEXP_REPLACE with a constant text that names no groups."""
    fine = taken(arguments, [STRING] * 3) and _pattern(arguments, empty=False)
    new = constant(arguments[2]) if fine else None
    if new is None or "$" in new or "\\" in new:
        return None
    return called("regexp_replace", arguments, STRING)


def _replace_kernel(call: BoundCall) -> Kernel:
    pattern, new = _compiled(call), constant(call.arguments[2])
    return by_row(lambda text, *_: pattern.sub(lambda _: new, text))(call)


operation("regexp_replace", _replace, _replace_kernel)


def _extract(*arguments: Bound) -> Bound | None:
    """REGEXP_EXTRACT of a constant group: empty where nothing matches."""
    pattern = _pattern(arguments, empty=True)
    group = constant(arguments[2]) if len(arguments) == 3 and arguments[2].type == INT else None
    if pattern is None or group is None or not 0 <= group <= pattern.groups:
        return None
    return called("regexp_extract", arguments, STRING)


def _extract_kernel(call: BoundCall) -> Kernel:
    search, group = _compiled(call).search, constant(call.arguments[2])

    def extracted(text: str, *_: Any) -> str:
        found = search(text)
        return "" if found is None else found[group] or ""

    return by_row(extracted)(call)


operation("regexp_extract", _extract, _extract_kernel)


def _split(*arguments: Bound) -> Bound | None:
    """SPLIT by a pattern, without a limit."""
    fine = len(arguments) == 2 and _pattern(arguments, empty=False)
    return called("split", arguments, STRINGS) if fine else None


def _split_kernel(call: BoundCall) -> Kernel:
    pattern = _compiled(call)

    def parts(text: str, _: str) -> list[str]:
        ends = [(found.start(), found.end()) for found in pattern.finditer(text)]
        starts = [0, *(end for _, end in ends)]
        stops = [*(start for start, _ in ends), len(text)]
        return [text[start:stop] for start, stop in zip(starts, stops, strict=True)]

    return by_row(parts)(call)


operation("split", _split, _split_kernel)


def _like(operand: Bound, pattern: Bound, escape: str = "\\") -> Bound | None:
    """LIKE with a constant pattern."""
    text = constant(pattern) if pattern.type == STRING else None
    if operand.type != STRING or text is None or _pieces(text, escape) is None:
        return None
    return called("like", (operand,), BOOLEAN, text, escape)


def _pieces(pattern: str, escape: str) -> list[str | None] | None:
    """Characters to be met as they are, `None` for % and an empty text for _; None if Spark refuses it."""
    found: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("_", "%", escape) or not following:
                return None
            found.append(following)
        else:
            found.append({"%": None, "_": ""}.get(character, character))
    return found


def _like_kernel(call: BoundCall) -> Kernel:
    """The cheapest kernel for a pattern."""
    pattern, escape = (str(parameter) for parameter in call.parameters)
    pieces = _pieces(pattern, escape)
    assert pieces is not None  # the type rule has seen it
    if "" in pieces or None in _inner(pieces):
        if escape not in pattern and "\\" not in pattern:
            return lambda value: pc.match_like(value, pattern)
        matcher = re.compile("".join(map(_regular, pieces)), re.DOTALL)
        return by_row(lambda text: matcher.fullmatch(text) is not None)(call)
    inner = "".join(piece or "" for piece in pieces)
    return _simple(inner, pieces[:1] == [None], pieces[-1:] == [None])


def _inner(pieces: list[str | None]) -> list[str | None]:
    """The pieces without % at the ends."""
    first, last = 0, len(pieces)
    while first < last and pieces[first] is None:
        first += 1
    while last > first and pieces[last - 1] is None:
        last -= 1
    return pieces[first:last]


def _regular(piece: str | None) -> str:
    return ".*" if piece is None else re.escape(piece) if piece else "."


def _simple(inner: str, before: bool, after: bool) -> Callable[[Value], Value]:
    if not before and not after:
        return lambda value: pc.equal(value, inner)
    if before and after:
        return lambda value: pc.match_substring(value, inner)
    return lambda value: (pc.starts_with if after else pc.ends_with)(value, inner)


operation("like", _like, _like_kernel)


def ilike(operand: Bound, pattern: Bound) -> Bound | None:
    """ILIKE: LIKE of both in lower case, as Spark has it."""
    both = [call("lower", side) for side in (operand, pattern)]
    return None if None in both else call("like", *both)  # type: ignore[arg-type]
