"""Starts the Java process under PySpark, and ends it.

PySpark would start a shell script, a first JVM that prints a command, and then the JVM that
matters. We start that last one ourselves with the same flags (those of Spark's JavaModuleOptions)
and tell PySpark where it listens, through the two environment variables that PySpark reads for
this purpose. It saves a JVM start, and lets the class cache apply to the right process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import KernelError
from headwater.kernel.cache import remove_scratch, scratch_folder
from headwater.kernel.java import Java, spark_java_home

OPENED_PACKAGES = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.util.calendar",
]
SHORT_OF_MEMORY = (
    "Could not reserve enough space",
    "Cannot allocate memory",
    "insufficient memory",
    "Too small maximum heap",
    "Invalid maximum heap",
)
SPARK_USER = "headwater"  # what current_user says, in place of the system's user
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


def spark_home() -> Path:
    """The Spark whose jars run: `SPARK_HOME` if it is set, else the pyspark package."""
    given = os.environ.get("SPARK_HOME")
    if given and (Path(given) / "jars").is_dir():
        return Path(given)
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise KernelError("pyspark is not installed", hint="pip install headwater again")
    return Path(spec.origin).parent


def java_flags(java: Java, memory_mb: int) -> list[str]:
    """The flags of the JVM; the class cache is only good for the same ones."""
    flags = [f"-Xmx{memory_mb}m", "-Xss4m", "-XX:+UseParallelGC", "-XX:-UsePerfData"]
    flags += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_PACKAGES]
    flags.append("--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED")
    flags += ["-Dio.netty.tryReflectionSetAccessible=true", "-Dio.netty.allocator.type=pooled"]
    if java.version < 24:
        flags.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    if java.version >= 22:
        flags.append("--enable-native-access=ALL-UNNAMED")
    if java.version >= 23:
        flags.append("--sun-misc-unsafe-memory-access=allow")
    return flags


def class_path() -> list[str]:
    """Folders and jars of the JVM, configuration first."""
    home = spark_home()
    folders = [os.environ.get("SPARK_CONF_DIR") or str(home / "conf")]
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        if os.environ.get(name):
            folders.append(os.environ[name])
    return [*folders, str(home / "jars" / "*")]


@dataclass
class Gateway:
    """A running Java process that PySpark can connect to."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int = 0
    secret: str = ""

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self.folder / "spark.log"

    def wait_until_listening(self, timeout_s: float) -> None:
        """Waits for the port and secret; KernelError if the process dies or takes too long."""
        info = self.folder / "gateway"
        until = time.monotonic() + timeout_s
        while not info.exists():
            if self.process.poll() is not None:
                raise self.failure("the Java process for Spark ended at once")
            if time.monotonic() > until:
                raise self.failure(f"the Java process did not answer within {timeout_s:g} s")
            time.sleep(0.005)
        data = info.read_bytes()
        while len(data) < 8 or len(data) < 8 + struct.unpack("!i", data[4:8])[0]:
            time.sleep(0.005)
            data = info.read_bytes()
        self.port, length = struct.unpack("!ii", data[:8])
        self.secret = data[8 : 8 + length].decode()

    def last_error(self) -> str | None:
        """The last error that the process printed, in one line."""
        try:
            printed = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return None
        errors = [line for line in printed if " ERROR " in line or "OutOfMemoryError" in line]
        return errors[-1].partition(" ERROR ")[2].strip() or errors[-1] if errors else None

    def failure(self, message: str) -> KernelError:
        """An error with what the process printed last, and what to do about it."""
        try:
            printed = self.log.read_text(errors="replace").strip()
        except OSError:
            printed = ""
        last = "\n".join(line for line in printed.splitlines()[-4:])
        if any(words in printed for words in SHORT_OF_MEMORY):
            return KernelError(
                "there is not enough memory to start Spark",
                sqlstate="53200",
                detail=last or None,
                hint="set driver_memory_mb to what the machine can give, or free some memory",
            )
        return KernelError(message, detail=last or None, hint="headwater doctor checks the machine")

    @contextlib.contextmanager
    def announced(self) -> Iterator[None]:
        """While inside, PySpark connects to this process instead of starting its own."""
        names = {
            "PYSPARK_GATEWAY_PORT": str(self.port),
            "PYSPARK_GATEWAY_SECRET": self.secret,
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        }
        before = {name: os.environ.get(name) for name in names}
        os.environ.update(names)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def stop(self, patience_s: float = 0.0) -> None:
        """Ends the process: its standard input closes, and after the patience it is killed."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        remove_scratch(self.folder)


def start_gateway(
    java: Java,
    *,
    memory_mb: int,
    master: str,
    spark_settings: Mapping[str, str],
    extra_flags: tuple[str, ...] = (),
) -> Gateway:
    """Starts the Java process; returns at once, without waiting for it to listen."""
    folder = scratch_folder(Path(tempfile.gettempdir()))
    home = spark_home()
    environment = dict(os.environ)
    environment |= {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "gateway"),
        "SPARK_CONNECT_MODE": "0",
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(spark_java_home(java)),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    if master.startswith("local"):
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setdefault("SPARK_USER", SPARK_USER)
    command = [
        str(java.executable),
        *extra_flags,
        *java_flags(java, memory_mb),
        f"-Dlog4j2.configurationFile={LOG_SETTINGS}",
        f"-Djava.io.tmpdir={folder}",
        "-Djavax.xml.accessExternalDTD=",  # no XML that anybody brings may name files or addresses
        "-cp",
        os.pathsep.join(class_path()),
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        master,
    ]
    for name, value in spark_settings.items():
        command += ["--conf", f"{name}={value}"]
    with open(folder / "spark.log", "wb") as log:
        process = subprocess.Popen(
            [*command, "pyspark-shell"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            umask=0o077,  # what Spark and its Python workers write is the owner's alone
            process_group=0,  # Ctrl-C cancels a statement, not the kernel
        )
    return Gateway(process, folder)
