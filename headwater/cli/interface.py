"""What the command line asks of a database, as protocols.

The shell and its tests are written against these; `headwater.connect` returns an object that
fits. This module must never import the database itself: `headwater version` would wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class Result(Protocol):
    """What one statement gave back."""

    @property
    def kind(self) -> str:
        """A command tag such as SELECT or CREATE TABLE."""

    @property
    def notice(self) -> str | None:
        """What is worth knowing beside it."""

    @property
    def row_count(self) -> int | None:
        """Rows returned or affected, where that has a meaning."""

    @property
    def has_rows(self) -> bool:
        """Whether the statement returns rows, be it none."""

    def arrow(self) -> pa.Table:
        """The rows."""


class Database(Protocol):
    """The part of a database that the shell uses."""

    @property
    def spark_ready(self) -> bool:
        """Whether Spark has started."""

    def script(self, text: str, *, follow: bool = False) -> Iterable[Result]:
        """Runs statements separated by `;`, one result after the other."""

    def cancel(self) -> None:
        """Cancels the statements under way; called from another thread."""

    def catalog_names(self) -> Mapping[str, list[str]]:
        """The names of all objects, with their columns."""

    def close(self) -> None:
        """Closes the database."""
