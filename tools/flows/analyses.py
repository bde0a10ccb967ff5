"""The analyses of the labelled flows, and one page of all of them beside the thesis's numbers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import duckdb

from report import page

VERSIONS = ("h1", "h2", "h3")


MANY: Final = 100
"""Packets of the server from which a flow is a long one."""


class AnalysisError(Exception):
    """An analysis failed; it has said why."""


def run(out: Path, published: Path, folds: int) -> None:
    """Analyse ``train.parquet`` and ``test.parquet`` of ``out``, and write ``report.html`` and ``results.json``.

    Raises :class:`AnalysisError`.
    """
    train, test, model = out / "train.parquet", out / "test.parquet", out / "model.npz"
    judged = ["--test", str(test), "--folds", str(folds)]
    results: dict[str, Any] = {
        "sets": {name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in ("train", "test")},
        "characterise": _marline(["characterise", str(train), "-o", str(out / "characterise"), "--json"]),
        "sessions": {
            version: _marline(
                ["sessions", str(train), "--http", version, "-o", str(out / f"sessions-{version}"), "--json"]
            )
            for version in VERSIONS
        },
        "classify": _marline(["classify", "evaluate", str(train), "-o", str(out / "classify"), "--json", *judged]),
    }
    _marline(["classify", "train", str(train), "-o", str(model)])
    predicted = out / "predicted.parquet"
    _marline(["classify", "predict", str(model), str(test), "-o", str(predicted), "--threshold", "0"])
    results["found_by_packets"] = found_by_packets(predicted)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (out / "report.html").write_text(page(results, out, published), encoding="utf-8")


def found_by_packets(predicted: Path) -> list[dict[str, Any]]:
    """The share of flows whose version was found, by version and by the packets that the server sent."""
    rows = duckdb.execute(
        f"""
        SELECT http_version, count(*), 100 * avg(CAST(predicted = http_version AS DOUBLE)), server_packets >= {MANY}
        FROM read_parquet(?) WHERE http_version IS NOT NULL GROUP BY ALL ORDER BY ALL
        """,
        [str(predicted)],
    ).fetchall()
    return [
        {
            "http_version": version,
            "packets": f"{MANY} or more" if many else f"below {MANY}",
            "flows": flows,
            "found_percent": found,
        }
        for version, flows, found, many in sorted(rows, key=lambda row: (row[0], row[3]))
    ]


def _marline(arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "marline", *arguments], check=False, stdout=subprocess.PIPE)
    if done.returncode != 0:
        raise AnalysisError(f"python -m marline {' '.join(arguments)}: status {done.returncode}")
    document: dict[str, Any] = json.loads(done.stdout) if "--json" in arguments else {}
    return document
