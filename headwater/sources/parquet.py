"""`parquet:folder`: Parquet files. Columns go by name."""

from __future__ import annotations

import pyarrow as pa

from headwater.sources.files import FileKind
from headwater.sources.runner import SourceFeed


class Parquet(FileKind):
    """Parquet files."""

    format = "parquet"
    defaults = {}  # noqa: RUF012

    def columns(self, feed: SourceFeed) -> pa.Schema:
        """The table's columns."""
        return feed.table.definition.schema
