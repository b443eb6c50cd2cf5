"""The lines of EXPLAIN as a tree: the upper part over the folds, a fold over its stream pipeline
and its static tables, an operator of Spark's over its inputs.

Arranges lines and adds none of its own but one heading; a line that it does not know is kept where
it stands. What EXPLAIN returns to programs stays lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headwater.cli.spark_plan import HEADING, spark_nodes
from headwater.cli.tree import Node

OF_THE_PIPELINE = frozenset({"where", "group by", "partials"})
UPPER = frozenset({"upper", "at each read"})
MEASURED = frozenset(
    {
        "results", "rows", "keys", "rows folded by operators", "rows read by Spark", "groups held",
        "in memory", "spilled", "upper part on Spark", "rows re-evaluated", "early chunks",
        "over budget", "rows returned", "rows taken in", "rows held",
    }
)  # fmt: skip
"""Lines of EXPLAIN ANALYZE."""


def plan_tree(lines: Sequence[str]) -> Node:
    """The plan as one tree."""
    own, sparks = list(lines), []
    if HEADING in own:
        start = own.index(HEADING)
        own, sparks = own[:start], own[start + 1 :]
    nodes = indented([line for line in own if line.strip()])
    head, *others = nodes if nodes and not _is_when(nodes[0]) else [Node("plan"), *nodes]
    below = (*head.below, *arranged(others, scan=head.label.startswith("plain scan")))
    return replace(head, below=(*below, *(spark_nodes(sparks) if sparks else ())))


def indented(lines: Sequence[str]) -> list[Node]:
    """Lines that are set in hang below the line before them; those of an upper part are its text."""
    blocks: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("  ") and blocks:
            blocks[-1][1].append(line.removeprefix("  ").rstrip())
        else:
            blocks.append((line.strip(), []))
    return [_over(Node(text), below) for text, below in blocks]


def _over(node: Node, below: Sequence[str]) -> Node:
    texts = [Node(line) for line in below] if node.label in UPPER else indented(below)
    return replace(node, below=tuple(texts))


def arranged(nodes: Sequence[Node], scan: bool = False) -> list[Node]:
    """What hangs below the first line; the `rows:` of a plain scan are its condition."""
    measured = [] if scan else [node for node in nodes if _is_measured(node)]
    folds = tuple(_fold(node) for node in nodes if _is_fold(node))
    when = next((node for node in nodes if _is_when(node)), None)
    if when is not None:
        folds = (replace(when, text=when.text.rstrip(":"), below=(*when.below, *folds)),)
    rest = [n for n in nodes if n not in measured and n is not when and not _is_fold(n)]
    upper = next((node for node in rest if node.label in UPPER), None)
    if upper is None:
        rest = [*folds, *rest]
    else:
        text = "\n".join(child.text for child in upper.below)
        rest[rest.index(upper)] = Node(upper.text, folds, note=text)
    return [*rest, Node("measured", tuple(measured))] if measured else rest


def _is_fold(node: Node) -> bool:
    return re.fullmatch(r"fold[ _]\d+", node.label) is not None


def _is_when(node: Node) -> bool:
    """`at each insert:` stands over what follows it."""
    return node.text.endswith(":")


def _is_measured(node: Node) -> bool:
    return node.label in MEASURED or node.text.startswith("a key costs")


def _fold(node: Node) -> Node:
    """What a stream pipeline does with its rows hangs below the pipeline, not beside it."""
    if not any(child.label == "stream pipeline" for child in node.below):
        return node
    done = tuple(child for child in node.below if child.label in OF_THE_PIPELINE)
    rest = (child for child in node.below if child.label not in OF_THE_PIPELINE)
    parts = (replace(c, below=done) if c.label == "stream pipeline" else c for c in rest)
    return replace(node, below=tuple(parts))
