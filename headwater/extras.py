"""What sources and sinks share about the outside: optional packages, the environment, addresses of Kafka."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

from headwater.errors import NotSupportedError, SettingError

_VARIABLE = re.compile(r"\$\{env:(\w+)\}")
PACKAGES = {"kafka": ("confluent_kafka", "confluent-kafka"), "postgresql": ("psycopg", "psycopg")}


def check_installed(kind: str) -> None:
    """NotSupportedError where the package that a kind needs is missing."""
    module, package = PACKAGES[kind]
    if find_spec(module) is None:
        raise NotSupportedError(
            f"{package} is not installed", hint=f"pip install 'headwater[{kind}]'"
        )


def kafka_topic(rest: str) -> tuple[str, str]:
    """The brokers and the topic of `//host:port,host:port/topic`."""
    brokers, _, topic = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not brokers or not topic or "/" in topic:
        raise SettingError(
            f"the address 'kafka:{rest}' is not complete", hint="write 'kafka://host:9092/topic'"
        )
    return brokers, topic


def from_environment(text: str) -> str:
    """The text with the values of environment variables in place of `${env:NAME}`."""
    return _VARIABLE.sub(_value, text)


def _value(match: re.Match[str]) -> str:
    name = match.group(1)
    if name not in os.environ:
        raise SettingError(
            f"the environment variable {name} is not set",
            hint="it is read by the process that has the database open",
        )
    return os.environ[name]
