"""The pages of docs/reference that are made from the code: `python -m tests.harness.reference`."""

from __future__ import annotations

from pathlib import Path

from headwater.settings import TABLE, Setting

SETTINGS_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
HEAD = """# Settings

A setting comes from, in rising order: its default, the environment (`HEADWATER_INLINE_ROWS`),
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


if __name__ == "__main__":
    SETTINGS_PAGE.write_text(settings_page())
