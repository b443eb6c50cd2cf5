"""Damage to any file of a folder: answers are right, or an error names the file and the cure.

Every kind of file × (a flipped bit, cut off, zeros, deleted, an older copy) × (after a close, after a kill).
Whatever happens, nothing of the folder has been deleted by opening it. Damage to a table's files keeps the
other tables, views and queries from nothing; once the file is back, everything is as it was.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

import headwater
from headwater.errors import Error
from tests.crash.damage_child import (
    BATCHES,
    ROWS,
    SETTINGS,
    expected_rows,
    older_of,
    rows_of,
)

KINDS = {
    "catalog": "catalog/*.wal",
    "catalog's witness": "catalog/reached",
    "batch ids": "batches/*.wal",
    "batch ids' witness": "batches/reached",
    "log": "wal/0*.wal",
    "log's witness": "wal/reached",
    "spare of the log": "wal/spare*",
    "block": "tables/*/blocks/*/*.parquet",
    "file of a table": "tables/d-*/*.parquet",
    "commit": "tables/*/_delta_log/*.json",
    "checkpoint": "tables/*/_delta_log/*.checkpoint*",
    "last checkpoint": "tables/*/_delta_log/_last_checkpoint",
    "sums of commits": "tables/*/_delta_log/_headwater_sums",
    "index": "tables/*/index-*/*",
    "sidecar": "tables/*/sidecar/*",
    "snapshot": "snapshots/*",
    "mark": "HEADWATER",
}
HOW = ("flip", "cut", "zeros", "delete", "older")
FLIP_STEP = 64
PARTS = 10  # of the large run


@dataclass(frozen=True)
class Case:
    """One piece of damage: to which file, how, and where in it."""

    kind: str
    path: Path  # under the folder
    how: str
    place: int = 0

    def __str__(self) -> str:
        return f"{self.kind}: {self.how} of {self.path} at {self.place}"


@dataclass(frozen=True)
class Filled:
    """A folder with every kind of file, and older copies of them."""

    folder: Path
    older: Path
    killed: bool

    def cases(self) -> Iterator[Case]:
        """Every case there is."""
        for kind, pattern in KINDS.items():
            for path in sorted(self.folder.glob(pattern)):
                yield from self._of_file(kind, path)

    def _of_file(self, kind: str, path: Path) -> Iterator[Case]:
        name = path.relative_to(self.folder)
        data = path.read_bytes()
        used = len(data.rstrip(b"\0"))
        for place in range(0, used, FLIP_STEP):
            yield Case(kind, name, "flip", place)
        for place in {0, used // 3, used - 1}:
            yield Case(kind, name, "cut", place)
            yield Case(kind, name, "zeros", place)
        yield Case(kind, name, "delete")
        if older_of(self.folder, self.older, path) is not None:
            yield Case(kind, name, "older")

    def damaged(self, case: Case, where: Path) -> None:
        """A copy of the folder with that damage."""
        shutil.copytree(self.folder, where, copy_function=linked_or_copied)
        path = where / case.path
        data = bytearray(path.read_bytes())
        path.unlink()  # it may be the same file as in the folder
        if case.how == "flip":
            data[case.place] ^= 1 << (case.place // FLIP_STEP % 8)
        elif case.how == "cut":
            del data[case.place :]
        elif case.how == "zeros":
            data[case.place : case.place + 512] = bytes(len(data[case.place : case.place + 512]))
        elif case.how == "older":
            data[:] = (self.older / case.path).read_bytes()
        if case.how != "delete":
            path.write_bytes(data)


def linked_or_copied(path: str, copy: str) -> None:
    """Rows and commits are written once and never changed: they need no copy."""
    if path.endswith((".parquet", ".json")):
        os.link(path, copy)
    else:
        shutil.copy2(path, copy)


@pytest.fixture(scope="module", params=["closed", "killed"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """The folder, left by a process that closed it or was killed."""
    base = tmp_path_factory.mktemp("damage")
    folder, older = base / "data", base / "older"
    command = [sys.executable, "-m", "tests.crash.damage_child", str(folder), str(older)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        if request.param == "closed":
            child.stdin.write("close\n")
            child.stdin.flush()
            assert child.stdout.readline() == "closed\n"
        child.kill()
        child.wait()
    return Filled(folder, older, request.param == "killed")


def judged(filled: Filled, case: Case, where: Path) -> str:
    """What came of a case: right, or the error; an AssertionError if it was neither."""
    filled.damaged(case, where)
    before = files_of(where)
    try:
        check_answers(where)
    except Error as error:
        refusal = error
    except AssertionError as error:
        raise AssertionError(f"{case}: {error}") from error
    else:
        return "right"
    assert refusal.sqlstate in ("XX001", "58P01", "58030", "55000"), f"{case}: {refusal!r}"
    assert names_it(refusal, where, case), f"{case}: {refusal} names no file"
    assert refusal.hint, f"{case}: {refusal} says no cure"
    lost = before - files_of(where)
    assert all(gone_elsewhere(where, path) for path in lost), f"{case}: {lost} deleted"
    if case.path.parts[0] == "tables":
        check_others(where, case)
        shutil.copy2(filled.folder / case.path, where / case.path)
        try:
            check_answers(where)
        except (Error, AssertionError) as error:
            raise AssertionError(f"{case}: with the file put back: {error}") from error
        return "refused alone"
    return "refused"


def names_it(error: Error, where: Path, case: Case) -> bool:
    text = f"{error.message} {error.detail} {error.hint}"
    return str(where) in text or case.path.name in text


def files_of(where: Path) -> set[Path]:
    """The files that hold rows or say what there is."""
    kept = ("*.parquet", "*.wal", "*.json", "*.snapshot")
    return {p.relative_to(where) for pattern in kept for p in where.rglob(pattern)}


def gone_elsewhere(where: Path, path: Path) -> bool:
    """Whether a file was put aside, or is one that can be made again."""
    aside = [where / f"{path}{end}" for end in (".damaged", ".torn", ".unreadable")]
    derived = "sidecar" in path.parts or path.parts[0] == "aside" or "spare" in path.name
    return derived or any(p.exists() for p in (*aside, where / "aside" / path.name))


def check_answers(where: Path) -> None:
    """AssertionError if an answer is wrong."""
    with headwater.connect(where, settings=SETTINGS) as db:
        db.flush()
        for check in CHECKS.values():
            check(db)
        users = [row[:2] for row in db.sql("SHOW USERS").rows()]
        assert users == [("ann", "reader")], f"users {users}"


def check_others(where: Path, case: Case) -> None:
    """AssertionError if damage to a table keeps what does not read it from right answers."""
    damaged = case.path.parts[1].rpartition("-")[0]
    read = {"s": "snm", "w": "wo", "results_of__m": "m"}.get(damaged, damaged)
    try:
        with headwater.connect(where, settings=SETTINGS) as db:
            for name in CHECKS.keys() - set(read):
                CHECKS[name](db)
    except (Error, AssertionError) as error:
        raise AssertionError(f"{case}: the others: {error}") from error


def check_s(db: headwater.Database) -> None:
    found = db.sql("SELECT t, k, v FROM s").rows()
    assert sorted(found) == sorted(expected_rows()), "rows of s"
    one = db.sql("SELECT t FROM s WHERE k = 'k3'").rows()
    assert sorted(one) == sorted((t,) for t, k, _ in expected_rows() if k == "k3"), "by index"
    for batch in range(BATCHES):
        assert db.insert("s", rows_of(batch), batch_id=f"s{batch}") == 0, f"s{batch}"


def check_w(db: headwater.Database) -> None:
    for batch in range(BATCHES):
        rows = [row[:2] for row in rows_of(batch)]
        assert db.insert("w", rows, batch_id=f"w{batch}") == 0, f"w{batch}"


def check_d(db: headwater.Database) -> None:
    assert sorted(db.sql("SELECT a FROM d").rows()) == [(n,) for n in range(BATCHES - 2)], "d"
    assert db.insert("d", [(3, "xxx")], batch_id="d3") == 0, "batch of d"


def check_e(db: headwater.Database) -> None:
    assert db.sql("SELECT * FROM e").rows() == [], "e"


def check_n(db: headwater.Database) -> None:
    counts = Counter(k for _, k, _ in expected_rows())
    sums = {k: sum(v for _, key, v in expected_rows() if key == k) for k in counts}
    found = sorted(db.sql("SELECT k, n, v FROM n").rows())
    assert found == sorted((k, n, sums[k]) for k, n in counts.items()), "view of s"


def check_o(db: headwater.Database) -> None:
    counts = Counter(k for _, k, _ in expected_rows())
    assert sorted(db.sql("SELECT k, n FROM o").rows()) == sorted(counts.items()), "view of w"


def check_m(db: headwater.Database) -> None:
    found = sorted(db.sql("SELECT n, _t FROM m").rows(), key=lambda row: row[1])
    whole = (BATCHES * ROWS - 1) // 10 * 10
    assert [t for _, t in found] == list(range(0, whole + 1, 10)), "instants of m"
    assert all(n == 10 for n, t in found if t), "counts of m"


CHECKS = {
    "s": check_s,
    "w": check_w,
    "d": check_d,
    "e": check_e,
    "n": check_n,
    "o": check_o,
    "m": check_m,
}


def run(filled: Filled, tmp_path: Path, cases: list[Case]) -> Counter[str]:
    """How the cases came out; those that went wrong are told together."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for number, case in enumerate(cases):
        where = tmp_path / f"case{number}"
        try:
            outcomes[judged(filled, case, where)] += 1
        except AssertionError as error:
            wrong.append(str(error).splitlines()[0])
        shutil.rmtree(where)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong])
    return outcomes


