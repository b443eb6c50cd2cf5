"""What the doctor finds on machines that are not well."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from rich.console import Console

import headwater
from headwater.cli import check_folder, check_machine, check_software, doctor
from headwater.cli.finding import Finding, ok, problem, size, warning
from headwater.storage.wal.segment import DATA_START
from tests.harness.patience import PATIENCE_S

GIB = 1 << 30


def meminfo(total: int, available: int, limit: str = "max", used: int = 0) -> dict[str, str]:
    return {
        "/proc/meminfo": f"MemTotal: {total // 1024} kB\nMemAvailable: {available // 1024} kB\n",
        "/sys/fs/cgroup/memory.max": limit,
        "/sys/fs/cgroup/memory.current": str(used),
    }


def test_python() -> None:
    assert check_software.python((3, 10, 9)).status == "problem"
    assert check_software.python((3, 11, 0)).status == "ok"


def test_wanted_versions_are_those_of_the_package() -> None:
    project = Path(check_software.__file__).parents[2] / "pyproject.toml"
    listed = tomllib.loads(project.read_text())["project"]["dependencies"]
    for name, wanted in check_software.PACKAGES.items():
        assert f"{name}{wanted}" in listed


@pytest.mark.parametrize(
    ("version", "fits"),
    [("4.3.0", True), ("4.3", True), ("4.3.9.dev1", True), ("4.2.9", False), ("4.4.0", False)],
)
def test_versions(version: str, fits: bool) -> None:
    assert check_software.satisfies(version, ">=4.3.0,<4.4") is fits
    assert (check_software.judged("pyspark", version, ">=4.3.0,<4.4").status == "ok") is fits


def test_package_that_cannot_be_imported() -> None:
    def broken(name: str) -> object:
        raise ImportError("libfoo.so is missing")

    finding = check_software.package("pyarrow", ">=20", broken)
    assert finding.status == "problem"
    assert "libfoo.so" in finding.text


def test_compiled_sqlglot() -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    assert check_software.compiled_sqlglot(absent).status == "ok"
    found = check_software.compiled_sqlglot(lambda _: "30.0")
    assert (found.status, found.advice) == ("problem", "pip uninstall sqlglotc")


@pytest.mark.usefixtures("spark_settled")
def test_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert check_software.java("headwater.kernel.nowhere").status == "problem"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = check_software.java()
    assert finding.status == "problem"
    assert "no bin/java" in finding.text
    assert "JAVA_HOME" in finding.advice


@pytest.mark.usefixtures("spark_settled")
def test_java_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java of the right version that cannot run here is found out."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    program.write_text("#!/bin/sh\necho libjvm.so is missing >&2\nexit 1\n")
    program.chmod(0o755)
    finding = check_software.java()
    assert (finding.status, finding.advice) == ("problem", "unset JAVA_HOME")
    assert "libjvm.so is missing" in finding.text
    program.chmod(0o644)
    assert "does not start" in check_software.java().text
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert check_software.java().status == "ok"


def test_class_cache(tmp_path: Path) -> None:
    assert "not used" in check_software.class_cache(tmp_path, lambda: 21).text
    assert "not made yet" in check_software.class_cache(tmp_path, lambda: 25).text
    (tmp_path / "spark.aot").write_text("")
    assert check_software.class_cache(tmp_path, lambda: 25).text == f"at {tmp_path}"


@pytest.mark.parametrize(
    ("files", "status"),
    [
        (meminfo(8 * GIB, 6 * GIB), "ok"),
        (meminfo(8 * GIB, GIB), "warning"),
        (meminfo(GIB, GIB), "problem"),
        (meminfo(64 * GIB, 60 * GIB, str(GIB), 0), "problem"),
        (meminfo(64 * GIB, 60 * GIB, str(4 * GIB), 3 * GIB), "warning"),
    ],
)
def test_memory(files: dict[str, str], status: str) -> None:
    assert check_machine.memory(files.__getitem__).status == status


def test_memory_without_proc() -> None:
    def missing(path: str) -> str:
        raise FileNotFoundError(path)

    total, available = check_machine.memory_bytes(missing)
    assert total is not None
    assert available is None


def test_shared_memory(tmp_path: Path) -> None:
    small = check_machine.shared_memory(str(tmp_path), (64 << 20, 60 << 20))
    assert small.status == "warning"
    assert "--shm-size" in small.advice
    assert check_machine.shared_memory(str(tmp_path), (4 * GIB, 2 * GIB)).status == "ok"
    assert check_machine.shared_memory(str(tmp_path / "none")).status == "ok"


def test_limits_and_clock() -> None:
    assert check_machine.threads(100).status == "warning"
    assert check_machine.threads(4096).status == "ok"
    assert check_machine.descriptors(256).status == "warning"
    assert check_machine.descriptors(1024).status == "ok"
    assert check_machine.clock(0).status == "problem"
    assert check_machine.clock(5e9).status == "problem"
    assert check_machine.clock().status == "ok"


def test_temporary_folder(tmp_path: Path) -> None:
    assert check_machine.temporary_folder(str(tmp_path / "none")).status == "problem"
    assert list(tmp_path.iterdir()) == []


def test_network() -> None:
    def refuse() -> None:
        raise OSError("no lo")

    assert check_machine.loopback().status == "ok"
    assert check_machine.loopback(refuse).status == "problem"

    def unknown(name: str) -> str:
        raise socket.gaierror("not known")

    finding = check_machine.hostname(unknown)
    assert finding.status == "warning"
    assert "SPARK_LOCAL_IP" in finding.advice


def test_slow_name_server() -> None:
    let_go = threading.Event()
    finding = check_machine.hostname(lambda _: str(let_go.wait(PATIENCE_S)), wait_s=0.01)
    let_go.set()
    assert "takes over" in finding.text


def test_whose_folder(tmp_path: Path) -> None:
    assert "will be made" in check_folder.ownership(tmp_path / "new").text
    assert "is empty" in check_folder.ownership(tmp_path).text
    (tmp_path / "photo.jpg").write_text("")
    assert check_folder.ownership(tmp_path).status == "problem"
    assert check_folder.ownership(tmp_path / "photo.jpg").status == "problem"
    (tmp_path / "catalog").mkdir()
    assert "HEADWATER is missing" in check_folder.ownership(tmp_path).text
    (tmp_path / "HEADWATER").write_text('{"format": 99}')
    newer = check_folder.ownership(tmp_path)
    assert (newer.status, newer.advice) == ("problem", "use the Headwater that wrote it")
    (tmp_path / "HEADWATER").write_text("[]")
    assert "HEADWATER is damaged" in check_folder.ownership(tmp_path).text
    (tmp_path / "HEADWATER").write_text('{"format": 2}')
    assert "is a Headwater database" in check_folder.ownership(tmp_path).text
    (tmp_path / "catalog" / "0000000001.wal").write_bytes(b"garbage")
    assert "damaged" in check_folder.ownership(tmp_path).text


KINDS = {
    "catalog": "catalog/0*.wal",
    "log": "wal/0*.wal",
    "Delta log": "tables/r-*/_delta_log/*1.json",
    "rows": "tables/s-*/*.parquet",
    "a view's table": "views/*.parquet",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every kind that is not made again from others."""
    folder = tmp_path_factory.mktemp("sound") / "data"
    with headwater.connect(folder, settings={"eager_spark": False}) as db:
        db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
        db.sql("CREATE TABLE s (k INT, name STRING)")
        db.sql("INSERT INTO s VALUES (1, 'ann'), (2, 'bob')")
        db.sql("CREATE VIEW v AS SELECT name, count(*) AS n FROM r JOIN s USING (k) GROUP BY name")
        for second in range(3):
            db.insert("r", [(second, 1)])
    return folder


