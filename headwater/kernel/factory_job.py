"""The Spark job of a factory: one task that runs until the line to it ends.

Each factory is a job of its own, in a pool of its own: Spark counts the failures of a task over its life, and
a job that dies takes all its tasks along. Group, description and pool are what Spark's own pages show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP = "headwater-factory-{number}"


def run_factory(session: SparkSession, number: int, work: Callable[[], Iterator[int]]) -> None:
    """Runs a factory as a Spark task; returns when it has ended, raises what ended it."""
    context = session.sparkContext
    group = GROUP.format(number=number)
    context.setLocalProperty("spark.scheduler.pool", f"factory-{number}")
    context.setJobGroup(group, f"Headwater factory {number}", interruptOnCancel=True)

    def task(rows: Iterable[int]) -> Iterator[int]:
        list(rows)  # else Spark does not use the Python process for the next factory
        return work()

    context.parallelize([number], 1).setName(f"factory {number}").mapPartitions(task).collect()


def cancel_factory(session: SparkSession, number: int) -> None:
    """Ends the job of a factory that does not end by itself."""
    session.sparkContext.cancelJobGroup(GROUP.format(number=number))


def packed(value: object) -> bytes:
    """A value with the code in it, as Spark sends it to its tasks; `pickle.loads` unpacks it."""
    from pyspark import cloudpickle

    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return data
