"""Examples are found beside a clone and inside a wheel, by the same name."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from headwater import examples

ROOT = Path(__file__).parents[2]
LOADED = (
    "from headwater import examples;"
    "print(examples.names(), examples.load('linearroad', 'demo.run').__file__,"
    " examples.load('linearroad', 'demo.application').scripts()[0])"
)


def test_in_a_clone() -> None:
    assert examples.names() == ["linearroad"]
    found = examples.load("linearroad", "source").__file__
    assert found == str(ROOT / "examples" / "linearroad" / "source.py")


def test_in_a_wheel(tmp_path: Path) -> None:
    """The folders that pyproject.toml puts into a wheel are all that the demo needs."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, tmp_path / package)
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, tmp_path / target)
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shipped = tmp_path / "headwater" / "examples" / "linearroad"
    assert done.stdout.split() == [
        "['linearroad']",
        str(shipped / "demo" / "run.py"),
        str(shipped / "1_reports.sql"),
    ]
