"""The literal tables of docs/layout.md, computed anew."""

import pathlib

import pytest

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "layout.md"


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    section = DOCUMENT.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def groups_text(groups: list[list[int]]) -> str:
    return " ".join("[" + " ".join(map(str, group)) + "]" for group in groups)


def floors(total: int, size: int) -> list[range]:
    return [range(r * total // size, (r + 1) * total // size) for r in range(size)]


def cuts(total: int, size: int) -> tuple[int, list[int]]:
    granule = 64
    while granule > 1 and -(-total // granule) < size:
        granule //= 2
    granules = -(-total // granule)
    bounds = [min(r * granules // size * granule, total) for r in range(size + 1)]
    return granule, [bounds[r + 1] - bounds[r] for r in range(size)]


@pytest.mark.parametrize("row", table("Groups"), ids=lambda row: "-".join(row[:3]))
def test_groups(row):
    world, tp, attn_tp = map(int, row[:3])
    outers = range(world // tp)
    assert row[3] == groups_text([[o * tp + t for t in range(tp)] for o in outers])
    assert row[4] == groups_text([[base + a for a in range(attn_tp)] for base in range(0, world, attn_tp)])
    assert row[5] == groups_text([[o * tp + replica * attn_tp + a for replica in range(tp // attn_tp)]
                                  for o in outers for a in range(attn_tp)])


@pytest.mark.parametrize("row", table("Heads"), ids=lambda row: f"{row[0]} on {row[1]}")
def test_heads(row):
    q_heads, kv_heads = map(int, row[0].split(" / "))
    ranges = floors(q_heads, int(row[1]))
    assert row[2] == " ".join(str(len(r)) for r in ranges)
    held = [(r[0] * kv_heads // q_heads, r[-1] * kv_heads // q_heads) for r in ranges]
    assert row[3] == " ".join(str(first) if first == last else f"{first}-{last}" for first, last in held)


@pytest.mark.parametrize("row", table("Columns and rows"), ids=lambda row: f"{row[0]} on {row[1]}")
def test_cuts(row):
    granule, sizes = cuts(int(row[0]), int(row[1]))
    assert row[2:] == [str(granule), " ".join(map(str, sizes))]
    assert sum(sizes) == int(row[0])