def test_the_folder_is_right_without_damage(filled: Filled, tmp_path: Path) -> None:
    shutil.copytree(filled.folder, tmp_path / "copy")
    check_answers(tmp_path / "copy")
    kinds = {case.kind for case in filled.cases()}
    assert set(KINDS) - kinds <= {"spare of the log"}
    assert len(list(filled.cases())) > 2500


def test_damage_is_refused_or_harmless(filled: Filled, tmp_path: Path) -> None:
    """A hundred cases of each folder: of each kind and way some, by lot."""
    random = Random(5)
    by_way: dict[tuple[str, str], list[Case]] = {}
    for case in filled.cases():
        by_way.setdefault((case.kind, case.how), []).append(case)
    chosen = [random.choice(cases) for cases in by_way.values()]
    taken = set(chosen)
    rest = [case for case in filled.cases() if case not in taken]
    chosen += random.sample(rest, max(100 - len(chosen), 0))
    before = {path: path.read_bytes() for path in filled.folder.rglob("*") if path.is_file()}
    outcomes = run(filled, tmp_path, chosen)
    assert all(path.read_bytes() == data for path, data in before.items())  # no case met another
    assert outcomes["refused"] > 5, outcomes
    assert outcomes["refused alone"] > 3, outcomes
    assert outcomes["right"] > 10, outcomes


@pytest.mark.large
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_damage_is_refused_or_harmless(filled: Filled, tmp_path: Path, part: int) -> None:
    """More than 5 000 cases in all, a part of them at a time."""
    cases = list(filled.cases())[part::PARTS]
    outcomes = run(filled, tmp_path, cases)
    assert sum(outcomes.values()) == len(cases) > 2500 // PARTS, outcomes
