"""The class cache: its name follows everything it must match."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.kernel import aot, gateway
from headwater.kernel.java import Java

pytestmark = pytest.mark.usefixtures("spark_settled")

JAVA = Java(Path("/java"), 25, "25.0.2", "bundled")


@pytest.fixture(autouse=True)
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "a.jar").write_text("one")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "spark"


def test_the_same_start_has_the_same_cache() -> None:
    assert aot._file(JAVA, 1024) == aot._file(JAVA, 1024)


def test_flags_java_and_jars_change_the_name(
    spark_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {aot._file(JAVA, 1024), aot._file(JAVA, 2048)}
    names.add(aot._file(Java(Path("/java"), 25, "25.0.3", "bundled"), 1024))
    names.add(aot._file(Java(Path("/other"), 25, "25.0.2", "JAVA_HOME"), 1024))
    (spark_home / "jars" / "a.jar").write_text("another")
    names.add(aot._file(JAVA, 1024))
    (spark_home / "jars" / "b.jar").write_text("")
    names.add(aot._file(JAVA, 1024))
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    names.add(aot._file(JAVA, 1024))
    monkeypatch.setattr(gateway, "OPENED_PACKAGES", ["java.lang"])
    names.add(aot._file(JAVA, 1024))
    assert len(names) == 8


def test_flags_only_when_the_cache_is_there() -> None:
    assert aot.flags(JAVA, 1024) == ()
    file = aot._file(JAVA, 1024)
    file.write_bytes(b"")
    assert f"-XX:AOTCache={file}" in aot.flags(JAVA, 1024)
    assert aot.flags(JAVA, 2048) == ()


def test_an_older_java_has_no_cache() -> None:
    old = Java(Path("/java"), 21, "21", "system")
    aot._file(old, 1024).write_bytes(b"")
    assert aot.flags(old, 1024) == ()
    aot.train_in_background(old, 1024)  # starts nothing


def test_old_caches_are_removed() -> None:
    folder = aot._folder()
    for number in range(5):
        (folder / f"{number}.aot").write_bytes(b"")
    newest = folder / "newest.aot"
    newest.write_bytes(b"")
    aot._remove_old(newest)
    assert newest.exists()
    assert len(list(folder.glob("*.aot"))) <= aot.KEPT_CACHES + 1


def test_one_training_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    inner: list[object] = []

    def record(java: Java, memory_mb: int, fresh: Path) -> None:
        inner.append(aot.train(java, memory_mb))  # the lock is held
        fresh.write_bytes(b"cache")

    monkeypatch.setattr(aot, "_record", record)
    file = aot.train(JAVA, 1024)
    assert file is not None
    assert file.read_bytes() == b"cache"
    assert inner == [None]
    assert aot.train(JAVA, 1024) == file
    assert len(inner) == 1


def test_a_failed_training_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def record(java: Java, memory_mb: int, fresh: Path) -> None:
        fresh.write_bytes(b"half")
        raise RuntimeError("Java ended")

    monkeypatch.setattr(aot, "_record", record)
    with pytest.raises(RuntimeError):
        aot.train(JAVA, 1024)
    assert [f.name for f in aot._folder().iterdir()] == ["lock"]
