"""Scratch folders: those of dead processes go, those of live ones stay, whoever sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.kernel import cache
from headwater.kernel.cache import remove_scratch, scratch_folder

CHILD = """
import sys
from pathlib import Path
from headwater.kernel.cache import scratch_folder
print(scratch_folder(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def test_a_live_process_that_is_not_seen_keeps_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of another container: its number says nothing here."""
    monkeypatch.setattr(cache, "_alive", lambda _pid: False)
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        theirs = Path(child.stdout.readline().strip())
        (theirs / "rows").write_text("x")
        mine = scratch_folder(tmp_path)
        assert (theirs / "rows").exists()
        child.kill()
    other = scratch_folder(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, other])
    for folder in (mine, other):
        remove_scratch(folder)
    assert list(tmp_path.iterdir()) == []
    assert not {mine, other} & set(cache._held)


def test_what_is_no_folder_of_ours_stays(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    link = tmp_path / f"{cache.SCRATCH_PREFIX}0x-link"
    link.symlink_to(target)
    remove_scratch(scratch_folder(tmp_path))
    assert target.exists()


def test_a_program_that_ends_takes_its_folders_along(tmp_path: Path) -> None:
    """Also where whoever made them had no time to say so."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == tmp_path
    assert not list(tmp_path.iterdir())
