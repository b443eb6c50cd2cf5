"""Which tests `make quick` takes, decided by what they reach; and that it starts no process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import quick

CONFTEST = """
import pytest
import headwater

@pytest.fixture
def database():
    return headwater.connect(":memory:")

@pytest.fixture
def number():
    return 1
"""
QUICK = {
    "plain": "def test_it(): pass",
    "a light fixture": "def test_it(number): pass",
    "what the product has without a database": (
        "from headwater.sql.parser import parse\ndef test_it(): parse('SELECT 1')"
    ),
    "beside a heavy one": (
        "import headwater\ndef test_it(): pass\ndef test_other(): headwater.connect()"
    ),
    "the name of an argument elsewhere": (
        "def helper(database): pass\ndef other(): helper(1)\ndef test_it(): pass"
    ),
}
HEAVY = {
    "opens a database": "import headwater\ndef test_it(): headwater.connect()",
    "under another name": (
        "from headwater import connect as opened\ndef test_it():\n    with opened(): pass"
    ),
    "imports where it needs": "def test_it():\n    import subprocess",
    "by a fixture": "def test_it(database): pass",
    "by a fixture of a fixture": (
        "import pytest\n@pytest.fixture\ndef more(database): pass\ndef test_it(more): pass"
    ),
    "by a mark": "import pytest\n@pytest.mark.usefixtures('database')\ndef test_it(): pass",
    "by a mark of the file": (
        "import pytest\npytestmark = pytest.mark.usefixtures('database')\ndef test_it(): pass"
    ),
    "by what all tests of the file have": (
        "import pytest\n@pytest.fixture(autouse=True)\ndef all(database): pass\ndef test_it(): pass"
    ),
    "by a function of the file": (
        "import subprocess as s\ndef helper(): s.run('ls')\ndef test_it(): helper()"
    ),
    "by a class of the file": (
        "import headwater\nclass Run:\n    def go(self): headwater.connect()\ndef test_it(): Run()"
    ),
    "by a function of another file": (
        "from tests.harness.actions import run\ndef test_it(): run([])"
    ),
    "by another file": "from tests.harness import actions\ndef test_it(): actions.run([])",
    "by what may not be there": (
        "import pytest\nclient = pytest.importorskip('psycopg')\ndef test_it(): client.connect()"
    ),
    "by a server": (
        "from headwater.server.http.server import HttpServer\ndef test_it(): HttpServer(None, None)"
    ),
}


def decided(folder: Path, text: str) -> bool:
    (folder / "conftest.py").write_text(CONFTEST)
    path = folder / "test_something.py"
    path.write_text(text)
    return "test_it" in quick.quick_tests(path)


@pytest.mark.parametrize("text", QUICK.values(), ids=QUICK)
def test_quick(text: str, tmp_path: Path) -> None:
    assert decided(tmp_path, text)


@pytest.mark.parametrize("text", HEAVY.values(), ids=HEAVY)
def test_not_quick(text: str, tmp_path: Path) -> None:
    assert not decided(tmp_path, text)


def test_slow_tests_are_there_and_are_left_out() -> None:
    for name in quick.SLOW:
        path, _, test = name.partition("::")
        assert test in quick.definitions(quick.ROOT / path), f"{name} is gone"
        assert test not in quick.quick_tests(quick.ROOT / path)


def test_a_quick_run_starts_no_process() -> None:
    """Nor Java: what the reading of the tests misses fails."""
    program = (
        "from tests.harness import quick\n"
        "from headwater.kernel.gateway import subprocess\n"
        "quick.forbid_processes()\n"
        "subprocess.Popen(['true'])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=quick.ROOT, capture_output=True, text=True)
    assert "NotQuick: subprocess.Popen ('true', ['true'])" in done.stderr


def test_the_option_leaves_out_files_and_tests(tmp_path: Path) -> None:
    """A file without quick tests is not even loaded."""
    chosen = ["tests/test_exported_members.py", "tests/test_database.py"]
    command = [sys.executable, "-m", "pytest", "--quick", "--collect-only", "-q", *chosen]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=quick.ROOT, capture_output=True, text=True
    )
    assert "test_unknown_names" in done.stdout
    assert "test_importing_the_package_loads_nothing_heavy" not in done.stdout
    assert "test_database.py" not in done.stdout
    assert done.returncode == 0, done.stdout
