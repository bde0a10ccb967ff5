"""Time and memory of `sessions` over generated flows, for each engine.

    python benchmarks/sessions.py 50000000 [--engine duckdb] [--engine spark] [--repeats 3]

The flows are of a day: nineteen in twenty are of clients that open some connections to one server at once, one in
twenty is of a chain that goes on all day. They are generated for speed alone and do not represent real traffic.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from marline.flows.sessions.options import ENGINES

FLOWS = """
    SELECT
        1700000000 + start_s AS start_s,
        1700000000 + start_s + (hash(i, 2) % 90000) / 1000 AS end_s,
        '10.' || (client >> 16) || '.' || (client >> 8 & 255) || '.' || (client & 255) AS client_ip,
        CAST(1024 + hash(i, 3) % 60000 AS INTEGER) AS client_port,
        '192.0.2.' || (hash(burst, 4) % 250) AS server_ip,
        443 AS server_port,
        'tcp' AS transport,
        CAST(hash(i, 5) % 20000 AS BIGINT) AS client_bytes,
        CAST(hash(i, 6) % 1000000 AS BIGINT) AS server_bytes,
        'name-' || (hash(burst, 7) % 5000) || '.example' AS sni,
        'h2' AS http_version
    FROM (
        SELECT
            i,
            burst,
            CAST(hash(burst, 8) % 1000000 AS BIGINT) AS client,
            CASE WHEN hash(burst, 9) % 20 = 0
                THEN (i % 50000) * 1.7 + (hash(i, 10) % 1000) / 1000
                ELSE (hash(burst, i // 10, 11) % 86400000) / 1000 + (hash(i, 12) % 8000) / 1000
            END AS start_s
        FROM (SELECT i, CASE WHEN i // 50000 % 20 = 0 THEN i // 50000 ELSE i // 10 END AS burst
              FROM range({count}) AS numbers(i))
    )
"""


def main() -> None:
    """Generate, run, print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "flows.parquet"
        duckdb.connect().execute(f"COPY ({FLOWS.format(count=arguments.flows)}) TO '{path}' (FORMAT PARQUET)")
        results = set()
        for _ in range(arguments.repeats):
            for engine in arguments.engine or ENGINES:
                seconds, mebibytes, document = _timed(path, engine)
                results.add(json.dumps(document, sort_keys=True))
                print(f"{engine:7} {arguments.flows:>12,} flows {seconds:7.1f} s {mebibytes:8,.0f} MiB", flush=True)
        print(f"results: {len(results)} different; {document['sessions']:,} sessions")
        sys.exit(len(results) > 1)


def _timed(path: Path, engine: str) -> tuple[float, float, dict[str, object]]:
    """Seconds, the peak memory of all its processes together, and its output."""
    command = [sys.executable, "-m", "marline", "sessions", str(path), "--engine", engine, "--json"]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as run:
        most = 0.0
        while run.poll() is None:
            most = max(most, _memory(run.pid))
            time.sleep(0.05)
        seconds = time.monotonic() - began
        assert run.stdout is not None
        return seconds, most, json.loads(run.stdout.read())


def _memory(session: int) -> float:
    """Resident MiB of a session of processes, of which shared pages count once for each."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            total += int(fields[21]) if int(fields[3]) == session else 0
        except (OSError, IndexError):
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


if __name__ == "__main__":
    main()
