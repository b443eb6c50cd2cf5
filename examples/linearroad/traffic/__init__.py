"""The traffic of the Linear Road benchmark, simulated.

One stream holds reports of all types; every column is a 32-bit whole number, −1 where a type has no
such value:

    type   0 position report, 2 account balance request, 3 daily expenditure request
    time   seconds since the start of the simulation: T; one batch, and one punctuation, a second
    vid    the car; it reports at the seconds that leave the same rest as vid when divided by 30
    speed  miles per hour, 0 to 100: the average since the car's last report
    xway   expressway, 0 to L − 1 (type 3: the one asked about)
    lane   0 entry ramp, 1 to 3 travel, 4 exit ramp
    dir    0 towards higher positions, 1 towards lower ones
    seg    mile, 0 to 99: pos div 5280
    pos    feet, 0 to 527 999, always a multiple of 44: one mile per hour is 44 feet in 30 seconds
    qid    number of a question (types 2 and 3), unique
    day    day asked about (type 3), 1 to 69

The rules of the benchmark, with what we chose where they leave room, are in docs/linearroad.md.
"""

from .history import historical_tolls
from .scenario import Scenario
from .stream import SCHEMA, Traffic, batches, reports

__all__ = ["SCHEMA", "Scenario", "Traffic", "batches", "historical_tolls", "reports"]
