"""The pages of docs/reference that are made from the code: `python -m tests.harness.reference`."""

from __future__ import annotations

from pathlib import Path

from headwater.settings import TABLE, Setting
from tests.harness.whitelist import COMMON, NUMBERS, TYPES, WHITELIST, Entry

WITHOUT_SPARK_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "without-spark.md"
INLINE_HEAD = """# What is evaluated without Spark

Expressions of these forms, over these types, are evaluated by Headwater itself: in the pipelines of
continuous queries and views over chunks of a few thousand rows, without a Spark job. Each was compared with
Spark value by value, type by type and error by error. Anything else is evaluated by Spark and gives the same
answers, later. A form stands for all like it; *comparable* types are two of one type, any two numbers, and
integers with decimals. Functions of a TIMESTAMP (its fields, its text, its day) are on the list where the
session's time zone is UTC. Of a struct, an array or a map, parts are taken: `s.f`, `a[i]`, `m['k']`.

[How it is done and proven](../internals/expressions.md). This page is made from
`tests/harness/whitelist.py` by `python -m tests.harness.reference`.

| function | forms | types |
|---|---|---|
"""
SETTINGS_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
HEAD = """# Settings

A setting comes from, in rising order: its default, the environment (`HEADWATER_RECENT_MB`),
`connect(settings={…})` or `--set name=value`, and `SET name = value`. `SHOW name` shows one,
`SHOW SETTINGS` and the table `headwater.settings` show all, `RESET name` gives the default back.
What can be set at any time acts at once, on tables, views, queries and connections that are there.
Names that start with `spark.` go to Spark as they are: those that start with `spark.sql.` at any time,
the others at `connect()`.

This page is made from `headwater/settings.py` by `python -m tests.harness.reference`.

| setting | default | allowed | set | meaning |
|---|---|---|---|---|
"""


def settings_page() -> str:
    """docs/reference/settings.md."""
    return HEAD + "".join(map(_line, TABLE))


def _line(setting: Setting) -> str:
    default = str(setting.default).lower() if isinstance(setting.default, bool) else setting.default
    when = "at `connect()`" if setting.fixed else "any time"
    return (
        f"| `{setting.name}` | `{default}` | {_allowed(setting)} | {when} | {setting.meaning} |\n"
    )


def _allowed(setting: Setting) -> str:
    if setting.choices is not None:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if isinstance(setting.default, bool):
        return "true, false"
    bounds = []
    if setting.minimum is not None:
        bounds.append(f"≥ {setting.minimum:g}")
    if setting.maximum is not None:
        bounds.append(f"≤ {setting.maximum:g}")
    return ", ".join(bounds) or ("text" if isinstance(setting.default, str) else "any number")


def without_spark_page() -> str:
    """docs/reference/without-spark.md."""
    entries: dict[str, list[Entry]] = {}
    for entry in WHITELIST:
        entries.setdefault(entry.operator, []).append(entry)
    return INLINE_HEAD + "".join(_function(name, known) for name, known in entries.items())


def _function(name: str, entries: list[Entry]) -> str:
    forms = dict.fromkeys(entry.template.format(a="a", b="b") for entry in entries)
    types = dict.fromkeys(_types(entry) for entry in entries)
    shown = ", ".join(f"<code>{_escaped(form)}</code>" for form in list(forms)[:8])
    return f"| {_escaped(name)} | {shown} | {'; '.join(types)} |\n"


def _escaped(text: str) -> str:
    signs = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "*": "&#42;", "_": "&#95;"}
    signs |= {"[": "&#91;", "~": "&#126;", "\\": "&#92;", "$": "&#36;"}
    return "".join(signs.get(character, character) for character in text)


def _types(entry: Entry) -> str:
    if entry.types == COMMON:
        return "comparable"
    names = [
        dict.fromkeys(_plain(part) for part in types) for types in zip(*entry.types, strict=True)
    ]
    sides = [", ".join(side) for side in names]
    known = {", ".join(NUMBERS): "number", ", ".join(dict.fromkeys(map(_plain, TYPES))): "any"}
    sides = [known.get(side, side) for side in sides]
    return sides[0] if len(set(sides)) == 1 else " with ".join(sides)


def _plain(type_: str) -> str:
    return type_.partition("(")[0]


if __name__ == "__main__":
    SETTINGS_PAGE.write_text(settings_page())
    WITHOUT_SPARK_PAGE.write_text(without_spark_page())