def test_sound_files(sound: Path) -> None:
    finding = check_folder.files(sound)
    assert (finding.status, finding.text) == ("ok", "5 logs and all rows of 3 files are as written")
    assert check_folder.files(sound / "new").text == "none yet"


def test_files_too_large_to_be_read(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those the footers are looked at, unless every row is asked for."""
    monkeypatch.setattr(check_folder, "READ_BYTES", 1)
    assert "the footers of 3 files" in check_folder.files(sound).text
    assert "all rows of 3 files" in check_folder.files(sound, read_all=True).text


@pytest.mark.parametrize("kind", KINDS)
def test_one_changed_byte(kind: str, sound: Path, tmp_path: Path) -> None:
    """The doctor names the file, and opening the folder or asking says the same."""
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    (path,) = folder.glob(KINDS[kind])
    whole = path.read_bytes()
    place = DATA_START + 40 if path.suffix == ".wal" else len(whole) // 3
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    finding = check_folder.files(folder)
    assert (finding.status, str(path) in finding.text) == ("problem", True), finding
    assert "copy" in finding.advice


def test_a_missing_file(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    (path,) = folder.glob(KINDS["rows"])
    path.unlink()
    finding = check_folder.files(folder)
    assert (finding.status, str(path) in finding.text) == ("problem", True), finding


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel's list of locks")
def test_folder_open_in_another_process(tmp_path: Path) -> None:
    assert check_folder.opened_by(tmp_path).status == "ok"
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        finding = check_folder.opened_by(tmp_path)
        other.communicate()
    assert finding.status == "problem"
    assert f"(process {other.pid})" in finding.text


def test_own_locks_do_not_count(tmp_path: Path) -> None:
    with open(tmp_path / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert check_folder.opened_by(tmp_path).status == "ok"


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    """Files of the future tell it."""
    assert check_folder.times(tmp_path / "new").status == "ok"
    (tmp_path / "HEADWATER").write_text("")
    written = (tmp_path / "HEADWATER").stat().st_mtime
    assert check_folder.times(tmp_path, written + 1).status == "ok"
    assert check_folder.times(tmp_path, written - 3600).status == "warning"


def test_disk(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    assert check_folder.disk_space(deep, 1 << 20).status == "problem"
    assert check_folder.disk_space(deep, 1 << 30).status == "warning"
    assert check_folder.disk_space(deep).status != ""
    ticks = iter([0.0, 1.0])
    assert check_folder.disk_speed(deep, lambda: next(ticks)).status == "warning"
    assert check_folder.file_locks(deep).status in ("ok", "warning")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_disk() -> None:
    assert check_folder.disk_speed(Path("/proc")).status == "problem"
    assert check_folder.file_locks(Path("/proc")).status == "problem"


def test_locks_that_do_not_exclude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert check_folder.file_locks(tmp_path).status == "problem"


def test_file_systems() -> None:
    mounts = "/dev/a / ext4 rw 0 0\nserver:/x /mnt/my\\040data nfs4 rw 0 0\n"
    assert check_folder.file_system(Path("/mnt/my data/db"), mounts) == "nfs4"
    assert check_folder.file_system(Path("/mnt/my"), mounts) == "ext4"


def test_network_file_system_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_folder, "file_system", lambda _: "nfs4")
    assert check_folder.file_locks(tmp_path).status == "warning"


def test_a_check_that_breaks_is_a_finding() -> None:
    def broken() -> Finding:
        raise RuntimeError("oops")

    first, second = doctor.examine([("x", broken), ("y", lambda: ok("y", "fine"))])
    assert (first.name, first.status) == ("x", "problem")
    assert second.status == "ok"


def test_summary_and_table() -> None:
    good, odd, bad = ok("a", "fine"), warning("b", "odd", "do"), problem("c", "bad", "mend it")
    assert "all is well" in doctor.summary([good]).plain
    assert "can run here; 1 warning" in doctor.summary([good, odd]).plain
    assert "2 problems and 1 warning" in doctor.summary([odd, bad, bad]).plain
    stream = io.StringIO()
    Console(file=stream, width=60).print(doctor.drawn([good, odd, bad]))
    text = stream.getvalue()
    assert "✓  a" in text
    assert "!  b" in text
    assert "✗  c" in text
    assert "→ mend it" in text


def test_exit_code_and_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "checks", lambda *_: [("a", lambda: warning("a", "é", "b"))])
    assert doctor.main(as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"name": "a", "status": "warning", "text": "é", "advice": "b"}
    ]
    monkeypatch.setattr(doctor, "checks", lambda *_: [("a", lambda: problem("a", "é", "b"))])
    assert doctor.main() == 1


def test_every_check_is_named_as_its_finding(tmp_path: Path) -> None:
    names = [name for name, _ in doctor.checks(str(tmp_path))]
    assert [finding.name for finding in doctor.examine(doctor.checks(str(tmp_path)))] == names
    assert len(doctor.checks(None)) == len(names) - 5
    assert os.listdir(tmp_path) == []


def test_sizes() -> None:
    assert [size(n) for n in (10, 2048, 300 << 20, 3 << 40)] == [
        "10 B",
        "2.0 KiB",
        "300 MiB",
        "3.0 TiB",
    ]
