"""The tables of TPC-H, generated once by tpcgen-cli into the cache folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import installed
from benchmarks.installed import Missing

GENERATOR = "tpcgen-cli==4.0.0"
GENERATE_TIMEOUT_S = 900
STATIC = ("customer", "orders", "part", "partsupp", "supplier", "nation")
STREAM = "lineitem"


def folder(scale: float) -> Path:
    """The folder with the files of a scale factor."""
    found = installed.cache_folder() / f"tpch-{scale:g}"
    if (found / "ready").exists():
        return found
    python = installed.python_of(GENERATOR, install=True, size="40 MB")
    command = [str(python.parent / "tpcgen-cli"), "tpch", "parquet", "--quiet", "--overwrite"]
    command += ["--scale-factor", f"{scale:g}", "--output-dir", str(found)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GENERATE_TIMEOUT_S)
    if done.returncode:
        raise Missing(done.stderr.strip()[-300:] or "tpcgen-cli failed")
    (found / "ready").touch()
    return found


def table(scale: float, name: str) -> pa.Table:
    """One table, its texts as Arrow's plain strings."""
    rows = pq.read_table(folder(scale) / f"{name}.parquet")
    return rows.cast(pa.schema([pa.field(f.name, _plain(f.type)) for f in rows.schema]))


def _plain(type_: pa.DataType) -> pa.DataType:
    return pa.string() if type_ == pa.string_view() else type_


def ddl(schema: pa.Schema) -> str:
    """The columns as SQL has them."""
    return ", ".join(f"{field.name} {_sql(field.type)}" for field in schema)


def _sql(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return {"int64": "BIGINT", "int32": "INT", "string": "STRING", "date32[day]": "DATE"}[
        str(type_)
    ]
