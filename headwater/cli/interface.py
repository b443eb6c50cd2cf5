"""What the command line asks of a database, as protocols.

The shell and its tests are written against these; `headwater.connect` returns an object that
fits. This module must never import the database itself: `headwater version` would wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class ResultLike(Protocol):
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


class RelationLike(Protocol):
    """What stands in FROM."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def kind(self) -> str:
        """Such as table, streaming table, view, continuous query."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns; none where only Spark knows them."""

    @property
    def text(self) -> str | None:
        """The query that a view or a continuous query was made of."""


class DatabaseLike(Protocol):
    """The part of a database that the shell uses."""

    @property
    def spark_ready(self) -> bool:
        """Whether Spark has started."""

    def script(self, text: str, *, follow: bool = False) -> Iterable[ResultLike]:
        """Runs statements separated by `;`, one result after the other."""

    def cancel(self) -> None:
        """Cancels the statements under way; called from another thread."""

    def catalog_names(self) -> Mapping[str, list[str]]:
        """The names of all objects, with their columns."""

    def relations(self) -> Sequence[RelationLike]:
        """What stands in FROM."""

    def relation(self, name: str) -> RelationLike | None:
        """The table, view or query of that name."""

    def close(self) -> None:
        """Closes the database."""
