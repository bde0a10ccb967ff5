"""Tables of transfers for tests."""

from pathlib import Path

import numpy as np

from marline.transfers import FEATURES, GOODPUT


def table(rows: int = 120, variants: tuple[str, ...] = ("tcp", "quic"), seed: int = 1) -> list[dict[str, object]]:
    """Transfers whose throughput grows with the window alone; every other feature is noise."""
    rng = np.random.default_rng(seed)
    result: list[dict[str, object]] = []
    for at in range(rows):
        window = float(rng.uniform(1e5, 1e6))
        row: dict[str, object] = {
            "run": at,
            "variant": variants[at % len(variants)],
            "site": f"RP{1 + at // len(variants) % 4}",
            "status": "ok",
            **{feature.column: float(rng.random()) for feature in FEATURES},
        }
        row["mean_cwnd_bytes"] = window
        row[GOODPUT] = window / 1e6 * 40 - 2.5
        result.append(row)
    return result


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    """The table as CSV."""
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
