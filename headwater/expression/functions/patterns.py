"""LIKE, ILIKE and regular expressions with a constant pattern.

Owns: the part of Java's regular expressions that RE2 (Arrow's) and Python's `re` match alike, written anew
for them: characters, `.`, classes, `\\d \\w \\s`, groups, `|`, quantifiers, greedy and lazy, `^`, `$`. All
search from the left and try alternatives in order, so they find the same. RE2 needs time in proportion to
the text; what ends in `$`, which it reads otherwise, is `re`'s, with few quantifiers. Must never: take more
of the syntax (look-around, back-references, flags, possessive quantifiers, class arithmetic, `\\b`).
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
MOST_OPEN = 2  # quantifiers without an end in a pattern that Python matches
_ENDS = "\\n\\r\u0085\u2028\u2029"
_ANY = f"[^{_ENDS}]"
_END = "(?=\\r\\n\\Z|(?<!\\r)\\n\\Z|[\\r\u0085\u2028\u2029]\\Z|\\Z)"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??")
_PUNCTUATION = frozenset(".[]{}()*+-?^$|\\/\"'#&~@%!,;:<>=_ ")
_CLASSES = {"d": "0-9", "w": "a-zA-Z_0-9", "s": " \\t\\n\\x0b\\f\\r"}
_CONTROLS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f"}


class _Unknown(Exception):
    """The pattern has something that is not known to be alike."""


@dataclass(frozen=True)
class _Part:
    """A piece of a pattern, whether it can match nothing, and whether a quantifier may follow it."""

    text: str
    empty: bool
    single: bool = True  # it captures nothing, and holds no quantifier or alternative


@dataclass(frozen=True)
class _Pattern:
    """A whole pattern: for RE2 and Python, or with `$` for Python alone."""

    text: str
    empty: bool
    groups: int
    ends: bool  # `$` stands in it
    begins: bool  # `^` stands in it, which Arrow takes for the start of each piece when it splits


class _Translator:
    """Java's pattern → ours, or _Unknown; the group `kept` is the one that is called g."""

    def __init__(self, pattern: str, kept: int | None) -> None:
        self.pattern, self.place, self.kept = pattern, 0, kept
        self.groups, self.open, self.ends, self.begins = 0, 0, False, False

    def whole(self) -> _Pattern:
        found = self._alternatives()
        if self.place < len(self.pattern) or (self.ends and self.open > MOST_OPEN):
            raise _Unknown
        text = f"(?P<g>{found.text})" if self.kept == 0 else found.text
        return _Pattern(text, found.empty, self.groups, self.ends, self.begins)

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
        single = len(parts) == 1 and parts[0].single
        return _Part("|".join(p.text for p in parts), any(p.empty for p in parts), single)

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified())
        empty, single = all(p.empty for p in parts), all(p.single for p in parts)
        return _Part("".join(p.text for p in parts), empty, single)

    def _quantified(self) -> _Part:
        atom = self._atom()
        found = _QUANTIFIER.match(self.pattern, self.place)
        if found is None:
            return atom
        self.place = found.end()
        if atom.empty or not atom.single or self._peek() in ("*", "+", "?", "{"):
            raise _Unknown  # a repeated nothing, a group of which the last counts, or possessive
        bounds = re.findall(r"\d+", found[0])
        if len(bounds) == 2 and int(bounds[0]) > int(bounds[1]):
            raise _Unknown
        empty = found[0][0] in "*?" or (found[0][0] == "{" and int(bounds[0]) == 0)
        self.open += found[0][0] in "*+" or ("," in found[0] and len(bounds) == 1)
        return _Part(atom.text + found[0], empty, single=False)

    def _atom(self) -> _Part:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return _Part(self._class(), False)
        if character == ".":
            return _Part(_ANY, False)
        if character == "^":
            self.begins = True
            return _Part("\\A", True)
        if character == "$":
            self.ends = True
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
        opening = "(?P<g>" if captures and self.groups == self.kept else "(?:"
        inner = self._alternatives()
        if self._take() != ")":
            raise _Unknown
        return _Part(f"{opening}{inner.text})", inner.empty, inner.single and not captures)

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
        if character in "[]^" or ord(character) < 32 or character == self._peek() == "&":
            raise _Unknown
        return re.escape(character), character


