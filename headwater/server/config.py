"""What `headwater serve` is told, and by whom: flags, the environment, a TOML file, defaults, in this order.

Owns the table of options and the one order of precedence, which holds for settings too. Pure: the
environment and the file's text are passed in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from headwater.errors import SettingError
from headwater.sql.names import nearest

PREFIX = "HEADWATER_SERVE_"
CONFIG_VARIABLE = "HEADWATER_SERVE_CONFIG"
TABLES = ("serve", "settings")
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


@dataclass(frozen=True)
class ServeConfig:
    """Everything that the server is told."""

    path: str = ""
    host: str = "127.0.0.1"
    port: int = 5433
    http_host: str = ""  # the same as host
    http_port: int = 8080
    tls_certificate: str = ""
    tls_key: str = ""
    password_file: str = ""
    tls_elsewhere: bool = False  # a proxy in front speaks TLS
    insecure: bool = False
    socket: str = ""  # the folder of the Unix socket; none: there is none
    trust_loopback: bool = False  # without users, every OS user of this machine
    cors: str = ""  # origins, separated by commas
    master: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def origins(self) -> frozenset[str]:
        """The sites whose pages may ask over HTTP."""
        return frozenset(part.strip() for part in self.cors.split(",") if part.strip())


OPTIONS: Mapping[str, type] = {
    f.name: {"str": str, "int": int, "bool": bool}[str(f.type)]
    for f in fields(ServeConfig)
    if f.name != "settings"
}


def configured(
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file_text: str | None = None,
    flag_settings: Mapping[str, object] | None = None,
) -> ServeConfig:
    """One configuration of all sources: a flag beats the environment, which beats the file.

    Flags that were not given are None.
    """
    options, settings = from_file(file_text or "")
    for name in OPTIONS:
        text = environment.get(PREFIX + name.upper())
        if text is not None:
            options[name] = _converted(PREFIX + name.upper(), text, OPTIONS[name])
    options |= {name: value for name, value in flags.items() if value is not None}
    held = {n: v for n, v in settings.items() if f"HEADWATER_{n.upper()}" not in environment}
    found = ServeConfig(**options, settings=held | dict(flag_settings or {}))
    _check(found)
    return found


def file_of(flag: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The configuration file that a flag or the environment names."""
    named = environment.get(CONFIG_VARIABLE)
    return flag if flag is not None else Path(named) if named else None


def from_file(text: str) -> tuple[dict[str, Any], dict[str, object]]:
    """The options of the table `serve`, and the settings of the table `settings`."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError("the configuration file is not TOML", detail=str(error)) from error
    for name in found:
        if name not in TABLES:
            raise SettingError(
                f"the configuration file has no table {name}", hint="[serve] and [settings]"
            )
    options = {}
    for name, value in found.get("serve", {}).items():
        if name not in OPTIONS:
            near = nearest(name, list(OPTIONS))
            hint = f"did you mean {near}?" if near else "one of " + ", ".join(OPTIONS)
            raise SettingError(f"option {name} does not exist", sqlstate="42704", hint=hint)
        if isinstance(value, bool) != (OPTIONS[name] is bool) or isinstance(value, (list, dict)):
            raise _wrong(name, value, OPTIONS[name])
        options[name] = _converted(name, str(value), OPTIONS[name])
    settings: dict[str, object] = {}
    _flatten(found.get("settings", {}), "", settings)
    return options, settings


def _flatten(table: Mapping[str, Any], head: str, found: dict[str, object]) -> None:
    """`spark.sql.shuffle.partitions = 4` is a table of tables in TOML."""
    for name, value in table.items():
        if isinstance(value, dict):
            _flatten(value, f"{head}{name}.", found)
        else:
            found[head + name] = value


def _converted(name: str, text: str, wanted: type) -> Any:
    if wanted is bool:
        if text.lower() in TRUE | FALSE:
            return text.lower() in TRUE
    elif wanted is int:
        if text.strip().isdecimal():
            return int(text)
    else:
        return text
    raise _wrong(name, text, wanted)


def _wrong(name: str, value: object, wanted: type) -> SettingError:
    kinds = {bool: "true or false", int: "a number", str: "text"}
    return SettingError(f"option {name} cannot be {value!r}", hint=f"it is {kinds[wanted]}")


def _check(config: ServeConfig) -> None:
    if not config.path:
        raise SettingError("no data folder is given", hint="headwater serve FOLDER")
    for name, port in (("port", config.port), ("http_port", config.http_port)):
        if not 0 <= port < 65536:
            raise SettingError(f"option {name} cannot be {port}", hint="0 takes a free port")
    if config.tls_key and not config.tls_certificate:
        raise SettingError("a key needs its certificate", hint="--tls-certificate FILE")
