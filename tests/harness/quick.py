"""Which tests are quick: those that reach nothing which opens a database, listens, or starts a process.

Read from the text of the tests, without importing them, so that a quick run does not load what the others
need: from a test over its fixtures and the functions of the test tree that it names, transitively, to what
they import from elsewhere. A name of HEAVY on that way makes it a test for `make test`. What this reading
misses is stopped when it happens (`forbid_processes`): a quick run starts no process, and no Java.

Owns the decision and the guard only; `tests/conftest.py` applies them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("tests", "benchmarks")  # followed; everything else is judged by its name

# What a quick test never reaches: modules, and names in modules.
HEAVY = (
    "headwater.connect",
    "headwater.database",
    "headwater.cli.check_environment",  # asks programs
    "headwater.cli.check_software",
    "headwater.cli.demo",
    "headwater.cli.main",
    "headwater.cli.serve",
    "headwater.cli.tour",
    "headwater.kernel.gateway",
    "headwater.kernel.java",  # asks a Java for its version
    "headwater.kernel.kernel",
    "headwater.kernel.spark",
    "headwater.server.http.server",
    "headwater.server.serve",
    "headwater.server.wire.server",
    "benchmarks.postgres",
    "asyncpg",
    "confluent_kafka",
    "multiprocessing",
    "playwright",
    "psycopg",
    "psycopg2",
    "py4j",
    "pyspark",
    "socketserver",
    "subprocess",
)

# Tests with many examples, for which a change of one line need not wait; and what `make check` runs too.
SLOW = frozenset(
    {
        "tests/engine/test_basket.py::test_random_events_go_as_in_the_model",
        "tests/engine/test_subscription.py::test_a_token_yields_exactly_the_following_results",
        "tests/engine/update_queue/test_queue.py::test_every_policy_keeps_the_order_of_each_key_and_counts_every_row",
        "tests/engine/update_queue/test_queue.py::test_in_place_is_freshest_when_all_keys_update_alike",
        "tests/engine/update_queue/test_queue.py::test_order_counts_and_staleness_are_those_of_the_definition",
        "tests/fold/test_row_join.py::test_live_pairs_are_those_of_the_windows",
        "tests/fold/test_sliding.py::test_every_window_equals_its_rows_evaluated",
        "tests/fold/test_spill.py::test_spills_change_nothing",
        "tests/semantics/test_streaming_tables.py::test_histories_equal_the_model",
        "tests/storage/streaming/test_nested_types.py::test_random_nested_types_come_back_as_they_were_inserted",
        "tests/storage/streaming/test_nested_types.py::test_values_come_back_through_seals_reopening_and_compaction",
        "tests/storage/test_clock.py::test_random_sequences_equal_the_model",
        "tests/storage/wal/test_wal_failures.py::test_every_call_fails",
        "tests/storage/wal/test_wal_power.py::test_every_step_of_a_scenario",
        "tests/test_tidy.py::test_files_are_short_and_say_what_they_own",
    }
)

# Events of `sys.addaudithook`.
PROCESS_EVENTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")

TESTS = ("test_", "Test")
Place = tuple[Path, str]  # a file, and a name that it defines or imports


@cache
def quick_tests(path: Path) -> frozenset[str]:
    """The names of a file's quick tests: of functions, or of classes."""
    module = _read(path)
    everywhere = [(path, name) for name in module.everywhere]
    slow = {name.partition("::")[2] for name in SLOW if str(path).endswith(name.partition("::")[0])}
    return frozenset(
        name
        for name in definitions(path) - slow
        if name.startswith(TESTS) and not _reaches_heavy([(path, name), *everywhere])
    )


def definitions(path: Path) -> frozenset[str]:
    """The names that a file defines."""
    return frozenset(_read(path).definitions)


def _reaches_heavy(places: list[Place]) -> bool:
    ahead, seen = list(places), set(places)
    while ahead:
        for target in _targets(*ahead.pop()):
            if isinstance(target, str):
                return True
            if target not in seen:
                seen.add(target)
                ahead.append(target)
    return False


@cache
def _targets(path: Path, name: str) -> frozenset[Place | str]:
    """Where a name leads: to other places, or to a heavy name (which is text)."""
    return frozenset(_leads(path, name))


