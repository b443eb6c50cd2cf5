"""Spark's Python daemon has a factory's modules loaded, where there are factories."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from headwater.kernel import factory_daemon
from headwater.kernel.spark_settings import spark_settings
from headwater.settings import Settings

MODULE = "spark.python.daemon.module"


@pytest.mark.parametrize(
    ("settings", "module"),
    [
        ({"factories": 2}, factory_daemon.__name__),
        ({"factories": 0}, None),
        ({"factories": 2, "master": "spark://host:7077"}, None),  # who knows what is there
        ({"factories": 2, MODULE: "own.daemon"}, "own.daemon"),
    ],
)
def test_which_daemon_spark_starts(settings: dict[str, Any], module: str | None) -> None:
    assert spark_settings(Settings(settings, {})).get(MODULE) == module


def test_what_it_loads_is_there() -> None:
    assert [importlib.import_module(name).__name__ for name in factory_daemon.MODULES] == list(
        factory_daemon.MODULES
    )
