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


def folders_of_the_wheel() -> dict[str, str]:
    """Folders of the repository, and what they are in a wheel."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    return {package: package for package in wheel["packages"]} | wheel["force-include"]


def test_a_container_is_built_from_all_of_them() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    assert [f for f in folders_of_the_wheel() if f"COPY {f} {f}\n" not in text] == []


def test_in_a_wheel(tmp_path: Path) -> None:
    """The folders that pyproject.toml puts into a wheel are all that the demo needs."""
    for source, target in folders_of_the_wheel().items():
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
