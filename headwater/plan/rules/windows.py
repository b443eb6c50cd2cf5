"""Rule: where the begin of a window is not that of a pane, or is read, the rows are evaluated again."""

from __future__ import annotations

from headwater.plan.blocks import BoundBlock, Unfit
from headwater.plan.view_rules import R3


def check_windows(one: BoundBlock) -> None:
    """Unfit if panes cannot make up the windows of the block."""
    leaves = [leaf for _, leaf in one.direct]
    if any(leaf.window.kind == "chunks" and leaf.columns.ranged for leaf in leaves):
        raise Unfit("RANGE may end within a kept chunk")
    if any(leaf.previous for leaf in leaves):
        raise Unfit("PREV depends on where the window begins")
    if one.query.sampling == "rows" and any(leaf.window.kind == "interval" for leaf in leaves):
        raise Unfit("a window of time under SAMPLE n ROWS begins at another row each time")
    growing = [leaf for leaf in leaves if leaf.grows]
    if len(leaves) == 2 and growing:
        windowed = "a join with a landmark window keeps every row"
        whole = "a join before the grouping needs every row"
        raise Unfit(windowed if growing[0].windowed else whole, R3)
    one.query.check_ctes(one.block, one.scope)
