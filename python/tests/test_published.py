"""The study's values in reports match experiments/published."""

import csv
from pathlib import Path

import numpy as np
import pytest

from marline.flows.characterise.page import PUBLISHED as SHARES
from marline.flows.characterise.page import PUBLISHED_CHANGES
from marline.flows.classify.page import PUBLISHED as ALGORITHMS
from marline.flows.sessions import session_of
from marline.flows.sessions.page import PUBLISHED_SIZES

PUBLISHED = Path(__file__).resolve().parents[2] / "experiments" / "published"
THEIRS = {"c45": "c4_5", "nbtree": "nb_tree", "bayesnet": "bayes_net", "random_forest": "random_forest"}


def rows(name: str) -> list[dict[str, str]]:
    lines = (PUBLISHED / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_algorithms_are_those_of_table_3_1() -> None:
    table = {(row["dataset"], row["algorithm"]): row for row in rows("002_table3_1_classifier_evaluation.csv")}
    for ours, theirs in THEIRS.items():
        for at, dataset in enumerate(("campus", "residential")):
            row, shown = table[dataset, theirs], ALGORITHMS[ours]
            assert shown["accuracy"][at] == float(row["accuracy_percent_prose"])
            assert shown["f"][at] == float(row["f_measure_percent"])
            assert shown["kappa"][at] == float(row["kappa_percent"])


def test_characteristics_are_those_of_section_3_1() -> None:
    table = {
        (row["quantity"], row["protocol"]): float(row["value"]) for row in rows("002_ch3_traffic_characteristics.csv")
    }
    shown = {name: published for name, _, published in SHARES}
    for version in ("h1", "h2"):
        assert shown["duration below 1 s"][version] == table["flow_duration_below_1s", version]
        assert shown["duration of 1 to 10 s"][version] == table["flow_duration_1_to_10s", version]
        assert shown["duration of 100 s and more"][version] == table["flow_duration_above_100s", version]
        for end in ("client", "server"):
            packets = shown[f"20 packets and more of the {end}"][version]
            assert packets == table["flows_with_20_or_more_packets", version]
        sizes = shown["client's packets below 100 bytes in the mean"][version]
        assert sizes == table["request_packets_below_100_bytes", version]
    changes = {column: change for column, _, change in PUBLISHED_CHANGES}
    assert changes["duration_s"] == table["mean_duration_excess_over_h1", "h2"]
    assert -changes["client_bytes_per_packet"] == table["request_packet_size_reduction_vs_h1", "h2"]
    assert -changes["server_bytes_per_packet"] == table["response_packet_size_reduction_vs_h1", "h2"]


def test_sizes_are_those_of_section_4_3_5() -> None:
    table = rows("002_ch4_r_size_bins.csv")
    for network, shares in PUBLISHED_SIZES.items():
        assert list(shares) == [float(row[f"{network}_percent"]) for row in table]


def test_the_example_of_table_4_3_has_the_overlap_that_it_says() -> None:
    table = rows("002_table4_3_overlap_example.csv")
    start, end = (np.array([int(row[name]) * 1000 for row in table]) for name in ("start_ms", "end_ms"))
    found = session_of(start, end, np.arange(len(table)), np.ones(len(table), dtype=np.int64))
    assert (int(found.longest[0]), int(found.overlapping[0])) == (3, 2)
    assert found.time_overlap_percent[0] == pytest.approx(29.7, abs=0.05)
