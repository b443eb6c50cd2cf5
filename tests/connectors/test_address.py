"""Addresses: kinds, and variables of the environment where a server is named."""

from __future__ import annotations

import pytest

from headwater.connectors.address import Address, Kinds
from headwater.errors import Error, NotSupportedError, SettingError

KINDS = Kinds("sink", ("csv", "kafka"), ("http",), "'csv:/x'", {"comma": "csv"})


def test_parts() -> None:
    assert KINDS.parse(" CSV: /out ") == Address("csv", "/out", "CSV: /out")
    assert KINDS.parse("comma:/out") == Address("csv", "/out", "comma:/out")


@pytest.mark.parametrize(
    ("url", "error", "message", "hint"),
    [
        ("http://x", NotSupportedError, "sinks of kind http are not supported yet", "csv, kafka"),
        ("kafak://x", SettingError, "there is no kind of sink named 'kafak'", "mean kafka?"),
        ("csv: ", SettingError, "the address 'csv: ' is not complete", "write 'csv:/x'"),
    ],
)
def test_refused(url: str, error: type[Error], message: str, hint: str) -> None:
    with pytest.raises(error, match=message) as caught:
        KINDS.parse(url)
    assert hint in (caught.value.hint or "")


def test_only_servers_have_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be called anything."""
    monkeypatch.setenv("HOST", "h")
    kafka = KINDS.parse("kafka://${env:HOST}/t")
    assert (kafka.rest, kafka.for_use().rest) == ("//${env:HOST}/t", "//h/t")
    folder = KINDS.parse("csv:/${env:HOST}")
    assert folder.for_use() == folder
