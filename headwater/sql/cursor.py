"""A cursor over the tokens of one statement: the only tool that statement parsers use.

Owns how a statement is walked and how a syntax error reads. It knows words and brackets, but
nothing of any statement. It never evaluates an expression: pieces for Spark come out as spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

from headwater.errors import BindError, NotSupportedError, SqlSyntaxError
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.names import nearest
from headwater.sql.names import words as keywords
from headwater.sql.text import Name, Span

NAME_LIMIT = 128
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = frozenset(OPENING.values())
# Words that would make a statement ambiguous as bare names; in backticks every word is a name.
RESERVED = keywords(
    "SELECT FROM WHERE AND OR NOT AS ON IN IS NULL TRUE FALSE INTO JOIN UNION "
    "GROUP ORDER HAVING WITH VALUES"
)
T = TypeVar("T")


class Cursor:
    """A position in the tokens of one statement."""

    def __init__(self, text: str, tokens: tuple[Token, ...] | None = None) -> None:
        self.text = text
        self.tokens = tokenize(text) if tokens is None else tokens
        self.index = 0
        self.time_zone = "UTC"
        self.void = False  # whether VOID is a type here: Spark says so, no column may

    # Looking

    def peek(self, ahead: int = 0) -> Token:
        """The token some places ahead; END when there is none."""
        try:
            return self.tokens[self.index + ahead]
        except IndexError:
            return self.tokens[-1]

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or symbols, in this order."""
        for ahead, word in enumerate(words):  # noqa: SIM110  # all() costs 1.3 to 1.6 times as much
            if self.peek(ahead).upper != word:
                return False
        return True

    def at_any(self, words: Iterable[str]) -> bool:
        """Whether the next token is one of these words or symbols."""
        return self.peek().kind is not Kind.END and self.peek().upper in words

    @property
    def at_end(self) -> bool:
        """Whether nothing is left but a semicolon."""
        return self.peek().kind is Kind.END or (self.at(";") and self.peek(1).kind is Kind.END)

    @property
    def start(self) -> int:
        """Where the next token starts."""
        return self.peek().start

    @property
    def previous_end(self) -> int:
        """Where the last token taken ends."""
        return self.tokens[self.index - 1].end if self.index else 0

    def span_from(self, start: int) -> Span:
        """The span from a position to the end of the last token taken."""
        return Span(start, max(start, self.previous_end))

    # Taking

    def take(self) -> Token:
        """The next token, whatever it is."""
        token = self.peek()
        if token.kind is not Kind.END:
            self.index += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these words if they come next."""
        if not self.at(*words):
            return False
        self.index += len(words)
        return True

    def accept_any(self, words: Iterable[str]) -> str | None:
        """Take one of these words if it comes next; the word in upper case."""
        if not self.at_any(words):
            return None
        return self.take().upper

    def expect(self, *words: str) -> None:
        """Take these words or raise."""
        for i, word in enumerate(words):
            if not self.accept(word):
                self.fail(" ".join(words[i:]), words=(word,))

    def choice(self, *words: str) -> str:
        """Take one of these words or raise; the word in upper case."""
        return self.accept_any(words) or self.fail(one_of(words), words=words)

    def finish(self) -> None:
        """Raise unless the statement ends here."""
        self.accept(";")
        if self.peek().kind is not Kind.END:
            self.fail("the end of the statement")

    # Names and values

    def name(self, what: str = "a name") -> Name:
        """A name, bare or in backticks."""
        token = self.peek()
        if token.kind is Kind.STRING and token.text[0] == '"':
            self.fail(what, hint="names are quoted with backticks: `name`")
        if not token.is_name or token.upper in RESERVED:
            self.fail(what)
        self.take()
        return Name(token.name, token.span)

    def path(self, what: str = "a name") -> Name:
        """A name that may have dots, such as `headwater.tables`."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return Name(".".join(parts), Span(parts[0].span.start, parts[-1].span.end))

    def new_name(self, what: str) -> Name:
        """The name of something that the statement creates; checked against the rules for names."""
        name = self.name(what)
        if self.at("."):
            raise NotSupportedError(
                "a new name cannot have dots",
                hint="there are no schemas: use a plain name",
                place=name.span.place(self.text),
            )
        return self.checked(name)

    def checked(self, name: Name) -> Name:
        """The name, if the rules for names allow it."""
        problem, hint = None, None
        if not name.strip():
            problem = "a name cannot be empty"
        elif len(name) > NAME_LIMIT:
            problem = f"a name cannot be longer than {NAME_LIMIT} characters"
        elif name.startswith("_"):
            problem = f"the name {name} starts with _"
            hint = "names that start with _ belong to the system"
        elif any(ord(c) < 32 or c in "/\\" for c in name):
            problem = "a name cannot have control characters or slashes"
        if problem:
            raise BindError(problem, sqlstate="42602", hint=hint, place=name.span.place(self.text))
        return name

    def names(self, what: str) -> tuple[Name, ...]:
        """Names in parentheses, at least one."""
        return self.parenthesised(lambda: self.name(what))

    def parenthesised(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Items in parentheses, at least one."""
        self.expect("(")
        items = self.listed(item)
        self.expect(")")
        return items

    def arguments(self) -> tuple[Span, ...]:
        """Expressions in parentheses, possibly none."""
        if self.accept("(", ")"):
            return ()
        return self.parenthesised(lambda: self.expression("an argument", ","))

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Items with commas between them, at least one."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def string(self, what: str = "a string") -> str:
        """The value of a string literal."""
        from headwater.sql.literals import string_value

        token = self.peek()
        if token.kind is not Kind.STRING:
            self.fail(what)
        value = string_value(token.text)
        if value is None:
            self.fail(what, hint="this string has an escape that is only read in queries")
        self.take()
        return value

    def integer(self, what: str = "a whole number") -> int:
        """A whole number that is not negative."""
        token = self.peek()
        if token.kind is not Kind.NUMBER or not token.text.isdecimal():
            self.fail(what)
        self.take()
        if len(token.text) > 18:
            raise SqlSyntaxError("the number is too large", place=token.span.place(self.text))
        return int(token.text)

    def positive(self, what: str = "a whole number") -> int:
        """A whole number of at least 1."""
        token = self.peek()
        value = self.integer(what)
        if not value:
            raise SqlSyntaxError(
                f"expected {what} of at least 1", place=token.span.place(self.text)
            )
        return value

    # Pieces for Spark

    def expression(self, what: str, *stops: str) -> Span:
        """A piece up to one of the words or symbols outside brackets and CASE … END; not empty."""
        start = self.start
        self.skip_until(frozenset(stops))
        if self.previous_end <= start:
            self.fail(what)
        return self.span_from(start)

    def skip_until(self, stops: frozenset[str]) -> None:
        """Go to the next of the words outside brackets and CASE … END, or to the end."""
        cases = 0
        while not self.at_end:
            token = self.peek()
            if not cases and token.upper in stops and not self._is_part():
                return
            if token.text in OPENING:
                self.skip_brackets()
                continue
            if token.text in CLOSING:
                return
            if not self._is_part():
                cases += {"CASE": 1, "END": -1 if cases else 0}.get(token.upper, 0)
            self.take()

    def skip_to_end(self) -> None:
        """Go to the end of the statement; raise for a semicolon before it."""
        last = len(self.tokens) - 1
        for index in range(self.index, last):
            if self.tokens[index].text == ";":
                self.index = index
                if not self.at_end:
                    self.fail("the end of the statement")
                return
        self.index = last

    def _is_part(self) -> bool:
        """Whether the next token is a part of a dotted name (`t.case`), so no keyword."""
        return self.index > 0 and self.tokens[self.index - 1].text == "."

    def skip_brackets(self) -> Span:
        """Go past a pair of brackets with all that is in it."""
        opening = self.take()
        closers = [OPENING[opening.text]]
        while closers:
            token = self.take()
            if token.text in OPENING:
                closers.append(OPENING[token.text])
            elif token.kind is Kind.END or (token.text in CLOSING and token.text != closers.pop()):
                raise unclosed(self.text, opening)
        return self.span_from(opening.start)

    # Failing

    def fail(
        self, expected: str, *, words: Iterable[str] = (), hint: str | None = None
    ) -> NoReturn:
        """Raise: something else was expected here."""
        raise self.error(expected, words=words, hint=hint)

    def error(
        self, expected: str, *, words: Iterable[str] = (), hint: str | None = None
    ) -> SqlSyntaxError:
        """The error that something else was expected here."""
        token = self.peek()
        near = nearest(token.text, words) if token.kind is Kind.WORD else None
        if near and near != token.upper:
            hint = f"did you mean {near}?"
        return syntax_error(self.text, token, f"expected {expected}", hint)

    def refuse(
        self, message: str, *, hint: str | None = None, span: Span | None = None
    ) -> NoReturn:
        """Raise: the text is understood, but the feature is not there."""
        place = (span or self.peek().span).place(self.text)
        raise NotSupportedError(message, hint=hint, place=place)


def syntax_error(
    text: str, token: Token, detail: str | None, hint: str | None = None
) -> SqlSyntaxError:
    """The error at a token, or at the end of the text."""
    if token.kind is Kind.END:
        message = "syntax error at end of input"
    else:
        shown = token.text if len(token.text) <= 40 else token.text[:37] + "…"
        message = f'syntax error at or near "{shown}"'
    return SqlSyntaxError(message, detail=detail, hint=hint, place=token.span.place(text))


def unclosed(text: str, opening: Token) -> SqlSyntaxError:
    """The error that a bracket has no partner."""
    return SqlSyntaxError(
        f"unclosed {opening.text}",
        hint=f"the {opening.text} that starts here has no matching {OPENING[opening.text]}",
        place=opening.span.place(text),
    )


def one_of(words: Iterable[str]) -> str:
    """The words as "A, B or C"."""
    listed = list(words)
    if len(listed) == 1:
        return listed[0]
    return f"{', '.join(listed[:-1])} or {listed[-1]}"
