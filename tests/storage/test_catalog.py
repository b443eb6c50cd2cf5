"""The catalog: names, numbers, durability and damage."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from headwater.errors import BindError, Error, StorageError
from headwater.storage import catalog as catalogs
from headwater.storage.catalog import Catalog, read_catalog
from headwater.storage.wal import Record
from tests.crash.power import FailingDisk, PowerDisk, SimulatedCrash, StopAt


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


@pytest.fixture
def catalog(path: Path) -> Iterator[Catalog]:
    catalog = Catalog(path)
    yield catalog
    catalog.close()


def test_what_is_added_is_found_after_a_restart(path: Path) -> None:
    first = Catalog(path)
    added = first.add("table", "Orders", {"columns": [1, {"x": None}]})
    assert read_catalog(path) == [added], "also while it is open"
    first.close()
    second = Catalog(path)
    assert second.find("ORDERS") == added
    assert second.all() == [added]
    second.close()


def test_relations_share_one_namespace_functions_have_their_own(catalog: Catalog) -> None:
    catalog.add("table", "t", {})
    with pytest.raises(BindError, match="table t exists already") as caught:
        catalog.add("view", "T", {})
    assert caught.value.sqlstate == "42P07"
    assert "DROP TABLE t" in (caught.value.hint or "")
    function = catalog.add("function", "t", {})
    assert catalog.find("t", "function") == function
    assert [o.kind for o in catalog.all()] == ["function", "table"]


def test_numbers_are_never_given_out_again(path: Path) -> None:
    numbers = []
    for _ in range(3):
        catalog = Catalog(path)
        expected = catalog.next_id()
        item = catalog.add("table", "t", {})
        assert item.id == expected
        catalog.remove(item)
        numbers.append(item.id)
        assert catalog.all() == []
        catalog.close()
    assert len(set(numbers)) == 3


def test_change_keeps_the_number_and_checks_the_new_name(catalog: Catalog) -> None:
    t, _ = catalog.add("table", "t", {"a": 1}), catalog.add("table", "u", {})
    with pytest.raises(BindError, match="table u exists already"):
        catalog.change(t, {"a": 2}, name="U")
    assert catalog.find("t") == t
    changed = catalog.change(t, {"a": 2}, name="T")
    assert (changed.id, changed.name, changed.definition) == (t.id, "T", {"a": 2})
    renamed = catalog.change(changed, {"a": 2}, name="v")
    assert catalog.find("t") is None
    assert catalog.find("V") == renamed


def test_of_two_changes_that_race_the_second_is_refused(catalog: Catalog) -> None:
    old = catalog.add("table", "t", {"pair": (1, 2)})
    new = catalog.change(old, {"pair": (1, 2), "comment": "first"})
    with pytest.raises(BindError, match="was changed meanwhile") as caught:
        catalog.change(old, {"pair": (1, 2), "folder": "second"})
    assert caught.value.sqlstate == "40001"
    catalog.change(new, {**new.definition, "folder": "second"})
    found = catalog.find("t")
    assert found is not None
    assert found.definition == {"pair": [1, 2], "comment": "first", "folder": "second"}


def test_objects_that_are_made_together_are_written_as_one(path: Path) -> None:
    catalog = Catalog(path)
    seen: list[object] = []

    def look() -> None:
        seen.append((catalog.find("a"), catalog.all(), catalog.add("user", "ada", {}).id))

    with catalog.together() as made:
        a = catalog.add("table", "a", {})
        b = catalog.add("table", "b", {"after": a.id})
        catalog.remove(catalog.add("table", "c", {}))
        assert (catalog.find("A"), catalog.all(), made) == (a, [a, b], [a, b])
        with pytest.raises(BindError):
            catalog.add("view", "b", {})
        other = threading.Thread(target=look)  # sees nothing, and gets a number of its own
        other.start()
        other.join()
        assert catalog.changes == 1
    assert seen == [(None, [], 4)]
    assert catalog.changes == 2
    with contextlib.suppress(BindError), catalog.together():
        catalog.add("table", "d", {})
        catalog.add("table", "a", {})
    assert catalog.find("d") is None
    catalog.close()
    again = Catalog(path)
    assert again.all("table") == [a, b]
    assert again.add("table", "d", {}).id == 5
    again.close()


def test_what_is_made_together_is_refused_if_a_name_was_taken_meanwhile(catalog: Catalog) -> None:
    def make() -> None:
        with catalog.together():
            catalog.add("table", "a", {})
            catalog.add("table", "b", {})
            other = threading.Thread(target=lambda: catalog.add("table", "b", {}))
            other.start()
            other.join()

    with pytest.raises(BindError, match="table b exists already"):
        make()
    assert [o.name for o in catalog.all()] == ["b"]


def test_an_object_that_is_gone_cannot_be_changed(path: Path) -> None:
    """The record of such a change would be one that no open can read."""
    first = Catalog(path)
    one, two = first.add("source", "s", {"state": "running"}), first.add("table", "t", {})
    first.remove(one)
    with pytest.raises(BindError, match="source s does not exist any more") as caught:
        first.change(one, {"state": "finished"})
    assert caught.value.sqlstate == "42704"
    first.close()
    second = Catalog(path)
    assert second.all() == [two]
    second.close()


def test_a_change_is_made_though_its_image_finds_no_room(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the files of an object that is there would be removed."""
    monkeypatch.setattr(catalogs, "IMAGE_AFTER_BYTES", 100)
    catalog = Catalog(path)
    append, images = catalog._log.append, list[int]()

    def full(records: Sequence[Record]) -> object:
        if records[0].kind == catalogs.IMAGE:
            images.append(len(records))
            if len(images) < 3:
                raise StorageError("the disk is full", sqlstate="53100")
        return append(records)

    monkeypatch.setattr(catalog._log, "append", full)
    made = [catalog.add("table", f"t{n}", {"text": "x" * 200}) for n in range(3)]
    assert len(images) == 3  # tried again by each change
    assert catalog.all() == made
    catalog.close()
    again = Catalog(path)
    assert again.all() == made
    again.close()


