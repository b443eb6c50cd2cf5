"""Marks on rows that say at which of them the operator opens a window.

Owns: the marks (UpStream §6.1.3, Table 1; after Tatbul and Zdonik): OPEN at the first row of a
committed window, CLOSED at a row that starts another one, which the operator must not open, and
NOTHING elsewhere. The operator needs no window logic of its own: it folds rows into the window
it has open and emits it when the batch says that it is complete.
"""

from __future__ import annotations

import numpy as np

from headwater.engine.update_queue.window_spec import WindowSpec
from headwater.fold.columns import Slots, Vector

OPEN, CLOSED, NOTHING = 1, 0, -1


def marks_of(spec: WindowSpec, stamps: Slots, row_counts: Slots, opened: Vector) -> Vector:
    """The marks of rows that lie window by window; `opened`: windows whose first rows these are."""
    starts = stamps - (stamps - spec.origin) % spec.slide
    marks = np.full(len(stamps), NOTHING, np.int8)
    marks[np.flatnonzero(starts != np.r_[0, starts[:-1]])] = CLOSED
    begins = np.cumsum(row_counts) - row_counts
    some = row_counts > 0
    marks[begins[some & ~opened]] = CLOSED
    marks[begins[some & opened]] = OPEN
    return marks
