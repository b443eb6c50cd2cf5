"""No dead links: files, anchors and pictures of every page are there, and addresses are well-formed.

Files of code that pages name are there too.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.harness.pages import ROOT

LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)\)")
SKIPPED = (".venv", "build", "dist", "reports", "node_modules")


def pages() -> list[Path]:
    """Every page of the repository."""
    found = [p for p in ROOT.rglob("*.md") if not set(p.relative_to(ROOT).parts) & set(SKIPPED)]
    return sorted(found)


def prose(text: str) -> str:
    """The page without its code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"^(    ).*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace("[", "(").replace("]", ")"), text)


def anchors(page: Path) -> set[str]:
    """What can stand behind # for a page, as GitHub makes it of headings."""
    found: set[str] = set()
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#{1,6} (.+)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        count = 1
        while (name if count == 1 else f"{name}-{count - 1}") in found:
            count += 1
        found.add(name if count == 1 else f"{name}-{count - 1}")
    return found


def problem(page: Path, target: str) -> str | None:
    """What is wrong with a link, or None."""
    parts = urlsplit(target)
    if parts.scheme or target.startswith("//"):
        fine = parts.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc)
        return None if fine else "not a well-formed address"
    found = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not found.exists():
        return "no such file"
    if not found.is_relative_to(ROOT):
        return "outside of the repository"
    if parts.fragment and (found.suffix != ".md" or parts.fragment not in anchors(found)):
        return "no such heading"
    return None


def test_no_link_is_dead() -> None:
    """Every link of every page leads to a file, a heading, or a well-formed address."""
    broken = []
    for page in pages():
        for target in LINK.findall(prose(page.read_text())):
            wrong = problem(page, target)
            if wrong:
                broken.append(f"{page.relative_to(ROOT)}: {target}: {wrong}")
    assert broken == []


def test_dead_links_are_noticed(tmp_path: Path) -> None:
    """A file, a heading and an address that are not there are each told."""
    page = ROOT / "docs" / "GUARANTEES.md"
    assert problem(page, "nothing.md") == "no such file"
    assert problem(page, "#no-such-heading") == "no such heading"
    assert problem(page, "GUARANTEES.md#rows") is None
    assert problem(page, "http:/broken") == "not a well-formed address"
    assert LINK.findall("see [a](b.md#c) and ![d](e.svg)") == ["b.md#c", "e.svg"]


def test_the_index_has_every_page() -> None:
    """docs/README.md leads to every page of the docs but those of single errors."""
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / t.split("#")[0]).resolve() for t in LINK.findall(index.read_text())}
    errors = ROOT / "docs" / "reference" / "errors"
    wanted = {p for p in (ROOT / "docs").rglob("*.md") if p.parent != errors and p != index}
    assert {str(p.relative_to(ROOT)) for p in wanted - linked} == set()


def test_files_that_pages_name_are_there() -> None:
    """`engine/flush.py` in a text: some folder of the repository has it."""
    tops = ("headwater", "tests", "benchmarks", "examples", "deploy")
    files = [f"/{path.relative_to(ROOT)}" for top in tops for path in (ROOT / top).rglob("*.py")]
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages()
        for name in re.findall(r"`(?:\.\./)*([\w/]+\.py)\b", page.read_text())
        if not any(file.endswith(f"/{name}") for file in files)
    ]
    assert not missing
