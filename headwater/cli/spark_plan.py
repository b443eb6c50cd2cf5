"""Spark's formatted plan as a tree: its operators, each with what matters of its details.

Reads the text that Spark prints and nothing else. What does not look like such a text is kept as
plain lines: the form of the text is Spark's to change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from headwater.cli.tree import Node

HEADING = "== Physical Plan =="
SHOWN = (
    "Condition", "Keys", "Functions", "Left keys", "Right keys", "Join condition", "Location",
    "PushedFilters", "Arguments",
)  # fmt: skip
"""Details that say what an operator does, in the order in which they are shown."""
NAMES = {"PushedFilters": "filters", "Join condition": "on"}
WRAPPERS = frozenset({"AdaptiveSparkPlan", "ReusedSubquery", "WholeStageCodegen"})
"""Operators that do nothing to rows."""
_OPERATOR = re.compile(r"(?P<lead>[ :+|-]*)(?:\* )?(?P<name>\S.*?)\s*\((?P<number>\d+)\)\s*")
_DETAILS = re.compile(r"\((?P<number>\d+)\)\s.*")
_DETAIL = re.compile(r"(?P<key>[A-Za-z ]+?)\s*(?:\[\d+\])?\s*: (?P<value>.*)")
_INNER = re.compile(
    r"(?:, )?(?:ENSURE_REQUIREMENTS|REPARTITION_BY_\w+|\[plan_id=\d+\]|isFinalPlan=\w+|(?:true|false), 0$)"
    r"|HashedRelationBroadcastMode\(.*\)|IdentityBroadcastMode"
)
_LEVEL = 3  # characters that each level of Spark's tree is set in by


def spark_nodes(lines: Sequence[str]) -> list[Node]:
    """The trees of a plan: the query's own first, then those of its subqueries."""
    details = _details(lines)
    trees = [_tree(block, details) for block in _blocks(lines) if _is_tree(block)]
    found = [node for tree in trees for node in tree]
    return found or [Node(line) for line in lines if line.strip()]


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Runs of lines without an empty one."""
    block: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _is_tree(block: Sequence[str]) -> bool:
    return all(_OPERATOR.fullmatch(line) for line in block if not line.startswith("Subquery:"))


def _details(lines: Sequence[str]) -> dict[int, dict[str, str]]:
    """The details of each operator by its number."""
    found: dict[int, dict[str, str]] = {}
    for block in _blocks(lines):
        head = _DETAILS.fullmatch(block[0])
        if head is not None:
            matches = (_DETAIL.fullmatch(line) for line in block[1:])
            found[int(head["number"])] = {m["key"]: m["value"] for m in matches if m is not None}
    return found


def _tree(block: Sequence[str], details: Mapping[int, Mapping[str, str]]) -> list[Node]:
    """Operators by how far they are set in; those that do nothing are left out."""
    rows = []
    for line in block:
        match = _OPERATOR.fullmatch(line)
        if match is not None and not line.startswith("Subquery:"):
            name, number = match["name"], int(match["number"])
            note = _note(name, details.get(number, {}))
            rows.append((len(match["lead"]) // _LEVEL, Node(name, (), note)))
    return [node for root in _nested(rows) for node in _without_wrapper(root)]


def _nested(rows: Sequence[tuple[int, Node]]) -> list[Node]:
    """Nodes with their depths as trees."""
    roots: list[Node] = []
    position = 0
    while position < len(rows):
        depth, node = rows[position]
        end = position + 1
        while end < len(rows) and rows[end][0] > depth:
            end += 1
        roots.append(Node(node.text, tuple(_nested(rows[position + 1 : end])), node.note))
        position = end
    return roots


def _without_wrapper(node: Node) -> tuple[Node, ...]:
    below = tuple(kept for child in node.below for kept in _without_wrapper(child))
    if node.text in WRAPPERS and below:
        return below
    return (Node(node.text, below, node.note),)


def _note(name: str, details: Mapping[str, str]) -> str:
    """What an operator does, in a line."""
    keys = ("Output",) if name.startswith("Project") else SHOWN
    parts = (_shown(key, details[key]) for key in keys if key in details)
    return "; ".join(part for part in parts if part)


def _shown(key: str, value: str) -> str:
    """A detail without what only Spark's developers read; nothing if that was all."""
    value = _INNER.sub("", re.sub(r"#\d+L?", "", value)).strip()
    if value in ("", "[]", "None"):
        return ""
    if key == "Location":
        return f"reads {_place(value)}"
    return value if key == "Arguments" else f"{NAMES.get(key, key.lower())} {value}"


def _place(value: str) -> str:
    """Which table a scan reads: the name of its folder, or of the file of staged rows."""
    table = re.search(r"/(?:tables|streams)/([^/\]]+)-\d+/", value)
    if table is not None:
        return table.group(1)
    return "rows staged for it" if "/staged-" in value else value
