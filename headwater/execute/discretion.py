"""What is kept from those who are no admins: paths of the server, words of Java, addresses, other users.

Owns which columns of system tables and which errors are shown in part. What is left out of an error goes
to the log of the process (`headwater`), under a number that the error names. Must never change rows of
users' tables.
"""

from __future__ import annotations

import itertools
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from headwater.errors import Error, KernelError
from headwater.sql.caller import current

# A path of two parts or more; one part alone may be anything, such as a unit.
_PATH = re.compile(r"(?<![\w/.])(?:file:)?(/{1,3}(?:[^\s/'\"()\[\]{},;]+/)+[^\s/'\"()\[\]{},;:]*)")
_STATE = re.compile(r"\(([0-9A-Z]{5})\)")
# Classes of errors that are about the statement or its rows, and so whoever wrote it may read them.
OPEN_CLASSES = frozenset(
    {"08", "0A", "21", "22", "23", "25", "28", "38", "40", "42", "53", "55", "57"}
)
HIDDEN = "…"
ASK = "an admin sees why"

_log = logging.getLogger("headwater")
_numbers = itertools.count(1)
_run = secrets.token_hex(2)  # numbers of two runs are not the same


def told(error: Error, folder: Path, text: str) -> Error:
    """The error as this thread's caller may see it; `text` is the caller's own statement."""
    if current().is_admin:
        return error
    if error.foreign or (isinstance(error, KernelError) and error.detail):
        number = f"{_run}-{next(_numbers)}"
        _log.warning("error %s of a statement: %s", number, error)
        return KernelError(
            "Spark could not run the statement",
            sqlstate=error.sqlstate,
            hint=f"an admin finds the cause in the server's log, as error {number}",
            place=error.place,
        )
    words = [error.message, error.detail, error.hint]
    shown = [word and without_paths(word, folder, text) for word in words]
    return error if shown == words else _with_words(error, *shown)


def _with_words(error: Error, message: str | None, detail: str | None, hint: str | None) -> Error:
    """A copy with other words: the error itself may be a query's, which an admin looks at too."""
    made = type(error).__new__(type(error))
    made.__dict__.update(error.__dict__, message=message, detail=detail, hint=hint)
    made.args = (message,)
    return made


def without_paths(words: str, folder: Path, text: str = "") -> str:
    """The words with paths of the data folder made relative to it, and without those that lie elsewhere."""

    def shown(found: re.Match[str]) -> str:
        path = found.group(1)
        if path in text:
            return found.group()
        inside = str(folder) + "/"
        plain = "/" + path.lstrip("/")
        return plain.removeprefix(inside) if plain.startswith(inside) else HIDDEN

    return _PATH.sub(shown, words)


def _address(url: str, folder: Path) -> str:  # noqa: ARG001
    """The kind of an address, without the rest."""
    return f"{url.partition(':')[0]}:{HIDDEN}"


def _failure(words: str, folder: Path) -> str:
    """The first line of an error that is about a statement."""
    first = words.partition("\n")[0]
    state = _STATE.search(first)
    is_open = state is not None and state.group(1)[:2] in OPEN_CLASSES
    return without_paths(first, folder) if is_open else ASK


COLUMNS: Mapping[str, Mapping[str, Callable[[str, Path], str]]] = {
    "blocks": {"path": without_paths},
    "queries": {"error": _failure},
    "settings": {"value": without_paths},
    "sinks": {"url": _address, "last_error": _failure},
    "sources": {"url": _address, "last_error": _failure},
    "tables": {"location": without_paths},
    "views": {"error": _failure},
}


def shown_rows(table: str, rows: pa.Table, folder: Path) -> pa.Table:
    """The rows of a system table as this thread's caller may see them."""
    if current().is_admin:
        return rows
    for column, shown in COLUMNS.get(table, {}).items():
        cells = [cell and shown(cell, folder) for cell in rows.column(column).to_pylist()]
        index = rows.column_names.index(column)
        rows = rows.set_column(index, rows.schema.field(index), pa.array(cells, pa.string()))
    return rows
