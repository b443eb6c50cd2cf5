"""Rows on their way to a client, in parts of a bounded size.

Owns what of a result was not sent yet. Must never hold more of it encoded than one part.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.server.wire.copying import slices

PART_BYTES = 512 << 10  # of Arrow, which are encoded and sent together


class RowSource:
    """The rows of a result, or of a subscription that never ends, as they are taken."""

    def __init__(self, schema: pa.Schema, pieces: Iterator[pa.Table]) -> None:
        self.schema = schema
        self._pieces = pieces
        self._rest: pa.Table | None = None

    def parts(self, limit: int = 0) -> Iterator[pa.Table]:
        """Parts of at most `limit` rows in all (0: all rows)."""
        left = limit or None
        while left is None or left:
            piece = self._rest if self._rest is not None else next(self._pieces, None)
            self._rest = None
            if piece is None:
                return
            if left is not None and piece.num_rows > left:
                piece, self._rest = piece.slice(0, left), piece.slice(left)
            if left is not None:
                left -= piece.num_rows
            yield from slices(piece, PART_BYTES)

    def promised(self, schema: pa.Schema) -> RowSource:
        """The same rows in the types that a client was told of before they were there."""
        if schema.types == self.schema.types:
            return self
        return RowSource(schema, (_as_promised(piece, schema) for piece in self._pieces))


def _as_promised(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    try:
        return piece.rename_columns(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise NotSupportedError(
            "the columns of the result are not those that were described",
            detail=str(error).splitlines()[0],
            hint="prepare the statement again",
        ) from error


def of_table(table: pa.Table) -> RowSource:
    """The rows of a table that is there."""
    return RowSource(table.schema, iter([table]))
