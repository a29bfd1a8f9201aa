"""docs/config.md lists every key that the sources read, and none that they do not."""

import pathlib
import re

SOURCES = ("model_config.cpp", "rope_config.cpp", "attention_window.cpp")
WORDS = {"null", "false", "true", "absent"}  # quoted in messages


def names_in_sources(root: pathlib.Path) -> set[str]:
    """Keys and the values they may have: everything in quotes that is spelt as keys are."""
    texts = [(root / "src" / "config" / name).read_text() for name in SOURCES]
    return set(re.findall(r'"([a-z][a-z0-9_]+)"', "".join(texts))) - WORDS


def table_rows(document: str) -> list[list[str]]:
    rows = [line.strip("|").split("|") for line in document.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`([a-z][a-z0-9_.]+)`", text))


def test_every_name_in_the_sources_is_documented(root):
    document = (root / "docs" / "config.md").read_text()
    names = names_in_sources(root)
    assert len(names) > 40
    assert names - quoted(document) == set()


def test_every_documented_key_is_read_and_has_its_default(root):
    rows = table_rows((root / "docs" / "config.md").read_text())
    keys = set().union(*(quoted(row[0]) for row in rows))
    assert len(keys) > 30
    assert keys - names_in_sources(root) == set()
    assert [row for row in rows if len(row) != 3 and len(row) != 4] == []
