"""Rules of the house that a program can check (STYLE.md); the rest is advice."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
PRODUCT = sorted((ROOT / "headwater").rglob("*.py")) + EXAMPLES
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST_FILE = 700  # one class is one file
LONGEST_TEST_FILE = 800
LONGEST_FUNCTION = 70
NOT_A_WAIT = "# not a wait for progress"  # the comment of a sleep that has another reason
WALL_CLOCK = ("test_tidy.py", "test_overload.py")  # the second offers rows at a rate
SPARK_FOLDERS = ("kernel", "sources", "sinks", "spark")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def folder_of(path: Path) -> str:
    """The folder of the package that a file stands in; "" for files of the examples."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "headwater" else ""


def lines_with(pattern: str, files: list[Path]) -> Iterator[str]:
    """Places where a pattern stands in code or comments."""
    found = re.compile(pattern)
    for path in files:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if found.search(line):
                yield f"{name_of(path)}:{number}: {line.strip()}"


@pytest.mark.parametrize("path", [*PRODUCT, *TESTS], ids=name_of)
def test_files_are_short_and_say_what_they_own(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") < (LONGEST_FILE if path in PRODUCT else LONGEST_TEST_FILE)
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "no module docstring"
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            own = (node.end_lineno or 0) - max(first, node.lineno)
            assert own < LONGEST_FUNCTION, f"{node.name} is {own} lines long"


def test_nothing_is_left_to_do() -> None:
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X:", "HA" + "CK"])
    assert list(lines_with(rf"\b({words})\b", [*PRODUCT, *TESTS])) == []


def test_public_pyspark_only() -> None:
    # One module may look: PySpark has no public way to let go of a Java process that ended.
    others = [path for path in PRODUCT if path.name != "pyspark_state.py"]
    private = (
        r"\._(j(vm|df|sc|sparkSession|seq)|gateway|active_spark_context|instantiatedSession)\b"
    )
    assert list(lines_with(private, others)) == []


def test_spark_is_imported_in_its_folders_only() -> None:
    others = [p for p in PRODUCT if p.relative_to(ROOT).parts[1] not in SPARK_FOLDERS]
    assert list(lines_with(r"^\s*(from|import) (pyspark|py4j)\b", others)) == []


PLANNING = ("plan", "compile", "engine", "execute")  # they hold nodes and pieces, not text to edit
# Methods that edit or fold a string, of patterns too, by how many arguments they have.
EDITS = {"replace": (2, 3), "upper": (0,), "sub": (2, 3, 4), "subn": (2, 3, 4)}
# Receivers that are no text of a query: files, tables, edits by spans, kinds of things in messages, errors.
NOT_TEXT = re.compile(
    r"^(self\._table|fresh|os|edited|step|re|_PATH|spark_type|kind|what|name|statement\.(kind|action|format)|mode\.kind"
    r"|(found|connectors)\.kind|item\.definition\[.method.\]|(call|token|node)\.name|literal\..*)$"
)


PATTERNS_OF = {"re": "copy.py", "_PATH": "discretion.py"}  # patterns for words of errors, and where


def text_edits(path: Path) -> Iterator[str]:
    """Calls of str.replace, str.upper, re.sub and their like."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if len(node.args) + len(node.keywords) in EDITS.get(node.func.attr, ()):
            receiver = ast.get_source_segment(source, node.func.value) or ""
            elsewhere = path.name != PATTERNS_OF.get(receiver, path.name)
            if not NOT_TEXT.match(receiver) or elsewhere:
                yield f"{name_of(path)}:{node.lineno}: {receiver}.{node.func.attr}"


def test_no_text_of_a_query_is_edited() -> None:
    """A plan is made of nodes and pieces; a text is filled by its slots (docs/internals/planner.md)."""
    folders = [p for p in PRODUCT if folder_of(p) in PLANNING]
    assert [edit for path in folders for edit in text_edits(path)] == []


def test_a_public_class_has_a_name_of_its_own() -> None:
    """One word, one class (docs/internals/glossary.md)."""
    owners: dict[str, list[str]] = {}
    for path in PRODUCT:
        if name_of(path) == "headwater/dbapi.py":
            continue  # PEP 249 names its classes
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(name_of(path))
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


def test_tests_do_not_sleep() -> None:
    files = [t for t in TESTS if t.name != "test_tidy.py"]
    assert [line for line in lines_with(r"\bsleep\s*\(", files) if NOT_A_WAIT not in line] == []


BOUND = (
    r"(\.(wait|join|result|acquire|communicate)\(|\b(open_)?timeout=|settimeout\(|monotonic\(\) \+ "
    r"|wait_(?:until|for_upkeep)\(.*, )"
    r"(timeout=)?(\d[\d.]*)(?=[),]|$)(?!, None)"
)


def test_tests_wait_with_one_bound() -> None:
    """Waits end by progress; the bound of a hang is harness.patience's. Less than a second is none."""
    files = [t for t in TESTS if t.name not in ("test_tidy.py", "screenshots.py")]
    waits = [
        line
        for line in lines_with(BOUND, files)
        if NOT_A_WAIT not in line and "mark.timeout" not in line
    ]
    tuned = [w for w in waits if (m := re.search(BOUND, w)) and 1 <= float(m.group(5)) < 120]
    assert tuned == []


def test_tests_do_not_compare_wall_clock_times() -> None:
    """Costs are measured by `thread_time`, which is this thread's alone; ends of waits by `monotonic`."""
    assert (
        list(lines_with(r"\bperf_counter\b", [t for t in TESTS if t.name not in WALL_CLOCK])) == []
    )


def test_data_never_goes_to_spark_through_create_data_frame() -> None:
    # Not even an empty one: it would make our session the active one of the program.
    assert list(lines_with(r"\bcreateDataFrame\(", PRODUCT)) == []


def test_layers() -> None:
    """The contracts of pyproject.toml; `make check` runs them too."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# Who asks what a statement is asks the parsed statement. These handle texts of another kind, or tokens.
NOT_OF_STATEMENTS = {
    "cli/check_folder.py": "lines of /proc",
    "cli/colouring.py": "what is being typed, before it is a statement",
    "cli/commands.py": "commands with a backslash",
    "cli/complaint.py": "lines of a message",
    "cli/completion.py": "what is being typed, before it is a statement",
    "cli/helping.py": "pages of the documentation",
    "cli/output.py": "values of rows",
    "cli/plan_tree.py": "lines of EXPLAIN",
    "cli/progress.py": "words for a terminal",
    "cli/scanner.py": "colours of what is being typed",
    "cli/shell.py": "commands with a backslash, and what is being typed",
    "cli/tree.py": "lines of EXPLAIN",
    "execute/discretion.py": "words of an error",
    "execute/verifiers.py": "stored passwords",
    "server/config.py": "values of settings",
    "server/http/request.py": "addresses of requests",
    "server/wire/catalog/functions.py": "values of PostgreSQL's functions",
    "server/wire/catalog/tables.py": "a table of columns",
    "server/wire/copying.py": "values of rows",
    "server/wire/lines.py": "bytes of rows",
    "server/wire/parameters.py": "values of parameters",
    "server/wire/spelling.py": "tokens: what clients spell differently, before it is parsed",
    "server/wire/types.py": "names of types",
    "server/wire/values.py": "values of rows",
}
TEXTS = {"asked", "original", "piece", "query", "script", "sql", "statement", "text", "words"}
OF_STRINGS = {
    "casefold",
    "endswith",
    "find",
    "lower",
    "partition",
    "removeprefix",
    "replace",
    "split",
}
OF_STRINGS |= {"startswith", "upper"}
OF_PATTERNS = {"findall", "finditer", "fullmatch", "match", "search", "sub"}


def is_text(node: ast.AST) -> bool:
    """Whether an expression is, by its name, a text or a piece of one: `text[:6]`, `x.text.strip()`."""
    while isinstance(node, ast.Subscript | ast.Call):
        inner = node.value if isinstance(node, ast.Subscript) else node.func
        node = inner.value if isinstance(inner, ast.Attribute) and inner.attr != "text" else inner
    if isinstance(node, ast.Attribute):
        return node.attr in TEXTS
    return isinstance(node, ast.Name) and node.id in TEXTS


def looks_at_words(path: Path) -> list[str]:
    """Places where a method of strings, or a pattern, is used on a text."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_string = node.func.attr in OF_STRINGS and is_text(node.func.value)
            of_pattern = node.func.attr in OF_PATTERNS and any(map(is_text, node.args))
            if of_string or of_pattern:
                found.append(f"{name_of(path)}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_nobody_guesses_a_statement_by_its_words() -> None:
    """Servers, the shell, the database and what carries out statements go by the parsed statement."""
    package = ROOT / "headwater"
    asking = ("cli", "database.py", "execute", "server")
    files = [path for path in PRODUCT if folder_of(path) in asking]
    hits = {str(path.relative_to(package)): looks_at_words(path) for path in files}
    assert [h for name, found in hits.items() if name not in NOT_OF_STATEMENTS for h in found] == []
    assert [name for name in NOT_OF_STATEMENTS if not hits.get(name)] == []
