"""Which Java is found, and the launcher that drops one argument."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headwater.errors import KernelError
from headwater.kernel import java as java_module
from headwater.kernel.java import VECTOR_MODULE, Java, find_java, spark_java_home


def fake_java(home: Path, version: str | None, *, release: bool = True) -> Path:
    """A folder that looks like a Java of a version; its program prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    said = f"echo 'openjdk version \"{version}\" 2026-01-01' >&2" if version else "exit 3"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = "-version" ]; then {said}; exit 0; fi\n'
        'for a in "$@"; do printf "%s\\n" "$a"; done\n'
    )
    program.chmod(0o755)
    if release and version:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def without_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "_bundled_home", lambda: None)


@pytest.mark.parametrize("release", [True, False])
def test_java_home_wins(tmp_path: Path, release: bool) -> None:
    home = fake_java(tmp_path / "jdk", "21.0.2", release=release)
    found = find_java({"JAVA_HOME": str(home), "PATH": ""})
    assert found == Java(home, 21, "21.0.2", "JAVA_HOME")


def test_java_home_without_a_java(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="no bin/java in it") as caught:
        find_java({"JAVA_HOME": str(tmp_path)})
    assert "unset it" in (caught.value.hint or "")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16"])
def test_an_old_java_is_refused(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "jdk", version)
    with pytest.raises(KernelError, match=f"Java {version} .* too old") as caught:
        find_java({"JAVA_HOME": str(home)})
    assert "17 or newer" in (caught.value.hint or "")


def test_a_java_that_does_not_start(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", None)
    (home / "bin" / "java").write_text("not a program")
    with pytest.raises(KernelError, match="does not start"):
        find_java({"JAVA_HOME": str(home)})


def test_the_bundled_java_is_used_before_the_systems(tmp_path: Path) -> None:
    system = fake_java(tmp_path / "jdk", "21.0.2")
    found = find_java({"PATH": str(system / "bin")})
    assert found.origin == "bundled"
    assert found.version >= 25


def test_a_system_java_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_bundled(monkeypatch)
    home = fake_java(tmp_path / "jdk", "17.0.9")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}) == Java(home, 17, "17.0.9", "system")


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_bundled(monkeypatch)
    with pytest.raises(KernelError, match="no Java was found") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "JAVA_HOME" in (caught.value.hint or "")


@pytest.mark.usefixtures("spark_settled")
def test_the_launcher_drops_exactly_one_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    java = Java(fake_java(tmp_path / "jdk", "25"), 25, "25", "bundled")
    launcher = spark_java_home(java) / "bin" / "java"
    given = [
        "-Xmx1g",
        VECTOR_MODULE,
        "two words",
        "",
        "--add-modules=java.base",
        "*",
        "$HOME",
        "a'b",
    ]
    run = subprocess.run([launcher, *given], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:-1] == [a for a in given if a != VECTOR_MODULE]
    assert spark_java_home(java) == launcher.parent.parent  # made once


def test_other_javas_need_no_launcher(tmp_path: Path) -> None:
    java = Java(tmp_path, 21, "21", "JAVA_HOME")
    assert spark_java_home(java) == tmp_path