def _leads(path: Path, name: str) -> Iterator[Place | str]:
    module = _read(path)
    if name in module.imports:
        yield from _outside(module.imports[name])
    if name not in module.definitions:
        return
    for node in module.definitions[name]:
        for use in _uses(node):
            base, _, attribute = use.partition(".")
            if attribute and base in module.imports:
                yield from _outside(f"{module.imports[base]}.{attribute}")
            elif use in module.definitions or use in module.imports:
                yield path, use
            elif (fixture := _fixture(path, use)) is not None:
                yield fixture
        for target in _imported(node).values():
            yield from _outside(target)


def _outside(target: str) -> Iterator[Place | str]:
    """Where the full name of something imported leads."""
    if target.startswith(OURS):
        owner, _, name = target.rpartition(".")
        path = _file_of(owner)
        if path is not None:
            yield path, name
    if any(target == heavy or target.startswith(heavy + ".") for heavy in HEAVY):
        yield target


def _file_of(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()), None)


def _fixture(path: Path, name: str) -> Place | None:
    """A fixture of the conftest files above a test file, the nearest first."""
    for conftest in _conftests(path.parent):
        if conftest != path:
            module = _read(conftest)
            if name in module.definitions or name in module.imports:
                return conftest, name
    return None


@cache
def _conftests(folder: Path) -> tuple[Path, ...]:
    """The conftest files of a folder and those above it, the nearest first."""
    own = folder / "conftest.py"
    above = () if folder in (ROOT, folder.parent) else _conftests(folder.parent)
    return (own, *above) if own.exists() else above


@dataclass
class _Module:
    """A file's names at the top level: what they are made of, or where they are imported from."""

    definitions: dict[str, list[ast.AST]] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    everywhere: list[str] = field(default_factory=list)  # what holds for all tests of the file


@cache
def _read(path: Path) -> _Module:
    module = _Module()
    for node in ast.parse(path.read_text()).body:
        module.imports |= {} if isinstance(node, _DEFINITIONS) else _imported(node)
        for name in _defined(node):
            module.definitions.setdefault(name, []).append(node)
            if name == "pytestmark" or _is_autouse(node):
                module.everywhere.append(name)
    return module


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _is_autouse(node: ast.AST) -> bool:
    """Whether it is a fixture that all tests of its file have."""
    return isinstance(node, _FUNCTIONS) and any(
        keyword.arg == "autouse"
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )


def _imported(node: ast.AST) -> dict[str, str]:
    """What is imported under a node: names there, and their full names."""
    found: dict[str, str] = {}
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            for alias in each.names:
                first = alias.name.partition(".")[0]
                found[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(each, ast.ImportFrom):
            for alias in each.names:
                found[alias.asname or alias.name] = f"{each.module}.{alias.name}"
        elif isinstance(each, ast.Call) and _called(each) == "importorskip":
            found |= {text: text for text in _texts(each)}
    return found


def _uses(node: ast.AST) -> set[str]:
    """Names under a node, arguments (which may be fixtures), and `name.attribute`."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, ast.Attribute) and (dotted := _dotted(each)):
            found.add(dotted)
        elif isinstance(each, ast.Call) and _called(each) in ("usefixtures", "getfixturevalue"):
            found.update(_texts(each))
    return found


def _dotted(node: ast.Attribute) -> str:
    """`a.b.c` as text; empty if it does not begin with a name."""
    inner = node.value
    if isinstance(inner, ast.Name):
        return f"{inner.id}.{node.attr}"
    base = _dotted(inner) if isinstance(inner, ast.Attribute) else ""
    return base and f"{base}.{node.attr}"


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _texts(call: ast.Call) -> list[str]:
    return [str(a.value) for a in call.args if isinstance(a, ast.Constant)]


class NotQuick(Exception):
    """A quick test did what only others may."""


def forbid_processes() -> None:
    """From now on this process starts no other one."""

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event in PROCESS_EVENTS:
            raise NotQuick(f"{event} {arguments[:2]}: name what leads here in {__name__}.HEAVY")

    sys.addaudithook(look)
