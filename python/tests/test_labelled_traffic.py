"""The steps of `make flows` before and after packets are captured: pages, plans, labels."""

import json
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from labels import LabelError, labelled
from pages import Recipe, build, cloned, live
from plan import CLIENTS, visits

PUBLISHED = Path(__file__).resolve().parents[2] / "experiments" / "published"


def test_a_page_has_the_objects_and_the_bytes_of_the_published_one(tmp_path: Path) -> None:
    for recipe in (cloned(PUBLISHED)[0], cloned(PUBLISHED)[9], live(PUBLISHED)[0]):
        page = build(recipe, tmp_path, 1)
        files = list((tmp_path / recipe.name).iterdir())
        assert len(files) == len(page.urls) == sum(recipe.counts.values())
        assert sum(file.stat().st_size for file in files) == pytest.approx(recipe.size, rel=0.1)
        text = (tmp_path / recipe.name / "index.html").read_text()
        assert all(url in text for url in page.objects)


def test_equal_seeds_give_equal_pages_and_others_do_not(tmp_path: Path) -> None:
    recipe = Recipe("some", {"html": 1, "css": 1, "js": 1, "image": 2, "other": 1}, 50_000)
    content = []
    for at, seed in enumerate((1, 1, 2)):
        build(recipe, tmp_path / str(at), seed)
        content.append({file.name: file.read_bytes() for file in (tmp_path / str(at) / "some").iterdir()})
    assert content[0] == content[1] != content[2]


def test_each_page_is_loaded_by_each_client_once_a_round(tmp_path: Path) -> None:
    pages = [build(recipe, tmp_path, 1) for recipe in cloned(PUBLISHED)[:3]]
    planned = visits(pages, 2, "seed")
    assert planned == visits(pages, 2, "seed")
    made = sorted((visit.url, visit.client, visit.http) for visit in planned)
    assert made == sorted((page.url, client, http) for page in pages for client, http, _ in CLIENTS for _ in range(2))
    # But where a round begins, which the driver sees to.
    assert all(one.url != other.url for one, other in pairwise(planned[: len(planned) // 2]))


def capture(directory: Path, flows: list[tuple[int, str, str | None]], log: list[tuple[float, int, str]]) -> None:
    """Flows of one second at 10 s of the capture: port, transport, version; and requests: time, port, version."""
    rows = "".join(
        f", ({port}, 443, '{transport}', 10.0, {repr(version) if version else 'NULL'})"
        for port, transport, version in flows
    )
    duckdb.execute(
        "COPY (SELECT row_number() OVER () AS flow_id, start_s, start_s + 1 AS end_s, '10.77.0.2' AS client_ip, "
        "client_port, server_port, transport, http_version, CASE WHEN http_version IS NOT NULL THEN 'keylog' END AS "
        f"label_source FROM (VALUES (4000, 9, 'udp', 2.0, NULL){rows}) AS rows(client_port, server_port, transport, "
        f"start_s, http_version)) TO '{directory / 'flows.parquet'}' (FORMAT PARQUET)"
    )
    lines = [json.dumps({"time": time, "client": f"10.77.0.2:{port}", "http_version": of}) for time, port, of in log]
    (directory / "access.jsonl").write_text("\n".join(lines) + "\n")
    (directory / "marker").write_text("1700000002.0")


def test_labels_of_two_sources_are_compared_and_those_that_differ_are_dropped(tmp_path: Path) -> None:
    at = 1_700_000_010.5
    capture(
        tmp_path,
        [(1, "tcp", "h1"), (2, "tcp", "h2"), (3, "udp", "h3"), (4, "tcp", None), (5, "tcp", None), (6, "tcp", "h1")],
        [(at, 1, "1.1"), (at, 2, "1.1"), (at, 3, "3"), (at, 3, "2"), (at, 4, "2"), (at + 60, 6, "2")],
    )
    found, agreement = labelled(
        duckdb.connect(), tmp_path / "flows.parquet", tmp_path / "access.jsonl", tmp_path / "marker"
    )
    assert agreement.to_json() == {"agree": 2, "differ": 1, "handshake_only": 1, "server_log_only": 1, "neither": 1}
    rows = found.order("client_port").project("client_port, http_version, label_source, start_s").fetchall()
    assert rows == [
        (1, "h1", "keylog", 1_700_000_010.0),
        (2, None, None, 1_700_000_010.0),
        (3, "h3", "keylog", 1_700_000_010.0),
        (4, "h2", "server_log", 1_700_000_010.0),
        (5, None, None, 1_700_000_010.0),
        (6, "h1", "keylog", 1_700_000_010.0),
    ]


def test_a_capture_without_its_beginning_has_no_labels(tmp_path: Path) -> None:
    capture(tmp_path, [(1, "tcp", "h1")], [(1.0, 1, "1.1")])
    duckdb.execute(
        f"COPY (SELECT * FROM '{tmp_path / 'flows.parquet'}' WHERE server_port = 443) TO '{tmp_path / 'cut.parquet'}'"
    )
    with pytest.raises(LabelError, match="lacks the datagram that says when it began"):
        labelled(duckdb.connect(), tmp_path / "cut.parquet", tmp_path / "access.jsonl", tmp_path / "marker")
