"""A query or view that another host answers: what is left of it here, and what the others need of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from headwater.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.engine.change_record import FollowedChanges
    from headwater.engine.halting import Ends
    from headwater.engine.split_view import PartRows, ViewPart
    from headwater.engine.update_query import UpdateQuery
    from headwater.engine.view import ContinuousView
    from headwater.engine.view_versions import Version

HERE = "here"


class HostGone(Error):
    """The host has ended; what it had is answered by another one soon."""


class Elsewhere(Protocol):
    """The host that answers a query in the place of this process."""

    name: str

    def read_view(self, view: ContinuousView) -> Version:
        """The view over every row acknowledged before the call."""

    def find_in_view(self, view: ContinuousView, keys: pa.Table) -> pa.Table | None:
        """The rows of one key of a view; None if it has to be read whole."""

    def halt_part(self, part: ViewPart, reader: int) -> Callable[[], Ends | None]:
        """A part of a view folds no further: what is given waits for how far it has come."""

    def read_part(
        self, part: ViewPart, reader: int, ends: Ends, instant: int
    ) -> Callable[[], PartRows | None]:
        """A halted part folds to there and goes on: what is given waits for its rows."""

    def part_goes_on(self, part: ViewPart, reader: int) -> None:
        """A halted part folds on: its reader does not come back."""

    def follow_view(self, view: ContinuousView, mark: str | None) -> FollowedChanges:
        """What has changed in a view since a mark."""

    def wait_there(self) -> None:
        """Returns once the host has the query, or never will: a move waits for firings, they for readers."""

    def wait_gone(self) -> None:
        """After HostGone: returns once the query is answered by another host."""

    def explain(self, analyze: bool) -> list[str]:
        """The plan of a query as it runs, and what it has done."""

    def rows_of(self, table: str) -> list[dict[str, Any]]:
        """What a system table says about the queries of this host."""

    def newest_results(self, query: UpdateQuery) -> pa.Table:
        """The newest result of each key of an update query."""


def host_of(elsewhere: Elsewhere | None) -> str:
    """What a host is called."""
    return HERE if elsewhere is None else elsewhere.name
