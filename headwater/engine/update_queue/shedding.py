"""Random load shedding: an append queue that keeps each row with a given probability (US7).

The baseline to beat: it bounds the queue, but does not prefer the newest rows. A shed row has
arrived and no result shows it, so its key is stale until a later row is delivered.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.engine.update_queue.append import Append
from headwater.engine.update_queue.discipline import QueueArrivals
from headwater.fold.columns import Vector


class Shedding(Append):
    """Drops a fraction of the rows on arrival; the generator is passed in."""

    name = "shedding"

    def __init__(self, schema: pa.Schema, fraction: float, random: np.random.Generator) -> None:
        if not 0 <= fraction <= 1:
            raise ValueError("the fraction of rows to shed is between 0 and 1")
        super().__init__(schema)
        self._fraction = fraction
        self._random = random

    def keep(self, given: QueueArrivals) -> Vector | None:
        return self._random.random(len(given)) >= self._fraction
