"""The write-ahead log: what is acknowledged is on disk. Knows no tables, no SQL, no Spark."""

from headwater.storage.wal.follow import LogFollower
from headwater.storage.wal.log import LogState, WriteAheadLog, check_log, peek
from headwater.storage.wal.queue import Hook, Ticket
from headwater.storage.wal.record import Record

__all__ = [
    "Hook",
    "LogFollower",
    "LogState",
    "Record",
    "Ticket",
    "WriteAheadLog",
    "check_log",
    "peek",
]
