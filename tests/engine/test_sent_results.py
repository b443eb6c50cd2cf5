"""Results that one host sends and another one keeps: as changes, and whole where they must be."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.engine.results import NewResult, ResultLog
from headwater.engine.sent_results import CHANGES, ResultSender, unpacked
from headwater.errors import StorageError
from tests.engine.test_stored_results import SCHEMA, Groups, told, told_of


def keeper() -> ResultLog:
    return ResultLog(None, SCHEMA, keep=lambda: 1000, keep_bytes=lambda: 1 << 40)


def send(sender: ResultSender, log: ResultLog, new: list[NewResult]) -> list[bool]:
    """One message and its answer; which results went as changes."""
    packed = sender.packed([(one.instant, one.rows) for one in new])
    sent = [(one.instant, *p) for one, p in zip(new, packed, strict=True)]
    made = unpacked(log, sent, sender.since)
    log.append(
        [
            NewResult(one.instant, rows, None, one.note, changes)
            for one, (rows, changes) in zip(new, made, strict=True)
        ]
    )
    sender.arrived(new[-1].rows, log.next - 1)
    return [is_changes for is_changes, _ in packed]


@pytest.mark.parametrize("seed", range(3))
def test_the_keeper_gets_the_results(seed: int) -> None:
    """One or several at a time, also after the sender knows nothing any more."""
    sender, log, groups = ResultSender(), keeper(), Groups(seed=seed)
    given, went = list[NewResult](), list[bool]()
    for number in range(40):
        new = [groups.next() for _ in range(1 + number % 3)]
        if number % 10 == 0:
            sender.forget()
            assert not sender.packed([(new[0].instant, new[0].rows)])[0][0]
        went += send(sender, log, new)
        given += new
    assert [told(log.read(p)) for p in range(log.next)] == [told_of(one) for one in given]
    assert len(went) / 3 < sum(went) < len(went)


def test_few_rows_go_for_few_changes() -> None:
    """A message holds what changed, not the result."""
    sender, log, groups = ResultSender(), keeper(), Groups(count=3000)
    first = groups.next()
    send(sender, log, [first])
    changed = first.rows.set_column(0, "k", pa.array([7, *range(1, 3000)])).cast(SCHEMA)
    changed = changed.set_column(3, SCHEMA.field(3), pa.repeat(pa.scalar(99), changed.num_rows))
    ((is_changes, table),) = sender.packed([(99, changed)])
    assert (is_changes, table.schema) == (True, CHANGES)
    assert table.nbytes < 2000


def test_changes_of_another_result_are_refused() -> None:
    """Whoever sends them has missed something; nothing is made of them."""
    sender, log, groups = ResultSender(), keeper(), Groups(seed=5)
    send(sender, log, [groups.next(), groups.next()])
    while not (packed := sender.packed([((new := groups.next()).instant, new.rows)]))[0][0]:
        send(sender, log, [new])
    assert unpacked(log, [(new.instant, *packed[0])], log.next - 1)
    for since in (log.next - 2, None):
        with pytest.raises(StorageError, match="not the last"):
            unpacked(log, [(new.instant, *packed[0])], since)
