"""What an operator is: changes in, changes out, with a state that can be put away.

Columns that an operator looks at (keys, arguments, order) are columns of its input, by name: whatever is more
than a column is projected below it. Each operator is told whether its inputs may take rows back, and says
whether its output may: where rows only come, less has to be kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.operators.changes import Changes, nothing
from headwater.operators.spilled_keys import SpilledKeys


class Operator(ABC):
    """One step of a circuit."""

    name: str  # as EXPLAIN shows it
    schema: pa.Schema  # of what comes out
    takes_back: bool  # whether rows that came out may be taken back

    @abstractmethod
    def apply(self, *inputs: Changes) -> Changes:
        """The changes of the output that changes of the inputs make; all inputs at once."""

    def begin(self) -> Changes:
        """What comes out before anything came in: the row of a grouping without keys, say."""
        return nothing(self.schema)

    @property
    def nbytes(self) -> int:
        """How much memory the state takes."""
        return 0

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        """The parts of the state that may go to disk, each with runs of its own; none: it stays in memory."""
        return ()

    def spill(self) -> None:  # noqa: B027
        """All that may go to disk does, unless it is needed soon."""

    def state(self) -> dict[str, Any]:
        """What a snapshot needs; runs are kept by whoever has them."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027
        """Go back to a snapshot."""
