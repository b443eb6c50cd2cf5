"""How large each experiment is: the paper's sizes, and fewer and smaller ones for `--quick`."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.ecq.ours import Work
from benchmarks.ecq.queries import Query


@dataclass(frozen=True)
class Sizes:
    """One set of sizes. The first chunks are not counted: the engine tries its modes on them."""

    chunk_sizes: tuple[int, ...]  # of Fig. 7
    chunks: int
    warm_up: int
    slow_chunks: int  # of what runs on Spark, and of peers
    slow_warm_up: int
    many_size: int  # of Fig. 6
    many_chunks: int
    spark_sizes: tuple[int, ...]  # chunks that are folded on Spark too
    plain_sizes: tuple[int, ...]  # chunks that plain Spark SQL is asked about

    def ours(self, query: Query, size: int) -> Work:
        """Of the long-lived query."""
        return Work(query, size, self.chunks, self.warm_up)

    def on_spark(self, query: Query, size: int) -> Work:
        """Of the long-lived query where all its work is Spark's."""
        return Work(query, size, self.slow_chunks, self.warm_up)

    def peer(self, query: Query, size: int) -> Work:
        """Of one-time queries, which settle sooner."""
        return Work(query, size, self.slow_chunks, self.slow_warm_up)


QUICK = Sizes(
    chunk_sizes=(10_000, 100_000),
    chunks=10,
    warm_up=17,
    slow_chunks=5,
    slow_warm_up=2,
    many_size=10_000,
    many_chunks=6,
    spark_sizes=(100_000,),
    plain_sizes=(100_000,),
)

FULL = Sizes(
    chunk_sizes=(10_000, 25_000, 50_000, 75_000, 100_000),
    chunks=60,
    warm_up=40,
    slow_chunks=15,
    slow_warm_up=5,
    many_size=50_000,
    many_chunks=60,
    spark_sizes=(10_000, 50_000, 100_000),
    plain_sizes=(10_000, 100_000),
)
