"""Completion in the shell: shell commands, phrases, names of objects and columns, keywords.

Works on the text alone and on names that the shell fetched before the prompt; it must never ask
the database while the user types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from headwater.cli.commands import TABLE
from headwater.cli.output import FORMATS
from headwater.cli.scanner import in_quote
from headwater.cli.statement_help import TOPICS
from headwater.sql.keywords import BEFORE_NAMES, FUNCTIONS, PHRASES, WORDS
from headwater.sql.types import quoted

Names = Mapping[str, list[str]]
_WORD = re.compile(r"[\w$]*\Z")
_QUALIFIED = re.compile(r"(`[^`]+`|[\w$]+)\.([\w$]*)\Z")
_BEFORE = re.compile(r"([\w$]+)\s+\Z")


class ShellCompleter(Completer):
    """Completes what stands before the cursor."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self._names = names
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """The completions, best first."""
        text = document.text_before_cursor
        if text.lstrip().startswith("\\"):
            return self._command(text.lstrip(), event)
        if in_quote(text):
            return ()
        return self._sql(text, document.text)

    def _command(self, text: str, event: CompleteEvent) -> Iterable[Completion]:
        name, blank, rest = text.partition(" ")
        if not blank:
            return (
                Completion(command.name, -len(name), display_meta=command.meaning)
                for command in TABLE
                if command.name.startswith(name)
            )
        if name == "\\d":
            return _matching(rest, ((name, "object") for name in sorted(self._names())))
        if name == "\\format":
            return _matching(rest, ((name, "format") for name in FORMATS))
        if name in ("\\help", "\\h"):
            return _matching(rest, ((topic.name, "keyword") for topic in TOPICS))
        if name == "\\i":
            return self._paths.get_completions(Document(rest), event)
        return ()

    def _sql(self, text: str, whole: str) -> Iterator[Completion]:
        """`whole` also has what stands behind the cursor: the FROM of the columns before it."""
        names = self._names()
        qualified = _QUALIFIED.search(text)
        if qualified is not None:
            columns = _columns_of(qualified.group(1).strip("`"), names, whole)
            return _matching(qualified.group(2), ((c, "column") for c in columns))
        match = _WORD.search(text)
        word = match.group() if match else ""
        before = _BEFORE.search(text[: len(text) - len(word)])
        last = before.group(1).upper() if before else ""
        return _matching(word, _candidates(last, names, whole))


def _candidates(before: str, names: Names, text: str) -> Iterator[tuple[str, str]]:
    """Candidates with what they are, in the order in which they are offered."""
    for phrase in PHRASES.get(before, ()):
        yield phrase, "keyword"
    if before in BEFORE_NAMES:
        yield from ((name, "object") for name in sorted(names))
    mentioned = [name for name in names if _mentions(text, name)]
    columns = {column for name in mentioned or names for column in names[name]}
    yield from ((column, "column") for column in sorted(columns))
    if before not in BEFORE_NAMES:
        yield from ((name, "object") for name in sorted(names))
    yield from ((word, "keyword") for word in sorted(WORDS))
    yield from ((name, "function") for name in sorted(FUNCTIONS))


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text, re.IGNORECASE) is not None


def _columns_of(owner: str, names: Names, text: str) -> list[str]:
    """The columns of an object, or of the object that an alias in the text stands for."""
    by_name = {name.lower(): columns for name, columns in names.items()}
    if owner.lower() in by_name:
        return by_name[owner.lower()]
    alias = re.compile(
        rf"([\w$.]+|`[^`]+`)\s*(?:\[[^\]]*\])?\s+(?:as\s+)?{re.escape(owner)}(?![\w$.])",
        re.IGNORECASE,
    )
    for match in alias.finditer(text):
        found = by_name.get(match.group(1).strip("`").lower())
        if found is not None:
            return found
    return []


def _matching(word: str, candidates: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    """The candidates that go on from the word; keywords take the case in which it was begun."""
    seen: set[str] = set()
    small = word != "" and word == word.lower()
    for candidate, kind in candidates:
        if candidate.lower() in seen or not candidate.lower().startswith(word.lower()):
            continue
        seen.add(candidate.lower())
        shown = candidate
        if kind == "keyword":
            shown = candidate.lower() if small else candidate
        elif kind in ("object", "column"):
            shown = quoted(candidate) if "." not in candidate else candidate
        yield Completion(shown, -len(word), display_meta=kind)
