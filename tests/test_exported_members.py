"""The public names of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headwater

PUBLIC = ["Database", "Error", "Result", "__version__", "connect"]


def test_all_is_complete_and_sorted() -> None:
    assert sorted(PUBLIC) == PUBLIC == headwater.__all__
    for name in PUBLIC:
        assert getattr(headwater, name) is not None


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = headwater.nothing  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, headwater;"
        "print([m for m in ('pyspark', 'pyarrow', 'sqlglot', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_package_is_typed() -> None:
    assert Path(headwater.__file__ or "").with_name("py.typed").exists()
