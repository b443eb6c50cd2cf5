"""The bounds of a streaming table, as the settings say at this moment.

A table asks whenever it needs one: `SET` acts on tables that are there. What is asked for with every
insert costs little, for the bounds are made again only after some setting has changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.settings import MEBIBYTE, Settings


@dataclass(frozen=True)
class Limits:
    """Bounds of one table, from the settings."""

    block_rows: int
    block_bytes: int
    block_age_s: float
    unsealed_bytes: int
    queue_rows: int
    recent_bytes: int
    insert_timeout_s: float
    clock_ahead_s: float
    compact_files: int
    sidecar_bytes: int


class LiveLimits:
    """Gives the bounds that are in force when it is called."""

    def __init__(self, settings: Settings, block_rows: int | None = None) -> None:
        """`block_rows`: of tables whose blocks are smaller than the settings say."""
        self._settings = settings
        self._block_rows = block_rows
        self._known: tuple[int, Limits] | None = None

    def __call__(self) -> Limits:
        """The bounds now."""
        changes, known = self._settings.changes, self._known
        if known is None or known[0] != changes:
            self._known = known = (changes, self._read())
        return known[1]

    def _read(self) -> Limits:
        settings = self._settings
        return Limits(
            block_rows=self._block_rows or settings.integer("block_rows"),
            block_bytes=settings.integer("block_mb") * MEBIBYTE,
            block_age_s=settings.number("block_age_s"),
            unsealed_bytes=settings.integer("unsealed_mb") * MEBIBYTE,
            queue_rows=settings.integer("view_queue_rows"),
            recent_bytes=settings.integer("recent_mb") * MEBIBYTE,
            insert_timeout_s=settings.number("insert_timeout_s"),
            clock_ahead_s=settings.number("max_clock_ahead_s"),
            compact_files=settings.integer("compact_files"),
            sidecar_bytes=settings.integer("sidecar_mb") * MEBIBYTE,
        )
