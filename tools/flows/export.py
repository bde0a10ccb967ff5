"""Captures of a set as one table of labelled flows."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from capture import Capture, CaptureError
from labels import labelled


def export(name: str, captures: Sequence[Capture], out: Path, marline: Path) -> None:
    """Write ``NAME.parquet`` and, with what became of visits and labels, ``NAME.json`` into ``out``.

    Raises :class:`CaptureError` and :class:`labels.LabelError`.
    """
    connection = duckdb.connect()
    tables, notes = [], []
    for number, of in enumerate(captures):
        if not of.packets.is_file():
            raise CaptureError(f"{of.packets}: there is no capture; run without --analyse-only")
        flows = of.directory / "flows.parquet"
        command = [str(marline), "flow", str(of.packets), "-o", str(flows), "--keylog", str(of.key_log)]
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:]
            raise CaptureError(f"{of.packets}: {last[0] if last else f'status {done.returncode}'}")
        table, agreement = labelled(connection, flows, of.access_log, of.marker)
        # The clients of all namespaces have one address; a set has one for each.
        address = f"10.77.{number}.2"
        tables.append(table.project(f"* REPLACE ('{address}' AS client_ip), '{of.link}' AS link").to_arrow_table())
        notes.append({"link": of.link, "client_ip": address, **_visits(of), "labels": agreement.to_json()})
    every = connection.from_arrow(tables[0])
    for more in tables[1:]:
        every = every.union(connection.from_arrow(more))
    unfinished = out / f".unfinished-{name}.parquet"
    every.order("start_s, client_ip, client_port").write_parquet(str(unfinished))
    unfinished.replace(out / f"{name}.parquet")
    (out / f"{name}.json").write_text(json.dumps(notes, indent=1) + "\n", encoding="utf-8")


def _visits(of: Capture) -> dict[str, Any]:
    made = [json.loads(line) for line in of.visits_log.read_text(encoding="utf-8").splitlines()]
    failed = [visit for visit in made if visit["problem"] is not None]
    clients = sorted({(visit["client"], visit["http"]) for visit in made})
    return {
        "visits": len(made),
        "failed": [f"{visit['client']} {visit['http']} {visit['url']}: {visit['problem']}" for visit in failed],
        "visits_by_client": {
            f"{client} {http}": sum((visit["client"], visit["http"]) == (client, http) for visit in made)
            for client, http in clients
        },
    }
