"""How a block is split: one ordered list of rules, one file each.

A rule looks at one bound block (`blocks.BoundBlock`). It gives the fold that the block becomes, or the block
rewritten for the rules after it, or None where it has nothing to say; `Unfit` says why the block, and with it
the query, cannot be split. The first fold counts. What no rule takes is never left: `fold_rows` is the last.

Where others belong: whatever turns subqueries into joins of the block (of a scalar, of LATERAL) stands
beside `join_members`; what makes other keys of a grouping (grouping sets, `window()`, `session_window()`)
stands before `fold_groups`, as a rewrite; a row number that is asked to be small stands before `fold_rows`,
as a fold of its own. Equal blocks become one fold after all rules (`plan/common`).
"""

from __future__ import annotations

from headwater.plan.blocks import BoundBlock, Rule
from headwater.plan.folds import FoldPlan
from headwater.plan.rules.correlated import fold_correlated
from headwater.plan.rules.grouping import fold_groups
from headwater.plan.rules.members import join_members
from headwater.plan.rules.probe import check_joins
from headwater.plan.rules.pushdown import push_down
from headwater.plan.rules.ring import fold_ring
from headwater.plan.rules.rows import fold_rows
from headwater.plan.rules.state import check_state
from headwater.plan.rules.streams import check_streams
from headwater.plan.rules.windows import check_windows

RULES: tuple[Rule, ...] = (
    check_state,
    join_members,
    fold_correlated,
    check_streams,
    fold_ring,
    check_windows,
    check_joins,
    push_down,
    fold_groups,
    fold_rows,
)
# Of a block whose rows are all there, once.
AT_HAND: tuple[Rule, ...] = (join_members, check_joins, push_down, fold_groups, fold_rows)


def fold_block(one: BoundBlock, rules: tuple[Rule, ...] = RULES) -> FoldPlan:
    """The fold of a block by the first rule that has one; Unfit if a rule says why there is none."""
    for rule in rules:
        found = rule(one)
        if isinstance(found, FoldPlan):
            return found
        one = one if found is None else found
    raise AssertionError("the last rule gives a fold")
