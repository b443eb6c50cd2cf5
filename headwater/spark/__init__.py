"""For programs on Spark: `format("headwater")`, which reads and writes a database through its server.

Owns the registration. Stands outside the database: it is a client of `headwater serve` over HTTP, in the
program's driver and in executors, and opens no folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(session: SparkSession) -> None:
    """Makes `session.read`, `readStream`, `df.write` and `writeStream` know the format "headwater"."""
    from headwater.spark.source import HeadwaterSource

    session.dataSource.register(HeadwaterSource)
