"""`json:folder`: files of JSON lines. Columns go by name."""

from __future__ import annotations

import pyarrow as pa

from headwater.sources.files import FileKind
from headwater.sources.runner import SourceFeed


class Json(FileKind):
    """JSON files; a line that does not parse stops the source unless `mode` says otherwise."""

    format = "json"
    defaults = {"mode": "FAILFAST"}  # noqa: RUF012

    def columns(self, feed: SourceFeed) -> pa.Schema:
        """The table's columns."""
        return feed.table.definition.schema
