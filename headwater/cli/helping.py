"""`\\help`: what is said about a statement, and about an error by its SQLSTATE.

Statements stand in `statement_help`. Errors are read from the reference, `docs/reference/errors.md` and
the page of each, which a wheel carries: they are written once, for readers and for the shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from headwater.cli.statement_help import TOPICS, Topic
from headwater.errors import BindError

ERRORS = "docs/reference/errors.md"
PAGES = "docs/reference/errors"
_ROW = re.compile(r"^\| \[?`([0-9A-Z]{5})`(?:\]\([^)]*\))? \| (.*) \| (.*) \|$", re.MULTILINE)
_SQLSTATE = re.compile(r"(?=.*\d)[0-9A-Z]{5}")
CLASSES = {
    "22": "a value does not fit",
    "42": "a name, a type or a rule of SQL",
    "53": "a resource is used up",
    "58": "files, Spark or Java failed",
    "XX": "a fault of Headwater",
}


@dataclass(frozen=True)
class Known:
    """An error of the reference: when it comes, and what to do."""

    sqlstate: str
    cause: str
    cure: str


@cache
def errors() -> dict[str, Known]:
    """The errors of the reference by SQLSTATE; none where it was not installed."""
    path = shipped(ERRORS)
    if path is None:
        return {}
    rows = _ROW.finditer(path.read_text(encoding="utf-8"))
    return {row[1]: Known(row[1], plain(row[2]), plain(row[3])) for row in rows}


def plain(text: str) -> str:
    """A line of Markdown without its marks."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return text.replace("`", "").replace("**", "").replace("\\|", "|")


def pointer(sqlstate: str) -> str | None:
    """Where the shell has more about an error."""
    return f"\\help {sqlstate}" if sqlstate in errors() else None


def help_lines(about: str) -> list[str]:
    """What `\\help` says about a statement or an error; the list of statements without either."""
    about = about.strip().rstrip(";").upper()
    if not about:
        return list(_overview())
    if _SQLSTATE.fullmatch(about):
        return list(_error(about))
    found = matching(about)
    if not found:
        raise _unknown(about)
    exact = [topic for topic in found if topic.name == about]
    if exact or len(found) == 1:
        return list(_statement((exact or found)[0]))
    return [f"  {topic.name:<26}{topic.meaning}" for topic in found]


def matching(words: str) -> list[Topic]:
    """Statements that start so; else those in whose form the words stand."""
    starting = [topic for topic in TOPICS if f"{topic.name} ".startswith(f"{words} ")]
    if starting:
        return starting
    longer = [topic for topic in TOPICS if f"{words} ".startswith(f"{topic.name} ")]
    return longer or [t for t in TOPICS if re.search(rf"\b{re.escape(words)}\b", t.form)]


def _overview() -> Iterator[str]:
    names = [topic.name for topic in TOPICS]
    wide = max(map(len, names)) + 2
    rows = -(-len(names) // 3)
    yield "\\help STATEMENT tells how it is written, \\help SQLSTATE what to do about an error."
    yield ""
    for row in range(rows):
        yield "  " + "".join(f"{name:<{wide}}" for name in names[row::rows]).rstrip()


def _statement(topic: Topic) -> Iterator[str]:
    yield f"{topic.name}: {topic.meaning}"
    yield ""
    yield from (f"  {line}" for line in topic.form.splitlines())
    yield ""
    yield "for instance"
    yield from (f"  {line}" for line in topic.example.splitlines())
    yield ""
    yield f"more: {topic.page}"


def _error(sqlstate: str) -> Iterator[str]:
    known = errors().get(sqlstate)
    if known is None:
        kind = CLASSES.get(sqlstate[:2])
        yield f"{sqlstate} is not in the list of errors{f'; its class is: {kind}' if kind else ''}"
        yield "Spark has codes of its own: the message says what they mean"
        return
    yield f"{sqlstate}: {known.cause}"
    page = shipped(f"{PAGES}/{sqlstate}.md")
    if page is None:
        yield from (f"what to do: {known.cure}", "", f"more: {ERRORS}")
    else:
        yield from ("", *page_lines(page.read_text(encoding="utf-8")))
        yield from ("", f"more: {PAGES}/{sqlstate}.md")


def page_lines(text: str) -> Iterator[str]:
    """A page about one error as plain lines: without its title and its last line, which leads back."""
    body = re.sub(r"\A# .*\n+|\n+All codes: .*\n*\Z", "", text).strip()
    in_code = False
    for line in body.splitlines():
        if line.startswith("```"):
            in_code = not in_code
        elif in_code:
            yield f"  {line}"
        else:
            yield plain(line.lstrip("# ") if line.startswith("#") else line)


def _unknown(about: str) -> BindError:
    names = [topic.name for topic in TOPICS]
    near = get_close_matches(about, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "\\help lists the statements"
    return BindError(f"there is no statement {about}", sqlstate="42704", hint=hint)


def shipped(name: str) -> Path | None:
    """A file or folder by its path in the repository; None if it did not come along."""
    package = Path(__file__).parents[1]
    # In a wheel they are part of the package; in a clone they are beside it.
    places = (package / name, package.parent / name)
    return next((place for place in places if place.exists()), None)