def test_names_compare_without_case_in_any_script(catalog: Catalog) -> None:
    made = catalog.add("table", "Größe", {})
    assert catalog.find("GRÖSSE") == made
    assert catalog.find("grösse") == made


def test_a_folder_is_dropped_only_by_a_durable_record(path: Path) -> None:
    first = Catalog(path)
    one = first.add("table", "t", {"folder": "t-1"})
    two = first.add("continuous query", "q", {"results": {"folder": "results_of_q-2"}})
    moved = first.change(one, {"folder": "t-3"})
    assert first.dropped == {"t-1"}
    first.remove(two)
    first.remove(moved)
    first.close()
    second = Catalog(path)
    assert second.dropped == {"t-1", "t-3", "results_of_q-2"}
    second.add("table", "t", {"folder": "t-1"})
    second.forget_dropped({"t-3"})
    assert second.dropped == {"results_of_q-2"}
    second.close()


def test_an_image_replaces_the_changes_before_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "SEGMENT_BYTES", 16 << 10)
    monkeypatch.setattr(catalogs, "FIRST_SEGMENT_BYTES", 16 << 10)
    monkeypatch.setattr(catalogs, "IMAGE_AFTER_BYTES", 8 << 10)
    random = Random(4)
    catalog, expected = Catalog(path), {}
    for number in range(600):
        name = f"t{random.randrange(30)}"
        if name not in expected:
            made = catalog.add("table", name, {"folder": f"{name}-{number}", "text": "x" * 80})
        elif random.random() < 0.6:
            made = catalog.change(expected[name], {"folder": f"{name}-{number}"})
        else:
            catalog.remove(expected.pop(name))
            continue
        expected[name] = made
        if random.random() < 0.05:
            catalog.close()
            catalog = Catalog(path)
        assert len(list(path.glob("*.wal"))) < 9
    left, last = catalog.dropped, catalog.last_id
    catalog.close()
    again = Catalog(path)
    assert {o.name: o for o in again.all()} == expected
    assert (again.dropped, again.last_id) == (left, last)
    again.close()


