"""Servers that sources read and sinks write: their optional packages, Kafka's settings, connections to
PostgreSQL.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from headwater.connectors.address import Address, all_from_environment
from headwater.errors import NotSupportedError, SettingError

if TYPE_CHECKING:
    import psycopg

# Of connections to PostgreSQL, unless the address says otherwise: a server that is gone is noticed.
CONNECTION: Mapping[str, Any] = {
    "connect_timeout": 10,
    "application_name": "headwater",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
CANCEL_S = 2.0
QUIET = {"log_level": 2}  # Kafka's client writes to the terminal; what it says is in our errors too
PACKAGES = {"kafka": ("confluent_kafka", "confluent-kafka"), "postgresql": ("psycopg", "psycopg")}


def check_server(address: Address, client: Mapping[str, str]) -> None:
    """Refuses a server that cannot be reached so: its package, its address, the settings of its client."""
    module, package = PACKAGES[address.kind]
    if find_spec(module) is None:
        raise NotSupportedError(
            f"{package} is not installed", hint=f"pip install 'headwater[{address.kind}]'"
        )
    address.for_use()
    if address.kind == "kafka":
        kafka_topic(address.rest)
        _check_kafka(client)


def kafka_topic(rest: str) -> tuple[str, str]:
    """The brokers and the topic of `//host:port,host:port/topic`."""
    brokers, _, topic = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not brokers or not topic or "/" in topic:
        raise SettingError(
            f"the address 'kafka:{rest}' is not complete", hint="write 'kafka://host:9092/topic'"
        )
    return brokers, topic


def client_settings(options: Mapping[str, object]) -> dict[str, str]:
    """Options as Kafka's client has them, with points."""
    return {name.lower().replace("_", "."): str(value) for name, value in options.items()}


def _check_kafka(client: Mapping[str, str]) -> None:
    """SettingError if Kafka's client does not take its settings."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({**QUIET, **all_from_environment(client)})
    except (KafkaException, ValueError, TypeError) as error:
        said = error.args[0] if error.args else error
        raise SettingError(
            "Kafka's client does not take its settings",
            detail=str(said.str() if hasattr(said, "str") else said),
            hint="options that we do not know are the client's, with _ for .: sasl_mechanism",
        ) from None


def connected(url: str) -> psycopg.Connection[Any]:
    """A connection to PostgreSQL."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    settings: dict[str, Any] = {**CONNECTION, **conninfo_to_dict(url)}
    return psycopg.connect(**settings)


def cut(connection: psycopg.Connection[Any]) -> None:
    """Ends what another thread waits for on a connection, whether or not the server answers."""
    import psycopg

    with contextlib.suppress(psycopg.Error, OSError):
        if psycopg.capabilities.has_cancel_safe():  # else asking might wait without a bound
            connection.cancel_safe(timeout=CANCEL_S)
    with (
        contextlib.suppress(psycopg.Error, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        wire.shutdown(socket.SHUT_RDWR)
