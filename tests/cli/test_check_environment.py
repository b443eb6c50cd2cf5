"""Variables, other software and ports that get in a new user's way: each is provoked."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from headwater.cli import check_environment, doctor

ROOT = Path(doctor.__file__).parents[2]


def test_another_spark(tmp_path: Path) -> None:
    """SPARK_HOME of another version is a problem; one without jars is passed over, as at the start."""
    jars = tmp_path / "jars"
    variables = {"SPARK_HOME": str(tmp_path)}

    def pyspark(_name: str) -> str:
        return "4.3.0"

    assert check_environment.other_spark({}, pyspark).status == "ok"
    assert "holds no Spark" in check_environment.other_spark(variables, pyspark).text
    jars.mkdir()
    (jars / "spark-core_2.12-3.5.1.jar").write_text("")
    found = check_environment.other_spark(variables, pyspark)
    assert (found.status, found.advice) == ("problem", "unset SPARK_HOME")
    assert "is Spark 3.5, 4.3 is needed" in found.text
    (jars / "spark-core_2.12-3.5.1.jar").rename(jars / "spark-core_2.13-4.3.1.jar")
    assert check_environment.other_spark(variables, pyspark).status == "ok"


def test_another_python(tmp_path: Path) -> None:
    """Spark's workers must run this Python; a program that is none, or does not run, is a problem."""
    program = tmp_path / "python3"

    def found() -> str:
        return check_environment.spark_python({"PYSPARK_PYTHON": str(program)}).text

    assert check_environment.spark_python({}).status == "ok"
    assert "does not run" in found()
    program.write_text("#!/bin/sh\necho 3.8\n")
    program.chmod(0o755)
    assert "is Python 3.8, this is" in found()
    own = check_environment.spark_python({"PYSPARK_PYTHON": sys.executable})
    assert own.status == "ok"


def test_proxies() -> None:
    """A proxy that is asked for this machine too breaks clients of headwater serve."""
    proxy = {"http_proxy": "http://proxy:3128"}
    assert check_environment.proxies({}).status == "ok"
    assert check_environment.proxies(proxy).status == "warning"
    assert check_environment.proxies(proxy | {"no_proxy": "localhost"}).status == "warning"
    assert check_environment.proxies(proxy | {"no_proxy": "localhost,127.0.0.1"}).status == "ok"
    assert check_environment.proxies(proxy | {"NO_PROXY": "*"}).status == "ok"


def test_encodings() -> None:
    """Text that is not UTF-8 is told."""
    assert check_environment.encoding("ISO-8859-1").status == "warning"
    assert check_environment.encoding("UTF-8").status == "ok"


def test_ports() -> None:
    """A port that another program has is named, with the option that takes another."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = other.getsockname()[1]
        found = check_environment.ports({port: "--port"})
    assert found.status == "warning"
    assert str(port) in found.text
    assert found.advice == f"headwater serve … --port {port + 1}"
    assert check_environment.ports({0: "--port"}).status == "ok"


def test_every_check_is_documented() -> None:
    """The page about the doctor has a row for each check."""
    page = (ROOT / "docs" / "operating" / "doctor.md").read_text()
    missing = [name for name, _ in doctor.checks("./data") if f"| {name} |" not in page]
    assert missing == []
