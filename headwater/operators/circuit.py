"""A circuit: operators over changes, joined by their inputs and outputs.

Owns: the order in which they run, and what each of them did: rows in, rows out, seconds. A node into which
nothing came does not run. A node that two others need is one object, and runs once. An opaque one holds what
came until it is answered from outside, node by node. Must never: know what an operator does, or keep what
flowed once a batch is through.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from headwater.operators.allowance import spend
from headwater.operators.changes import Changes, nothing, together
from headwater.operators.opaque import OpaqueOperator
from headwater.operators.operator import Operator


@dataclass(frozen=True)
class CircuitSource:
    """An input of the circuit, by its number."""

    number: int
    schema: pa.Schema
    takes_back: bool


@dataclass(frozen=True, eq=False)
class CircuitNode:
    """An operator and where its inputs come from; the same object is the same node."""

    operator: Operator
    inputs: tuple[CircuitSource | CircuitNode, ...]


@dataclass
class NodeFigures:
    """What a node did since the circuit was made or restored."""

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0


@dataclass(eq=False)
class Circuit:
    """An acyclic graph that ends in one node, or is nothing but a source."""

    output: CircuitNode | CircuitSource
    clock: Callable[[], float] = time.perf_counter
    nodes: tuple[CircuitNode, ...] = field(init=False)  # each after its inputs, the output last
    figures: dict[CircuitNode, NodeFigures] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = tuple(_inputs_first(self.output))
        self.figures = {node: NodeFigures() for node in self.nodes}

    @property
    def schema(self) -> pa.Schema:
        """Of what comes out."""
        output = self.output
        return output.schema if isinstance(output, CircuitSource) else output.operator.schema

    @property
    def takes_back(self) -> bool:
        """Whether rows that came out may be taken back."""
        output = self.output
        return (
            output.takes_back if isinstance(output, CircuitSource) else output.operator.takes_back
        )

    def begin(self) -> Changes:
        """What comes out before anything came in; once, and not after a restore."""
        return self._run({}, beginning=True)

    def apply(self, inputs: Mapping[int, Changes]) -> Changes:
        """The changes of the output that changes of the sources, by number, make; others did not change."""
        return self._run(inputs, beginning=False)

    def waiting(self) -> CircuitNode | None:
        """The first node that waits for an answer from elsewhere; none before it does."""
        for node in self.nodes:
            if isinstance(node.operator, OpaqueOperator) and node.operator.waiting:
                return node
        return None

    @property
    def waiting_rows(self) -> int:
        """How many rows are held until somebody asks what becomes of them."""
        operators = (node.operator for node in self.nodes)
        return sum(o.waiting_rows for o in operators if isinstance(o, OpaqueOperator))

    def answer(self, node: CircuitNode, answer: pa.Table) -> Changes:
        """The changes of the output that the answer to a waiting node makes."""
        operator, figures, start = node.operator, self.figures[node], self.clock()
        assert isinstance(operator, OpaqueOperator)
        out = operator.answered(answer)
        figures.seconds += self.clock() - start
        figures.rows_out += len(out)
        return self._run({}, beginning=False, known={node: out})

    def _run(
        self,
        inputs: Mapping[int, Changes],
        beginning: bool,
        known: Mapping[CircuitNode, Changes] = MappingProxyType({}),
    ) -> Changes:
        """`known`: what nodes give without being run."""
        given: dict[CircuitNode, Changes] = {**known}

        def of(origin: CircuitSource | CircuitNode) -> Changes:
            if isinstance(origin, CircuitNode):
                return given[origin]
            found = inputs.get(origin.number)
            return nothing(origin.schema) if found is None else found

        for node in self.nodes:
            if node not in known:
                given[node] = self._step(node, [of(origin) for origin in node.inputs], beginning)
        return of(self.output)

    def _step(self, node: CircuitNode, inputs: Sequence[Changes], beginning: bool) -> Changes:
        operator, row_count = node.operator, sum(map(len, inputs))
        if not row_count and not beginning:
            return nothing(operator.schema)
        figures, start = self.figures[node], self.clock()
        parts = [operator.begin()] if beginning else []
        if row_count:
            parts.append(operator.apply(*inputs))
        out = together(parts, operator.schema)
        figures.seconds += self.clock() - start
        figures.rows_in += row_count
        figures.rows_out += len(out)
        spend(len(out))
        return out

    @property
    def nbytes(self) -> int:
        """How much memory the states take."""
        return sum(node.operator.nbytes for node in self.nodes)

    def spilling(self) -> list[Operator]:
        """The operators whose states may go to disk."""
        return [node.operator for node in self.nodes if node.operator.spilled]

    @property
    def staying_bytes(self) -> int:
        """How much memory those states take that cannot go to disk."""
        return sum(node.operator.nbytes for node in self.nodes if not node.operator.spilled)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {"nodes": [node.operator.state() for node in self.nodes]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot of a circuit that was built in the same way."""
        for node, kept in zip(self.nodes, state["nodes"], strict=True):
            node.operator.restore(kept)
        self.figures = {node: NodeFigures() for node in self.nodes}


def _inputs_first(output: CircuitNode | CircuitSource) -> list[CircuitNode]:
    """The nodes below an output and it, each once and after its inputs."""
    found: dict[CircuitNode, None] = {}
    waiting: list[CircuitNode | CircuitSource] = [output]
    while waiting:
        node = waiting[-1]
        if isinstance(node, CircuitSource) or node in found:
            waiting.pop()
            continue
        below = [origin for origin in node.inputs if isinstance(origin, CircuitNode)]
        missing = [origin for origin in below if origin not in found]
        if missing:
            waiting += reversed(missing)
        else:
            found[node] = None
            waiting.pop()
    return list(found)
