"""Carries out plain scans over Arrow tables and Parquet files, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from headwater.errors import DataError, StorageError
from headwater.expression.predicate import And, Predicate, columns_of, compares_floats, conjuncts
from headwater.plan.scan import OrderBy, ScanPlan, Total, whole
from headwater.storage.footer import check_footers

# Damage inside a page is an error, not a wrong row; kernel/spark_settings.py asks the same of Spark.
CHECKED_PARQUET = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


def scan_table(plan: ScanPlan, table: pa.Table) -> pa.Table:
    """The scan over rows in memory."""
    if plan.predicate is not None:
        table = table.filter(plan.predicate.arrow())
    return finish(plan, table)


def scan_files(plan: ScanPlan, files: Sequence[str], schema: pa.Schema) -> pa.Table:
    """The scan over Parquet files."""
    if not files:
        return scan_table(plan, schema.empty_table())
    pushed, kept = split_for_files(plan.predicate)
    needed = plan.needed if kept is None else plan.needed | columns_of(kept)
    names = [name for name in schema.names if name in needed]
    predicate = None if pushed is None else pushed.arrow()
    check_footers(files)
    try:
        dataset = ds.dataset(list(files), schema=schema, format=CHECKED_PARQUET)
        if plan.limit is not None and not plan.order and kept is None:
            table = dataset.head(plan.limit, columns=names, filter=predicate)
        else:
            table = dataset.to_table(columns=names, filter=predicate)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            "a file of the table cannot be read",
            sqlstate="XX001",
            detail=f"{_unreadable(files)}: {str(error).splitlines()[0]}",
            hint="restore the file from a copy",
        ) from error
    return finish(plan, table if kept is None else table.filter(kept.arrow()))


def scan_rows(files: Sequence[str], schema: pa.Schema) -> pa.Table:
    """All rows of Parquet files."""
    return scan_files(whole(schema), files, schema)


def _unreadable(files: Sequence[str]) -> str:
    """The first file that cannot be read; Arrow's errors do not always name it."""
    for file in files:
        try:
            pq.read_table(file, page_checksum_verification=True)
        except (OSError, pa.ArrowException):
            return file
    return "one of the files"


def split_for_files(predicate: Predicate | None) -> tuple[Predicate | None, Predicate | None]:
    """What Arrow may use to skip parts of files by their bounds, and what only rows can tell.

    Bounds leave out NaN: Arrow would skip rows that the predicate takes.
    """
    parts = tuple(conjuncts(predicate))
    pushed = tuple(part for part in parts if not compares_floats(part))
    kept = tuple(part for part in parts if compares_floats(part))
    return And(pushed) if pushed else None, And(kept) if kept else None


def finish(plan: ScanPlan, table: pa.Table) -> pa.Table:
    """Order, limit, columns and their names, or the sum, after the rows have been selected."""
    if plan.total is not None:
        [(column, _)] = plan.columns
        return pa.table([[total_of(plan.total, table.column(column))]], schema=plan.schema)
    if plan.order:
        table = table.take(sorted_rows(table, plan.order))
    if plan.limit is not None:
        table = table.slice(0, plan.limit)
    arrays = [table.column(column) for column, _ in plan.columns]
    return pa.Table.from_arrays(arrays, schema=plan.schema)


def total_of(total: Total, values: pa.ChunkedArray) -> int | None:
    """The sum of whole numbers, exactly; an error where it is no BIGINT, as in Spark."""
    some = values.drop_null().cast(pa.int64()).to_numpy()
    if not len(some):
        return total.of_nothing
    # Halves of 32 bits cannot overflow while they are added.
    found = (int((some >> 32).sum()) << 32) + int((some & 0xFFFFFFFF).sum())
    if not -(1 << 63) <= found < 1 << 63:
        raise DataError("the sum is too large for BIGINT", sqlstate="22003")
    return found


def sorted_rows(table: pa.Table, order: Sequence[OrderBy]) -> pa.Array:
    """Row numbers in the order; NULL is smaller than any value, as in Spark; stable."""
    keys: dict[str, Any] = {}
    directions: list[Any] = []
    for index, by in enumerate(order):
        column = table.column(by.column)
        direction = "descending" if by.descending else "ascending"
        keys[f"n{index}"] = pc.is_valid(column)
        keys[f"v{index}"] = column
        directions += [(f"n{index}", direction), (f"v{index}", direction)]
    keys["row"] = pa.array(range(table.num_rows), pa.int64())
    directions.append(("row", "ascending"))
    return pc.sort_indices(pa.table(keys), sort_keys=directions)
