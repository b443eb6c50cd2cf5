"""Checks of `headwater doctor`: variables, other software and ports that get in the way.

What can fail is a parameter, so that tests can make it fail. Programs that are asked for their
version have a few seconds to answer.
"""

from __future__ import annotations

import errno
import locale
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from headwater.cli.finding import Finding, ok, problem, warning

ANSWER_WAIT_S = 10.0
PORTS = {5433: "--port", 8080: "--http-port"}
"""Where `headwater serve` listens unless told otherwise, and the option that tells it."""
PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
HERE = ("localhost", "127.0.0.1")


def other_spark(
    environment: Mapping[str, str] = os.environ,
    version_of: Callable[[str], str] = metadata.version,
) -> Finding:
    """SPARK_HOME does not lead to another Spark than the one that Headwater speaks to."""
    name, given = "SPARK_HOME", environment.get("SPARK_HOME")
    if not given:
        return ok(name, "not set: the Spark of pyspark runs")
    jars = sorted((Path(given) / "jars").glob("spark-core_*.jar"))
    if not jars:
        return ok(name, f"{given} holds no Spark: that of pyspark runs")
    found = re.search(r"spark-core_[\d.]+-(\d+\.\d+)", jars[0].name)
    wanted = ".".join(version_of("pyspark").split(".")[:2])
    if found is None or found.group(1) != wanted:
        shown = found.group(1) if found else jars[0].name
        return problem(name, f"{given} is Spark {shown}, {wanted} is needed", "unset SPARK_HOME")
    return ok(name, f"{given}, Spark {wanted}")


def spark_python(environment: Mapping[str, str] = os.environ) -> Finding:
    """Spark runs Python functions with the same Python as this one."""
    name, given = "PYSPARK_PYTHON", environment.get("PYSPARK_PYTHON")
    if not given:
        return ok(name, "not set: this Python runs functions")
    try:
        version = _answer([given, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    except OSError as error:
        return problem(name, f"{given} does not run: {error}", "unset PYSPARK_PYTHON")
    here = ".".join(map(str, sys.version_info[:2]))
    if version.strip() != here:
        text = f"{given} is Python {version.strip() or '?'}, this is {here}"
        return problem(name, text, "unset PYSPARK_PYTHON")
    return ok(name, f"{given}, Python {here}")


def _answer(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_WAIT_S)
    except subprocess.TimeoutExpired as error:
        raise OSError(errno.ETIMEDOUT, f"no answer within {ANSWER_WAIT_S:g} s") from error
    return done.stdout


def proxies(environment: Mapping[str, str] = os.environ) -> Finding:
    """Requests to this machine are not sent to a proxy."""
    given = next((name for name in PROXIES if environment.get(name)), None)
    if given is None:
        return ok("proxy", "none is set")
    direct = ",".join(environment.get(name, "") for name in ("no_proxy", "NO_PROXY"))
    if "*" in direct or all(host in direct.split(",") for host in HERE):
        return ok("proxy", f"{given} is set, but not for this machine")
    return warning(
        "proxy",
        f"{given} is set, so clients may look for 127.0.0.1 behind {environment[given]}",
        f"export no_proxy={','.join(HERE)}",
    )


def encoding(name: str | None = None) -> Finding:
    """Text is UTF-8: in files, on the terminal and in arguments."""
    shown = locale.getencoding() if name is None and not sys.flags.utf8_mode else name or "utf-8"
    if shown.lower().replace("-", "") not in ("utf8", "cp65001"):
        return warning(
            "text", f"the locale's encoding is {shown}", "export LANG=C.UTF-8, or PYTHONUTF8=1"
        )
    return ok("text", shown)


def ports(listed: Mapping[int, str] | None = None) -> Finding:
    """`headwater serve` can have its ports."""
    taken, wanted = [], PORTS if listed is None else listed
    for port, option in wanted.items():
        try:
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(("127.0.0.1", port))
        except OSError as error:
            taken.append((port, option, error.strerror or str(error)))
    if not taken:
        return ok("ports", f"{' and '.join(map(str, wanted))} are free for headwater serve")
    text = "; ".join(f"{port}: {why}" for port, _, why in taken)
    options = " ".join(f"{option} {port + 1}" for port, option, _ in taken)
    return warning("ports", text, f"headwater serve … {options}")
