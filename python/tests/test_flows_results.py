"""The tables of docs/flows-results.md are those of `make flows`, whose numbers are in flows.json.

As a program it prints them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from marline.pages import Table
from report import algorithms, by_packets, captures, changes, confusion, curves, elsewhere, overlaps, sessions

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "experiments" / "published"
RESULTS: dict[str, Any] = json.loads(Path(__file__).with_name("flows.json").read_text(encoding="utf-8"))
TABLES = {
    "train": captures(RESULTS["sets"]["train"]),
    "test": captures(RESULTS["sets"]["test"]),
    "characteristics": changes(RESULTS["characterise"], PUBLISHED),
    "algorithms": algorithms(RESULTS["classify"], PUBLISHED),
    "confusion": confusion(RESULTS["classify"]["algorithms"][0]["confusion"]),
    "elsewhere": elsewhere(RESULTS["classify"]),
    "elsewhere-confusion": confusion(RESULTS["classify"]["algorithms"][0]["tests"][0]["confusion"]),
    "by-packets": by_packets(RESULTS["found_by_packets"]),
    "sessions": sessions(RESULTS["sessions"], PUBLISHED),
    "curves": curves(RESULTS["classify"]),
    "time-overlaps": overlaps(RESULTS["sessions"], "time_overlap_by_duration", "p"),
    "data-overlaps": overlaps(RESULTS["sessions"], "data_overlap_by_size", "r"),
}


def markdown(table: Table) -> str:
    """A table as pages in docs have it."""
    rows = [table.header, ["---"] * len(table.header), *table.rows]
    return "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in rows)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_page_is_what_was_found(name: str) -> None:
    page = (ROOT / "docs" / "flows-results.md").read_text(encoding="utf-8")
    assert markdown(TABLES[name]) in page


if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"{name}\n\n{markdown(table)}")
