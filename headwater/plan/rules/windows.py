"""Rule: where the begin of a window is not that of a pane, or is read, the rows are evaluated again."""

from __future__ import annotations

from headwater.plan.blocks import BoundBlock, Unfit


def check_windows(one: BoundBlock) -> None:
    """Unfit if panes cannot make up the windows of the block."""
    leaves = [leaf for _, leaf in one.direct]
    if any(leaf.window.kind == "chunks" and leaf.columns.ranged for leaf in leaves):
        raise Unfit("RANGE may end within a kept chunk")
    if any(leaf.previous for leaf in leaves):
        raise Unfit("PREV depends on where the window begins")
    if one.query.sampling == "rows" and any(leaf.window.kind == "interval" for leaf in leaves):
        raise Unfit("a window of time under SAMPLE n ROWS begins at another row each time")
    if len(leaves) == 2 and any(leaf.window.kind == "landmark" for leaf in leaves):
        raise Unfit("a join with a landmark window keeps every row")
    one.query.check_ctes(one.block, one.scope)
