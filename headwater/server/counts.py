"""How much clients have asked for, sent and got: the numbers of `headwater.metrics` about serving.

Owns nothing that waits: a `Counts` belongs to one connection, whose statements follow each other, so that
counting needs no lock; what connections that have ended did is added up by their listener.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.result import Result


@dataclass
class Counts:
    """Statements, rows that clients added, and rows that they were sent."""

    statements: int = 0
    rows_in: int = 0
    rows_out: int = 0

    def add(self, other: Counts) -> None:
        """Takes in what another has counted."""
        self.statements += other.statements
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out


def of_result(result: Result) -> Counts:
    """One statement, and the rows that it returned or inserted."""
    count = result.row_count or 0
    if result.has_rows:
        return Counts(1, 0, count)
    return Counts(1, count if result.kind == "INSERT" else 0)
