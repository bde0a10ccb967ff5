#!/usr/bin/env python3
"""Keeps the numbers that docs/wifi-results.md says of the determinants.

    tools/determinants.py DIR     from DIR, which has runs.csv and results.json of wifi/determinants, into python/tests/determinants.json
"""

import json
import sys
from pathlib import Path
from statistics import median

from marline.determinants import Options, analyse
from marline.tables import Table

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "python" / "tests" / "determinants.json"
# Figure 6.8: the window that fills the link of RP3.
OPTIMUM_BYTES = 340_000
RELATED = ("mean_cwnd_bytes", "slow_start_freq_percent", "server_burstiness")


def subject(one):
    """What the page says of the rows of one protocol, or of all."""
    window = next(each for each in one.importances if each.feature.column == "mean_cwnd_bytes")
    return {
        "largest_class_percent": round(100 * one.baseline, 4),
        "mean_window_alone_percent": round(100 * window.accuracy, 4),
        "trees": {
            tree.name: {
                "root": tree.features[tree.tree.feature].column,
                "accuracy_percent": round(100 * tree.confusion.accuracy, 4),
                "held_back_percent": round(100 * tree.held_back.accuracy, 4),
            }
            for tree in one.selections
        },
        "rank_correlations": {
            within.group: {
                feature.column: round(rho, 4)
                for feature, rho in within.correlations.items()
                if feature.column in RELATED
            }
            for within in one.within
        },
    }


def share(windows, limit):
    """The percentage of windows below a limit."""
    return round(100 * sum(window < limit for window in windows) / len(windows), 1)


def transfers(path):
    """Of each protocol at each client: medians, and the smallest mean window in units of what the link takes in a round trip."""
    columns = ["variant", "site", "mean_cwnd_bytes", "goodput_mbps", "min_rtt_s"]
    rows = Table.open(path).load(columns, "it is runs.csv of wifi/determinants")
    keys = list(zip(rows.texts("variant"), rows.texts("site"), strict=True))
    numbers = rows.numbers(columns[2:], [True] * len(keys))
    result = {}
    for key in dict.fromkeys(keys):
        windows, rates, round_trips = zip(*(row for row, of in zip(numbers.tolist(), keys, strict=True) if of == key), strict=True)
        taken = max(rates) * 1e6 / 8 * min(round_trips)
        result.setdefault(key[0], {})[key[1]] = {
            "median_window_bytes": round(median(windows)),
            "median_mbps": round(median(rates), 3),
            "smallest_window_of_path": round(min(windows) / taken, 3),
            "below_optimum_percent": share(windows, OPTIMUM_BYTES),
            "below_half_of_it_percent": share(windows, OPTIMUM_BYTES / 2),
        }
    return result


def main(directory):
    path = directory / "runs.csv"
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    report = analyse(path, Options(group="site"), progress=True)
    by_site = analyse(path, Options(by="site"), progress=True)
    kept = {
        "experiment": results["experiment"],
        "repeats": results["repeats"],
        "digest": results["digest"],
        "rows": report.rows,
        "subjects": {one.name or "all": subject(one) for one in report.subjects},
        "roots_by_site": {
            one.name: one.selections[-1].features[one.selections[-1].tree.feature].column
            for one in by_site.subjects
            if one.name and hasattr(one.selections[-1].tree, "feature")
        },
        "transfers": transfers(path),
    }
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
