"""The catalog: names, numbers, durability and damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import BindError, StorageError
from headwater.storage.catalog import Catalog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> Iterator[Catalog]:
    catalog = Catalog(path)
    yield catalog
    catalog.close()


def test_what_is_added_is_found_after_a_restart(path: Path) -> None:
    first = Catalog(path)
    added = first.add("table", "Orders", {"columns": [1, {"x": None}]})
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


def test_numbers_are_never_given_out_again(catalog: Catalog) -> None:
    numbers = []
    for _ in range(3):
        expected = catalog.next_id()
        item = catalog.add("table", "t", {})
        assert item.id == expected
        catalog.remove(item)
        numbers.append(item.id)
    assert len(set(numbers)) == 3
    assert catalog.all() == []


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


def test_names_compare_without_case_in_any_script(catalog: Catalog) -> None:
    made = catalog.add("table", "Größe", {})
    assert catalog.find("GRÖSSE") == made
    assert catalog.find("grösse") == made


@pytest.mark.parametrize("damage", ["overwrite", "cut", "text", "kind", "definition", "newer"])
def test_damage_is_named_and_nothing_is_changed(path: Path, damage: str) -> None:
    catalog = Catalog(path)
    for number in range(50):
        catalog.add("table", f"t{number}", {"columns": ["x" * 200]})
    catalog.close()
    _damage(path, damage)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="is damaged") as caught:
        Catalog(path)
    assert caught.value.sqlstate == "XX001"
    assert str(path) in caught.value.message
    assert "Delta table" in (caught.value.hint or "")
    assert path.read_bytes() == before


def test_others_cannot_read_it(path: Path) -> None:
    """Passwords of addresses may stand in the catalog: it and its log are the owner's alone."""
    catalog = Catalog(path)
    catalog.add("source", "s", {"url": "postgresql://u:p@h/d"})
    modes = {found.stat().st_mode & 0o777 for found in path.parent.glob(f"{path.name}*")}
    catalog.close()
    assert modes == {0o600}


def _damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "overwrite":
        content[4096:12288] = b"\xab" * 8192
        path.write_bytes(content)
    elif how == "cut":
        path.write_bytes(content[:5000])
    elif how == "text":
        path.write_text("not a database, " * 500)
    else:
        connection = sqlite3.connect(path)
        changes = {
            "kind": "UPDATE objects SET kind = 'spaceship' WHERE id = 7",
            "definition": "UPDATE objects SET definition = '{' WHERE id = 7",
            "newer": "PRAGMA user_version = 99",
        }
        connection.execute(changes[how])
        connection.commit()
        connection.close()