@pytest.mark.parametrize("how", ["zeros", "cut", "text", "missing", "older"])
def test_damage_is_named_and_nothing_is_changed(path: Path, how: str) -> None:
    catalog = Catalog(path)
    for number in range(50):
        catalog.add("table", f"t{number}", {"columns": ["x" * 200]})
        if number == 30:
            older = (path / "0000000001.wal").read_bytes()
    catalog.close()
    file = path / "0000000001.wal"
    content = bytearray(file.read_bytes())
    if how == "zeros":
        content[8000:9000] = bytes(1000)
    elif how == "cut":
        del content[9000:]
    elif how == "text":
        content[:] = b"not a log, " * 500
    file.write_bytes(older if how == "older" else content)
    if how == "missing":
        file.unlink()
    before = {each: each.read_bytes() for each in path.iterdir()}
    with pytest.raises(StorageError) as caught:
        Catalog(path)
    assert caught.value.sqlstate == "XX001"
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert {each: each.read_bytes() for each in path.iterdir()} == before


def test_every_flipped_bit_is_noticed_or_harmless(path: Path) -> None:
    catalog = Catalog(path)
    expected = [catalog.add("user", f"u{n}", {"role": "reader"}) for n in range(6)]
    catalog.close()
    file = path / "0000000001.wal"
    content = file.read_bytes()
    used = len(content.rstrip(b"\0"))
    refused = 0
    for place in (*range(0, 60), *range(4096, used, 7)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            again = Catalog(path)
        except StorageError:
            refused += 1
            continue
        assert again.all() == expected
        again.close()
        assert place < 4096
    assert refused > 100


def test_every_step_is_a_crash_point() -> None:
    """Killed or without power at any step: an object is there or not, and what was told stays."""
    at, stopped = 0, True
    while stopped:
        at += 1
        disk = PowerDisk()
        disk.mkdir("/db")
        disk.fsync_folder("/")
        told: set[str] = set()
        stopped = False
        try:
            catalog = Catalog(Path("/db/catalog"), StopAt(disk, at, half=at % 2 == 0))
            for number in range(5):
                catalog.add("table", f"t{number}", {"folder": f"t{number}-1"})
                told.add(f"t{number}")
            catalog.remove(catalog.all()[0])
            told.discard("t0")
        except SimulatedCrash:
            stopped = True
        disk.power_cut(Random(at)) if at % 3 else disk.kill()
        found = Catalog(Path("/db/catalog"), disk)
        names = {o.name for o in found.all()}
        assert told - {"t0"} <= names <= told | {f"t{len(told)}", "t0"}
        found.close()


@pytest.mark.parametrize("number", [5, 28])
def test_a_change_that_failed_is_wholly_there_or_not(number: int) -> None:
    refused: set[str] = set()
    for at in range(1, 60):
        disk = PowerDisk()
        disk.mkdir("/db")
        failing = FailingDisk(disk, at, number)
        try:
            catalog = Catalog(Path("/db/catalog"), failing)
        except Error:
            continue
        kept: list[catalogs.CatalogObject] = []
        for name in ("a", "b", "c"):
            try:
                kept.append(catalog.add("table", name, {}))
            except StorageError as error:
                refused.add(error.sqlstate)
        assert [o for o in catalog.all() if o in kept] == kept
        catalog.close()
        again = Catalog(Path("/db/catalog"), disk)
        assert {each.name for each in kept} <= {each.name for each in again.all()}
        again.close()
    assert refused <= {"58030", "53100"}
    assert refused


def test_others_cannot_read_it(path: Path) -> None:
    """Passwords of addresses may stand in the catalog: its files are the owner's alone."""
    catalog = Catalog(path)
    catalog.add("source", "s", {"url": "postgresql://u:p@h/d"})
    modes = {found.stat().st_mode & 0o777 for found in path.iterdir()}
    catalog.close()
    assert modes == {0o600}
