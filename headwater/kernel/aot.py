"""Keeps a cache of loaded and linked Java classes, so that Spark starts in half the time.

Java 25 can record what a run loads (`-XX:AOTCacheOutput`) and start the next one from the record
(`-XX:AOTCache`). The record is made by a separate process of low priority, once, in the
background, and is named after everything it must match: the Java, its flags and the jars. A
record that does not match is ignored by Java, never wrong. Decision note: docs/decisions/0002-java.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from headwater.kernel.cache import cache_folder
from headwater.kernel.gateway import class_path, java_flags, start_gateway
from headwater.kernel.java import Java

OLDEST_JAVA_WITH_CACHE = 25
KEPT_CACHES = 2
QUIET = "-Xlog:disable"  # Java warns on standard output about classes that it leaves out


def _folder() -> Path:
    return cache_folder("aot")


def _file(java: Java, memory_mb: int) -> Path:
    """The cache's file, named after the Java, its flags and every jar."""
    parts = [java.full_version, str(java.home), *java_flags(java, memory_mb), *class_path()]
    for entry in class_path():
        if entry.endswith("*"):
            for jar in sorted(Path(entry).parent.glob("*.jar")):
                state = jar.stat()
                parts.append(f"{jar.name} {state.st_size} {int(state.st_mtime)}")
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
    return _folder() / f"{name}.aot"


def flags(java: Java, memory_mb: int) -> tuple[str, ...]:
    """The flags that start Java from the cache, or none if there is no cache for it."""
    if java.version < OLDEST_JAVA_WITH_CACHE:
        return ()
    file = _file(java, memory_mb)
    return (f"-XX:AOTCache={file}", QUIET) if file.exists() else ()


def train_in_background(java: Java, memory_mb: int) -> None:
    """Starts the process that makes the cache; it outlives this one and runs once at a time."""
    if java.version < OLDEST_JAVA_WITH_CACHE:
        return
    spec = json.dumps({"memory_mb": memory_mb})
    with contextlib.suppress(OSError):  # no cache is slower, not wrong
        subprocess.Popen(
            [sys.executable, "-m", "headwater.kernel.aot", spec],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )


def train(java: Java, memory_mb: int) -> Path | None:
    """Runs a typical first minute of Spark and keeps what it loaded; None if another does so."""
    with open(_folder() / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        file = _file(java, memory_mb)
        if file.exists():
            return file
        fresh = file.with_suffix(f".{os.getpid()}.part")
        try:
            _record(java, memory_mb, fresh)
            fresh.rename(file)
        finally:
            fresh.unlink(missing_ok=True)
            Path(f"{fresh}.config").unlink(missing_ok=True)
        _remove_old(file)
        return file


def _record(java: Java, memory_mb: int, fresh: Path) -> None:
    from headwater.kernel.spark_settings import spark_settings
    from headwater.settings import Settings

    settings = Settings({"master": "local[*]"}, environment={})
    confs = spark_settings(settings)
    gateway = start_gateway(
        java,
        memory_mb=memory_mb,
        master="local[*]",
        spark_settings=confs,
        extra_flags=(f"-XX:AOTCacheOutput={fresh}", QUIET),
    )
    try:
        gateway.wait_until_listening(120)
        with gateway.announced():
            from pyspark.sql import SparkSession

            session = SparkSession.builder.getOrCreate()
        _typical_work(session, gateway.folder)
        session.stop()
    finally:
        gateway.stop(patience_s=300)  # Java writes the cache when it ends


def _typical_work(session, folder: Path) -> None:  # type: ignore[no-untyped-def]
    """What a first session does: read Parquet, join, group, sort, write, return Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.table({"k": list(range(100)), "v": [i * 0.5 for i in range(100)], "s": ["x"] * 100})
    pq.write_table(rows, folder / "t.parquet")
    for _ in range(3):
        frame = session.read.schema("k BIGINT, v DOUBLE, s STRING").parquet(
            str(folder / "t.parquet")
        )
        frame.createOrReplaceTempView("t")
        session.sql("SELECT k, v FROM t WHERE k > 5 ORDER BY v LIMIT 3").toArrow()
        session.sql(
            "SELECT a.s, sum(a.v) AS v, count(*) AS n FROM t a JOIN t b ON a.k = b.k "
            "GROUP BY a.s HAVING count(*) > 1 ORDER BY v"
        ).toArrow()
        session.sql("SELECT * FROM t").write.mode("overwrite").parquet(str(folder / "out"))


def _remove_old(newest: Path) -> None:
    files = sorted(_folder().glob("*.aot"), key=lambda f: f.stat().st_mtime, reverse=True)
    for file in files[KEPT_CACHES:]:
        if file != newest:
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    from headwater.kernel.java import find_java

    os.nice(19)
    train(find_java(), int(json.loads(sys.argv[1])["memory_mb"]))