def translated(pattern: str, kept: int | None = None) -> _Pattern | None:
    """Java's pattern for us; None if it is not known to be alike."""
    if len(pattern) > LONGEST_PATTERN:
        return None
    try:
        whole = _Translator(pattern, kept).whole()
        re.compile(whole.text)
    except (_Unknown, re.error, RecursionError):
        return None
    return whole


def _known(arguments: tuple[Bound, ...]) -> _Pattern | None:
    """The constant pattern that stands second."""
    if len(arguments) < 2 or any(argument.type != STRING for argument in arguments[:2]):
        return None
    text = constant(arguments[1])
    return None if text is None else translated(text)


def _of(call: BoundCall, kept: int | None = None) -> _Pattern:
    found = translated(constant(call.arguments[1]), kept)
    assert found is not None  # the type rule has seen it
    return found


def _rlike(*arguments: Bound) -> Bound | None:
    """`text RLIKE pattern`: somewhere in the text."""
    fine = len(arguments) == 2 and _known(arguments) is not None
    return called("rlike", arguments, BOOLEAN) if fine else None


def _rlike_kernel(call: BoundCall) -> Kernel:
    pattern = _of(call)
    if not pattern.ends:
        return lambda value, _: pc.match_substring_regex(value, pattern.text)
    search = re.compile(pattern.text).search
    return by_row(lambda text, _: search(text) is not None)(call)


operation("rlike", _rlike, _rlike_kernel)


def _replace(*arguments: Bound) -> Bound | None:
    """REGEXP_REPLACE with a constant text that names no groups."""
    known = _known(arguments) if taken(arguments, [STRING] * 3) else None
    new = None if known is None or known.empty else constant(arguments[2])
    if new is None or "$" in new or "\\" in new:
        return None
    return called("regexp_replace", arguments, STRING)


def _replace_kernel(call: BoundCall) -> Kernel:
    pattern, new = _of(call), constant(call.arguments[2])
    if not pattern.ends:
        return lambda value, *_: pc.replace_substring_regex(value, pattern.text, new)
    matcher = re.compile(pattern.text)
    return by_row(lambda text, *_: matcher.sub(lambda _: new, text))(call)


operation("regexp_replace", _replace, _replace_kernel)


def _extract(*arguments: Bound) -> Bound | None:
    """REGEXP_EXTRACT of a constant group: empty where nothing matches."""
    known = _known(arguments)
    group = constant(arguments[2]) if len(arguments) == 3 and arguments[2].type == INT else None
    if known is None or group is None or not 0 <= group <= known.groups:
        return None
    return called("regexp_extract", arguments, STRING)


def _extract_kernel(call: BoundCall) -> Kernel:
    pattern = _of(call, constant(call.arguments[2]))
    if not pattern.ends:
        return lambda value, *_: _first_match(value, pattern.text)
    search = re.compile(pattern.text).search

    def extracted(text: str, *_: Any) -> str:
        found = search(text)
        return "" if found is None else found["g"] or ""

    return by_row(extracted)(call)


def _first_match(value: pa.Array, pattern: str) -> pa.Array:
    found = pc.struct_field(pc.extract_regex(value, pattern), [0])
    return pc.if_else(pc.is_valid(value), pc.fill_null(found, ""), pa.scalar(None, STRING))


operation("regexp_extract", _extract, _extract_kernel)


def _split(*arguments: Bound) -> Bound | None:
    """SPLIT by a pattern, without a limit."""
    known = _known(arguments) if len(arguments) == 2 else None
    return None if known is None or known.empty else called("split", arguments, STRINGS)


def _split_kernel(call: BoundCall) -> Kernel:
    pattern = _of(call)
    if not pattern.ends and not pattern.begins:
        return lambda value, _: pc.cast(pc.split_pattern_regex(value, pattern.text), STRINGS)
    matcher = re.compile(pattern.text)

    def parts(text: str, _: str) -> list[str]:
        ends = [(found.start(), found.end()) for found in matcher.finditer(text)]
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
        plain = "".join(map(_written, pieces))
        return lambda value: pc.match_like(value, plain)
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


def _written(piece: str | None) -> str:
    """A piece as Arrow reads it, which escapes by a backslash."""
    if not piece:
        return "%" if piece is None else "_"
    return f"\\{piece}" if piece in "%_\\" else piece


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
